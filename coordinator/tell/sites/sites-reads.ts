/**
 * Reads table site for the list. An order is walked by its index from the previous page's end. If a filter matches few hosts,
 * they are found by its own index and sorted. That choice is made here, because the planner assumes that filters and orders
 * are independent and would walk through a million hosts to find fifty at the end.
 */
import type { Pool, PoolClient } from "pg";
import { rangeText } from "#db/range-text";
import { estimatedRows } from "#db/table-sizes";
import { gateWords } from "#protocol/bot-gate";
import { roundMs } from "../../database/cached-read.ts";
import { inTransaction } from "../../database/transaction.ts";
import { createExploreReads } from "../explore/reads.ts";
import {
  isUnfiltered,
  type ListedSite,
  placeText,
  reasonWords,
  type SiteFilter,
  type SitePlace,
  type SiteSort,
  type SiteState,
  type SitesAnswer,
  type SitesQuestion,
  type Standing,
  siteState,
} from "./sites-api.ts";
import { mostDueUrls } from "./sites-upkeep-store.ts";

/** Counting stops at this number. Up to it, hosts are found first and then sorted. */
export const mostCounted = 10_000;
/** Maximum number of hosts that the walk of an order skips before all matches are sorted instead. */
const mostWalked = 20_000;
/** How many hosts a piece of a file has. */
const pieceOfFile = 2000;

/** Compiling a query that runs once costs more than it saves. */
const settings = "set local jit = off";

export type SitesReads = ReturnType<typeof createSitesReads>;

type SitesFound = Pick<SitesAnswer, "sites" | "count" | "isWholeCount" | "estimate"> & {
  /** Null on the last page. */
  readonly next: SitePlace | null;
};

export function createSitesReads(pool: Pool) {
  return {
    answer: async (question: SitesQuestion, now: Date) => await sitesAnswer(pool, question, now),
    /** Yields all matches in pieces. */
    every: (question: SitesQuestion, now: Date) => everySite(pool, question, now),
    /** Returns at most `most` names. */
    crawlerNames: async (most: number) => {
      const { rows } = await pool.query<{ name: string }>(
        "select name from crawler where revoked_at is null order by name limit $1",
        [most],
      );
      return rows.map(({ name }) => name);
    },
  };
}

/** The answer for page, JSON and command. */
async function sitesAnswer(pool: Pool, question: SitesQuestion, now: Date): Promise<SitesAnswer> {
  const [{ next, ...found }, progress] = await Promise.all([
    findSites(pool, question, now),
    sitesProgress(pool),
  ]);
  return {
    at: now,
    filter: Object.fromEntries(
      Object.entries(question.filter).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as const],
      ),
    ),
    sort: question.sort,
    order: question.direction,
    ...found,
    next: next === null ? null : placeText(next),
    progress,
  };
}

/** `isCounted` adds the number of matches, which an exported file does not need. */
export async function findSites(
  pool: Pool,
  question: SitesQuestion,
  now: Date,
  isCounted = true,
): Promise<SitesFound> {
  const filter = await filterSql(pool, question.filter, now);
  if (filter === null) return { sites: [], count: 0, isWholeCount: true, estimate: null, next: null };
  return await inTransaction(
    pool,
    async (client) => {
      const few = isCounted ? await fewMatches(client, question, filter) : { count: Infinity, places: [] };
      const isWholeCount = few.count <= mostCounted;
      const found = isWholeCount ? few.places : await manyMatches(client, question, filter);
      const shown = found.slice(0, question.limit);
      const isAbout = isCounted && !isWholeCount && isUnfiltered(question.filter);
      return {
        sites: await describe(client, shown, now),
        ...{ count: Math.min(few.count, mostCounted), isWholeCount },
        estimate: isAbout ? await aboutRows(client, "site") : null,
        next: found.length > shown.length ? shown.at(-1)! : null,
      };
    },
    settings,
  );
}

/** Yields all matches in pieces, in the requested order from the requested place on. */
async function* everySite(
  pool: Pool,
  question: SitesQuestion,
  now: Date,
): AsyncGenerator<readonly ListedSite[]> {
  let { after } = question;
  for (;;) {
    const piece = { ...question, after, limit: pieceOfFile };
    const { sites, next } = await findSites(pool, piece, now, false);
    if (sites.length > 0) yield sites;
    if (next === null) return;
    after = next;
  }
}

