/** Table page_fetch: failed fetches and their cause, from a bounded part of the latest fetches. */
import type { Pool } from "pg";
import { hostHashOf } from "#core/url-key";
import type { Blame, FailureLine, FailureShares } from "./fleet-api.ts";

interface FailureQuery {
  readonly since: Date;
  readonly blame?: Blame | undefined;
  readonly crawler?: string | undefined;
  readonly host?: string | undefined;
  readonly most: number;
}

/** Maximum number of fetches over which shares are counted. This many took 2.7 s on two busy cores; pages wait 5 s. */
const mostCounted = 200_000;

/** Returns the latest first, by the index of failures. The words are those of the URL's last fetch; a later one removes them. */
export async function latestFailures(pool: Pool, query: FailureQuery): Promise<FailureLine[]> {
  const { since, blame, crawler, host, most } = query;
  const { rows } = await pool.query<FailureLine>(
    `select f.fetched_at as at, c.name as crawler, f.blame, f.status, u.url, h.host,
       case when u.last_fetched_at = f.fetched_at then u.last_reason
         when f.outcome = 'challenged' then 'a bot gate asked for a proof that a person visits' end as words
     from (
       select host_hash, url_hash, crawler_id, fetched_at, blame, status, outcome
       from page_fetch
       where blame is not null and fetched_at >= $1
         and ($2::text is null or blame = $2)
         and ($3::text is null or crawler_id = (select crawler_id from crawler where name = $3))
         and ($4::bigint is null or host_hash = $4)
       order by fetched_at desc
       limit $5
     ) f
     left join crawler c using (crawler_id)
     left join frontier_host h using (host_hash)
     left join frontier_url u on u.host_hash = f.host_hash and u.url_hash = f.url_hash
     order by f.fetched_at desc`,
    [since, blame ?? null, crawler ?? null, host === undefined ? null : hostHashOf(host), most],
  );
  return rows;
}

interface ShareRow {
  name: string | null;
  blame: Blame | null;
  fetches: number;
  since: Date;
}

/** Counts the fetches since `since`, but no more than the latest 200,000. */
export async function failureShares(pool: Pool, since: Date): Promise<FailureShares> {
  const rows = await shareRows(pool, since);
  return {
    since: countedSince(rows, since),
    fetches: sumOf(rows),
    failures: blamesIn(rows),
    byCrawler: crawlersIn(rows),
  };
}

const sumOf = (rows: readonly ShareRow[]): number => rows.reduce((sum, row) => sum + row.fetches, 0);

function countedSince(rows: readonly ShareRow[], since: Date): Date {
  if (sumOf(rows) < mostCounted) return since;
  return new Date(
    rows.reduce((least, row) => Math.min(least, row.since.getTime()), Number.POSITIVE_INFINITY),
  );
}

async function shareRows(pool: Pool, since: Date): Promise<ShareRow[]> {
  const { rows } = await pool.query<ShareRow>(
    `select c.name, f.blame, f.fetches, f.since
     from (
       select crawler_id, blame, count(*)::int as fetches, min(fetched_at) as since
       from (
         select crawler_id, blame, fetched_at
         from page_fetch
         where fetched_at >= $1
         order by fetched_at desc
         limit ${mostCounted}
       ) latest
       group by crawler_id, blame
     ) f
     left join crawler c using (crawler_id)`,
    [since],
  );
  return rows;
}

const nothing: Readonly<Record<Blame, number>> = { target: 0, network: 0, crawler: 0, us: 0 };

function blamesIn(rows: readonly ShareRow[]): Record<Blame, number> {
  const failures = { ...nothing };
  for (const { blame, fetches } of rows) if (blame !== null) failures[blame] += fetches;
  return failures;
}

/** Returns crawlers with the most failures of their own first. */
function crawlersIn(rows: readonly ShareRow[]): FailureShares["byCrawler"] {
  const names = [...new Set(rows.map(({ name }) => name))];
  return names
    .map((crawler) => {
      const own = rows.filter(({ name }) => name === crawler);
      return { crawler: crawler ?? "(removed)", fetches: sumOf(own), failures: blamesIn(own) };
    })
    .sort((a, b) => ownFaults(b) - ownFaults(a) || a.crawler.localeCompare(b.crawler));
}

/** Failures that operators can fix weigh more than those of sites. */
const ownFaults = ({ failures, fetches }: FailureShares["byCrawler"][number]): number =>
  (failures.crawler + failures.us + failures.network / 10 + failures.target / 100) / Math.max(1, fetches);
