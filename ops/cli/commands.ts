/**
 * Every command of `nearcrawl` by its name. It comes in described, from the list that the build makes of them all
 * (commands.json beside this file: arguments, options, help), or loaded, with what it does. So help and wrong usage start
 * nothing of a command's work, and each is written once, where its work is. From the sources there is no list, and
 * everything comes loaded.
 */
import { existsSync, readFileSync } from "node:fs";
import { Command } from "commander";
import { softwareVersion } from "#protocol/software-version";
import { commandOf, type DescribedCommand, describeCommand } from "./described-command.ts";

/** `name`: the command that is asked for; any other word stands for all of them. Null where there is no list. */
export function describedProgram(
  name: string | undefined,
  act: () => Promise<void>,
  list: readonly DescribedCommand[] | null = readList(),
): Command | null {
  if (list === null) return null;
  const named = list.filter((one) => one.name === name);
  return programWith((named.length > 0 ? named : list).map((one) => commandOf(one, act)));
}

/** `name` as above. */
export async function loadedProgram(name: string | undefined): Promise<Command> {
  const load = name === undefined ? undefined : loaders[name];
  return programWith(load ? [await load()] : await everyCommand());
}

/** What the build writes down. */
export async function describeCommands(): Promise<DescribedCommand[]> {
  return (await everyCommand()).map(describeCommand);
}

async function everyCommand(): Promise<Command[]> {
  return await Promise.all(Object.values(loaders).map((load) => load()));
}

function readList(): DescribedCommand[] | null {
  const file = new URL("./commands.json", import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
}

const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import("./commands/init.ts")).initCommand(),
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand(),
  up: async () => (await import("./commands/up.ts")).upCommand(),
  coordinator: async () => (await import("./commands/coordinator.ts")).coordinatorCommand(),
  coordinators: async () => (await import("./commands/of-rooms.ts")).coordinatorsCommand(),
  crawler: async () => (await import("./commands/crawler.ts")).crawlerCommand(),
  overview: async () => (await import("./commands/of-rooms.ts")).overviewCommand(),
  alerts: async () => (await import("./commands/alerts.ts")).alertsCommand(),
  recrawl: async () => (await import("./commands/of-rooms.ts")).recrawlCommand(),
  queue: async () => (await import("./commands/of-rooms.ts")).queueCommand(),
  accuracy: async () => (await import("./commands/of-rooms.ts")).accuracyCommand(),
  fleet: async () => await (await import("./commands/fleet.ts")).fleetCommand(),
  release: async () => (await import("./commands/release.ts")).releaseCommand(),
  "operator-token": async () => (await import("./commands/of-rooms.ts")).operatorTokenCommand(),
  "sign-in": async () => (await import("./commands/of-rooms.ts")).signInCommand(),
  access: async () => (await import("./commands/of-rooms.ts")).accessCommand(),
  audit: async () => (await import("./commands/of-rooms.ts")).auditCommand(),
  rir: async () => (await import("./commands/rir.ts")).rirCommand(),
  policy: async () => (await import("./commands/of-rooms.ts")).policyCommand(),
  "opt-outs": async () => (await import("./commands/of-rooms.ts")).optOutsCommand(),
  site: async () => (await import("./commands/of-rooms.ts")).siteCommand(),
  "site-caps": async () => (await import("./commands/of-rooms.ts")).siteCapsCommand(),
  complaints: async () => (await import("./commands/of-rooms.ts")).complaintsCommand(),
  who: async () => (await import("./commands/of-rooms.ts")).whoCommand(),
  report: async () => (await import("./commands/of-rooms.ts")).reportCommand(),
  find: async () => (await import("./commands/of-rooms.ts")).findCommand(),
  explore: async () => (await import("./commands/of-rooms.ts")).exploreCommand(),
  urls: async () => (await import("./commands/urls.ts")).urlsCommand(),
  search: async () => (await import("./commands/of-rooms.ts")).searchCommand(),
  page: async () => (await import("./commands/of-rooms.ts")).pageCommand(),
  changes: async () => (await import("./commands/of-rooms.ts")).changesCommand(),
  channels: async () => (await import("./commands/of-rooms.ts")).channelsCommand(),
  coverage: async () => (await import("./commands/of-rooms.ts")).coverageCommand(),
  rank: async () => (await import("./commands/rank.ts")).rankCommand(),
  graph: async () => (await import("./commands/graph.ts")).graphCommand(),
  fetch: async () => (await import("./commands/fetch.ts")).fetchCommand(),
  robots: async () => (await import("./commands/robots.ts")).robotsCommand(),
  extract: async () => (await import("./commands/extract.ts")).extractCommand(),
  database: async () => (await import("./commands/database.ts")).databaseCommand(),
  journal: async () => (await import("./commands/journal.ts")).journalCommand(),
  storage: async () => (await import("./commands/of-rooms.ts")).storageCommand(),
  completion: async () =>
    (await import("./commands/completion.ts")).completionCommand(
      async () => describedProgram(undefined, async () => {}) ?? (await loadedProgram(undefined)),
    ),
};

function programWith(subCommands: readonly Command[]): Command {
  const program = new Command("nearcrawl")
    .description("A location-aware web crawler: every page is fetched by the nearest crawler.")
    .version(softwareVersion)
    // A release's --version is its own.
    .enablePositionalOptions()
    .showHelpAfterError("(nearcrawl --help lists the commands)")
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed, 2 wrong usage or input, 3 nothing found, 130 interrupted; alerts: 4 something needs attention.
A closed pipe (… | head) changes none of them; it ends what is printed with 0.
`,
    )
    .exitOverride();
  for (const command of subCommands) program.addCommand(command);
  program.commands.forEach(overrideExit);
  return program;
}

function overrideExit(command: Command): void {
  // Descriptions wrap within 80 columns however long the sub-commands' names are.
  command.exitOverride().configureHelp({ minWidthToWrap: 20 });
  command.commands.forEach(overrideExit);
}
