/** The commands of `nearcrawl` by name, of one or two words. */
import { Command } from "commander";
import { exitsOfRoom } from "./exit-codes.ts";

export interface NamedCommand {
  readonly name: string;
  readonly command: Command;
  /** The description of the command above it, where that does nothing itself. */
  readonly group?: { readonly says: string; readonly help?: string } | undefined;
  /** Its page's place in the navigation. */
  readonly page?: { readonly groupName: string | null; readonly place: number } | undefined;
}

/** Places two-word commands below one-word ones, in the order and under the headings of the pages' navigation. */
export function commandTree(all: readonly NamedCommand[]): Command[] {
  const single = all.filter(({ name }) => topOf(name) === name);
  const tops = new Map(single.map(({ name, command }) => [name, command]));
  for (const { name, command } of all) {
    const top = topOf(name);
    if (top === name) continue;
    const above = tops.get(top) ?? groupCommand(top, all);
    // Options after the sub-command's name are its own.
    tops.set(top, above.enablePositionalOptions().addCommand(command));
  }
  const placed = [...tops].map(([top, command]) => {
    const { groupName, place } =
      all.find(({ name, page }) => page?.groupName && topOf(name) === top)?.page ?? {};
    return { command: groupName ? command.helpGroup(`${groupName}:`) : command, place: place ?? 0 };
  });
  return placed.sort((a, b) => a.place - b.place).map(({ command }) => command);
}

function groupCommand(top: string, all: readonly NamedCommand[]): Command {
  const group = all.find((one) => one.group !== undefined && topOf(one.name) === top)?.group;
  if (group === undefined) throw new TypeError(`no operation says what nearcrawl ${top} is`);
  return new Command(top).description(group.says).addHelpText("after", `\n${exitsOfRoom}${group.help ?? ""}`);
}

export const topOf = (name: string): string => name.replace(/ .*/, "");
