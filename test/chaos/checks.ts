/**
 * What must hold after a chaos run, beyond the tables (support/database-checks.ts): in the sites' own logs, on the disks, and
 * in the output of the processes.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool } from "pg";
import { Spool } from "#crawler/spool/spool";
import type { RunningWorld } from "#ops/world/main";
import type { World } from "#ops/world/model";
import { planSite } from "#ops/world/site-plan";

/** Rows that contradict the check; empty: it holds. */
export interface Verdict {
  readonly check: string;
  readonly words: string;
  readonly rows: readonly object[];
  /** Why it was skipped; null: it was not. */
  readonly skipped: string | null;
}

export const verdict = (check: string, words: string, rows: readonly object[]): Verdict => ({
  ...{ check, words, rows, skipped: null },
});

// Every page that can be reached.

interface ExpectedUrl {
  readonly host: string;
  readonly url: string;
  /** As in column last_outcome; null: any. */
  readonly outcomes: readonly string[] | null;
}

const isRead = ["fetched", "unchanged"];

/** Pages reachable from the front pages of all sites, by the world's own plan. */
function expectedUrls(world: World): readonly ExpectedUrl[] {
  return world.sites.flatMap((site) => {
    const plan = planSite(world, site);
    const closed = plan.robots?.includes("Disallow: /private/") === true ? "/private/" : null;
    const paths = new Set(["/"]);
    for (const path of paths) {
      const answer = plan.byPath.get(path);
      if (answer === undefined || (closed !== null && path.startsWith(closed))) continue;
      const links =
        answer.type === "redirect"
          ? [answer.to]
          : answer.page.links.filter(({ nofollow }) => !nofollow).map(({ href }) => href);
      for (const link of links) if (link.startsWith("/")) paths.add(link);
    }
    return [...paths].map((path) => {
      const answer = plan.byPath.get(path);
      const isClosed = closed !== null && path.startsWith(closed);
      const outcomes = isClosed
        ? ["refused-by-robots"]
        : answer === undefined
          ? null
          : answer.type === "redirect"
            ? ["redirected"]
            : isRead;
      return { host: site.host, url: `http://${site.host}${path}`, outcomes };
    });
  });
}

/** Pages that were not fetched, with what is known of them. */
export async function unfetchedUrls(pool: Pool, world: World): Promise<readonly object[]> {
  const expected = expectedUrls(world);
  const { rows } = await pool.query<{
    url: string;
    state: string;
    visits: number;
    last_outcome: string | null;
    last_reason: string | null;
    next_fetch_at: Date;
  }>("select url, state, visits, last_outcome, last_reason, next_fetch_at from frontier_url");
  const known = new Map(rows.map((row) => [row.url, row]));
  return expected.flatMap(({ url, outcomes }): object[] => {
    const row = known.get(url);
    if (row === undefined) return [{ url, known: false }];
    const isDone =
      row.visits > 0 &&
      (outcomes === null || (row.last_outcome !== null && outcomes.includes(row.last_outcome)));
    return isDone ? [] : [row];
  });
}

// Requests to the sites.

export type Requests = ReturnType<RunningWorld["requestLog"]["entries"]>;

/** A request without an answer that could be stored may be repeated; no other may. */
export async function fetchesNobodyAsked(
  pool: Pool,
  requests: Requests,
  crawlerNames: readonly string[],
): Promise<readonly object[]> {
  const asked = new Map<string, number>();
  for (const { host, path, method, crawlerIndex } of requests) {
    if (method !== "GET" || crawlerIndex === null) continue;
    const name = `${crawlerNames[crawlerIndex]} http://${host}${path}`;
    asked.set(name, (asked.get(name) ?? 0) + 1);
  }
  const { rows } = await pool.query<{ name: string; url: string; fetches: number }>(
    `select c.name, u.url, count(*)::int as fetches
     from page_fetch f
     join crawler c using (crawler_id)
     join frontier_url u using (host_hash, url_hash)
     where f.status is not null
     group by 1, 2`,
  );
  return rows
    .map((row) => ({ ...row, requests: asked.get(`${row.name} ${row.url}`) ?? 0 }))
    .filter(({ fetches, requests }) => fetches > requests);
}

// Politeness. A host is in one lease at a time (database check leases-overlap). A crawler requests a page only under its own
// lease, from its grant to its expiry, which the crawler knows even if the lease was taken back; and it keeps its pace. Both
// with some tolerance: a request takes time, and a stopped process sends its pending requests when it continues.

/** For a DNS look-up, a handshake and half a round trip, on a busy machine. */
const lateMs = 5000;

interface LeaseSpan {
  readonly host: string;
  readonly crawler: string;
  readonly grantedMs: number;
  readonly expiresMs: number;
}

