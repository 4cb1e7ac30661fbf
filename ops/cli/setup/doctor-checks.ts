/** The checks of `nearcrawl doctor`. Each reports a fact and, if necessary, a remedy. */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { connect } from "node:net";
import type { Pool } from "pg";
import { request } from "undici";
import type { CoordinatorConfig } from "#coordinator/config";
import { notFollowed } from "#coordinator/crawl/submissions/submission";
import { contactFault, contactWarnings } from "#coordinator/run/opt-outs/start";
import type { PolicySettings } from "#coordinator/run/settings/schema";
import type { AlertList } from "#coordinator/tell/overview/alert-rules";
import { OpenSearchEngine } from "#coordinator/tell/search/engine/opensearch-engine";
import { openSearchPlace } from "#coordinator/tell/search/engine/opensearch-place-resolver";
import { foreignDateMs } from "#core/foreign-dates";
import { bytesText, howMany } from "#core/format";
import { createNameResolver } from "#core/name-resolver";
import { type Finding, fix, note, ok } from "#crawler/check/coordinator-findings";
import { coordinatorWords, runningCoordinators } from "#db/advisory-lock";
import { askServers, type ServerAnswer, stateWords } from "#db/primary";
import { type Migration, readSchemaState } from "#db/schema-state";
import { wordsOf as databaseWordsOf, postgresVersion } from "#db/server-database";
import { readServerUrl } from "#db/server-url";
import { askRunning } from "../ask-coordinator.ts";
import { type CommandContext, openSearchAuthorization } from "../command-context.ts";
import { contactTrouble } from "../contact.ts";

const askMs = 8000;
const dayMs = 86_400_000;

/* This machine. */

/** The major versions of Node that are tested. Others may work. */
const knownNodes = [20, 22, 24];

export function nodeFinding(version: string): Finding {
  const major = Number(/^v?(\d+)/.exec(version)?.[1]);
  if (major < 20) return fix("node", `${version} is too old: 22 or 24.`);
  if (major === 20)
    return note(
      "node",
      `${version} works, and gets no security fixes any more (since April 2026): 22 or 24.`,
    );
  return knownNodes.includes(major)
    ? ok("node", version)
    : note("node", `${version} is not one that was tried: 22 or 24.`);
}

const leastFreeBytes = 2 * 2 ** 30;
const usualFreeBytes = 20 * 2 ** 30;

export function folderFindings(home: string): Finding[] {
  if (!existsSync(home)) return [fix("folder", `${home} is not there: nearcrawl init makes it.`)];
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return [
      fix(
        "folder",
        `${home} cannot be written by this user: chown -R nearcrawl: ${home}, or run this as its user.`,
      ),
    ];
  }
  const { bavail, bsize } = statfsSync(home);
  return [ok("folder", home), diskFinding(home, bavail * bsize)];
}

export function diskFinding(home: string, freeBytes: number): Finding {
  const words = `${bytesText(freeBytes)} are free below ${home}`;
  if (freeBytes < leastFreeBytes)
    return fix("disk", `${words}: registries and index need some 20 GB to begin with.`);
  if (freeBytes < usualFreeBytes)
    return note("disk", `${words}; ops/runbook/deploying.md says what a crawl needs.`);
  return ok("disk", `${words}.`);
}

/** The search's engine as the coordinator that runs here sees it, and OpenSearch also as it answers. */
export async function searchFindings(
  { url, ca }: CoordinatorConfig["search"],
  context: CommandContext,
): Promise<Finding[]> {
  const question = {
    method: "get",
    path: "/api/alerts",
    accept: "application/json",
    room: "alerts",
  } as const;
  const answer = await askRunning(context, question, askMs).catch(() => null);
  if (answer?.status === 200) {
    const { alerts, acknowledged, muted }: AlertList = JSON.parse(answer.body);
    const behind = [...alerts, ...acknowledged, ...muted].find(({ name }) => name === "search-behind");
    if (behind !== undefined) return [fix("search", `${behind.words} ${behind.advice}`)];
    if (url === null) return [ok("search", "what was crawled is found after ten minutes at the most.")];
  }
  if (url === null) return [];
  let engine: OpenSearchEngine | null = null;
  try {
    const names = { url: "search.url", ca: "search.ca" };
    engine = new OpenSearchEngine(
      openSearchPlace({ names, url, ca, authorization: openSearchAuthorization() }),
    );
    const version = await engine.version();
    const { pages, bytes, export: kept } = await engine.look();
    const words = `OpenSearch ${version} has ${howMany(pages, "page")} (${bytesText(bytes)})`;
    return [
      kept?.wasComplete
        ? ok("search", `${words}, with what was crawled up to change ${kept.cursor}.`)
        : note("search", `${words}; a coordinator still has to send all pages.`),
    ];
  } catch (error) {
    return [fix("search", `${url}: ${(error as Error).message}. Crawling goes on, and documents wait.`)];
  } finally {
    await engine?.close();
  }
}