async function sitesProgress(pool: Pool): Promise<SitesAnswer["progress"]> {
  const { rows } = await pool.query<{ finishedAt: Date | null; roundSeconds: number | null }>(
    `select finished_at as "finishedAt", took_seconds as "roundSeconds" from site_upkeep`,
  );
  const { finishedAt = null, roundSeconds = null } = rows[0] ?? {};
  const isFirstRound = finishedAt === null;
  return {
    isFirstRound,
    roundSeconds,
    knownHosts: isFirstRound ? await aboutRows(pool, "frontier_host") : 0,
  };
}

async function aboutRows(client: Pool | PoolClient, table: string): Promise<number> {
  const about = await estimatedRows(client, table);
  // An estimate has only two significant digits.
  return about < 100 ? about : Number(about.toPrecision(2));
}

interface Conditions {
  readonly sql: readonly string[];
  readonly values: readonly unknown[];
}

const blocked = "('opted-out', 'bot-gate', 'robots', 'payment', 'address')";
const isLeased = "exists (select from lease l where l.host_hash = s.host_hash and l.closed_at is null)";

/** Returns null if nothing can match, because no such crawler or organisation exists. */
async function filterSql(pool: Pool, filter: SiteFilter, now: Date): Promise<Conditions | null> {
  const values: unknown[] = [];
  const given = (value: unknown) => `$${values.push(value)}`;
  const sql: string[] = [];
  if (filter.crawler !== undefined) {
    const crawlerId = await crawlerNamed(pool, filter.crawler);
    if (crawlerId === null) return null;
    sql.push(`s.crawler_id = ${given(crawlerId)}`);
  }
  if (filter.organisation !== undefined) {
    const holders = await createExploreReads(pool).holdersCalled(filter.organisation);
    if (holders.length === 0) return null;
    sql.push(`s.holder_id = any(${given(holders.map(({ holderId }) => holderId))}::int[])`);
  }
  if (filter.language !== undefined) sql.push(`s.language = ${given(filter.language)}`);
  if (filter.country !== undefined) sql.push(`s.country = ${given(filter.country)}`);
  if (filter.tld !== undefined) sql.push(`s.tld = ${given(filter.tld)}`);
  if (filter.channel !== undefined) sql.push(filter.channel === "with" ? "s.channels > 0" : "s.channels = 0");
  if (filter.host !== undefined) {
    const prefix = `${given(`${likeText(filter.host)}%`)}`;
    sql.push(`(s.host like ${prefix} or s.name is not null and s.name like ${prefix})`);
  }
  if (filter.under !== undefined) {
    const backwards = [...filter.under].reverse().join("");
    sql.push(
      `(reverse(s.host) = ${given(backwards)} or reverse(s.host) like ${given(`${likeText(backwards)}.%`)})`,
    );
  }
  if (filter.state !== undefined) sql.push(stateSql(filter.state, () => `${given(now)}::timestamptz`));
  return { sql, values };
}

function stateSql(state: SiteState, now: () => string): string {
  switch (state) {
    case "in-progress":
      return "s.host_hash in (select l.host_hash from lease l where l.closed_at is null)";
    case "due":
      return `s.standing = 'ready' and s.due_at <= ${now()} and not ${isLeased}`;
    case "scheduled":
      return `s.standing = 'ready' and s.due_at > ${now()} and not ${isLeased}`;
    case "blocked":
      return `s.standing in ${blocked}`;
    case "unresolved":
      return "s.standing in ('unresolved', 'unresolvable')";
    case "left-out":
      return "s.standing = 'nothing-due'";
  }
}

const likeText = (text: string) => text.replace(/[\\%_]/g, "\\$&");

async function crawlerNamed(pool: Pool, name: string): Promise<number | null> {
  const { rows } = await pool.query<{ crawler_id: number }>(
    "select crawler_id from crawler where name = $1",
    [name],
  );
  return rows[0]?.crawler_id ?? null;
}

