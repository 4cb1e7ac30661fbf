/** Tables double_check, check_outcome, host_disagreement and crawler_trust: comparisons and trust in crawlers. */
import type { Pool } from "pg";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { columnsOf } from "../../database/transaction.ts";
import { isFromHere } from "../../place/delegation/round-store.ts";
import { isLeaseNumber } from "../frontier/lease-end-writes.ts";
import {
  checkTargets,
  leaseChecks,
  openChecks,
  type PagesOf,
  recentPages,
  silentHosts,
} from "./cross-fetch-store.ts";
import { isOfferedTo, settlingSeconds, takeOpinion, takeSilences } from "./cross-fetch-verdict-store.ts";
import { distrustCrawler, doubtProbes, fetchLeftovers } from "./distrust-writes.ts";
import type {
  ArrivedOpinion,
  CheckLeaseRequest,
  Distrust,
  NewCheck,
  NextOfCheck,
  StatedSoftware,
  TrustHistory,
  UntoldChecks,
} from "./evidence.ts";
import type { ProbedSubnet } from "./probe-plausibility.ts";

const mostTogether = 200;

export type TrustStore = ReturnType<typeof createTrustStore>;

export function createTrustStore(pool: Pool) {
  const software = new Gathered(
    async (given: readonly RunningSoftware[]) => await areOffered(pool, given),
    mostTogether,
    arrivalLingerMs,
  );
  return {
    /** Records that a coordinator ran this version here, so that crawlers of this version count as ours. */
    ranAs: async (version: string): Promise<void> => {
      const text = "insert into coordinator_version (version) values ($1) on conflict do nothing";
      await pool.query(text, [version]);
    },
    /** Whether the software that the crawler states was ever offered to it. */
    isOffered: async (crawlerId: CrawlerId, runs: StatedSoftware) => await software.ask({ crawlerId, runs }),
    /** The crawler's inconclusive and conclusive comparisons since `since`, or since trust in it was restored. */
    untold: async (crawlerId: CrawlerId, since: Date) => await untold(pool, crawlerId, since),
    /** Sets how many of the crawler's next pages are compared more often. */
    watch: async (crawlerId: CrawlerId, pages: number): Promise<void> => {
      const text = "update crawler_trust set watched_until_page = pages + $2 where crawler_id = $1";
      await pool.query(text, [crawlerId, pages]);
    },
    /** Counts pages fetched under leases. Returns the former counts, by which pages are sampled. */
    countPages: async (crawlerId: CrawlerId, pages: number) => await countPages(pool, crawlerId, pages),
    /** Selects those of these hosts on which a comparison proves nothing. */
    silentHosts: async (hosts: readonly HostHash[]) => await silentHosts(pool, hosts),
    /** Returns the first address and its subnet for each of these hosts. */
    targets: async (hosts: readonly HostHash[]) => await checkTargets(pool, hosts),
    /** Opens checks of pages that this crawler has really just fetched, unless they are open. Returns how many. */
    open: async (crawlerId: CrawlerId, checks: readonly NewCheck[]) =>
      await openChecks(pool, crawlerId, checks),
    /** Returns other pages of the host that this crawler fetched since `since`, latest first. */
    recentPages: async (of: PagesOf, most: number) => await recentPages(pool, of, most),
    /** Leases this crawler's comparisons. Hosts that are leased, at rest or at a busy address have to wait. */
    lease: async (request: CheckLeaseRequest) => await leaseChecks(pool, request),
    /** Selects those of these leases that are for comparisons. */
    leasesOfChecks: async (leaseIds: readonly LeaseId[]) => await leasesOfChecks(pool, leaseIds),
    /** Runs in one transaction. Null if the opinion is not under an open lease of this crawler, or is a duplicate. */
    takeOpinion: async (opinion: ArrivedOpinion, step: NextOfCheck, now: Date) =>
      await takeOpinion(pool, { opinion, step, now }),
    /**
     * Counts a crawler that was asked again, held the lease, stayed connected and sent nothing as an empty opinion.
     * One transaction each. Call it before `dropStale`.
     */
    takeSilences: async (step: NextOfCheck, now: Date) => await takeSilences(pool, step, now),
    /**
     * Deletes comparisons decided before `before`, and closes as stale those whose page nobody fetched in time. Returns how
     * many were closed.
     */
    dropStale: async (now: Date, before: Date) => await dropStale(pool, now, before),
    history: async (since: Date, now: Date) => await history(pool, since, now),
    /** Stores the score. If it is above 0, `watchedPages` more pages are watched closely. */
    setScore: async (crawlerId: CrawlerId, score: number, watchedPages: number): Promise<void> => {
      await pool.query(
        `update crawler_trust
         set score = $2,
             watched_until_page = case when $2::real > 0 then pages + $3 else watched_until_page end
         where crawler_id = $1`,
        [crawlerId, score, watchedPages],
      );
    },
    /** Distrusts the crawler and notifies coordinators. Returns false if it was distrusted before. */
    distrust: async (distrust: Distrust) => await distrustCrawler(pool, distrust),
    /** Fetches again what distrusted crawlers have still sent, up to a limit each. Returns the number of pages. */
    fetchLeftovers: async (now: Date, mostPages: number) => await fetchLeftovers(pool, now, mostPages),
    /** Reads, by method, what trusted crawlers measured of each subnet in its latest round since `since`. */
    probedSubnets: async (since: Date) => await probedSubnets(pool, since),
    /** Distrusts the crawler's probe reports and notifies coordinators. Returns false if they were distrusted before. */
    doubtProbes: async (doubt: Omit<Distrust, "drain">) => await doubtProbes(pool, doubt),
  };
}