/* Our identity and address. */

export async function contactFindings(config: CoordinatorConfig): Promise<Finding[]> {
  const fault = contactFault(config);
  if (fault !== null) return [fix("contact", `${fault}: set contact or publicUrl.`)];
  const warnings = contactWarnings(config).map((words) => note("contact", `${words}.`));
  if (config.contact === null) return warnings;
  const trouble = await contactTrouble(config.contact, config.resolvers);
  const answers =
    trouble === null
      ? ok("contact", `${config.contact} takes what webmasters write.`)
      : fix("contact", `${config.contact}: ${trouble}.`);
  return [answers, ...warnings];
}

/** Reports how far the policies in force let the crawl extend, because defaults are easily overlooked. */
export function crawlFindings({ scope, recrawl, frontier }: PolicySettings): Finding[] {
  const words = `not followed: ${notFollowed(scope).join("; ")}.`;
  const every = `every page is fetched again after ${howMany(recrawl.intervalHours, "hour")}, however often it changes`;
  return [
    (scope.admitNewHosts ? ok : note)("scope", words),
    recrawl.strategy === "fixed"
      ? note(
          "recrawl",
          `${every}: nearcrawl policy set recrawl.strategy=optimal goes by how often each changes.`,
        )
      : ok("recrawl", `by the strategy ${recrawl.strategy}.`),
    frontier.order === "breadth-first"
      ? note(
          "order",
          "of a host's URLs those due longest come first: nearcrawl policy set frontier.order=back-links goes by what links to them.",
        )
      : ok("order", `of a host's URLs, by ${frontier.order}.`),
  ];
}

export async function resolverFinding({
  resolvers,
  publicUrl,
  contact,
}: CoordinatorConfig): Promise<Finding> {
  const name =
    publicUrl === null
      ? (/@([^@\s]+)$/.exec(contact ?? "")?.[1] ?? "example.com")
      : new URL(publicUrl).hostname;
  const whose = resolvers.length === 0 ? "the system's DNS servers" : resolvers.join(", ");
  const found = await createNameResolver({ servers: resolvers }).resolve(name);
  if (!("failed" in found))
    return ok("dns", `${whose}: ${name} is ${found.addresses.slice(0, 3).join(", ")}.`);
  if (found.failed === "the name has no address")
    return ok("dns", `${whose} answer; ${name} has no address.`);
  const isOurs = publicUrl !== null;
  return fix("dns", `${whose}: ${name}: ${found.failed}${isOurs ? "; give it an address (A, AAAA)" : ""}.`);
}

/** Checks the coordinator's own certificate. */
export function tlsFindings({ tls, publicUrl }: CoordinatorConfig, now: Date): Finding[] {
  if (tls === null) return [];
  try {
    const certificate = new X509Certificate(readFileSync(tls.certificateFile));
    const key = createPrivateKey(readFileSync(tls.keyFile));
    if (!certificate.checkPrivateKey(key))
      return [fix("tls", `${tls.keyFile} is not the key of ${tls.certificateFile}.`)];
    const host = publicUrl === null ? null : new URL(publicUrl).hostname;
    if (host !== null && certificate.checkHost(host) === undefined)
      return [
        fix(
          "tls",
          `${tls.certificateFile} is not for ${host} (${certificate.subjectAltName ?? certificate.subject}).`,
        ),
      ];
    return [expiryFinding(tls.certificateFile, new Date(certificate.validTo), now)];
  } catch (error) {
    return [fix("tls", `${(error as Error).message}.`)];
  }
}

/** The same limit as in the alert (overview/alert-rules). */
const renewDays = 21;

export function expiryFinding(what: string, end: Date, now: Date): Finding {
  const days = Math.floor((end.getTime() - now.getTime()) / dayMs);
  const date = end.toISOString().slice(0, 10);
  if (days < 0)
    return fix("tls", `${what} ended on ${date}: renew it, with the same key; it is shown within a minute.`);
  if (days < renewDays)
    return note("tls", `${what} ends on ${date}, in ${howMany(days, "day")}: is its renewal set up?`);
  return ok("tls", `${what} is good until ${date}.`);
}

