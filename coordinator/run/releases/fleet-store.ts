/** Table release_offer, and which releases crawlers run: who was offered which release, and the outcome. */

import type { Pool } from "pg";
import { gatherArrivals } from "#core/coalesce";
import type { CrawlerId } from "#core/ids";
import type { CrawlerHello } from "#protocol/messages";
import { columnsOf } from "../../database/transaction.ts";
import type { ReleaseReport } from "../gateway/gateway-settings.ts";
import type { SupervisedEntry } from "./release-store.ts";
import { noCounts, type ReleaseCounts, type ReleaseState, type WatchedCrawler } from "./staging.ts";

interface ArrivedRelease {
  readonly crawlerId: CrawlerId;
  readonly runs: CrawlerHello["release"] | null;
}

type WatchedRelease = Omit<WatchedCrawler, "inStage"> & { readonly crawlerId: CrawlerId };
type SupervisedRow = Omit<SupervisedEntry, "reports"> & {
  versions: string[];
  states: (ReleaseState | null)[];
};
type FetchRow = { crawler_id: number; fetches: number; failures: number };

export type ReleaseFleetStore = ReturnType<typeof createReleaseFleetStore>;

export function createReleaseFleetStore(pool: Pool) {
  const arrivals = gatherArrivals((given: readonly ArrivedRelease[]) => noteReleases(pool, given));
  return {
    /** Records the release stated in the hello; null if no supervisor runs the crawler. */
    arrived: async (crawlerId: CrawlerId, runs: ArrivedRelease["runs"]): Promise<void> =>
      await arrivals.ask({ crawlerId, runs }),

    /** Returns crawlers that are not blocked, ordered by name. */
    async crawlers(): Promise<readonly SupervisedEntry[]> {
      const { rows } = await pool.query<SupervisedRow>(
        `select c.crawler_id as "crawlerId", c.name, c.state <> 'offline' as online, c.release_digest as digest,
           c.release_version as "runsVersion", c.dock_version as "dockVersion", c.release_policy as policy,
           coalesce(array_agg(o.version) filter (where o.version is not null), '{}') as versions,
           coalesce(array_agg(o.state) filter (where o.version is not null), '{}') as states
         from crawler c
         left join release_offer o using (crawler_id)
         where c.release_digest is not null and c.revoked_at is null
         group by c.crawler_id
         order by c.name`,
      );
      return rows.map(({ versions, states, ...crawler }) => ({
        ...crawler,
        reports: new Map(versions.map((version, index) => [version, states[index] ?? null])),
      }));
    },

    async offered(crawlerId: CrawlerId, version: string, now: Date): Promise<void> {
      await pool.query(
        `insert into release_offer (crawler_id, version, offered_at)
         values ($1, $2, $3)
         on conflict (crawler_id, version) do nothing`,
        [crawlerId, version, now],
      );
    },

    async reported(
      crawlerId: CrawlerId,
      { version, state, reason }: Pick<ReleaseReport, "version" | "state" | "reason">,
      now: Date,
    ): Promise<boolean> {
      const { rowCount } = await pool.query(
        `insert into release_offer (crawler_id, version, offered_at, state, reason, reported_at)
         select $1, version, $5, $3, $4, $5
         from release
         where version = $2
         on conflict (crawler_id, version) do update
           set state = excluded.state, reason = excluded.reason,
               reported_at = case when release_offer.state = excluded.state then release_offer.reported_at
                 else excluded.reported_at end`,
        [crawlerId, version, state, reason, now],
      );
      return rowCount === 1;
    },

    async counts(): Promise<ReadonlyMap<string, ReleaseCounts>> {
      const { rows } = await pool.query<{ version: string; state: ReleaseState | null; crawlers: number }>(
        `select version, state, count(*)::int as crawlers
         from release_offer
         group by version, state`,
      );
      const byVersion = new Map<string, ReleaseCounts>();
      for (const { version, state, crawlers } of rows) {
        byVersion.set(version, { ...(byVersion.get(version) ?? noCounts), [state ?? "offered"]: crawlers });
      }
      return byVersion;
    },

    /**
     * Returns all crawlers with a supervisor, as `decideStage` takes them, with how many fetches they made and how
     * many of these failed by their own fault or ours. The caller determines who is in the stage.
     */
    async watched(version: string, since: Date): Promise<readonly WatchedRelease[]> {
      const fetched = await pool.query<FetchRow>(
        `select crawler_id, count(*)::int as fetches,
           (count(*) filter (where blame in ('crawler', 'us')))::int as failures
         from page_fetch
         where fetched_at >= $1
         group by crawler_id`,
        [since],
      );
      const fetches = new Map(fetched.rows.map(({ crawler_id, ...counts }) => [crawler_id, counts]));
      const { rows } = await pool.query<Omit<WatchedRelease, "fetches" | "failures">>(
        `select c.crawler_id as "crawlerId", c.name, o.offered_at as "offeredAt", o.state, coalesce(o.reason, '') as reason,
           o.reported_at as "reportedAt", case when c.state = 'offline' then c.last_seen_at end as "offlineSince"
         from crawler c
         left join release_offer o on o.crawler_id = c.crawler_id and o.version = $1
         where c.release_digest is not null and c.revoked_at is null
         order by c.name`,
        [version],
      );
      return rows.map((row) => ({ ...row, ...(fetches.get(row.crawlerId) ?? { fetches: 0, failures: 0 }) }));
    },
  };
}

async function noteReleases(pool: Pool, arrivals: readonly ArrivedRelease[]): Promise<readonly undefined[]> {
  const last = [...new Map(arrivals.map((one) => [one.crawlerId, one])).values()];
  const none = { version: null, digest: null, dockVersion: null, policy: null };
  await pool.query(
    `update crawler c
     set release_version = given.version, release_digest = given.digest, dock_version = given.dock_version,
         release_policy = given.policy
     from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[])
       as given (crawler_id, version, digest, dock_version, policy)
     where c.crawler_id = given.crawler_id
       and (c.release_version, c.release_digest, c.dock_version, c.release_policy)
         is distinct from (given.version, given.digest, given.dock_version, given.policy)`,
    columnsOf(
      last.map(({ crawlerId, runs }) => ({ crawlerId, ...(runs ?? none) })),
      ["crawlerId", "version", "digest", "dockVersion", "policy"],
    ),
  );
  return arrivals.map(() => undefined);
}