async function countPages(pool: Pool, crawlerId: CrawlerId, pages: number) {
  const { rows } = await pool.query<{ pages: number; watched: number }>(
    `insert into crawler_trust as t (crawler_id, pages)
     values ($1, $2)
     on conflict (crawler_id) do update set pages = t.pages + excluded.pages
     returning (pages - $2)::float8 as pages, watched_until_page::float8 as watched`,
    [crawlerId, pages],
  );
  return { pages: rows[0]!.pages, watchedUntilPage: rows[0]!.watched };
}

interface RunningSoftware {
  readonly crawlerId: CrawlerId;
  readonly runs: StatedSoftware;
}

async function areOffered(pool: Pool, given: readonly RunningSoftware[]): Promise<boolean[]> {
  const of = {
    crawlerId: "of.crawler_id",
    release: "of.release",
    digest: "of.digest",
    software: "of.software",
  };
  const { rows } = await pool.query<{ offered: boolean }>(
    `select ${isOfferedTo(of)} as offered
     from unnest($1::int[], $2::text[], $3::text[], $4::text[])
       with ordinality as of (crawler_id, release, digest, software, place)
     order by of.place`,
    [
      given.map(({ crawlerId }) => crawlerId),
      given.map(({ runs }) => runs.release?.version ?? null),
      given.map(({ runs }) => runs.release?.digest ?? null),
      given.map(({ runs }) => runs.softwareVersion),
    ],
  );
  return rows.map(({ offered }) => offered);
}

async function untold(pool: Pool, crawlerId: CrawlerId, since: Date): Promise<UntoldChecks> {
  const { rows: trust } = await pool.query<{ at: Date }>(
    "select greatest($2::timestamptz, restored_at) as at from crawler_trust where crawler_id = $1",
    [crawlerId, since],
  );
  const { rows } = await pool.query<UntoldChecks>(
    `select
       (select count(*)::int from double_check
        where crawler_id = $1 and verdict = 'cannot-tell' and decided_at >= $2) as untold,
       (select count(*)::int from check_outcome where crawler_id = $1 and decided_at >= $2) as told`,
    [crawlerId, trust[0]?.at ?? since],
  );
  return rows[0]!;
}

async function leasesOfChecks(pool: Pool, leaseIds: readonly LeaseId[]): Promise<ReadonlySet<LeaseId>> {
  const { rows } = await pool.query<{ lease_id: LeaseId }>(
    "select lease_id from lease where lease_id = any($1::bigint[]) and is_check",
    [leaseIds.filter(isLeaseNumber)],
  );
  return new Set(rows.map((row) => row.lease_id));
}

