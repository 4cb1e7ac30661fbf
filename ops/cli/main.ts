#!/usr/bin/env node
/** The `nearcrawl` command: picks the sub-command and runs it. */
import { Command } from "commander";
import { outliveReaders } from "#crawler/cli/closed-output";
import { softwareVersion } from "#protocol/software-version";
import { tellFailure } from "./failure-words.ts";

async function main(argv: readonly string[]): Promise<void> {
  const program = programWith(await commandsFor(argv[2]));
  program.commands.forEach(overrideExit);
  await program.parseAsync([...argv]);
}

function programWith(subCommands: readonly Command[]): Command {
  const program = new Command("nearcrawl")
    .description("A location-aware web crawler: every page is fetched by the nearest crawler.")
    .version(softwareVersion)
    // A release's --version is its own.
    .enablePositionalOptions()
    .showHelpAfterError("(nearcrawl --help lists the commands)")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage or input, 3 nothing found, 130 interrupted; alerts: 4 something needs attention.\nA closed pipe (… | head) changes none of them; it ends --watch and --follow with 0.\n",
    )
    .exitOverride();
  for (const command of subCommands) program.addCommand(command);
  return program;
}

const commands: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import("./commands/init.ts")).initCommand(),
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand(),
  up: async () => (await import("./commands/up.ts")).upCommand(),
  coordinator: async () => (await import("./commands/coordinator.ts")).coordinatorCommand(),
  coordinators: async () => (await import("./commands/coordinators.ts")).coordinatorsCommand(),
  crawler: async () => (await import("./commands/crawler.ts")).crawlerCommand(),
  overview: async () => (await import("./commands/overview.ts")).overviewCommand(),
  alerts: async () => (await import("./commands/alerts.ts")).alertsCommand(),
  recrawl: async () => (await import("./commands/recrawl.ts")).recrawlCommand(),
  hints: async () => (await import("./commands/hints.ts")).hintsCommand(),
  queue: async () => (await import("./commands/queue.ts")).queueCommand(),
  accuracy: async () => (await import("./commands/accuracy.ts")).accuracyCommand(),
  fleet: async () => (await import("./commands/fleet.ts")).fleetCommand(),
  release: async () => (await import("./commands/release.ts")).releaseCommand(),
  "operator-token": async () => (await import("./commands/operator-token.ts")).operatorTokenCommand(),
  "sign-in": async () => (await import("./commands/sign-in.ts")).signInCommand(),
  access: async () => (await import("./commands/access.ts")).accessCommand(),
  audit: async () => (await import("./commands/audit.ts")).auditCommand(),
  rir: async () => (await import("./commands/rir.ts")).rirCommand(),
  policy: async () => (await import("./commands/policy.ts")).policyCommand(),
  "opt-outs": async () => (await import("./commands/opt-outs.ts")).optOutsCommand(),
  "site-caps": async () => (await import("./commands/site-caps.ts")).siteCapsCommand(),
  complaints: async () => (await import("./commands/complaints.ts")).complaintsCommand(),
  who: async () => (await import("./commands/who.ts")).whoCommand(),
  explore: async () => (await import("./commands/explore.ts")).exploreCommand(),
  urls: async () => (await import("./commands/urls.ts")).urlsCommand(),
  search: async () => (await import("./commands/search.ts")).searchCommand(),
  page: async () => (await import("./commands/page.ts")).pageCommand(),
  changes: async () => (await import("./commands/changes.ts")).changesCommand(),
  channels: async () => (await import("./commands/channels.ts")).channelsCommand(),
  coverage: async () => (await import("./commands/coverage.ts")).coverageCommand(),
  rank: async () => (await import("./commands/rank.ts")).rankCommand(),
  graph: async () => (await import("./commands/graph.ts")).graphCommand(),
  fetch: async () => (await import("./commands/fetch.ts")).fetchCommand(),
  robots: async () => (await import("./commands/robots.ts")).robotsCommand(),
  extract: async () => (await import("./commands/extract.ts")).extractCommand(),
  simulate: async () => (await import("./commands/simulate.ts")).simulateCommand(),
  estimate: async () => (await import("./commands/estimate.ts")).estimateCommand(),
  evaluate: async () => (await import("./commands/evaluate.ts")).evaluateCommand(),
  database: async () => (await import("./commands/database.ts")).databaseCommand(),
  journal: async () => (await import("./commands/journal.ts")).journalCommand(),
  storage: async () => (await import("./commands/storage.ts")).storageCommand(),
  completion: async () =>
    (await import("./commands/completion.ts")).completionCommand(async () =>
      programWith(await allCommands()),
    ),
};

/** The one that is named, so that a command starts without loading the others; all of them for the help. */
async function commandsFor(name: string | undefined): Promise<Command[]> {
  const load = name === undefined ? undefined : commands[name];
  if (load) return [await load()];
  if (name === "--version" || name === "-V") return [];
  return await allCommands();
}

async function allCommands(): Promise<Command[]> {
  return await Promise.all(Object.values(commands).map((loadCommand) => loadCommand()));
}

function overrideExit(command: Command): void {
  // Descriptions wrap within 80 columns however long the sub-commands' names are.
  command.exitOverride().configureHelp({ minWidthToWrap: 20 });
  command.commands.forEach(overrideExit);
}

outliveReaders("nearcrawl");
try {
  await main(process.argv);
} catch (error) {
  tellFailure(error);
}