/** When processes were stopped, by name: ms since the epoch. */
export interface Pause {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Politeness {
  readonly requests: Requests;
  readonly leases: readonly LeaseSpan[];
  readonly pauses: readonly Pause[];
  readonly crawlerNames: readonly string[];
}

export async function readLeases(pool: Pool): Promise<readonly LeaseSpan[]> {
  const { rows } = await pool.query<{ host: string; crawler: string; granted_at: Date; expires_at: Date }>(
    "select l.host, c.name as crawler, l.granted_at, l.expires_at from lease l join crawler c using (crawler_id)",
  );
  return rows.map((row) => ({
    ...{ host: row.host, crawler: row.crawler },
    grantedMs: row.granted_at.getTime(),
    expiresMs: row.expires_at.getTime(),
  }));
}

export function requestsWithoutLease({
  requests,
  leases,
  pauses,
  crawlerNames,
}: Politeness): readonly object[] {
  const byHost = new Map<string, LeaseSpan[]>();
  for (const lease of leases) {
    const name = `${lease.crawler} ${lease.host}`;
    byHost.set(name, [...(byHost.get(name) ?? []), lease]);
  }
  return requests.flatMap(({ host, path, method, atMs, crawlerIndex }) => {
    if (method !== "GET" || crawlerIndex === null) return [];
    const crawler = crawlerNames[crawlerIndex]!;
    const own = byHost.get(`${crawler} ${host}`) ?? [];
    const goesOn = pauses.filter(
      ({ name, toMs }) => name === crawler && toMs <= atMs && atMs <= toMs + lateMs,
    );
    const isHeld = own.some(({ grantedMs, expiresMs }) => {
      const within = (ms: number) => grantedMs <= ms && ms <= expiresMs + lateMs;
      return within(atMs) || goesOn.some(({ fromMs }) => within(fromMs));
    });
    return isHeld ? [] : [{ crawler, host, path, at: new Date(atMs).toISOString() }];
  });
}

/** When this process was late, and by how much: requests that arrive while it is busy are logged too close together. */
interface Lateness {
  readonly atMs: number;
  readonly lateMs: number;
}

/** Pairs of requests of one crawler to one host that are closer together than half of its floor. */
export function hastyRequests(
  { requests, crawlerNames }: Pick<Politeness, "requests" | "crawlerNames">,
  floorMs: number,
  late: readonly Lateness[],
): readonly object[] {
  const last = new Map<string, Requests[number]>();
  return requests.flatMap((request) => {
    const { host, path, method, atMs, crawlerIndex } = request;
    if (method !== "GET" || crawlerIndex === null) return [];
    const name = `${crawlerIndex} ${host}`;
    const before = last.get(name);
    last.set(name, request);
    if (before === undefined) return [];
    const gapMs = atMs - before.atMs;
    // The first of the two may have waited for this process.
    const shortenedMs = Math.max(
      0,
      ...late
        .filter((one) => one.atMs >= before.atMs && one.atMs - one.lateMs <= before.atMs)
        .map((one) => one.lateMs),
    );
    if (gapMs + shortenedMs >= floorMs / 2) return [];
    const crawler = crawlerNames[crawlerIndex];
    return [{ crawler, host, paths: [before.path, path], gapMs, at: new Date(atMs).toISOString() }];
  });
}

/** Notes when this process is late by more than a tenth of a second, until it is stopped. */
export class LatenessWatch {
  readonly noted: Lateness[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor() {
    let dueMs = Date.now() + everyMs;
    this.#timer = setInterval(() => {
      const atMs = Date.now();
      if (atMs - dueMs > noteFromMs) this.noted.push({ atMs, lateMs: atMs - dueMs });
      dueMs = atMs + everyMs;
    }, everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

const everyMs = 20;
const noteFromMs = 30;

// What lies on the disks of crawlers that have ended.

interface StoppedCrawler {
  readonly name: string;
  readonly home: string;
}

export async function unacknowledgedSpools(
  pool: Pool,
  crawlers: readonly StoppedCrawler[],
): Promise<readonly object[]> {
  const { rows } = await pool.query<{ spool_id: string; acknowledged: string }>(
    "select spool_id, acknowledged_sequence as acknowledged from spool",
  );
  const acknowledged = new Map(rows.map((row) => [row.spool_id, Number(row.acknowledged)]));
  return crawlers.flatMap(({ name, home }) => {
    const spool = new Spool({ home, maxBytes: 1024 ** 3 });
    const { id, last } = spool;
    spool.close();
    const known = acknowledged.get(id) ?? 0;
    return (last ?? 0) <= known ? [] : [{ name, spooled: last, acknowledged: known }];
  });
}

/** Drafts that a kill may have left are continued or removed when the crawler runs again. */
export function leftDrafts(crawlers: readonly StoppedCrawler[]): readonly object[] {
  return crawlers.flatMap(({ name, home }) =>
    readdirSync(home, { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(tmp|new|draft|part)$|\.new-|^filler$/.test(file))
      .map((file) => ({ name, file })),
  );
}

// Output of the processes.

/** Messages that faults cause, by their effect on the other processes. */
const expectedLines: readonly RegExp[] = [
  // The database, or the way to it, is gone, stopped or returning (SQLSTATE 57P0x, 08xxx).
  /connection|ECONN|EPIPE|ENOENT|57P0\d|terminat|starting up|shutting down|recovery mode|not yet accepting|does not answer/i,
  // A process was stopped, or the connection is slow.
  /timeout|timed out/i,
  // The disk is full.
  /ENOSPC|EFBIG|No space left|could not (extend|write)|disk/i,
  // Another coordinator has taken the lead from a stopped one, or replaced it.
  /NoLongerLeads|Replaced|NC_REPLACED/,
];

/** Error lines of the logs that no fault explains, and lines that are not log lines. */
export function unexpectedLines(folder: string, mostRows = 20): readonly object[] {
  return readdirSync(folder)
    .flatMap((file) =>
      readFileSync(join(folder, file), "utf8")
        .split("\n")
        .filter((line) => isUnexpected(line))
        .map((line) => ({ log: file, line: line.slice(0, 1000) })),
    )
    .slice(0, mostRows);
}

function isUnexpected(line: string): boolean {
  if (line.trim() === "" || line.startsWith("coordinator at ")) return false;
  try {
    const { level } = JSON.parse(line) as { level?: unknown };
    const isError = level === "error" || (typeof level === "number" && level >= 50);
    return isError && !isExpected(line);
  } catch {
    return !isExpected(line);
  }
}

const isExpected = (line: string): boolean => expectedLines.some((expected) => expected.test(line));
