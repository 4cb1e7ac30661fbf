/** Finds organisations by handle or by name in any spelling, with their subnets. */

import type { Pool } from "pg";
import { boundedRead } from "../../database/bounded-read.ts";
import { companyNameOf } from "../../place/subnets/holder-name.ts";
import type { NearMatch, OrganisationReport } from "../../place/subnets/subnets-api.ts";
import { subnetsOfHolder } from "./subnet-reads.ts";

interface HolderRow {
  holder_id: number;
  holder_key: string;
  name: string;
  handle: string | null;
  registry: string | null;
}

/** Maximum that is counted, because more would exceed a page's time limit. */
const countLimit = 20_000;

/** Maximum number of candidates for a name in another spelling. Those of one company are adjacent. */
const closeCandidates = 50;

/**
 * Finds by handle, else by name in any case, else by a name that differs only in legal form, accents and punctuation. If
 * several match, returns the one with the most subnets.
 */
export async function organisationNamed(
  pool: Pool,
  text: string,
  subnetLimit: number,
): Promise<OrganisationReport | null> {
  // If the text has no letter or digit, no index helps, but no organisation has such a name either.
  if (!/[\p{L}\p{N}]/u.test(text)) return null;
  const holder =
    (await chosenHolder(pool, text, byHandleOrName(text))) ??
    (await chosenHolder(pool, text, await sameCompany(pool, text)));
  return holder && reportOf(pool, holder, subnetLimit);
}

interface HolderSearch {
  /** SQL that selects holder_id; its parameter is $2. */
  readonly sql: string;
  readonly value: unknown;
}

function byHandleOrName(text: string): HolderSearch {
  const sql = `
    (select holder_id from holder where handle in ($1, upper($1)) limit 100)
    union
    (select holder_id from holder where name ilike $2 limit 100)`;
  return { sql, value: escapeLike(text) };
}

/** Searches holders with the same normalised name. */
async function sameCompany(pool: Pool, text: string): Promise<HolderSearch | null> {
  const asked = companyNameOf(text).text;
  if (asked === "") return null;
  const close = await closeHolders(pool, asked, closeCandidates);
  const same = close.filter(({ name }) => companyNameOf(name).text === asked);
  return { sql: "select unnest($2::integer[])", value: same.map(({ holderId }) => holderId) };
}

async function chosenHolder(
  pool: Pool,
  text: string,
  search: HolderSearch | null,
): Promise<HolderRow | null> {
  if (search === null) return null;
  const { rows } = await pool.query<HolderRow>(
    `with named (holder_id) as (${search.sql})
     select holder_id, holder_key, name, handle, registry
     from named
     join holder using (holder_id)
     order by (handle is not null and upper(handle) = upper($1)) desc,
       (select count(*) from (
          select 1 from subnet where subnet.holder_id = named.holder_id and removed_in is null limit 1000
        ) counted) desc,
       holder_id
     limit 1`,
    [text, search.value],
  );
  return rows[0] ?? null;
}

async function reportOf(pool: Pool, holder: HolderRow, subnetLimit: number): Promise<OrganisationReport> {
  const [list, byCrawler] = await Promise.all([
    subnetsOfHolder(pool, holder.holder_id, subnetLimit),
    countByCrawler(pool, holder.holder_id),
  ]);
  return {
    holderId: holder.holder_id,
    name: holder.name,
    handle: holder.handle,
    registry: holder.registry,
    holderKey: holder.holder_key,
    subnetCount: byCrawler.reduce((sum, line) => sum + line.subnets, 0),
    byCrawler,
    list,
  };
}

/** Counts only own delegations; null counts subnets without one. */
async function countByCrawler(pool: Pool, holderId: number): Promise<OrganisationReport["byCrawler"]> {
  const { rows } = await pool.query<{ crawler: string | null; subnets: number }>(
    `select c.name as crawler, count(*)::int as subnets
     from (select subnet_id from subnet where holder_id = $1 and removed_in is null limit ${countLimit}) held
     left join delegation d using (subnet_id)
     left join crawler c using (crawler_id)
     group by c.name
     order by subnets desc, crawler`,
    [holderId],
  );
  return rows;
}

