/** Reports for operators: whether crawlers are trusted and why, page by page. */
import type { Pool } from "pg";
import { isUnproven } from "./evidence.ts";
import type { PageSketch } from "./page-sketch.ts";
import {
  type TrustEvidence,
  type TrustLine,
  type TrustReport,
  type TrustStanding,
  unprovenWords,
} from "./trust-api.ts";

const mostEvidence = 100;

/** Returns null if no crawler has that name. */
export async function trustReport(pool: Pool, name: string): Promise<TrustReport | null> {
  const [row] = await trustRows(pool, name);
  if (row === undefined) return null;
  const { rows } = await pool.query<{ connected: number }>(
    "select count(*)::int as connected from crawler where state <> 'offline'",
  );
  return {
    ...standOf(row),
    distrusted: row.distrustedAt && { since: row.distrustedAt, words: row.distrustWords ?? "" },
    probesDoubted: row.probesDoubtedAt && { since: row.probesDoubtedAt, words: row.probesWords ?? "" },
    connected: rows[0]!.connected,
    evidence: await evidenceAgainst(pool, row),
  };
}

interface TrustRow {
  crawlerId: number;
  name: string;
  pages: number;
  score: number;
  watched: boolean;
  distrustedAt: Date | null;
  distrustWords: string | null;
  probesDoubtedAt: Date | null;
  probesWords: string | null;
  restoredAt: Date | null;
  agreed: number;
  alone: number;
  once: number;
  untold: number;
}

/** Lists distrusted crawlers first. */
async function trustRows(pool: Pool, name: string | null): Promise<TrustRow[]> {
  const { rows } = await pool.query<TrustRow>(
    `select c.crawler_id as "crawlerId", c.name, coalesce(t.pages, 0)::float8 as pages, coalesce(t.score, 0)::float8 as score,
       coalesce(t.watched_until_page > t.pages, false) as watched,
       t.distrusted_at as "distrustedAt", t.distrust_words as "distrustWords",
       t.probes_doubted_at as "probesDoubtedAt", t.probes_words as "probesWords", t.restored_at as "restoredAt",
       coalesce(o.agreed, 0)::int as agreed, coalesce(o.alone, 0)::int as alone, coalesce(o.once, 0)::int as once,
       coalesce(u.untold, 0)::int as untold
     from crawler c
     left join crawler_trust t using (crawler_id)
     left join (
       select o.crawler_id, count(*) filter (where o.outcome = 'agree') as agreed,
         count(*) filter (where o.outcome = 'alone') as alone, count(*) filter (where o.outcome = 'once') as once
       from check_outcome o
       left join crawler_trust t using (crawler_id)
       where o.decided_at >= coalesce(t.restored_at, '-infinity')
       group by o.crawler_id
     ) o using (crawler_id)
     left join (${untoldByCrawler}) u using (crawler_id)
     where $1::text is null or c.name = $1
     order by t.distrusted_at is null, t.probes_doubted_at is null, score desc, c.name`,
    [name],
  );
  return rows;
}

function standOf(row: TrustRow) {
  const { name: crawler, pages, score, restoredAt, agreed, alone, once, untold } = row;
  const standing = standingOf({ ...row, told: agreed + alone + once });
  return { crawler, standing, pages, comparisons: { agreed, alone, once, untold }, score, restoredAt };
}

export function standingOf(of: {
  readonly distrustedAt: Date | null;
  readonly probesDoubtedAt: Date | null;
  readonly watched: boolean;
  readonly told: number;
  readonly untold: number;
}): TrustStanding {
  if (of.distrustedAt !== null) return "distrusted";
  if (of.probesDoubtedAt !== null) return "probes-doubted";
  if (isUnproven(of)) return "unproven";
  if (of.watched) return "watched";
  return of.told === 0 ? "not-compared" : "trusted";
}