interface SortColumn {
  readonly column: string;
  /** A parameter cast to the column's type. */
  readonly given: (parameter: string) => string;
  /** The column as text for a parameter. */
  readonly text: string;
  readonly isUnique?: true;
}

const whole = (column: string): SortColumn => ({
  ...{ column, given: (parameter) => `${parameter}::bigint`, text: `s.${column}::text` },
});
const instant = (column: string): SortColumn => ({
  column,
  given: (parameter) => `(timestamptz 'epoch' + ${parameter}::bigint * interval '1 microsecond')`,
  text: `(extract(epoch from s.${column}) * 1000000)::bigint::text`,
});

const sortColumns: Readonly<Record<SiteSort, SortColumn>> = {
  host: { column: "host", given: (parameter) => `${parameter}::text`, text: "s.host", isUnique: true },
  pages: whole("pages"),
  due: whole("due_urls"),
  failures: whole("failures"),
  bytes: whole("bytes"),
  fetched: instant("fetched_at"),
  added: instant("added_at"),
  rtt: { column: "rtt_ms", given: (parameter) => `${parameter}::real`, text: "s.rtt_ms::text" },
};

/** Hosts without a value are last in either direction. */
class Order {
  readonly #sort: SortColumn;
  readonly #direction: "asc" | "desc";
  readonly #sign: "<" | ">";
  readonly #after: SitePlace | null;

  constructor({ sort, direction, after }: SitesQuestion) {
    this.#sort = sortColumns[sort];
    this.#direction = direction === "up" ? "asc" : "desc";
    this.#sign = direction === "up" ? ">" : "<";
    this.#after = after;
  }

  get text(): string {
    return this.#sort.text;
  }

  get column(): string {
    return `s.${this.#sort.column}`;
  }

  /** SQL for sorting without an index. */
  get sorted(): string {
    return `(${this.column} is null), ${this.walked}`;
  }

  /** SQL for walking an index. */
  get walked(): string {
    const tie = this.#sort.isUnique ? "" : `, s.host_hash ${this.#direction}`;
    return `${this.column} ${this.#direction}${tie}`;
  }

  /** SQL: whether a host is after the place, among all hosts. */
  behind(given: (value: unknown) => string): string {
    const after = this.#after;
    if (after === null) return "true";
    if (after.value === null)
      return `${this.column} is null and s.host_hash ${this.#sign} ${given(after.hostHash)}::bigint`;
    return `(${this.#beyond(after.value, after.hostHash, given)} or ${this.column} is null)`;
  }

  /** SQL: whether a host is after the place, within its part of an index. */
  walk(given: (value: unknown) => string): string {
    const after = this.#after;
    if (after === null) return `${this.column} is not null`;
    if (after.value === null) return this.behind(given);
    return this.#beyond(after.value, after.hostHash, given);
  }

  #beyond(value: string, hostHash: string, given: (value: unknown) => string): string {
    const limit = this.#sort.given(given(value));
    if (this.#sort.isUnique) return `${this.column} ${this.#sign} ${limit}`;
    return `(${this.column}, s.host_hash) ${this.#sign} (${limit}, ${given(hostHash)}::bigint)`;
  }
}

const allOf = (conditions: readonly string[]) =>
  conditions.length === 0 ? "true" : conditions.join(" and ");

/** The places are valid if the count is at most `mostCounted`. */
async function fewMatches(client: PoolClient, question: SitesQuestion, filter: Conditions) {
  const order = new Order(question);
  const values = [...filter.values];
  const given = (value: unknown) => `$${values.push(value)}`;
  const { rows } = await client.query<{ hostHash: string | null; value: string | null; matches: number }>(
    `with few as materialized (
       select s.host_hash, ${order.column}
       from site s
       where ${allOf(filter.sql)}
       limit ${mostCounted + 1}
     ), counted as materialized (
       select count(*)::int as matches from few
     )
     select counted.matches, s.host_hash as "hostHash", ${order.text} as value
     from counted
     left join (
       select * from few s where ${order.behind(given)} order by ${order.sorted} limit ${question.limit + 1}
     ) s on counted.matches <= ${mostCounted}
     order by ${order.sorted}`,
    values,
  );
  // The row that has only the count has no host.
  const places = rows.flatMap(({ hostHash, value }) => (hostHash === null ? [] : [{ hostHash, value }]));
  return { count: rows[0]?.matches ?? 0, places };
}

