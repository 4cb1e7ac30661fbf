/**
 * Commands made from operations. Their arguments and options come from the operation's parameters and the body's schema. They
 * print the page's text, or the API's answer (`--json`).
 */
import { setTimeout as delay } from "node:timers/promises";
import { Command, Option } from "commander";
import { z } from "zod";
import { type Field, fieldsIn } from "#coordinator/ask/fields";
import type { AnyOperation, Command as OperationCommand } from "#coordinator/ask/operation";
import { acceptOf } from "#coordinator/ask/text-rendering";
import type { ApiOperation } from "#coordinator/web/api-operation";
import { placedPages } from "#coordinator/web/navigation";
import { UsageError } from "#core/errors";
import { timerMs } from "#core/timer-ms";
import { type Answer, askCoordinator } from "./ask-coordinator.ts";
import { ownName } from "./audit-command-change.ts";
import { commandContext } from "./command-context.ts";
import { type ConfirmOptions, confirmedByTyping, yesOption } from "./confirm-by-typing.ts";
import type { NamedCommand } from "./described-command.ts";
import { exitCodes, exitsOfRoom, tellFailure } from "./exit-codes.ts";
import { printJson, terminalPaper } from "./output.ts";
import { type DatabaseOptions, withDatabaseOptions } from "./read-database.ts";
import { untilAskedToStop } from "./service-process.ts";

interface RoomCommand extends OperationCommand {
  readonly operation: AnyOperation;
  readonly room: string;
}

export type RoomOptions = DatabaseOptions & ConfirmOptions & Readonly<Record<string, unknown>>;

const usualOf = ({ usual }: RoomCommand, name: string, { isNeeded }: Field) => ({
  isNeeded: isNeeded && usual?.(ownName())[name] === undefined,
});

/** Makes the operations' commands. Their help uses the texts of the API's description. */
export function commandsOf(operations: readonly ApiOperation[], room: string): NamedCommand[] {
  return (operations as readonly AnyOperation[]).flatMap((operation) =>
    [operation.command ?? []].flat().map((command) => {
      const { name, group, help = "", body } = command as OperationCommand;
      const { description } = operation;
      const says = body || description === undefined ? "" : `\n\n${description}`;
      const own = { ...(command as OperationCommand), operation, room, help: `${says}${help}` };
      return {
        ...{ name, group, page: placedPages([operation])[0] },
        command: roomCommand({ ...own, name: name.split(" ").at(-1)! }),
      };
    }),
  );
}

function roomCommand(given: RoomCommand): Command {
  const { operation, takes = "", help = "" } = given;
  const command = new Command(given.name).description(given.says ?? operation.summary);
  const named = takes.split(" ").filter((name) => name !== "");
  const path = Object.keys(operation.parameters?.path ?? {});
  const fields = fieldsOf(operation);
  for (const name of path) command.argument(`<${name}>`, fields[name]?.words ?? "");
  for (const name of named) {
    const { words, isNeeded } = fields[name.replace(/\.*$/, "")] ?? { words: "", isNeeded: true };
    command.argument(isNeeded ? `<${name}>` : `[${name}]`, words);
  }
  const left = [...path, ...named.map((name) => name.replace(/\.*$/, "")), "confirmation"];
  const without = [...left, ...(given.without ?? "").split(" "), ...(given.body ? Object.keys(fields) : [])];
  for (const [name, field] of Object.entries(fields))
    if (!without.includes(name) || (given.body && name === "words"))
      command.addOption(optionOf(given.named?.[name] ?? name, { ...field, ...usualOf(given, name, field) }));
  if (operation.method === "get" && fields.format === undefined)
    command.addOption(optionOf("format", fieldOfText));
  withDatabaseOptions(command);
  if (operation.method === "get")
    command.option("--watch [seconds]", "asks again and again until it is interrupted (default: every 2 s)");
  if (given.goesByFile)
    command.option(
      "--config <file>",
      "the coordinator's settings (default: coordinator.toml in the home folder)",
    );
  if (given.follows !== undefined) command.addOption(yesOption());
  return command.addHelpText("after", `\n${exitsOfRoom}${help}`).action(async (...all: unknown[]) => {
    const options = all.at(-2) as RoomOptions;
    await run(given, all.slice(0, -2) as (string | string[] | undefined)[], options);
  });
}

async function run(
  given: RoomCommand,
  args: readonly (string | readonly string[] | undefined)[],
  options: RoomOptions,
): Promise<void> {
  const { operation, follows } = given;
  const path = Object.keys(operation.parameters?.path ?? {});
  const inPath = Object.fromEntries(path.map((name, at) => [name, String(args[at] ?? "")]));
  const typed = String(args[0] ?? "");
  if (follows !== undefined) {
    const deed = { follows: `${typed}: ${follows}`, typed, asked: `“${typed}”` };
    if (!(await confirmedByTyping(options, async () => deed))) return;
  }
  const values = { ...valuesOf(given, args.slice(path.length), options), confirmation: typed };
  const words = args.flat().filter((one) => one !== undefined);
  const body = given.body?.(words, options) ?? bodyOf(operation, values);
  const question = {
    room: given.room,
    ...{ method: operation.method, path: addressOf(operation, inPath, queryOf(operation, values)) },
    accept: acceptOf(formFor(options), given.part),
    ...(operation.method === "get" ? {} : { body }),
    setsUp: given.setsUp === true,
  };
  const ask = async () => tell(await askCoordinator(commandContext(options), question), options);
  if (options.watch === undefined) await ask();
  else await watched(ask, secondsOf(options.watch));
}

const usualWatchSeconds = 2;