interface EvidenceRow {
  check_id: string;
  url: string;
  decided_at: Date;
  verdict: TrustEvidence["verdict"];
  words: string;
  host_hash: string;
  silent: boolean;
  agreed: number;
  is_first: boolean;
  is_own: boolean;
  opinions: { crawlerId: number; at: string; sketch: PageSketch }[];
  names: Record<string, string>;
}

async function evidenceAgainst(pool: Pool, { crawlerId, restoredAt }: TrustRow): Promise<TrustEvidence[]> {
  const { rows } = await pool.query<EvidenceRow>(
    `select c.check_id, c.url, c.decided_at, c.verdict, c.words, c.host_hash, c.opinions,
       coalesce(h.silent, false) as silent, c.crawler_id = $1 as is_own,
       (select count(*)::int from check_outcome o
        where o.crawler_id = $1 and o.host_hash = c.host_hash and o.outcome = 'agree') as agreed,
       not exists (
         select from double_check e
         where e.suspect_id = $1 and e.crawler_id = $1 and e.host_hash = c.host_hash and e.check_id < c.check_id
           and e.decided_at >= coalesce($2, '-infinity'::timestamptz)
       ) as is_first,
       (select jsonb_object_agg(w.crawler_id::text, w.name)
        from crawler w
        where w.crawler_id in (select (o ->> 'crawlerId')::int from jsonb_array_elements(c.opinions) o)) as names
     from double_check c
     left join host_disagreement h using (host_hash)
     where c.suspect_id = $1 and c.decided_at >= coalesce($2, '-infinity'::timestamptz)
     order by c.decided_at desc, c.check_id desc
     limit ${mostEvidence}`,
    [crawlerId, restoredAt],
  );
  return rows.map(evidenceOf);
}

const evidenceOf = (row: EvidenceRow): TrustEvidence => ({
  url: row.url,
  at: row.decided_at,
  verdict: row.verdict,
  words: row.words,
  ...weightOf(row),
  opinions: row.opinions.map(({ crawlerId, at, sketch }) => ({
    crawler: row.names[String(crawlerId)] ?? String(crawlerId),
    at,
    said: saidOf(sketch),
  })),
});

function weightOf({ silent, agreed, is_first, is_own }: EvidenceRow): Pick<TrustEvidence, "counts" | "why"> {
  if (!is_own) return { counts: false, why: "it fetched the page for a comparison only" };
  if (silent) return { counts: false, why: "the host shows others, or each visit, something else" };
  if (!is_first) return { counts: false, why: "an earlier page of the same host stands for it" };
  if (agreed < 2)
    return { counts: true, why: "counts little: it agrees with others on no other page of the host" };
  return { counts: true, why: `on ${agreed} pages of the host it agrees with others` };
}

function saidOf({ kind, digest, linkCount }: PageSketch): string {
  if (kind === "page") return `a page ${digest?.slice(0, 12) ?? ""} with ${linkCount} links`;
  if (kind === "missing") return "there is no such page";
  if (kind === "redirect") return "it redirects";
  return kind === "other" ? "content that is not read" : "nothing";
}

/** Says of each crawler whether it is trusted, distrusted ones first. */
export async function trustList(pool: Pool): Promise<TrustLine[]> {
  return (await trustRows(pool, null)).map((row) => {
    const { standing, comparisons, ...stand } = standOf(row);
    const unproven = standing === "unproven" ? unprovenWords(comparisons) : "";
    return {
      ...stand,
      standing,
      comparisons,
      since: row.distrustedAt ?? row.probesDoubtedAt,
      words: row.distrustWords ?? row.probesWords ?? unproven,
    };
  });
}

/** SQL: each crawler's inconclusive comparisons since trust in it was restored. */
export const untoldByCrawler = `
  select n.crawler_id, count(*) as untold
  from double_check n
  left join crawler_trust t using (crawler_id)
  where n.verdict = 'cannot-tell' and n.decided_at >= coalesce(t.restored_at, '-infinity')
  group by n.crawler_id`;
