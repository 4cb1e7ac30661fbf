/** What is read of the best candidates: how their texts rank, and what is shown of them. */
import type { Pool } from "pg";
import type { Candidate, PageText, ShownPage } from "./reads.ts";
import { startMark, stopMark } from "./snippet.ts";

export async function pageTexts(pool: Pool, candidates: readonly Candidate[]): Promise<(PageText | null)[]> {
  if (candidates.length === 0) return [];
  const { rows } = await pool.query<{ at: number; url: string; rank: number }>({
    name: "search-texts",
    text: `select k.at::int, p.url, ts_rank_cd(p.lexemes, k.query::tsquery, 1) as rank
      from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as k (host_hash, url_hash, query, at)
      join page p using (host_hash, url_hash)`,
    values: keysOf(candidates),
  });
  const texts = new Map(rows.map((row) => [row.at, { url: row.url, textRank: row.rank }]));
  return candidates.map((_, index) => texts.get(index + 1) ?? null);
}

/** What has opted out, asks not to be shown or has gone since is left out. */
export async function shownPages(
  pool: Pool,
  candidates: readonly Candidate[],
): Promise<(ShownPage | null)[]> {
  if (candidates.length === 0) return [];
  const { rows } = await pool.query<{ at: number } & ShownPage>({
    name: "search-shown",
    text: `select k.at::int, p.url, p.title, p.words,
        ts_headline(c.oid::regconfig,
          translate(coalesce(nullif(p.excerpt, ''), p.description), '${startMark}${stopMark}', ''),
          k.query::tsquery, 'StartSel=${startMark}, StopSel=${stopMark}, HighlightAll=true') as headline
      from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality as k (host_hash, url_hash, query, at)
      join page p using (host_hash, url_hash)
      join pg_catalog.pg_ts_config c
        on c.cfgname = p.text_search_config and c.cfgnamespace = 'pg_catalog'::regnamespace
      where not p.noindex
        and not exists (select from frontier_host h where h.host_hash = p.host_hash and h.opt_out_id is not null)`,
    values: keysOf(candidates),
  });
  const shown = new Map(rows.map(({ at, ...page }) => [at, page]));
  return candidates.map((_, index) => shown.get(index + 1) ?? null);
}

function keysOf(candidates: readonly Candidate[]): unknown[] {
  return [
    candidates.map(({ hostHash }) => hostHash),
    candidates.map(({ urlHash }) => urlHash),
    candidates.map(({ query }) => query),
  ];
}
