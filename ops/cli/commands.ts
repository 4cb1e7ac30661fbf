/**
 * Every command of `nearcrawl` by its name: those with code of their own, and those that operations define. A command comes
 * either described, from the list that the build makes of all of them (commands.json beside this file: arguments, options,
 * help), or loaded, with its action. Help and wrong usage therefore load none of a command's code, and a command loads only its
 * own operations. When running from the sources there is no list, so all operations are loaded to find the command's own.
 */
import { existsSync, readFileSync } from "node:fs";
import { Command } from "commander";
import { softwareVersion } from "#protocol/software-version";
import {
  commandOf,
  commandTree,
  type DescribedCommand,
  describeCommand,
  topOf,
} from "./described-command.ts";

/** `name` is the command requested. If it is no command's name, all are described. Returns null when there is no list. */
export function describedProgram(
  name: string | undefined,
  act: () => Promise<void>,
  list: readonly DescribedCommand[] | null = readList(),
): Command | null {
  if (list === null) return null;
  const named = list.filter((one) => one.name === name);
  return programWith((named.length > 0 ? named : list).map((one) => commandOf(one, act)));
}

/** If there is a list, only the modules of the command's operations are loaded. */
export async function loadedProgram(name: string | undefined): Promise<Command> {
  const modules = readList()?.find((one) => one.name === name)?.modules;
  return programWith((await everyCommand(name, modules)).map(({ command }) => command));
}

/** Makes the list that the build writes. */
export async function describeCommands(): Promise<DescribedCommand[]> {
  return (await everyCommand()).map(({ command, modules }) => ({ ...describeCommand(command), modules }));
}

async function everyCommand(name?: string, only?: readonly number[]) {
  const ofRooms = only?.length === 0 ? [] : await roomCommands(only);
  const isNamed = (of: string) => topOf(of) === name;
  const isKnown = [...Object.keys(loaders), ...ofRooms.map((one) => one.name)].some(isNamed);
  const isWanted = (of: string) => !isKnown || isNamed(of);
  const wanted = Object.entries(loaders).filter(([of]) => isWanted(of));
  const own = await Promise.all(wanted.map(async ([of, load]) => ({ name: of, command: await load() })));
  return commandTree([...own, ...ofRooms.filter((one) => isWanted(one.name))]).map((command) => {
    const modules = ofRooms.flatMap((one) => (topOf(one.name) === command.name() ? [one.module] : []));
    return { command, modules: [...new Set(modules)] };
  });
}

async function roomCommands(only?: readonly number[]) {
  const [{ loadOperations }, { commandsOf }] = await Promise.all([
    import("#coordinator/room-operations"),
    import("./room-command.ts"),
  ]);
  const rooms = await loadOperations(only);
  return rooms.flatMap(({ module, room, operations }) =>
    commandsOf(Object.values(operations), room).map((one) => ({ ...one, module })),
  );
}

function readList(): DescribedCommand[] | null {
  const file = new URL("./commands.json", import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
}

/** Commands with code of their own, by the words after `nearcrawl`. All other commands are operations. */
const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import("./commands/init.ts")).initCommand(),
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand(),
  up: async () => (await import("./commands/up.ts")).upCommand(),
  coordinator: async () => (await import("./commands/coordinator.ts")).coordinatorCommand(),
  crawler: async () => (await import("./commands/crawler.ts")).crawlerCommand(),
  alerts: async () => (await import("./commands/alerts.ts")).alertsCommand(),
  release: async () => (await import("./commands/release.ts")).releaseCommand(),
  rir: async () => (await import("./commands/rir.ts")).rirCommand(),
  urls: async () => (await import("./commands/urls.ts")).urlsCommand(),
  "search export": async () => (await import("./search/export-command.ts")).exportCommand(),
  rank: async () => (await import("./commands/rank.ts")).rankCommand(),
  "graph export": async () => (await import("./commands/graph-export.ts")).exportCommand(),
  "fleet invite": async () => (await import("./fleet/invite.ts")).inviteCommand(),
  "fleet reinvite": async () => (await import("./fleet/invite.ts")).reinviteCommand(),
  fetch: async () => (await import("./commands/fetch.ts")).fetchCommand(),
  robots: async () => (await import("./commands/robots.ts")).robotsCommand(),
  extract: async () => (await import("./commands/extract.ts")).extractCommand(),
  database: async () => (await import("./commands/database.ts")).databaseCommand(),
  journal: async () => (await import("./commands/journal.ts")).journalCommand(),
  completion: async () =>
    (await import("./commands/completion.ts")).completionCommand(
      async () => describedProgram(undefined, async () => {}) ?? (await loadedProgram(undefined)),
    ),
};

function programWith(subCommands: readonly Command[]): Command {
  const program = new Command("nearcrawl")
    .description("A location-aware web crawler: every page is fetched by the nearest crawler.")
    .version(softwareVersion)
    // `release` has a --version option of its own.
    .enablePositionalOptions()
    .showHelpAfterError("(nearcrawl --help lists the commands)")
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 nothing found, 130 interrupted; alerts, doctor: 4 something needs attention.
A closed pipe (… | head) changes none of them; it ends what is printed with 0.
`,
    )
    .exitOverride();
  for (const command of subCommands) program.addCommand(command);
  program.commands.forEach(overrideExit);
  return program;
}

function overrideExit(command: Command): void {
  // The width lets descriptions wrap within 80 columns however long the sub-commands' names are.
  command.exitOverride().configureHelp({ minWidthToWrap: 20 });
  command.commands.forEach(overrideExit);
}
