/** `nearcrawl alerts`: what needs attention now. Scripts use its exit code. */

import { TLSSocket } from "node:tls";
import { Command, InvalidArgumentError } from "commander";
import { Agent, buildConnector, request } from "undici";
import { documentText } from "#coordinator/ask/text-rendering";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { readCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { alertSeverities, type OwnFacts } from "#coordinator/tell/overview/alert-facts";
import {
  type Alert,
  type AlertList,
  type AlertName,
  alertRules,
  ownAlertNames,
  ownAlertsOf,
  showAlerts,
} from "#coordinator/tell/overview/alert-rules";
import { alertOperations } from "#coordinator/tell/overview/alerts/alerts-ask";
import { createOverviewReads } from "#coordinator/tell/overview/overview-reads";
import { anonymousVisit } from "#coordinator/web/access";
import { canParseUrl } from "#core/ip/url-host";
import { isRunning } from "#core/running-process";
import { openDatabase } from "#db/connect";
import { lostDataFolder } from "#db/embedded-cluster";
import { runningServerUrl } from "#db/embedded-postgres";
import { type Database, withSearchPath } from "#db/server-database";
import { pinOf } from "#protocol/identity";
import { type CommandContext, commandContext } from "../command-context.ts";
import { exitCodes, exitsOfRoom } from "../exit-codes.ts";
import { printAnswer, terminalPaper } from "../output.ts";
import { type DatabaseOptions, readFrom, withDatabaseOptions } from "../read-database.ts";

interface AlertOptions extends DatabaseOptions {
  readonly coordinator?: string;
}

export function alertsCommand(): Command {
  return withDatabaseOptions(new Command("alerts"))
    .description("what needs attention now, and what to do")
    .option(
      "--coordinator <url>",
      "asked beside the database for what it knows of itself (default: the one that last ran in this home)",
      checkedUrl,
    )
    .addHelpText(
      "after",
      `
${exitsOfRoom}

A database that does not answer within 1 s is the first alert, and the others are what the coordinator knows of itself.
Of alerts itself, exit code 4: there are some (also when the database does not answer).
What is acknowledged or muted counts for nothing. The runbook has a section for each name (alerts), and how to have
alerts sent by webhook and e-mail (monitoring).

Examples:
  nearcrawl alerts --json
  nearcrawl alerts ack crawler-offline --note 'called the partner'
  nearcrawl alerts test email
  nearcrawl alerts mute crawler-offline --of berlin --hours 48 --reason 'moves to another room'`,
    )
    .action(async (options: AlertOptions) => await tell(options));
}

async function tell(options: AlertOptions): Promise<void> {
  const source = new AlertsAnywhere(commandContext(options), options.coordinator ?? null);
  try {
    const list = await source.list(new Date());
    if (list.alerts.length > 0) process.exitCode = exitCodes.alerts;
    const shown = { input: {}, viewer: anonymousVisit, now: new Date(list.at) };
    const document = alertOperations.alerts.view!(list, shown);
    printAnswer(options, list, documentText(document, terminalPaper()));
  } finally {
    await source.close();
  }
}

function checkedUrl(text: string): string {
  if (/^https?:\/\/[^/]/.test(text) && canParseUrl(text)) return text;
  throw new InvalidArgumentError("must look like http://127.0.0.1:7411");
}

// Collects what needs attention from every available source: the database, with a time limit of a second, and the coordinator
// running here, which knows what no database does. When neither answers, that is the alert.

/** A coordinator answers /ready within two seconds, even when its database does not answer. */
const askMs = 2500;
const connectMs = 900;

/** Checks on each call. The database is opened once, and again after an outage. */
class AlertsAnywhere {
  readonly #context: CommandContext;
  readonly #coordinatorUrl: string | null;
  #database: Database | null = null;

  /** `coordinatorUrl` is the coordinator to ask. `null` means the last one of the home folder. */
  constructor(context: CommandContext, coordinatorUrl: string | null) {
    this.#context = context;
    this.#coordinatorUrl = coordinatorUrl;
  }

  async list(now: Date): Promise<AlertList> {
    const database = await this.#lookAtDatabase(now);
    const unusable = database.gone ?? database.silent;
    const pin = unusable === null ? await this.#statedPin() : undefined;
    const coordinator = await this.#askCoordinator(pin);
    const here = ownAlertsOf(database, now.getTime());
    if (unusable === null) {
      const known = await readFrom(
        await this.#open(),
        this.#context,
        async ({ pool }) =>
          await showAlerts(
            createOverviewReads(pool, () => performance.now()),
            now,
          ),
      );
      return { ...known, alerts: merged([...here, ...coordinator.alerts, ...known.alerts]) };
    }
    await this.close();
    const asked = coordinator.words === null ? "" : `; ${coordinator.words}`;
    return {
      at: now.toISOString(),
      // Unless the database is gone, the coordinator's alerts win, because it knows when each one started.
      alerts: merged(
        database.gone == null ? [...coordinator.alerts, ...here] : [...here, ...coordinator.alerts],
      ),
      ...{ acknowledged: [], muted: [], channels: [] },
      incomplete: `${database.gone == null ? unusable.words : "nothing is asked of a database that is not there"}${asked}`,
    };
  }

  async close(): Promise<void> {
    const database = this.#database;
    this.#database = null;
    await database?.close();
  }

  /** Does not open a stopped embedded server, which would start it, so its state is unknown. */
  async #lookAtDatabase(now: Date): Promise<OwnFacts> {
    const { databaseUrl, home, schema } = this.#context;
    const lost = databaseUrl === null ? lostDataFolder(home) : null;
    if (lost !== null) return { ...nothingKnown, gone: { words: lost, sinceMs: now.getTime() } };
    const url = databaseUrl ?? runningServerUrl(home);
    if (url === null) return nothingKnown;
    const clock = { now: () => now, nowMs: () => performance.now(), connectMs };
    const watch = new DatabaseWatch(withSearchPath(url, schema), clock);
    try {
      const { silent, unwritable } = await watch.look();
      // A single query cannot show whether the silence lasts, so it counts as long enough.
      const since = now.getTime() - silentLongEnoughMs;
      return {
        ...nothingKnown,
        silent: silent === null ? null : { words: silent.words, sinceMs: since },
        unwritable: unwritable === null ? null : { words: unwritable.words, sinceMs: now.getTime() },
      };
    } finally {
      // The close is not awaited, because a hanging server never confirms it.
      void watch.close();
    }
  }

  async #open(): Promise<Database> {
    const { databaseUrl, home, schema } = this.#context;
    this.#database ??= await openDatabase({ databaseUrl, home, schema });
    return this.#database;
  }

  /** The key of the coordinator's certificate, which invitations pin. Null if there is none or none has started yet. */
  async #statedPin(): Promise<string | null> {
    return await readFrom(await this.#open(), this.#context, async ({ pool }) => {
      return (await readCoordinatorPlace(pool))?.certificatePin ?? null;
    });
  }

  /** `pin` is undefined when the certificate is unknown. */
  async #askCoordinator(pin: string | null | undefined): Promise<Told> {
    const { currentRun } = this.#context;
    const url = this.#coordinatorUrl ?? currentRun?.webUrl ?? null;
    if (url === null) return { alerts: [], words: "no coordinator is known here to ask (--coordinator URL)" };
    const [ready, list] = await Promise.all([ask(url, "/ready", pin), ask(url, "/api/alerts", pin)]);
    if (ready.type === "answer")
      return {
        alerts: [
          ...(ownAlertsIn(list) ?? []),
          ...faultsIn(ready.body).flatMap((fault) => alertOfFault(fault, url)),
        ],
        words: `asked ${url}: ${
          faultsIn(ready.body)
            .map(({ words }) => words)
            .join("; ") || "it is ready"
        }`,
      };
    const words = `the coordinator at ${url} does not answer (${ready.words})`;
    const mayRun = this.#coordinatorUrl !== null || (currentRun !== null && isRunning(currentRun.pid));
    const isUnknown = ready.isUntrusted && pin === undefined;
    return { alerts: mayRun && !isUnknown ? [standsStill(url, ready.words)] : [], words };
  }
}

