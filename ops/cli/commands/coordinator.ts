/** `nearcrawl coordinator`: the coordinator alone, and the keys of the crawlers that may connect to it. */

import { join, resolve } from "node:path";
import { Command } from "commander";
import type { Pool } from "pg";
import { listeningAt } from "#coordinator/config";
import { noteOwnChanges } from "#coordinator/database/audit-log";
import { startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { policyNames } from "#coordinator/place/delegation/policies/policies";
import { refuseOtherDatabase } from "#coordinator/run/journal/epoch-store";
import { contactWarnings } from "#coordinator/run/opt-outs/start";
import { portToListenAt } from "#coordinator/start-web";
import { linkMinutes } from "#core/access-types";
import { UsageError } from "#core/errors";
import { createLog, type Log } from "#core/log";
import { keptAsideWords, restartWords, type ServerEvent } from "#db/connect";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { softwareVersion } from "#protocol/software-version";
import { recordCommand } from "../audit-command-change.ts";
import {
  type ContextOptions,
  commandContext,
  contextOfStart,
  contradictedDatabase,
  journalRootOf,
  openSearchAuthorization,
  searchFolderOf,
  socketPathOf,
  withDatabase,
  writeCurrentRun,
} from "../command-context.ts";
import { checkedContact, contactOption, requireContact } from "../contact.ts";
import { newCrawlerKey } from "../crawler-key.ts";
import { exitCodes } from "../exit-codes.ts";
import { ownSignInLink } from "../issue-command-link.ts";
import { allowOption } from "../options.ts";
import { printJson } from "../output.ts";
import { withPlaceOptions } from "../read-database.ts";
import { registryHost } from "../registry/run-command.ts";
import { keepReleases, type ReleaseStores, releaseStores } from "../release/automatic-releases.ts";
import { keepWatchdogCalm, untilAskedToStop } from "../service-process.ts";
import { readCoordinatorSettings, withPlaces } from "../setup/coordinator-settings.ts";

interface CoordinatorOptions extends ContextOptions {
  readonly config?: string;
  readonly listen?: string;
  readonly policy?: string;
  readonly contact?: string;
  readonly allow?: readonly string[];
  readonly clockIsRight?: boolean;
}

interface AddCrawlerOptions extends ContextOptions {
  readonly pagesPerDay?: string;
  readonly json?: boolean;
}

export function coordinatorCommand(): Command {
  const command = withPlaceOptions(new Command("coordinator"))
    .description("run the coordinator alone: crawlers connect to it, people look at its web page")
    .option(
      "--config <file>",
      "settings as TOML or JSON (default: coordinator.toml in the home folder); flags win over it",
    )
    .option(
      "--listen <address:port>",
      "where to listen (default 127.0.0.1:7411; TLS is needed beyond loopback)",
    )
    .option("--policy <name>", policyNames.join(", "))
    .option(...contactOption)
    .option(...allowOption)
    .option(
      "--clock-is-right",
      "start although the clock is far from the time at which the database was last written",
    )
    .addHelpText(
      "after",
      `
Examples:
  nearcrawl coordinator --contact you@example.org
  nearcrawl coordinator --config coordinator.toml --listen 127.0.0.1:8000
  nearcrawl coordinator add-crawler athens`,
    )
    // add-crawler has options with the same names.
    .enablePositionalOptions()
    .action((options: CoordinatorOptions) => runCoordinator(options));
  command.addCommand(
    withPlaceOptions(new Command("add-crawler"))
      .description(
        "issue a key for a crawler (a new one if it has one already, in place of its identity) and " +
          "print it once; partners' crawlers join by nearcrawl fleet invite",
      )
      .argument("<name>", "letters, digits, dot, dash, underscore; lower case")
      .option("--pages-per-day <n>", "what it may be given a day")
      .option("--json", "print for programs")
      .action((name: string, options: AddCrawlerOptions) => addCrawler(name, options)),
  );
  return command;
}

async function runCoordinator(options: CoordinatorOptions): Promise<void> {
  const context = contextOfStart(options);
  const { settingsFile: file } = context;
  const config = withPlaces(file, () => requireContact(coordinatorSettings(file, options)));
  const contradiction = contradictedDatabase(context, options);
  for (const words of [...contactWarnings(config), ...(contradiction === null ? [] : [contradiction])])
    process.stderr.write(`nearcrawl: ${words}\n`);
  const log = createLog({ level: config.logLevel, name: "coordinator" });
  // Called first, because a migration may take longer than a watchdog waits.
  keepWatchdogCalm((words) => process.stderr.write(`nearcrawl: ${words}\n`));
  const version = softwareVersion;
  const server = serverFollower(log);
  const work = async (database: Database) => {
    await refuseOtherDatabase(database, journalRootOf(context.home));
    await migrate(database);
    const asked = untilAskedToStop();
    let here = listeningAt(config, await portToListenAt(config.listen));
    for (let isFirst = true; ; isFirst = false) {
      const coordinator = await startCoordinator({
        config: here,
        database,
        log,
        version,
        clockIsRight: options.clockIsRight ?? false,
        snapshotFolder: join(context.home, "snapshots"),
        searchFolder: searchFolderOf(context.home),
        searchAuthorization: openSearchAuthorization(),
        journalRoot: journalRootOf(context.home),
        socketPath: socketPathOf(context.home),
        keepReleases: async (now, pool) =>
          await keepReleases({ stores: releaseStoresOf(pool, log), home: context.home, version, log }, now),
        registryHost: registryHost({
          own: { entry: process.argv[1] ?? "", execArgv: process.execArgv },
          home: context.home,
          schema: context.schema,
          databaseUrl: database.url,
          filesFolder: config.registry.filesFolder,
          bounds: { minutes: config.registry.jobMinutes, megabytes: config.registry.jobMegabytes },
        }),
      });
      const { webUrl } = coordinator;
      writeCurrentRun(context, {
        schema: context.schema,
        webUrl,
        pid: process.pid,
        resolvers: config.resolvers,
        // The file of `nearcrawl up` is not the operator's, so it is not recorded.
        settingsFile: process.send || options.config === undefined ? null : resolve(options.config),
      });
      process.stdout.write(`coordinator at ${webUrl}, ${database.description}\n`);
      if (isFirst && !process.send) {
        if (context.databaseUrl === null) await printSignInLink(database);
        await sayWithoutRegistry(database);
      }
      if (isFirst) process.send?.({ type: "listening", webUrl });
      const end = await Promise.race([
        asked,
        coordinator.hasToStartOver.then(() => "start-over" as const),
        // A supervisor detects by itself that the server was lost.
        ...(process.send ? [] : [server.givenUp]),
      ]);
      if (server.error !== null)
        setTimeout(() => process.exit(exitCodes.failed), stopWithoutDatabaseMs).unref();
      await coordinator.stop();
      if (server.error !== null) throw server.error;
      if (end !== "start-over") return;
      // Crawlers know the coordinator by this address.
      here = listeningAt(config, Number(new URL(webUrl).port) || here.listen.port);
    }
  };
  await withDatabase(context, work, { onServer: server.onServer });
}

/** Limit for stopping a coordinator whose database is gone. */
const stopWithoutDatabaseMs = 5000;

/** Logs the embedded server's events. `givenUp` resolves when the server has died too often. */
function serverFollower(log: Log) {
  let giveUp: () => void = () => {};
  const follower = {
    error: null as Error | null,
    givenUp: new Promise<void>((resolve) => {
      giveUp = resolve;
    }),
    onServer: (event: ServerEvent) => {
      if (event.type === "kept-aside") {
        log.warn({ folder: event.folder }, keptAsideWords(event.folder));
        return;
      }
      if (event.type === "restarted") {
        log.warn({ times: event.times }, restartWords(event.times));
        return;
      }
      log.error({ error: event.error }, "the embedded Postgres died too often, and is not started again");
      follower.error = event.error;
      giveUp();
    },
  };
  return follower;
}

/** In the audit log, the coordinator itself is named as the author of its own changes. */
function releaseStoresOf(pool: Pool, log: Log): ReleaseStores {
  const note = noteOwnChanges({ pool, log, now: () => new Date() });
  return {
    ...releaseStores(pool),
    record: async (change) => await note(change),
  };
}

/** With the embedded database, whoever starts the coordinator is its operator. */
async function printSignInLink({ pool }: Database): Promise<void> {
  // Other people may read logs and pipes.
  if (!process.stdout.isTTY) return void process.stdout.write("sign in: nearcrawl sign-in prints a link\n");
  const { url } = await ownSignInLink(pool);
  const words = `as operator, once, within ${linkMinutes.usual} minutes; another: nearcrawl sign-in`;
  process.stdout.write(`sign in: ${url}\n  (${words})\n`);
}

/** The coordinator crawls without a registry, but having a single large subnet needs an explanation. */
async function sayWithoutRegistry({ pool }: Database): Promise<void> {
  const { rows } = await pool.query("select from registry_generation where state = 'applied' limit 1");
  if (rows.length > 0) return;
  process.stdout.write(
    "no registry is imported: the whole address space is one subnet, which is enough for one crawler; nearcrawl rir fetch, then rir apply --cache\n",
  );
}

function coordinatorSettings(file: string | null, options: CoordinatorOptions): Record<string, unknown> {
  const settings = readCoordinatorSettings(file);
  if (options.listen) {
    const match = /^(.+):(\d{1,5})$/.exec(options.listen);
    if (!match) throw new UsageError(`--listen ${options.listen}: must be ADDRESS:PORT`);
    settings.listen = { host: match[1]?.replace(/^\[(.*)\]$/, "$1"), port: Number(match[2]) };
  }
  if (options.contact !== undefined) settings.contact = checkedContact(options.contact);
  if (options.allow !== undefined) settings.allowSpecialPurpose = options.allow;
  if (options.policy) settings.delegation = { ...(settings.delegation as object), policy: options.policy };
  return settings;
}

async function addCrawler(name: string, options: AddCrawlerOptions): Promise<void> {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(name)) {
    throw new UsageError(
      `"${name}": a crawler's name is lower-case letters, digits, dot, dash and underscore`,
    );
  }
  const pagesPerDay = options.pagesPerDay === undefined ? undefined : Number(options.pagesPerDay);
  if (pagesPerDay !== undefined && !(Number.isInteger(pagesPerDay) && pagesPerDay >= 0)) {
    throw new UsageError(`--pages-per-day ${options.pagesPerDay}: must be a whole number`);
  }
  const { key, keyHash } = newCrawlerKey();
  const crawlerId = await withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    const store = createCrawlerStore(database.pool);
    const budget = pagesPerDay === undefined ? {} : { pagesPerDay };
    const number = await store.register({ name, keyHash, ...budget });
    const words = `A key was issued for ${name} (crawler ${number}); one that it had before opens nothing any more.`;
    const change = {
      action: "crawler-key-issued",
      target: name,
      words,
      after: { crawlerId: number, ...budget },
    };
    await recordCommand(database.pool, change);
    return number;
  });
  if (options.json) printJson({ crawlerId, name, key });
  else process.stdout.write(`crawler ${name} (number ${crawlerId}); its key, shown this once:\n${key}\n`);
}
