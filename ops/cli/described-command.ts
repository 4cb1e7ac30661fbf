/**
 * A command's description without its action, as a plain value from which its help can be printed and its usage checked.
 * Commander has no such form. It covers the features that our commands use. A test compares every command with its description,
 * so using another feature fails there.
 */
import type { EventEmitter } from "node:events";
import { Argument, Command, Option } from "commander";
import { exitsOfRoom } from "./exit-codes.ts";

export interface DescribedCommand {
  readonly name: string;
  readonly description: string;
  readonly summary: string;
  readonly arguments: readonly DescribedArgument[];
  readonly options: readonly DescribedOption[];
  /** The text that follows the options in the command's help. */
  readonly afterHelp: string;
  readonly commands: readonly DescribedCommand[];
  /** True when it has an action itself, not only sub-commands. */
  readonly acts: boolean;
  /** True when options after a sub-command's name belong to that sub-command. */
  readonly positionalOptions: boolean;
  /** The command's heading in the parent's list. */
  readonly helpGroup?: string;
  /** The indexes of the command's operations in the rooms' list (room-operations.ts). */
  readonly modules?: readonly number[];
}

interface Described {
  readonly description: string;
  readonly choices?: readonly string[] | undefined;
  readonly defaultValue?: unknown;
  readonly defaultWords?: string | undefined;
}

interface DescribedArgument extends Described {
  /** The argument's name without brackets. */
  readonly name: string;
}

interface DescribedOption extends Described {
  readonly flags: string;
  readonly mandatory?: true;
}

export function describeCommand(command: Command): DescribedCommand {
  return {
    name: command.name(),
    description: command.description(),
    summary: command.summary(),
    arguments: command.registeredArguments.map((argument) => ({
      name: bracketed(argument),
      ...describedOf(argument),
    })),
    options: command.options.map((option) => ({
      flags: option.flags,
      ...(option.mandatory && { mandatory: true }),
      ...describedOf(option),
    })),
    afterHelp: afterHelpOf(command),
    commands: command.commands.map(describeCommand),
    acts: Reflect.get(command, "_actionHandler") !== null,
    ...(command.helpGroup() === "" ? {} : { helpGroup: command.helpGroup() }),
    positionalOptions: Reflect.get(command, "_enablePositionalOptions") === true,
  };
}

/** `act` becomes the action of the command and of its sub-commands. */
export function commandOf(described: DescribedCommand, act: () => Promise<void>): Command {
  const command = new Command(described.name)
    .description(described.description)
    .enablePositionalOptions(described.positionalOptions);
  if (described.summary !== "") command.summary(described.summary);
  if (described.helpGroup !== undefined) command.helpGroup(described.helpGroup);
  for (const one of described.arguments)
    command.addArgument(dressed(new Argument(one.name, one.description), one));
  for (const one of described.options) {
    const option = new Option(one.flags, one.description).makeOptionMandatory(one.mandatory === true);
    command.addOption(dressed(option, one));
  }
  if (described.afterHelp !== "") command.addHelpText("after", described.afterHelp);
  for (const one of described.commands) command.addCommand(commandOf(one, act));
  return described.acts ? command.action(act) : command;
}

function describedOf(given: Argument | Option): Described {
  const { description, argChoices: choices, defaultValue, defaultValueDescription: defaultWords } = given;
  return { description, choices, defaultValue, defaultWords };
}

function dressed<Given extends Argument | Option>(given: Given, { choices, ...described }: Described): Given {
  if (choices !== undefined) given.choices(choices);
  if (described.defaultValue !== undefined) given.default(described.defaultValue, described.defaultWords);
  return given;
}

function bracketed(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** Commander implements these texts as listeners that write to a given output. */
function afterHelpOf(command: Command): string {
  const texts: string[] = [];
  const write = (text: string) => void texts.push(text);
  (command as Command & EventEmitter).emit("afterHelp", { error: false, command, write });
  return texts.join("").replace(/\n$/, "");
}

// The commands of `nearcrawl` by name, of one or two words.

export interface NamedCommand {
  readonly name: string;
  readonly command: Command;
  /** The description of the parent command, if that has no action of its own. */
  readonly group?: { readonly says: string; readonly help?: string } | undefined;
  /** The place of the command's page in the navigation. */
  readonly page?: { readonly groupName: string | null; readonly place: number } | undefined;
}

/** Places two-word commands below one-word commands, in the order and under the headings of the pages' navigation. */
export function commandTree(all: readonly NamedCommand[]): Command[] {
  const single = all.filter(({ name }) => topOf(name) === name);
  const tops = new Map(single.map(({ name, command }) => [name, command]));
  for (const { name, command } of all) {
    const top = topOf(name);
    if (top === name) continue;
    const above = tops.get(top) ?? groupCommand(top, all);
    // Options after the sub-command's name belong to the sub-command.
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