/** A leased comparison is kept until its lease ends, since silence counts as an opinion then. */
async function dropStale(pool: Pool, now: Date, before: Date): Promise<number> {
  await pool.query("delete from double_check where verdict is not null and decided_at < $1", [before]);
  const { rowCount } = await pool.query(
    `update double_check c
     set verdict = 'stale', decided_at = $1, wanted = '{}', opinions = '[]',
         words = 'nobody who was asked had fetched it in time'
     where verdict is null
       and next_by <= $1
       and not exists (
         select
         from lease l
         where l.lease_id = c.lease_id
           and (l.closed_at is null or l.closed_at > $1::timestamptz - make_interval(secs => ${settlingSeconds}))
       )`,
    [now],
  );
  return rowCount ?? 0;
}

/** Maximum comparisons read at once: for 12 crawlers at 1 %, those of 200,000 pages. */
const mostOutcomes = 25_000;

async function history(pool: Pool, since: Date, now: Date): Promise<TrustHistory> {
  const { rows: crawlers } = await pool.query<{
    crawlerId: CrawlerId;
    distrusted: boolean;
    restoredAt: Date | null;
  }>(
    `select crawler_id as "crawlerId", distrusted_at is not null as distrusted, restored_at as "restoredAt"
     from crawler_trust`,
  );
  const restored = crawlers.filter(({ restoredAt }) => restoredAt !== null);
  const { rows } = await pool.query<TrustHistory["outcomes"][number] & { silent: boolean | null }>(
    `select o.crawler_id as "crawlerId", o.host_hash as "hostHash", o.outcome, o.decided_at as at, h.silent
       from (
         select o.*
         from check_outcome o
         left join unnest($3::int[], $4::timestamptz[]) as t (crawler_id, restored_at) using (crawler_id)
         where o.decided_at between $1 and $2 and o.decided_at >= coalesce(t.restored_at, '-infinity')
         order by o.decided_at desc, o.check_id desc
         limit ${mostOutcomes}
       ) o
       left join host_disagreement h using (host_hash)
       order by o.decided_at, o.check_id`,
    [since, now, ...columnsOf(restored, ["crawlerId", "restoredAt"])],
  );
  return {
    outcomes: rows.map(({ silent: _, ...outcome }) => outcome),
    silent: new Set(rows.flatMap(({ silent, hostHash }) => (silent === true ? [hostHash] : []))),
    distrusted: new Set(crawlers.flatMap((one) => (one.distrusted ? [one.crawlerId] : []))),
  };
}

// What crawlers reported about subnets (tables probe_round and probe), to compare their reports.

/** Maximum rounds considered. Older rounds add nothing. */
const mostRounds = 20_000;

/** Reads each subnet's latest round by method, without anycast, distrusted crawlers and reports from before a restore. */
async function probedSubnets(
  pool: Pool,
  since: Date,
): Promise<ReadonlyMap<ProbeMethod, readonly ProbedSubnet[]>> {
  const { rows } = await pool.query<ProbedSubnet & { readonly method: ProbeMethod }>(
    `with latest as (
       select distinct on (subnet_id) subnet_id, round_id, method, started_at, decided_at
       from (
         select subnet_id, round_id, method, started_at, decided_at, reason
         from probe_round
         where subnet_id is not null and method is not null and decided_at >= $1
         order by round_id desc
         limit ${mostRounds}
       ) r
       where reason ->> 'type' <> 'anycast'
         and not exists (select from delegation d where d.subnet_id = r.subnet_id and d.anycast)
       order by subnet_id, round_id desc
     )
     select l.subnet_id as "subnetId", l.method,
       json_agg(json_build_object('crawlerId', p.crawler_id, 'rttMs', p.rtt_ms) order by p.ordinal) as probes
     from latest l
     join probe p on p.round_id = l.round_id and p.method = l.method and p.rtt_ms is not null and p.how = 'probe'
     left join crawler_trust t on t.crawler_id = p.crawler_id
     where t.probes_doubted_at is null and l.decided_at >= coalesce(t.restored_at, '-infinity')
       and ${isFromHere("p", "l")}
     group by l.subnet_id, l.method
     having count(distinct p.crawler_id) > 1`,
    [since],
  );
  const byMethod = new Map<ProbeMethod, ProbedSubnet[]>();
  for (const { method, ...subnet } of rows) {
    const subnets = byMethod.get(method) ?? [];
    subnets.push(subnet);
    byMethod.set(method, subnets);
  }
  return byMethod;
}
