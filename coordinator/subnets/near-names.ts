/**
 * Names that resemble a text (pg_trgm), through the GIN index over holders' names and bounded in time: the wider
 * the net, the more of the index is read, so a narrow one is cast first and a wide one only where it brings too
 * few. With millions of holders a text of common words only may bring none within the time; that is an answer.
 */
import type { Pool, PoolClient } from "pg";
import type { NearMatch } from "../who/who-answer.ts";

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

export interface NamedHolder {
  readonly holderId: number;
  readonly name: string;
}

/** Holders whose names come close to the text, best first: candidates for one that is written otherwise. */
export async function closeHolders(pool: Pool, text: string, limit: number): Promise<NamedHolder[]> {
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
