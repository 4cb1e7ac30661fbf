/** `nearcrawl fleet`: who crawls, and crawlers that are to leave or to come back. */
import { Command, InvalidArgumentError } from "commander";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import type { InvitationRecord } from "#coordinator/crawlers/identity";
import { createInvitationStore } from "#coordinator/crawlers/invitation-store";
import { type GivenDomainSets, giveDomainSets, givenWords } from "#coordinator/domain-sets/assign";
import { createDomainSetStore, type DomainSetsOf } from "#coordinator/domain-sets/domain-set-store";
import { fleetList } from "#coordinator/fleet/fleet-list-reads";
import { createIncidentStore } from "#coordinator/overview/incident-store";
import { UsageError } from "#core/errors";
import { type IncidentEntry, incidentDays } from "#core/incidents";
import type { Database } from "#db/server-database";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { budgetCommand } from "../fleet/budget.ts";
import { failuresCommand } from "../fleet/failures.ts";
import { inviteCommand, reinviteCommand } from "../fleet/invite.ts";
import { killCommand, revokeCommand, rotateCommand } from "../fleet/keys.ts";
import { absencesCommand, logCommand, movesCommand } from "../fleet/log.ts";
import { moveCommand } from "../fleet/move.ts";
import { showCommand } from "../fleet/show.ts";
import { trustCommand } from "../fleet/trust.ts";
import {
  checkedName,
  nobodyOfThatName,
  printWatched,
  type WatchedOptions,
  withWatch,
} from "../fleet/watched.ts";
import { fleetText } from "../fleet-text.ts";
import { formatTable, printAnswer, printable } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export function fleetCommand(): Command {
  const command = new Command("fleet")
    .description("the crawlers and what each one has; invite, drain, resume or revoke one")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 there is no crawler of that name.\n\nExamples:\n  nearcrawl fleet list\n  nearcrawl fleet show athens\n  nearcrawl fleet invite --name athens --capacity 50000\n  nearcrawl fleet rotate athens\n  nearcrawl fleet rotate athens --signing-key\n  nearcrawl fleet drain athens\n  nearcrawl fleet resume athens\n  nearcrawl fleet incidents --name athens --since 24h\n  nearcrawl fleet budget athens --pages-per-day 50000\n  nearcrawl fleet domain-sets athens .gr lang:el\n  nearcrawl fleet log athens\n  nearcrawl fleet failures --blame crawler\n  nearcrawl fleet advise",
    );
  command.addCommand(
    withWatch(withDatabaseOptions(new Command("list")))
      .description("every crawler with its state, subnets, open leases, and what it has fetched today")
      .action(async (options: WatchedOptions) => {
        await printWatched(options, async ({ pool }) => await fleetList(pool, new Date()), fleetText);
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
      .description("give it no more work and hand over its subnets, until it is resumed")
      .action(async (name: string, options: DatabaseOptions) => await drain(name, options)),
  );
  command.addCommand(
    withDatabaseOptions(new Command("resume"))
      .argument("<name>", "the crawler's name")
      .description("resume a drained crawler: it gets the subnets nearest to it")
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
    text: `${name} is back and gets the subnets nearest to it`,
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

// `nearcrawl fleet domain-sets`: which domains and languages a crawler may have; running coordinators follow at once.

interface DomainSetOptions extends DatabaseOptions {
  readonly clear?: boolean;
}

function domainSetsCommand(): Command {
  return withDatabaseOptions(new Command("domain-sets"))
    .argument("<name>", "the crawler's name", checkedName)
    .argument("[set...]", 'one set each: .gr, "example.org not shop.example.org", ".gr lang:el"')
    .option("--clear", "hosts of every domain again")
    .description("show or change which domains and languages a crawler may have")
    .addHelpText(
      "after",
      '\nA host must be in one of the sets, and in one of those that the crawler\'s partner names, if any; it is crawled by the nearest crawler that may have it. While no page of a host is known, every language may hold it.\nExit codes: 0 done, 1 failed, 2 wrong usage or invalid sets, 3 there is no crawler of that name.\n\nExamples:\n  nearcrawl fleet domain-sets athens\n  nearcrawl fleet domain-sets athens .gr .cy lang:el\n  nearcrawl fleet domain-sets boston "not .gr"\n  nearcrawl fleet domain-sets athens --clear',
    )
    .action(async (name: string, sets: readonly string[], options: DomainSetOptions) => {
      if (options.clear === true && sets.length > 0) {
        throw new UsageError("give sets or --clear, not both");
      }
      if (options.clear !== true && sets.length === 0) await show(name, options);
      else await give(name, sets, options);
    });
}

async function show(name: string, options: DomainSetOptions): Promise<void> {
  const found = await readDatabase(
    commandContext(options),
    async ({ pool }) => await createDomainSetStore(pool).of(name),
  );
  if (found === null) return nobodyOfThatName(name);
  printAnswer(options, found, textOf(found));
}

async function give(name: string, sets: readonly string[], options: DomainSetOptions): Promise<void> {
  const given = await readDatabase(commandContext(options), async ({ pool }): Promise<GivenDomainSets> => {
    const made = await giveDomainSets({ name, sets }, createDomainSetStore(pool));
    if (made.type !== "given") return made;
    const { before, operator: after } = made.changed;
    const change = { action: "crawler-domain-sets-given", target: name, words: givenWords(made.changed) };
    await recordCommand(pool, { ...change, before, after });
    return made;
  });
  if (given.type === "no-crawler") return nobodyOfThatName(name);
  if (given.type === "refused") throw new UsageError(given.reason);
  printAnswer(options, given.changed, givenWords(given.changed));
}

function textOf({ name, operator, partner }: DomainSetsOf): string {
  const lines = [
    `${name} may have ${operator.length === 0 ? "hosts of every domain" : `hosts in ${operator.join(" or ")}`}`,
    ...(partner.length === 0 ? [] : [`  its partner narrows that to ${partner.join(" or ")}`]),
  ];
  return lines.join("\n");
}

// `nearcrawl fleet incidents`: what crawlers and strangers did that they should not have done.

interface IncidentOptions extends DatabaseOptions {
  readonly name?: string;
  readonly kind?: string;
  readonly since: number;
}

const units = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

function incidentsCommand(): Command {
  return withDatabaseOptions(new Command("incidents"))
    .description(
      `what was rejected and why, by crawler, kind and hour, the latest first (kept for ${incidentDays} days)`,
    )
    .option("--name <name>", "of this crawler only")
    .option("--kind <kind>", "of this kind only, such as bad-signature")
    .option("--since <time>", "at most this long ago: 90m, 24h, 7d", timeBack, 7 * units.d)
    .action(async (options: IncidentOptions) => {
      const incidents = await readDatabase(commandContext(options), async ({ pool }) => {
        const { name, kind } = options;
        return await createIncidentStore(pool).list({
          since: new Date(Date.now() - options.since),
          ...(name === undefined ? {} : { name }),
          ...(kind === undefined ? {} : { kind }),
        });
      });
      printAnswer(options, incidents, incidentsText(incidents));
    });
}

function incidentsText(incidents: readonly IncidentEntry[]): string {
  if (incidents.length === 0) return "no incidents";
  return formatTable(
    [
      { title: "last (UTC)" },
      { title: "crawler" },
      { title: "kind" },
      { title: "times", align: "right" },
      { title: "from" },
      { title: "what happened" },
    ],
    incidents.map(({ lastAt, crawler, kind, count, remoteAddress, words }) => [
      lastAt.toISOString().slice(0, 16).replace("T", " "),
      crawler ?? "(unknown client)",
      kind,
      String(count),
      printable(remoteAddress ?? "", 60),
      printable(words, 160),
    ]),
  );
}

function timeBack(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const ms = Number(count) * (units[unit as keyof typeof units] ?? 0);
  if (ms > 0) return ms;
  throw new InvalidArgumentError("a time such as 90m, 24h or 7d is expected");
}

// `nearcrawl fleet invitations` and `revoke-invitation`: what was handed out, and what is to open nothing any more.

function invitationsCommand(): Command {
  return withDatabaseOptions(new Command("invitations"))
    .description("the invitations and their states, the latest first")
    .action(async (options: DatabaseOptions) => {
      const invitations = await readDatabase(
        commandContext(options),
        async ({ pool }) => await createInvitationStore(pool).list(new Date()),
      );
      printAnswer(options, invitations, invitationsText(invitations));
    });
}

function revokeInvitationCommand(): Command {
  return withDatabaseOptions(new Command("revoke-invitation"))
    .argument("<number-or-name>", "one invitation by its number, or all open ones of a name")
    .description("withdraw an invitation; a crawler that has joined with it stays (nearcrawl fleet revoke)")
    .action(async (which: string, options: DatabaseOptions) => await revokeInvitation(which, options));
}

async function revokeInvitation(which: string, options: DatabaseOptions): Promise<void> {
  const revoked = await readDatabase(commandContext(options), async ({ pool }) => {
    const isNumber = /^\d{1,9}$/.test(which);
    const open = isNumber ? { invitationId: Number(which) } : { name: which };
    const count = await createInvitationStore(pool).revoke(open, new Date());
    const target = isNumber ? `invitation ${which}` : which;
    const words = isNumber ? `Invitation ${which} was withdrawn.` : `${count} of ${which} were withdrawn.`;
    if (count > 0) await recordCommand(pool, { action: "invitation-revoked", target, words });
    return count;
  });
  if (revoked === 0) {
    process.stderr.write(
      `nearcrawl: invitation "${which.slice(0, 100)}" does not exist, or can no longer be used: nearcrawl fleet invitations\n`,
    );
    process.exitCode = exitCodes.notFound;
    return;
  }
  printAnswer(options, { revoked }, `withdrawn: ${revoked} ${revoked === 1 ? "invitation" : "invitations"}`);
}

function invitationsText(invitations: readonly InvitationRecord[]): string {
  if (invitations.length === 0) return "no invitations: nearcrawl fleet invite --name NAME";
  return formatTable(
    [
      { title: "number", align: "right" },
      { title: "crawler" },
      { title: "state" },
      { title: "created (UTC)" },
      { title: "by" },
      { title: "valid until (UTC)" },
      { title: "pages per day", align: "right" },
      { title: "for" },
    ],
    invitations.map((one) => [
      String(one.invitationId),
      one.name,
      one.state,
      minuteOf(one.createdAt),
      printable(one.createdBy, 30),
      minuteOf(one.expiresAt),
      one.pagesPerDay === null ? "partner's" : String(one.pagesPerDay),
      `${one.scopes.includes("crawl") ? "crawling" : "measuring"}${one.renews ? ", reissued" : ""}`,
    ]),
  );
}

const minuteOf = (date: Date): string => date.toISOString().slice(0, 16).replace("T", " ");
