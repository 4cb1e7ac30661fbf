/** `nearcrawl fleet`: who crawls, and crawlers that are to leave or to come back. */
import { Command } from "commander";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { fleetList } from "#coordinator/fleet/fleet-list-reads";
import type { Database } from "#db/connect";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext, exitCodes } from "../command-context.ts";
import { type DatabaseOptions, withDatabaseOptions } from "../database-options.ts";
import { budgetCommand } from "../fleet/budget.ts";
import { domainSetsCommand } from "../fleet/domain-sets.ts";
import { failuresCommand } from "../fleet/failures.ts";
import { incidentsCommand } from "../fleet/incidents.ts";
import { invitationsCommand, revokeInvitationCommand } from "../fleet/invitations.ts";
import { inviteCommand, reinviteCommand } from "../fleet/invite.ts";
import { killCommand, revokeCommand, rotateCommand } from "../fleet/keys.ts";
import { absencesCommand, logCommand, movesCommand } from "../fleet/log.ts";
import { moveCommand } from "../fleet/move.ts";
import { showCommand } from "../fleet/show.ts";
import { trustCommand } from "../fleet/trust.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { fleetText } from "../fleet-text.ts";
import { printAnswer } from "../output.ts";
import { readDatabase } from "../read-database.ts";

export function fleetCommand(): Command {
  const command = new Command("fleet")
    .description(
      "the crawlers: who is there and what each has; invite one, drain one, take it back or shut it out",
    )
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no crawler of that name.\n\nExamples:\n  nearcrawl fleet list\n  nearcrawl fleet show athens\n  nearcrawl fleet invite --name athens --capacity 50000\n  nearcrawl fleet rotate athens\n  nearcrawl fleet drain athens\n  nearcrawl fleet resume athens\n  nearcrawl fleet incidents --name athens --since 24h\n  nearcrawl fleet budget athens --pages-per-day 50000\n  nearcrawl fleet domain-sets athens .gr lang:el\n  nearcrawl fleet log athens\n  nearcrawl fleet failures --blame crawler",
    );
  command.addCommand(
    withWatch(withDatabaseOptions(new Command("list")))
      .description("every crawler with its state, subnets, open leases, and what it has fetched today")
      .action(async (options: WatchedOptions) => {
        await printWatched(options, async (pool) => await fleetList(pool, new Date()), fleetText);
      }),
  );
  command.addCommand(incidentsCommand());
  command.addCommand(trustCommand());
  command.addCommand(moveCommand());
  for (const more of [inviteCommand, reinviteCommand, invitationsCommand, revokeInvitationCommand]) {
    command.addCommand(more());
  }
  for (const more of [rotateCommand, revokeCommand, killCommand, showCommand]) command.addCommand(more());
  for (const more of [
    budgetCommand,
    domainSetsCommand,
    logCommand,
    absencesCommand,
    failuresCommand,
    movesCommand,
  ]) {
    command.addCommand(more());
  }
  command.addCommand(
    withDatabaseOptions(new Command("drain"))
      .argument("<name>", "the crawler's name")
      .description("give it no more work and hand its subnets over; it stays so until it is resumed")
      .action(async (name: string, options: DatabaseOptions) => await drain(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("resume"))
      .argument("<name>", "the crawler's name")
      .description("take a drained crawler back: it is given what is nearest to it")
      .action(async (name: string, options: DatabaseOptions) => await resume(name, options)),
  );
  return command;
}

async function drain(name: string, options: DatabaseOptions): Promise<void> {
  await change(name, options, {
    action: "crawler-drained",
    make: async ({ pool }) => await createCrawlerStore(pool).drain(name, new Date()),
    text: `${name} gets no more leases, and its subnets go to others (nearcrawl fleet list shows how far that is)`,
  });
}

async function resume(name: string, options: DatabaseOptions): Promise<void> {
  await change(name, options, {
    action: "crawler-resumed",
    make: async ({ pool }) => await createCrawlerStore(pool).resume(name, new Date()),
    text: `${name} is taken back and is given what is nearest to it`,
  });
}

/** Running coordinators hear of it by a notice of the database. */
async function change(
  name: string,
  options: DatabaseOptions,
  {
    action,
    make,
    text,
  }: {
    readonly action: string;
    readonly make: (database: Database) => Promise<boolean>;
    readonly text: string;
  },
): Promise<void> {
  const { isThere, entry } = await readDatabase(commandContext(options), async (database) => {
    const made = await make(database);
    if (made) await recordCommand(database.pool, { action, target: name, words: text });
    const fleet = await fleetList(database.pool, new Date());
    return { isThere: made, entry: fleet.find((one) => one.name === name) };
  });
  if (!isThere) {
    process.stderr.write(`nearcrawl: there is no crawler "${name.slice(0, 100)}": nearcrawl fleet list\n`);
    process.exitCode = exitCodes.notFound;
    return;
  }
  printAnswer(options, entry, text);
}
