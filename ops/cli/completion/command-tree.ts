/** The commands as shells complete them: a flat list, one node for each command with what may follow it. */
import type { Command, Option } from "commander";

export interface CommandNode {
  /** Words after `nearcrawl`, such as `fleet drain`; empty: the command itself. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly OptionNode[];
  /** Its arguments are files. */
  readonly takesFiles: boolean;
}

export interface Word {
  readonly name: string;
  readonly summary: string;
}

export interface OptionNode extends Word {
  /** What stands behind it. */
  readonly value: "none" | "any" | "file" | "choice";
  readonly choices: readonly string[];
}

export function commandNodes(command: Command, path = ""): CommandNode[] {
  const help = command.createHelp();
  const below = help.visibleCommands(command);
  const node: CommandNode = {
    path,
    commands: below.map((one) => ({
      name: one.name(),
      summary: summaryOf(one.summary() || one.description()),
    })),
    options: help.visibleOptions(command).flatMap(optionNodes),
    takesFiles: command.registeredArguments.some((argument) => isFile(argument.name())),
  };
  const isHelp = (one: Command) => one.name() === "help";
  return [
    node,
    ...below
      .filter((one) => !isHelp(one))
      .flatMap((one) => commandNodes(one, path === "" ? one.name() : `${path} ${one.name()}`)),
  ];
}

function optionNodes(option: Option): OptionNode[] {
  const value = valueKind(option);
  return [option.long, option.short]
    .filter((name): name is string => name !== undefined && name !== null)
    .map((name) => ({
      name,
      value,
      summary: summaryOf(option.description),
      choices: option.argChoices ?? [],
    }));
}

function valueKind(option: Option): OptionNode["value"] {
  if (option.argChoices) return "choice";
  if (!option.required && !option.optional) return "none";
  return isFile(/[<[]([^\]>]+)/.exec(option.flags)?.[1] ?? "") ? "file" : "any";
}

const isFile = (name: string) => /file|folder|path|fixture/i.test(name);

/** One line, without what shells read themselves. */
function summaryOf(text: string): string {
  return text
    .split("\n")[0]!
    .replace(/[`"'\\$:[\]]/g, "")
    .slice(0, 100);
}
