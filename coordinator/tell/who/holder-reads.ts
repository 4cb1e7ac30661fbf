/** Organisations by handle or name, however it is written, and what they hold. */

import type { Pool, PoolClient } from "pg";
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

/** Subnets counted per organisation at most: a count over more would take longer than a page may. */
const countLimit = 20_000;

/** Candidates for a name that is written otherwise; those of one company stand close together. */
const closeCandidates = 50;

/**
 * The holder of that handle; else of that name in any case; else of a name that differs in legal form, accents
 * and punctuation only. Where several share it, the one with most subnets.
 */
export async function organisationNamed(
  pool: Pool,
  text: string,
  subnetLimit: number,
): Promise<OrganisationReport | null> {
  // Without a letter or digit no index helps, and no organisation is called so.
  if (!/[\p{L}\p{N}]/u.test(text)) return null;
  const holder =
    (await chosenHolder(pool, text, byHandleOrName(text))) ??
    (await chosenHolder(pool, text, await sameCompany(pool, text)));
  return holder && reportOf(pool, holder, subnetLimit);
}

interface HolderSearch {
  /** Gives holder_id; its parameter is $2. */
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

/** Holders whose normalised name is that of the text. */
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

/** Own delegations only; null counts subnets that have none of their own. */
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

/** The text itself for `ilike`: its wildcards stand for themselves. */
function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`);
}

// Names that resemble a text (pg_trgm), through the GIN index over holders' names and bounded in time: the wider
// the net, the more of the index is read, so a narrow one is cast first and a wide one only where it brings too
// few. With millions of holders a text of common words only may bring none within the time; that is an answer.

/** pg_trgm's similarity from which a name counts: first, and where that brings too few. */
const narrowSimilarity = 0.5;

const wideSimilarity = 0.3;

/** What accents and a legal form leave of it: `3M` and `3M Company` resemble each other by 0.27. */
const closeSimilarity = 0.25;

/** A name that has all words of a short question among others resembles it this much. */
const wordsWeight = 0.8;

const wideWordSimilarity = 0.7;
const longestMs = 1000;

/** More than any company's name needs; what is compared costs in proportion. */
const longestText = 200;

/** Postgres' code for a statement that was ended by its time limit. */
const queryCanceled = "57014";

/** Organisations and crawlers whose names resemble the text, best first. */
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

/** Holders whose names come close to the text, best first: candidates for one that is written otherwise. */
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

/** Null when the time was over. */
async function searchNames<Row extends object = NearMatch>(
  pool: Pool,
  { sql, similarity, asked, limit }: NameSearch,
): Promise<Row[] | null> {
  const client = await pool.connect();
  try {
    await client.query("begin read only");
    await limitSearch(client, similarity);
    const { rows } = await client.query<Row & Record<string, unknown>>(sql, [asked, limit]);
    return rows;
  } catch (error) {
    if ((error as { code?: string }).code === queryCanceled) return null;
    throw error;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

/** For this transaction only. */
async function limitSearch(client: PoolClient, similarity: number): Promise<void> {
  await client.query(
    `select set_config('pg_trgm.similarity_threshold', $1, true),
       set_config('pg_trgm.strict_word_similarity_threshold', $2, true),
       set_config('statement_timeout', $3, true)`,
    [String(similarity), String(wideWordSimilarity), String(longestMs)],
  );
}
