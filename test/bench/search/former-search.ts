/** The search as it was: the texts of up to 2000 matches ranked for every question. What the new one is held against. */
import type { Pool } from "pg";

const rankedLimit = 2000;

const queriesSql = `
  select distinct on (c.oid) c.oid::regconfig as config, c.cfgname,
    websearch_to_tsquery(c.oid::regconfig, $1) as query
  from pg_ts_config c
  join pg_namespace n on n.oid = c.cfgnamespace and n.nspname = 'pg_catalog'`;

const candidatesSql = `
  select distinct on (alike_as) host_hash, url_hash, rank
  from (
    select p.host_hash, p.url_hash, ts_rank_cd(p.lexemes, q.query, 1) as rank,
      coalesce(p.text_group, p.url_hash) as alike_as, p.duplicate_url_hash is not null as is_duplicate
    from page p
    join (${queriesSql}) q on q.cfgname = p.text_search_config
    where p.lexemes @@ $2::tsquery
      and p.lexemes @@ q.query
      and not p.noindex
      and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)
    limit ${rankedLimit + 1}
  ) matching
  order by alike_as, is_duplicate, rank desc, host_hash, url_hash`;

/** Milliseconds, or null when it took longer than `longestMs`. */
export async function formerSearchMs(pool: Pool, words: string, longestMs: number): Promise<number | null> {
  const startedMs = performance.now();
  const client = await pool.connect();
  try {
    await client.query(`begin read only; set local statement_timeout = ${longestMs}`);
    const { rows } = await client.query<{ query: string }>(
      `select string_agg(distinct '(' || query::text || ')', ' | ') as query from (${queriesSql}) queries
       where numnode(query) > 0 and querytree(query) not in ('', 'T')`,
      [words],
    );
    await client.query(
      `with candidates as materialized (${candidatesSql}),
       chosen as (select * from candidates order by rank desc, host_hash, url_hash limit 10)
       select p.url, p.title, ts_headline(q.config, p.excerpt, q.query, 'HighlightAll=true')
       from chosen
       join page p using (host_hash, url_hash)
       join (${queriesSql}) q on q.cfgname = p.text_search_config`,
      [words, rows[0]?.query ?? ""],
    );
    return performance.now() - startedMs;
  } catch (error) {
    if ((error as { code?: string }).code === "57014") return null;
    throw error;
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}
