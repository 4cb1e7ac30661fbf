/** Reads the feed of changes (tables change_feed and page_change). */
import { inflateRawSync } from "node:zlib";
import type { Pool } from "pg";
import { urlHost } from "#core/ip/url-host";
import { hostHashOf, type UrlAddress } from "#core/url-key";
import { type ChangeFilter, changeFits, everyChange, type PageChange } from "./page-change.ts";
import { readDifference } from "./text-difference.ts";

/** Maximum changes scanned per answer, which takes 0.1 s. With a host named, only its changes count. */
const mostLookedAt = 20_000;

const rowsAtOnce = 1000;

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

export function createChangeFeed(pool: Pool) {
  return {
    state: async (): Promise<FeedState> =>
      (await readRows(pool, everyChange, { above: 0, through: 0, most: 1 })).state,

    /** Returns changes with higher numbers than `since`. Scans a bounded part of the feed; `more` says whether it continues. */
    after: async (since: number, query: ChangeQuery): Promise<ChangesRead> => await after(pool, since, query),

    /** Returns the latest matching changes in a bounded part of the feed; `next` is the feed's end. */
    latest: async (query: ChangeQuery): Promise<FeedRead> => await latest(pool, query),
  };
}

async function after(pool: Pool, since: number, { filter, limit }: ChangeQuery): Promise<ChangesRead> {
  const changes: PageChange[] = [];
  let at = since;
  let end: number | null = null;
  for (let looked = rowsAtOnce; ; looked += rowsAtOnce) {
    const wanted = { above: at, through: end ?? at + lookedAt(filter), most: rowsAtOnce };
    const { state, rows } = await readRows(pool, filter, wanted);
    const fault = cursorFault(at, state);
    if (fault !== null) return fault;
    const jump = state.jumps.find(({ from }) => from >= at);
    if (jump?.from === at) {
      // No numbers exist between two epochs of the database, so readers continue after the gap.
      at = jump.to;
      continue;
    }
    end ??= Math.min(state.last, at + lookedAt(filter), jump?.from ?? state.last);
    // Later queries may see newer changes, but the answer reflects the state at the first query.
    for (const change of rows) {
      if (change.number > end) break;
      if (!changeFits(filter, change)) continue;
      changes.push(change);
      if (changes.length < limit) continue;
      return { type: "read", changes, next: change.number, more: change.number < state.last };
    }
    at = rows.length < rowsAtOnce ? end : Math.min(end, rows.at(-1)!.number);
    if (at >= end || looked >= mostLookedAt) {
      const next = state.jumps.find(({ from }) => from === at)?.to ?? at;
      return { type: "read", changes, next, more: next < state.last };
    }
  }
}

async function latest(pool: Pool, { filter, limit, before }: ChangeQuery): Promise<FeedRead> {
  const found: PageChange[] = [];
  const { last } = (await readRows(pool, everyChange, { above: 0, through: 0, most: 1 })).state;
  const above = Math.max(0, last - lookedAt(filter));
  let through = before === undefined ? last : Math.min(last, before - 1);
  for (
    let looked = 0;
    through > above && found.length < limit && looked < mostLookedAt;
    looked += rowsAtOnce
  ) {
    const { rows } = await readRows(pool, filter, { above, through, most: rowsAtOnce, latestFirst: true });
    found.push(...rows.filter((change) => changeFits(filter, change)));
    through = rows.length < rowsAtOnce ? above : rows.at(-1)!.number - 1;
  }
  return { type: "read", changes: found.slice(0, limit).reverse(), next: last, more: false };
}

/**
 * For the whole feed, limits the range of numbers scanned. One host's changes may be anywhere in it, so only those
 * read count.
 */
const lookedAt = ({ host }: ChangeFilter) => (host === null ? mostLookedAt : 2 ** 52);

interface WantedRows {
  readonly above: number;
  readonly through: number;
  readonly most: number;
  readonly latestFirst?: boolean;
}

type ChangedPagesRead =
  | {
      readonly type: "read";
      /** Each page is listed once per change, in number order. */
      readonly pages: readonly (UrlAddress & { readonly number: number })[];
      readonly next: number;
      readonly more: boolean;
    }
  | CursorFault;

/** Returns the pages changed after number `since`, without the changes. */
export async function changedPages(pool: Pool, since: number, most: number): Promise<ChangedPagesRead> {
  const { rows } = await pool.query<UrlAddress & FeedState & { readonly number: number | null }>(
    `select f.last_number::float8 as last, f.removed_through::float8 as "removedThrough", f.jumps,
       c.change_number::float8 as number, c.host_hash as "hostHash", c.url_hash as "urlHash"
     from change_feed f
     left join lateral (
       select change_number, host_hash, url_hash from page_change
       where change_number > $1::bigint
       order by change_number
       limit $2
     ) c on true
     order by c.change_number`,
    [since, most],
  );
  const { last } = rows[0]!;
  const fault = cursorFault(since, rows[0]!);
  if (fault !== null) return fault;
  const pages = rows.flatMap(({ hostHash, urlHash, number }) =>
    number === null ? [] : [{ hostHash, urlHash, number }],
  );
  const next = pages.length < most ? last : pages.at(-1)!.number;
  return { type: "read", pages, next, more: next < last };
}

/** Returns the changes of one URL, latest first, out of the latest changes of its host. */
export async function changesOfUrl(
  pool: Pool,
  { hostHash, urlHash }: UrlAddress,
  most: number,
): Promise<PageChange[]> {
  const { rows } = await pool.query<FoundRow>(
    `select 0 as last, 0 as "removedThrough", '[]'::jsonb as jumps, ${rowSql}
     from (
       select *
       from (
         select * from page_change where host_hash = $1 order by change_number desc limit ${mostLookedAt}
       ) latest
       where url_hash = $2
       order by change_number desc
       limit $3
     ) c${statedJoins}
     order by c.change_number desc`,
    [hostHash, urlHash, most],
  );
  return rows.flatMap(changeOf);
}