interface Told {
  readonly alerts: readonly Alert[];
  /** Names the source and its answer. */
  readonly words: string | null;
}

/** The same limit as in the rule (overview/alert-rules). */
const silentLongEnoughMs = 4000;

const nothingKnown: OwnFacts = {
  clock: null,
  silent: null,
  unwritable: null,
  journal: null,
  eventLoop: null,
  jobs: [],
  leaderlessSinceMs: null,
  silentCoordinators: [],
};

/** Keeps the first alert of each name and sorts critical ones first. */
function merged(alerts: readonly Alert[]): Alert[] {
  const known = new Map<AlertName, Alert>();
  for (const alert of alerts) if (!known.has(alert.name)) known.set(alert.name, alert);
  const all = [...known.values()];
  const order: readonly string[] = alertRules.map(({ name }) => name);
  const rank = ({ name, severity }: Alert) =>
    alertSeverities.indexOf(severity) * order.length + order.indexOf(name);
  return all.sort((a, b) => rank(a) - rank(b));
}

const standsStill = (url: string, words: string): Alert => ({
  ...alertNamed("coordinator-silent"),
  words: `The coordinator at ${url} runs and does not answer: ${words}.`,
});

function alertNamed(name: AlertName): Alert {
  const rule = alertRules.find((one) => one.name === name)!;
  const { severity, link, advice } = rule;
  return { name, severity, link, advice, words: "", targets: [], count: 1, since: null, toldAt: null };
}