/** Checks that the coordinator listens on each port, or, when it is not running, that the ports are free. */
export async function listenFindings({ listen }: CoordinatorConfig, isRunning: boolean): Promise<Finding[]> {
  const { host, port, pagesPort } = listen;
  const pages =
    pagesPort === null ? [] : [portFinding({ host, port: pagesPort, name: "pagesPort", isRunning })];
  return await Promise.all([portFinding({ host, port, name: "port", isRunning }), ...pages]);
}

interface PortAsked {
  readonly host: string;
  readonly port: number;
  readonly name: "port" | "pagesPort";
  readonly isRunning: boolean;
}

async function portFinding({ host, port, name, isRunning }: PortAsked): Promise<Finding> {
  const place = `${host}:${port}`;
  const who = name === "port" ? "partners" : "who looks at pages";
  if (port === 0) return note("port", `${name} 0: any free one is taken, which ${who} cannot know.`);
  const isTaken = await new Promise<boolean>((resolve) => {
    const socket = connect({ host: host === "::" || host === "0.0.0.0" ? "127.0.0.1" : host, port });
    const end = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.setTimeout(2000, () => end(false));
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
  if (isRunning)
    return isTaken
      ? ok("port", `the coordinator listens at ${place}.`)
      : fix(
          "port",
          `a coordinator runs, and nothing listens at ${place}: journalctl -u nearcrawl-coordinator.`,
        );
  return isTaken
    ? fix("port", `something else listens at ${place}: end it, or choose another port (listen.${name}).`)
    : ok("port", `${place} is free.`);
}

const mostClockErrorMs = 2000;

/** Tests the public address the way partners use it: DNS, TLS and proxy together, and the server's clock. */
export async function publicUrlFindings(
  { publicUrl, listen, access }: CoordinatorConfig,
  { isRunning, now }: { readonly isRunning: boolean; readonly now: () => Date },
): Promise<Finding[]> {
  if (publicUrl === null)
    return [
      note(
        "address",
        `no publicUrl: partners on other machines cannot join (it listens at ${listen.host}). State it before anything passes strangers on to here.`,
      ),
    ];
  const url = new URL("/health", publicUrl).href;
  try {
    const { statusCode, headers, body } = await request(url, { signal: AbortSignal.timeout(askMs) });
    const text = (await body.text()).slice(0, 10_000);
    const isOurs = statusCode === 200 && /"version"/.test(text);
    const address = isOurs
      ? ok("address", `${publicUrl} leads to a coordinator.`)
      : fix(
          "address",
          `${url} answers ${statusCode}, and not as a coordinator does: look at the proxy in front.`,
        );
    const reading = isOurs ? [await strangersFinding(publicUrl, access.anonymous === "read")] : [];
    return [address, ...reading, ...clockFindings(String(headers.date ?? ""), now())];
  } catch (error) {
    const words = `${publicUrl} is not reached from here: ${wordsOf(error)}`;
    return [isRunning ? fix("address", `${words}.`) : note("address", `${words}; no coordinator runs yet.`)];
  }
}

/** Anybody can read the fleet, the index and the figures if these answer without a sign-in. */
const needSignIn = ["/api/overview", "/api/search?q=a", "/metrics"];

/** Requests `needSignIn` through the public address as a stranger would, although from this machine. */
async function strangersFinding(publicUrl: string, isMeant: boolean): Promise<Finding> {
  const statuses = await Promise.all(
    needSignIn.map(async (path) => {
      const answer = await request(new URL(path, publicUrl), { signal: AbortSignal.timeout(askMs) });
      await answer.body.dump();
      return answer.statusCode;
    }),
  );
  const open = needSignIn.filter((_, at) => statuses[at]! < 300);
  if (open.length === 0)
    return ok("reading", `without a sign-in, ${publicUrl} shows neither fleet nor index.`);
  const words = `everybody who reaches ${publicUrl} reads fleet and index without a sign-in (${open.join(", ")})`;
  return isMeant
    ? note("reading", `${words}, as access.anonymous says.`)
    : fix("reading", `${words}: set access.anonymous = "nothing", restart the coordinator, and ask again.`);
}

function clockFindings(date: string, now: Date): Finding[] {
  const statedMs = foreignDateMs(date);
  // HTTP dates are cut to whole seconds, so half a second is added, the mean of what is lost.
  return statedMs === null ? [] : [clockFinding("the public address", statedMs - now.getTime() + 500)];
}

export function clockFinding(whose: string, errorMs: number): Finding {
  const seconds = Math.round(Math.abs(errorMs) / 1000);
  if (Math.abs(errorMs) <= mostClockErrorMs)
    return ok("clock", `within ${mostClockErrorMs / 1000} s of ${whose}'s.`);
  return fix(
    "clock",
    `${seconds} s ${errorMs > 0 ? "behind" : "ahead of"} ${whose}'s: let NTP keep it (timedatectl set-ntp true).`,
  );
}

/** undici puts the reason into the cause. */
function wordsOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
}

/* The database and its content. */

interface ServerSettings {
  readonly encoding: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly maxConnections: number;
  readonly sharedBuffersBytes: number;
  readonly maxWalBytes: number;
}

interface LookedAtDatabase {
  readonly pool: Pool;
  readonly schema: string;
  readonly isEmbedded: boolean;
  readonly now: () => Date;
}

export async function databaseFindings({
  pool,
  schema,
  isEmbedded,
  now,
}: LookedAtDatabase): Promise<Finding[]> {
  const version = await postgresVersion(pool);
  const { rows } = await pool.query<ServerSettings & { readonly clock: Date }>(
    `select pg_encoding_to_char(encoding) as encoding, current_setting('fsync') as fsync,
       current_setting('full_page_writes') as "fullPageWrites",
       current_setting('max_connections')::int as "maxConnections",
       pg_size_bytes(current_setting('shared_buffers'))::float8 as "sharedBuffersBytes",
       pg_size_bytes(current_setting('max_wal_size'))::float8 as "maxWalBytes", clock_timestamp() as clock
     from pg_database where datname = current_database()`,
  );
  const [row] = rows;
  return [
    versionFinding(version, isEmbedded),
    ...(row === undefined ? [] : serverFindings(row, isEmbedded)),
    ...(row === undefined || isEmbedded
      ? []
      : [clockFinding("the database server", row.clock.getTime() - now().getTime())]),
    ...(await contentFindings(pool, schema)),
  ];
}

/** Checks the primary and the other hosts of a database URL with several hosts. A single host is checked when it is used. */
export async function serversFindings(databaseUrl: string): Promise<Finding[]> {
  const url = readServerUrl(databaseUrl);
  return url.servers.length === 1 ? [] : serverStateFindings(await askServers(url));
}

export function serverStateFindings(answers: readonly ServerAnswer[]): Finding[] {
  const primaries = answers.flatMap((answer) => (answer.state === "primary" ? [answer] : []));
  const newest = primaries.reduce((most, { timeline }) => Math.max(most, timeline), 0);
  const [primary] = primaries.filter(({ timeline }) => timeline === newest);
  return answers.map((answer) => {
    const { name } = answer.server;
    if (answer.state === "silent")
      return note("postgres", `${name} does not answer: ${databaseWordsOf(answer.error)}.`);
    if (answer === primary) return ok("postgres", `${name} is the primary (timeline ${answer.timeline}).`);
    if (primary !== undefined && answer.systemIdentifier !== primary.systemIdentifier)
      return fix(
        "postgres",
        `${name} is of another cluster than ${primary.server.name}: take it out of databaseUrl.`,
      );
    if (answer.state === "primary")
      return fix(
        "postgres",
        `${name} takes writes, too (timeline ${answer.timeline}), beside ${primary?.server.name}: stop it, and make it a standby (pg_rewind).`,
      );
    return (answer.state === "standby" ? ok : note)(
      "postgres",
      `${name} ${stateWords[answer.state]}${lagWords(answer, primary)}.`,
    );
  });
}

function lagWords(
  { position, replayedSecondsAgo }: Extract<ServerAnswer, { readonly position: bigint }>,
  primary: { readonly position: bigint } | undefined,
): string {
  const behind = primary === undefined ? null : Math.max(0, Number(primary.position - position));
  if (behind === null || behind === 0) return behind === 0 ? ", nothing behind" : "";
  const since =
    replayedSecondsAgo === null ? "" : `, its last transaction ${Math.round(replayedSecondsAgo)} s old`;
  return `, ${bytesText(behind)} behind${since}`;
}

export function versionFinding(version: number, isEmbedded: boolean): Finding {
  const name = `Postgres ${version}${isEmbedded ? ", embedded" : ""}`;
  if (version < 15) return fix("postgres", `${name} is too old: 15 to 18.`);
  return version > 18
    ? note("postgres", `${name} is newer than what was tried: 15 to 18.`)
    : ok("postgres", name);
}

/** A coordinator has some twenty connections and each command a few. */
const leastConnections = 50;
const usualBuffersBytes = 512 * 2 ** 20;
const usualWalBytes = 4 * 2 ** 30;

export function serverFindings(server: ServerSettings, isEmbedded: boolean): Finding[] {
  const findings: Finding[] = [];
  if (server.encoding !== "UTF8")
    findings.push(
      fix("postgres", `the database's encoding is ${server.encoding}: create it with encoding UTF8.`),
    );
  if (server.fsync !== "on" || server.fullPageWrites !== "on")
    findings.push(fix("postgres", "fsync or full_page_writes is off: a power cut destroys the database."));
  if (server.maxConnections < leastConnections)
    findings.push(
      fix("postgres", `max_connections is ${server.maxConnections}: at least ${leastConnections}.`),
    );
  if (isEmbedded) return findings;
  if (server.sharedBuffersBytes < usualBuffersBytes)
    findings.push(
      note(
        "postgres",
        `shared_buffers is ${bytesText(server.sharedBuffersBytes)}: a quarter of its memory is usual.`,
      ),
    );
  if (server.maxWalBytes < usualWalBytes)
    findings.push(
      note(
        "postgres",
        `max_wal_size is ${bytesText(server.maxWalBytes)}: with less than 4 GB a busy crawl forces checkpoints.`,
      ),
    );
  return findings;
}

async function contentFindings(pool: Pool, schema: string): Promise<Finding[]> {
  const state = await readSchemaState(pool, schema);
  if (state === null) return [await emptySchemaFinding(pool)];
  if (state.fault !== null) return [fix("schema", `${schema} ${state.fault}.`)];
  if (state.pending.length > 0) return [await pendingFinding(pool, schema, state.pending)];
  const { rows } = await pool.query<{
    generation: number | null;
    keys: number;
    crawlers: number;
    online: number;
  }>(
    `select (select max(generation) from registry_generation where state = 'applied') as generation,
       (select count(*)::int from release_key) as keys,
       (select count(*)::int from crawler where revoked_at is null) as crawlers,
       (select count(*)::int from crawler where revoked_at is null and state = 'online') as online`,
  );
  const { rowCount: urls } = await pool.query("select from frontier_url limit 1");
  const { generation, keys, crawlers, online } = rows[0]!;
  return [
    generation === null
      ? note(
          "registry",
          "none is imported: the whole address space is one subnet, which is enough for one crawler. nearcrawl rir fetch, then rir apply --cache.",
        )
      : ok("registry", `generation ${generation} is in force.`),
    keys === 0
      ? note("release", "there is no release key yet: the coordinator makes one as it starts.")
      : ok("release", "there is a release key, which invitations pin."),
    crawlers === 0
      ? note("crawlers", "none has joined: nearcrawl fleet invite --name NAME.")
      : ok("crawlers", `${online} of ${crawlers} are connected.`),
    urls === 1
      ? ok("urls", "there is something to crawl.")
      : note("urls", "nothing to crawl yet: nearcrawl urls add URL."),
  ];
}

async function emptySchemaFinding(pool: Pool): Promise<Finding> {
  const { rows } = await pool.query<{ may_create: boolean }>(
    "select has_database_privilege(current_database(), 'create') as may_create",
  );
  return rows[0]?.may_create === true
    ? note("schema", "nothing is set up here yet: the coordinator makes its tables as it starts first.")
    : fix(
        "schema",
        "this user may not make tables here: make it the database's owner (alter database … owner to …).",
      );
}

/** Reports the kinds of pending migrations, and whether a starting coordinator would run them. */
export async function pendingFinding(
  pool: Pool,
  schema: string,
  pending: readonly Migration[],
): Promise<Finding> {
  const names = pending.map(({ name }) => name).join(", ");
  const will = `${howMany(pending.length, "migration")} will be applied at the coordinator's next start (${names})`;
  const stopping = pending.filter(({ needsAllStopped }) => needsAllStopped).map(({ name }) => name);
  if (stopping.length === 0)
    return note("schema", `${will}; coordinators of the last release may go on meanwhile.`);
  const words = `${will}; ${stopping.join(", ")} ${stopping.length === 1 ? "needs" : "need"} all coordinators stopped`;
  const running = await runningCoordinators(pool, schema);
  return running.length === 0
    ? note("schema", `${words}, and none runs.`)
    : fix("schema", `${words}: stop ${running.map(coordinatorWords).join(", ")} first.`);
}