function secondsOf(asked: unknown): number {
  const seconds = asked === true ? usualWatchSeconds : Number(asked);
  if (seconds >= 0.5 && seconds <= 86_400) return seconds;
  throw new UsageError(
    `--watch ${String(asked).slice(0, 40)}: must be a number of seconds from 0.5 to 86400`,
  );
}

/** Repeats until interrupted and redraws a terminal each time. Failures are printed, and the next round tries again. */
async function watched(ask: () => Promise<void>, seconds: number): Promise<void> {
  const { stdout } = process;
  const stopping = untilAskedToStop();
  const clear = () => void (stdout.isTTY && stdout.write("\x1b[H\x1b[2J"));
  clear();
  await ask();
  while ((await Promise.race([stopping, delay(timerMs(seconds * 1000))])) === undefined) {
    clear();
    await ask().catch(tellFailure);
  }
  process.exitCode = exitCodes.interrupted;
}

function formFor({ json, csv, range }: RoomOptions) {
  if (csv) return "text/csv";
  if (json) return "application/json";
  return { ...terminalPaper(), withHistory: range !== undefined };
}

function addressOf(
  { path }: ApiOperation,
  inPath: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(inPath[name] ?? ""));
  const asked = `${new URLSearchParams(query)}`;
  return asked === "" ? filled : `${filled}?${asked}`;
}

function tell({ status, type, isEmpty, body }: Answer, options: RoomOptions): void {
  if (status === 404 || isEmpty) process.exitCode = exitCodes.notFound;
  if (type.startsWith("text/csv") || type.startsWith("text/plain")) return void process.stdout.write(body);
  const value = JSON.parse(body) as { readonly error?: { readonly message: string } };
  if (value?.error !== undefined) return void fail(status, value.error.message);
  if (options.csv) throw new UsageError("this answer is no table: --json has it for programs");
  printJson(value);
}

/** Faults that the operator can fix count as wrong usage, all others as failures. */
function fail(status: number, words: string): void {
  if (status === 404) return void process.stderr.write(`nearcrawl: ${words}\n`);
  throw status < 500 && status !== 429 ? new UsageError(words) : new Error(words);
}

/** Collects the fields of query, path and body. */
function fieldsOf({ parameters = {}, body }: ApiOperation): Record<string, Field> {
  const schemas = [z.object({ ...parameters.query, ...parameters.path }), ...(body ? [body.schema] : [])];
  const fields = schemas.flatMap(fieldsIn).map((field) => [field.name, field] as const);
  return Object.fromEntries(fields);
}

const fieldOfText: Pick<Field, "words" | "isNeeded" | "type" | "choices"> = {
  ...{ words: "", isNeeded: false, type: "string", choices: undefined },
};

const kebab = (name: string) =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).replaceAll("_", "-");

function optionOf(name: string, { words, isNeeded, type, choices }: typeof fieldOfText): Option {
  if (name === "format") return new Option("--csv", "as CSV");
  // An option with only one choice is a flag.
  const isFlag = type === "boolean" || choices?.length === 1;
  const several = type === "array" ? "..." : "";
  const flags = isFlag ? `--${kebab(name)}` : `--${kebab(name)} <value${several}>`;
  const option = new Option(flags, words.replace(/\.$/, "")).makeOptionMandatory(isNeeded);
  return choices === undefined || isFlag ? option : option.choices(choices);
}

function valuesOf(
  { takes = "", operation, named: optionNames = {}, usual }: RoomCommand,
  args: readonly (string | readonly string[] | undefined)[],
  options: RoomOptions,
): Record<string, unknown> {
  const named = takes.split(" ").filter((name) => name !== "");
  const fields = fieldsOf(operation);
  const given = Object.entries(fields).map(([name, { choices }]) => {
    const value = options[camel(optionNames[name] ?? name)];
    return [name, value === true && choices !== undefined ? choices[0] : value];
  });
  const words = named.map((name, at) => {
    const [plain, value] = [name.replace(/\.*$/, ""), args[at]];
    return [plain, Array.isArray(value) && fields[plain]?.type !== "array" ? value.join(" ") : value];
  });
  const all = Object.fromEntries([...given, ...words].filter(([, value]) => value !== undefined));
  return { ...usual?.(ownName()), ...all, ...(options.csv ? { format: "csv" } : {}) };
}

const camel = (name: string) => kebab(name).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function queryOf({ parameters }: ApiOperation, values: Readonly<Record<string, unknown>>) {
  const all = { ...parameters?.query, format: z.string() };
  const fields = fieldsOf({ parameters: { query: all } } as unknown as ApiOperation);
  const given = Object.entries(fields).filter(([name]) => values[name] !== undefined);
  return Object.fromEntries(
    given.map(([name, field]) => [name, String(sentValue(name, values[name], field))]),
  );
}

function bodyOf(operation: ApiOperation, values: Readonly<Record<string, unknown>>): unknown {
  if (operation.body === undefined) return {};
  const fields = fieldsOf({ ...operation, parameters: {} });
  const given = Object.entries(fields).filter(([name]) => values[name] !== undefined);
  return Object.fromEntries(given.map(([name, field]) => [name, sentValue(name, values[name], field)]));
}

/** `none` stands for null in optional numbers of the API. */
function sentValue(name: string, value: unknown, { type, mayBeNone }: Field): unknown {
  if (mayBeNone && value === "none") return null;
  if (type !== "number" && type !== "integer") return value;
  const number = Number(value);
  if (String(value).trim() === "" || !Number.isFinite(number))
    throw new UsageError(`--${kebab(name)} ${String(value).slice(0, 40)}: must be a number`);
  return number;
}