interface Fault {
  readonly code: string;
  readonly words: string;
  readonly since: string | null;
  readonly isInTheWay?: boolean;
}

/** A fault in /ready that is not an alert itself (a missing migration) still prevents the coordinator from working. */
function alertOfFault({ code, words, since, isInTheWay = false }: Fault, url: string): Alert[] {
  const name = code === "jobs-stand-still" ? "job-overdue" : code;
  if (!(ownAlertNames as ReadonlySet<string>).has(name)) {
    const notReady = `The coordinator at ${url} is not ready: ${words}.`;
    return isInTheWay ? [{ ...alertNamed("coordinator-silent"), words: notReady }] : [];
  }
  const sentence = `${words.slice(0, 1).toUpperCase()}${words.slice(1)}${since === null ? "" : `, since ${since.slice(11, 19)} UTC`}.`;
  return [{ ...alertNamed(name as AlertName), words: sentence }];
}

type Asked =
  | { readonly type: "answer"; readonly status: number; readonly body: unknown }
  /** `isUntrusted` means that the certificate is neither issued by an authority nor pinned. */
  | { readonly type: "silence"; readonly words: string; readonly isUntrusted: boolean };

function faultsIn(body: unknown): readonly Fault[] {
  const { faults } = (body ?? {}) as { readonly faults?: unknown };
  return Array.isArray(faults) ? (faults as Fault[]) : [];
}

/** Returns null when reading the alerts needs a token. */
function ownAlertsIn(asked: Asked): readonly Alert[] | null {
  if (asked.type === "silence" || asked.status !== 200) return null;
  const { alerts } = (asked.body ?? {}) as { readonly alerts?: unknown };
  return Array.isArray(alerts) ? (alerts as Alert[]).filter(({ name }) => ownAlertNames.has(name)) : null;
}

const mostAnswerBytes = 1_000_000;
const thisMachine = /^(127\.|localhost$|\[::1\]$|0\.0\.0\.0$|\[::\]$)/;

class UntrustedCertificate extends Error {}

async function ask(webUrl: string, path: string, pin: string | null | undefined): Promise<Asked> {
  const url = new URL(path, webUrl);
  const isHere = thisMachine.test(url.hostname);
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  const dispatcher = new Agent({ connect: connector(isHere, pin), maxResponseSize: mostAnswerBytes });
  try {
    const signal = AbortSignal.timeout(askMs);
    const headers = { accept: "application/json" };
    const { statusCode: status, body } = await request(url, { dispatcher, signal, headers });
    return { type: "answer", status, body: await body.json() };
  } catch (error) {
    return { type: "silence", words: wordsOf(error), isUntrusted: error instanceof UntrustedCertificate };
  } finally {
    void dispatcher.destroy();
  }
}

function wordsOf(error: unknown): string {
  const { name, message, code } = error as NodeJS.ErrnoException;
  if (name === "TimeoutError") return `no answer within ${askMs / 1000} s`;
  return name === "SyntaxError" ? "it does not answer as a coordinator does" : (code ?? message);
}

/**
 * On this machine the certificate's name may differ from the address. On others it must be issued by an authority or have the
 * pinned key, as for crawlers.
 */
function connector(isHere: boolean, pin: string | null | undefined): buildConnector.connector {
  const connect = buildConnector({ rejectUnauthorized: false });
  return (options, callback) =>
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      if (!(socket instanceof TLSSocket) || isHere || socket.authorized) return callback(null, socket);
      const certificate = socket.getPeerX509Certificate();
      if (certificate !== undefined && pinOf(certificate) === pin) return callback(null, socket);
      socket.destroy();
      callback(new UntrustedCertificate(`its certificate: ${socket.authorizationError}`), null);
    });
}