/** Escapes wildcards for `ilike`. */
function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`);
}

// Finds similar names (pg_trgm) through the GIN index, with a time limit. Lower similarities read more of the index, so a
// high one is tried first. With millions of holders, common words may exceed the time, which counts as no match.

/** The similarity that is tried first. */
const narrowSimilarity = 0.5;

const wideSimilarity = 0.3;

/** The similarity for a second attempt. It tolerates accents and legal forms: `3M` and `3M Company` have 0.27. */
const closeSimilarity = 0.25;

/** The similarity of a name that contains all words of a short question. */
const wordsWeight = 0.8;

const wideWordSimilarity = 0.7;
const longestMs = 1000;

/** Longer than any company's name. The time for a comparison is proportional to it. */
const longestText = 200;

/** Returns similar organisations and crawlers, best first. */
export async function namesLike(pool: Pool, text: string, limit: number): Promise<NearMatch[]> {
  const asked = text.slice(0, longestText);
  if (!/[\p{L}\p{N}]/u.test(asked)) return [];
  const narrow = await searchNames(pool, { sql: narrowSql, similarity: narrowSimilarity, asked, limit });
  if (narrow === null || narrow.length >= limit || asked.length < 2) return narrow ?? [];
  return (await searchNames(pool, { sql: wideSql, similarity: wideSimilarity, asked, limit })) ?? narrow;
}

interface NamedHolder {
  readonly holderId: number;
  readonly name: string;
}

/** Returns holders with similar names, best first. */
async function closeHolders(pool: Pool, text: string, limit: number): Promise<NamedHolder[]> {
  const asked = text.slice(0, longestText);
  if (!/[\p{L}\p{N}]/u.test(asked)) return [];
  const search = { sql: closeSql, similarity: closeSimilarity, asked, limit };
  return (await searchNames<NamedHolder>(pool, search)) ?? [];
}

const closeSql = `
  select holder_id as "holderId", name
  from holder
  where name % $1
  order by similarity(name, $1) desc, holder_id
  limit $2`;

const crawlersSql = `
  select 'crawler' as type, name, null as handle, similarity(name, $1) as rank
  from crawler
  where name % $1`;

const narrowSql = ranked(`
  (select 'organisation' as type, name, handle, similarity(name, $1) as rank
   from holder
   where name % $1
   order by rank desc, holder_id
   limit $2)
  union all
  (${crawlersSql})`);

const wideSql = ranked(`
  (select 'organisation' as type, name, handle,
     greatest(similarity(name, $1), ${wordsWeight} * strict_word_similarity($1, name)) as rank
   from holder
   where name % $1 or $1 <<% name
   order by rank desc, length(name), holder_id
   limit $2)
  union all
  (${crawlersSql})`);

function ranked(union: string): string {
  return `select type, name, handle, round(rank::numeric, 2)::float8 as similarity
    from (${union}) near
    order by rank desc, length(name), name
    limit $2`;
}

interface NameSearch {
  readonly sql: string;
  readonly similarity: number;
  readonly asked: string;
  readonly limit: number;
}

/** Returns null if the time limit was exceeded. */
const searchNames = async <Row extends object = NearMatch>(
  pool: Pool,
  { sql, similarity, asked, limit }: NameSearch,
): Promise<Row[] | null> =>
  await boundedRead(pool, longestMs, async (client) => {
    await client.query(
      `select set_config('pg_trgm.similarity_threshold', $1, true),
         set_config('pg_trgm.strict_word_similarity_threshold', $2, true)`,
      [String(similarity), String(wideWordSimilarity)],
    );
    return (await client.query<Row & Record<string, unknown>>(sql, [asked, limit])).rows;
  });