/** SQL: the columns, named as the fields, with the feed's state in the same snapshot. */
const rowSql = `c.change_number::float8 as number, c.noted_at as "notedAt", c.url, c.kind, c.seen_at as "seenAt",
  c.status, c.reason, c.language, c.digest_before as "digestBefore", c.digest_after as "digestAfter",
  c.simhash_distance as "simhashDistance", case when silent.is_so is null then c.title_before end as "titleBefore",
  case when silent.is_so is null then c.title_after end as "titleAfter",
  c.words_before as "wordsBefore", c.words_after as "wordsAfter", c.links_before as "linksBefore",
  case when silent.is_so is null then c.difference end as difference,
  c.links_after as "linksAfter", c.links_added as "linksAdded", c.links_removed as "linksRemoved", c.location,
  case when stated.set_id is not null then
    jsonb_build_object('answers', stated.answers, 'statements', stated.stated) end as stated,
  case when before.set_id is not null then
    jsonb_build_object('answers', before.answers, 'statements', before.stated) end as "statedBefore"`;

/**
 * SQL: the statements at the time of the change, and whether the page must no longer be searched, which hides even
 * its old texts.
 */
const statedJoins = `
     left join preference_set stated on stated.set_id = c.preference_set
     left join preference_set before on before.set_id = c.preference_set_before
     left join lateral (
       select true as is_so
       from page p
       join preference_set s on s.set_id = p.preference_set
       where p.host_hash = c.host_hash and p.url_hash = c.url_hash
         and coalesce(s.answers ->> 'search', 'allowed') <> 'allowed'
     ) silent on true`;

type FoundRow = Omit<PageChange, "host" | "number" | "difference"> & {
  readonly difference: Buffer | null;
  readonly number: number | null;
  readonly last: number;
  readonly removedThrough: number;
  readonly jumps: FeedState["jumps"];
};

async function readRows(
  pool: Pool,
  filter: ChangeFilter,
  { above, through, most, latestFirst = false }: WantedRows,
): Promise<{ state: FeedState; rows: PageChange[] }> {
  // Reads all of a host's changes, because looking for a kind that it never had could scan millions.
  const [narrowed, by] =
    filter.host === null
      ? ["(cardinality($4::text[]) = 0 or kind = any ($4))", filter.kinds]
      : ["host_hash = $4::bigint", hostHashOf(filter.host)];
  const { rows } = await pool.query<FoundRow>(
    `select f.last_number::float8 as last, f.removed_through::float8 as "removedThrough", f.jumps,
       ${rowSql}
     from change_feed f
     left join lateral (
       select * from page_change
       where change_number > $1::bigint and change_number <= $2::bigint and ${narrowed}
       order by change_number ${latestFirst ? "desc" : ""}
       limit $3
     ) c on true${statedJoins}
     order by c.change_number ${latestFirst ? "desc" : ""}`,
    [above, through, most, by],
  );
  const { last, removedThrough, jumps } = rows[0]!;
  return { state: { last, removedThrough, jumps }, rows: rows.flatMap(changeOf) };
}

function changeOf({ number, last: _, removedThrough: __, jumps: ___, ...row }: FoundRow): PageChange[] {
  if (number === null) return [];
  const difference =
    row.difference === null ? null : readDifference(inflateRawSync(row.difference).toString());
  return [{ ...row, number, host: urlHost(row.url), difference }];
}

interface FeedState {
  /** Number of the latest change; 0 if there was none yet. */
  readonly last: number;
  /** Highest number of the removed changes. */
  readonly removedThrough: number;
  /**
   * Restores of the database (coordinator/run/journal), in order. Numbers after `from` belong to lost changes, and
   * numbering continues after `to`. `at` is in ISO 8601.
   */
  readonly jumps: readonly { readonly from: number; readonly to: number; readonly at: string }[];
}

/** Why reading cannot continue from a cursor. */
export type CursorFault = Exclude<ChangesRead, { readonly type: "read" }>;

type FeedRead = Extract<ChangesRead, { readonly type: "read" }>;

function cursorFault(at: number, { last, removedThrough, jumps }: FeedState): CursorFault | null {
  if (removedThrough > at) return { type: "too-old", removedThrough };
  const lost = jumps.find(({ from, to }) => from < at && at < to);
  if (lost !== undefined) return { type: "lost", goOnFrom: lost.from, wentBackAt: new Date(lost.at) };
  return at > last ? { type: "unknown", last } : null;
}

export interface ChangeQuery {
  readonly filter: ChangeFilter;
  readonly limit: number;
  /** Includes only changes with lower numbers. */
  readonly before?: number;
}

export type ChangesRead =
  | {
      readonly type: "read";
      /** The matching changes, in number order. */
      readonly changes: readonly PageChange[];
      /** The next cursor: there is no matching change between the last one listed and this number. */
      readonly next: number;
      readonly more: boolean;
    }
  /** The cursor is too old: some changes after it were removed. */
  | { readonly type: "too-old"; readonly removedThrough: number }
  /** The database was restored and has lost some changes that the reader had. `goOnFrom` is the last one that both know. */
  | { readonly type: "lost"; readonly goOnFrom: number; readonly wentBackAt: Date }
  /** No change has this number yet. */
  | { readonly type: "unknown"; readonly last: number };
