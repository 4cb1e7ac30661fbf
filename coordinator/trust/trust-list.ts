/** Whether each crawler is believed, for operators: those that are not stand first. */
import type { Pool } from "pg";
import { untoldByCrawler } from "../fleet/fleet-figures.ts";
import type { TrustLine } from "../fleet/fleet-ports.ts";
import { standingOf } from "./reads.ts";
import { unprovenWords } from "./trust-standing.ts";

interface TrustRow {
  name: string;
  pages: number;
  score: number;
  watched: boolean;
  distrusted_at: Date | null;
  distrust_words: string | null;
  probes_doubted_at: Date | null;
  probes_words: string | null;
  restored_at: Date | null;
  agreed: number;
  alone: number;
  once: number;
  untold: number;
}

export async function trustList(pool: Pool): Promise<TrustLine[]> {
  const { rows } = await pool.query<TrustRow>(
    `select c.name, coalesce(t.pages, 0)::float8 as pages, coalesce(t.score, 0)::float8 as score,
       coalesce(t.watched_until_page > t.pages, false) as watched,
       t.distrusted_at, t.distrust_words, t.probes_doubted_at, t.probes_words, t.restored_at,
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
     order by t.distrusted_at is null, t.probes_doubted_at is null, score desc, c.name`,
  );
  return rows.map(lineOf);
}

function lineOf(row: TrustRow): TrustLine {
  const { agreed, alone, once, untold } = row;
  const comparisons = { agreed, alone, once, untold };
  const standing = standingOf({
    distrustedAt: row.distrusted_at,
    probesDoubtedAt: row.probes_doubted_at,
    watched: row.watched,
    told: agreed + alone + once,
    untold,
  });
  return {
    crawler: row.name,
    standing,
    pages: row.pages,
    comparisons,
    score: row.score,
    since: row.distrusted_at ?? row.probes_doubted_at,
    words:
      row.distrust_words ?? row.probes_words ?? (standing === "unproven" ? unprovenWords(comparisons) : ""),
    restoredAt: row.restored_at,
  };
}
