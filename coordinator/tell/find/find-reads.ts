/** The search box's database queries: crawlers by part of their name, hosts by the beginning or end of theirs. */
import type { Pool, PoolClient } from "pg";
import { hostHashOf, hostNamed } from "#core/url-key";
import { isOfSite } from "../../crawl/frontier/site-rule-writes.ts";
import { boundedRead } from "../../database/bounded-read.ts";
import { readsOver } from "../../database/cached-read.ts";
import type { CrawlerRecord } from "../../place/crawlers/crawler.ts";

export type FoundCrawler = Pick<CrawlerRecord, "name" | "state" | "place" | "country">;

export interface FoundHost {
  readonly host: string;
  /** The readable form of a Punycode name; null if it is the same or unknown. */
  readonly name: string | null;
  readonly state: string;
  readonly urls: number;
  readonly fetchedUrls: number;
  readonly hasOptedOut: boolean;
}

export interface NamedRows<Row> {
  readonly rows: readonly Row[];
  readonly more: boolean;
}

export type FindReads = ReturnType<typeof createFindReads>;

export const createFindReads = (pool: Pool) => readsOver(pool, { findCrawlers, findHosts });

/** Time limit. People continue to type, so a late answer is useless. */
const longestMs = 400;

interface Asked {
  readonly text: string;
  readonly within: readonly string[] | null;
  readonly most: number;
}

/** Returns the crawlers (of `within`) whose names contain the text, best matches first. Null if it took too long. */
async function findCrawlers(pool: Pool, asked: Asked): Promise<NamedRows<FoundCrawler> | null> {
  return await boundedRead(pool, longestMs, async (client) => await crawlers(client, asked));
}

/** Returns the host itself, those below it, and those with this prefix. Null if it took too long. */
export async function findHosts(
  pool: Pool,
  text: string,
  most: number,
): Promise<NamedRows<FoundHost> | null> {
  const found = await boundedRead(pool, longestMs, async (client) => await hosts(client, text, most));
  return found === null ? null : foundIn(found, most);
}

/** Returns each host once, the best first. */
function foundIn(rows: readonly RankedHost[], most: number): NamedRows<FoundHost> {
  const once = new Map<string, FoundHost>();
  for (const { at: _, ...row } of rows.toSorted((a, b) => a.at - b.at || byText(a.host, b.host))) {
    const known = once.get(row.host);
    once.set(row.host, known === undefined ? row : { ...known, name: known.name ?? row.name });
  }
  return cut([...once.values()], most);
}

/** Orders texts as Postgres does under collation "C". */
const byText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** `at` is the rank of the query that found the host. */
type RankedHost = FoundHost & { readonly at: number };

/** Scans all crawlers, of which there are thousands at most. */
async function crawlers(client: PoolClient, { text, within, most }: Asked): Promise<NamedRows<FoundCrawler>> {
  const { rows } = await client.query<FoundCrawler>({
    name: "find-crawlers",
    text: `select c.name, case when c.revoked_at is null then c.state else 'removed' end as state, c.place, c.country
      from crawler c
      where strpos(lower(c.name), $1) > 0 and ($2::text[] is null or c.name = any($2::text[]))
      order by c.revoked_at is not null,
        case
          when lower(c.name) = $1 then 0
          when starts_with(lower(c.name), $1) then 1
          when strpos(translate(lower(c.name), '._', '--'), '-' || $1) > 0 then 2
          else 3
        end,
        c.name
      limit $3`,
    values: [text, within, most + 1],
  });
  return cut(rows, most);
}

const columns = `h.host, h.state, h.url_count as urls, h.fetched_urls as "fetchedUrls",
  h.opt_out_id is not null as "hasOptedOut"`;

/**
 * SQL for names with this prefix, the host itself first. `name` is the readable form. The list of sites may lag the frontier
 * by minutes.
 */
const begun = (at: number, name: "host" | "name", first: string, after: string) => `
  select ${at}, one.name, ${columns}
  from (
    select s.host_hash, s.name from site s
    where s.${name} >= ${first}::text collate "C" and s.${name} < ${after}::text collate "C"
    order by s.${name} limit $3
  ) one
  join frontier_host h using (host_hash)`;

/** Each query uses an index of its own and reads no more rows than are shown. */
async function hosts(client: PoolClient, text: string, most: number): Promise<RankedHost[]> {
  const host = hostNamed(text) ?? text;
  // Host names are lower-case ASCII.
  const isHost = /^[a-z0-9._-]{1,253}$/.test(host);
  if (!isHost && !/^[\p{L}\p{N}\p{M}._-]+$/u.test(text)) return [];
  // The empty text precedes all others, so the range is empty.
  const [named, withWww] = isHost ? [host, `www.${host}`] : ["", ""];
  const { rows } = await client.query<RankedHost>({
    name: "find-hosts",
    text: `select found.at, found.name, found.host, found.state, found.urls, found."fetchedUrls", found."hasOptedOut"
      from (
        (select 1 as at, s.name, ${columns} from frontier_host h left join site s using (host_hash) where h.host_hash = $1::bigint)
        union all
        (select 2, null, ${columns} from frontier_host h where ${isOfSite("h.host", "$2::text")} limit $3)
        union all (${begun(3, "host", "$2", "$4")})
        union all (${begun(4, "host", "$5", "$6")})
        union all (${begun(5, "name", "$7", "$8")})
      ) found
      order by found.at, found.host`,
    values: [
      ...[hostHashOf(named), named, most + 1, afterAll(named), withWww, afterAll(withWww)],
      ...[text, afterAll(text)],
    ],
  });
  return rows;
}

/** Returns the first text after all texts with this prefix, by code points. */
function afterAll(text: string): string {
  const characters = [...text];
  const last = characters.pop()?.codePointAt(0) ?? 0x10_ff_ff;
  return last >= 0xd7_ff ? text : characters.join("") + String.fromCodePoint(last + 1);
}

function cut<Row>(rows: readonly Row[], most: number): NamedRows<Row> {
  return { rows: rows.slice(0, most), more: rows.length > most };
}
