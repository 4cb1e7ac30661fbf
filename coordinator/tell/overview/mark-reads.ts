/** What changed in a range of time and may be why a line of a chart bends: policies, releases, registries, crawlers. */
import type { Pool } from "pg";
import { howMany } from "#core/format";
import type { TimeRange } from "#core/time-range";
import type { HistoryMark, Marks } from "../../web/chart-history.ts";

/** The latest are shown, the rest is counted. */
const mostMarks = 50;

interface MarkRow {
  readonly at: Date;
  readonly kind: string;
  readonly subject: string;
  readonly more: number;
  readonly count: number;
}

/** `crawler`: without what concerns other crawlers. */
export async function marksBetween(
  pool: Pool,
  { since, until }: TimeRange,
  crawler: string | null = null,
): Promise<Marks> {
  const { rows } = await pool.query<MarkRow>(
    `select at, kind, subject, more, count(*) over ()::int as count
     from (
       select changed_at as at, 'policy' as kind, coalesce(changes -> 0 ->> 'name', '') as subject,
         jsonb_array_length(changes) - 1 as more
       from policy_version
       where changed_at between $1 and $2
       union all
       select published_at, 'release-published', version, 0
       from release
       where published_at between $1 and $2
       union all
       select stage_since, 'release-' || stage, version, 0
       from release
       where stage_since between $1 and $2 and stage_since > published_at
       union all
       select applied_at, 'registry', generation::text, 0
       from registry_generation
       where applied_at between $1 and $2
       union all
       select rolled_back_at, 'registry-rolled-back', generation::text, 0
       from registry_generation
       where rolled_back_at between $1 and $2
       union all
       select created_at, 'crawler-registered', name, 0
       from crawler
       where created_at between $1 and $2 and ($3::text is null or name = $3)
       union all
       select at, action, target, 0
       from audit_entry
       where at between $1 and $2 and action = any($4) and target is not null and ($3::text is null or target = $3)
     ) change
     order by at desc, kind desc, subject collate "C" desc
     limit ${mostMarks}`,
    [since, until, crawler, Object.keys(crawlerWords)],
  );
  return { marks: rows.reverse().map(markOf), more: Math.max(0, (rows[0]?.count ?? 0) - rows.length) };
}

/** By the action of the audit log. */
const crawlerWords: Readonly<Record<string, string>> = {
  "crawler-drained": "drained",
  "crawler-resumed": "resumed",
  "crawler-revoked": "removed",
  "crawler-killed": "removed",
  "crawler-distrusted": "not trusted any more",
  "crawler-probes-doubted": "probes not trusted any more",
  "crawler-trust-restored": "trusted again",
  "crawler-budget-granted": "budget changed",
  "crawler-domain-sets-given": "domain sets changed",
  "crawler-moved": "moved to another host",
};

function markOf({ at, kind, subject, more }: MarkRow): HistoryMark {
  return { at: at.toISOString(), ...wordsOf(kind, subject, more) };
}

function wordsOf(kind: string, subject: string, more: number): Pick<HistoryMark, "words" | "link"> {
  switch (kind) {
    case "policy":
      return {
        words: `policy ${subject} changed${more > 0 ? `, with ${howMany(more, "other")}` : ""}`,
        link: "/policies",
      };
    case "release-published":
      return { words: `release ${subject} published`, link: "/fleet/versions" };
    case "release-none":
      return { words: `release ${subject} offered to nobody any more`, link: "/fleet/versions" };
    case "release-one":
    case "release-percent":
    case "release-all": {
      const whom = {
        "release-one": "one crawler",
        "release-percent": "a part of the fleet",
        "release-all": "all",
      };
      return { words: `release ${subject} offered to ${whom[kind]}`, link: "/fleet/versions" };
    }
    case "registry":
      return { words: `registry generation ${subject} in force`, link: "/registry" };
    case "registry-rolled-back":
      return { words: `registry generation ${subject} rolled back`, link: "/registry" };
    case "crawler-registered":
      return { words: `${subject} registered`, link: crawlerLink(subject) };
    default:
      return { words: `${subject} ${crawlerWords[kind] ?? kind}`, link: crawlerLink(subject) };
  }
}

const crawlerLink = (name: string) => `/crawlers/${encodeURIComponent(name)}`;