/** Walks the order's index if that finds a page soon, otherwise sorts all matches. Returns one more than requested, if any. */
async function manyMatches(
  client: PoolClient,
  question: SitesQuestion,
  filter: Conditions,
): Promise<SitePlace[]> {
  const order = new Order(question);
  const placesIn = async (make: (given: (value: unknown) => string) => string): Promise<SitePlace[]> => {
    const values = [...filter.values];
    const rest = make((value) => `$${values.push(value)}`);
    const sql = `select s.host_hash as "hostHash", ${order.text} as value from ${rest} limit ${question.limit + 1}`;
    return (await client.query<SitePlace>(sql, values)).rows;
  };
  const walked = await placesIn(
    (given) =>
      `(select * from site s where ${order.walk(given)} order by ${order.walked} limit ${mostWalked}) s
       where ${allOf(filter.sql)}
       order by ${order.walked}`,
  );
  if (walked.length > question.limit) return walked;
  return await placesIn(
    (given) => `site s where ${allOf([...filter.sql, order.behind(given)])} order by ${order.sorted}`,
  );
}

interface SiteRow extends Omit<ListedSite, "name" | "state" | "reason" | "subnet" | "moreDueUrls"> {
  readonly name: string | null;
  readonly standing: Standing;
  readonly detail: string | null;
  readonly provider: string | null;
  readonly first: string | null;
  readonly last: string | null;
}

/** Hosts in progress are described as of now, the others as in the list. */
async function describe(client: PoolClient, places: readonly SitePlace[], now: Date): Promise<ListedSite[]> {
  if (places.length === 0) return [];
  const { rows } = await client.query<SiteRow>(
    `select s.host, s.name, s.standing, nullif(h.state_reason, '') as detail, h.challenge_provider as provider,
       s.due_at as "dueAt", c.name as crawler, l."inProgressBy", host(n.first_address) as first,
       host(n.last_address) as last, s.language, s.country, o.name as organisation, s.tld, s.channels, s.pages, s.urls,
       s.due_urls as "dueUrls", s.failures, s.fetches, s.fetched_at as "fetchedAt", s.added_at as "addedAt",
       s.rtt_ms as "rttMs", s.bytes::float8 as bytes
     from unnest($1::bigint[]) with ordinality as given (host_hash, nth)
     cross join lateral (select * from site where host_hash = given.host_hash offset 0) s
     left join lateral (
       select state_reason, challenge_provider
       from frontier_host
       where host_hash = given.host_hash and s.standing in ('address', 'unresolvable', 'bot-gate')
     ) h on true
     left join crawler c on c.crawler_id = s.crawler_id
     left join lateral (
       select coalesce(k.name, '') as "inProgressBy"
       from lease l
       left join crawler k on k.crawler_id = l.crawler_id
       where l.host_hash = given.host_hash and l.closed_at is null
     ) l on true
     left join subnet n on n.subnet_id = s.subnet_id
     left join holder o on o.holder_id = s.holder_id
     order by given.nth`,
    [places.map(({ hostHash }) => hostHash)],
  );
  return rows.map((row) => siteOf(row, now));
}

function siteOf({ standing, detail, provider, first, last, ...site }: SiteRow, now: Date): ListedSite {
  const { inProgressBy, dueAt, dueUrls } = site;
  return {
    ...site,
    name: site.name ?? site.host,
    state: siteState({ standing, isLeased: inProgressBy !== null, dueAt }, now),
    reason: reasonOf({ standing, detail, provider }),
    subnet: first !== null && last !== null ? rangeText(first, last) : null,
    moreDueUrls: dueUrls >= mostDueUrls,
    rttMs: roundMs(site.rttMs),
  };
}

function reasonOf({
  standing,
  detail,
  provider,
}: Pick<SiteRow, "standing" | "detail" | "provider">): string | null {
  if (standing === "bot-gate" && provider !== null) return `it is behind ${gateWords(provider)}, and rests`;
  const words = reasonWords[standing] ?? null;
  return words !== null && detail !== null ? `${words}: ${detail}` : words;
}
