/** Tables delegation, delegation_history, probe_round and probe: the crawler of each subnet, since when and why. */
import type { Pool, PoolClient } from "pg";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { RoundCause } from "#core/explanation";
import {
  asCrawlerId,
  asSubnetId,
  type CrawlerId,
  type HostHash,
  type RoundId,
  type SubnetId,
} from "#core/ids";
import { readCopy } from "#db/copy";
import { readRows } from "../../database/cached-read.ts";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { fence } from "../crawlers/coordinator-presence-store.ts";
import type { Partition } from "../domain-sets/partition.ts";
import type {
  AgedDelegation,
  Delegation,
  DelegationMove,
  FinishedRound,
  MeasuredRound,
  RoundProbe,
  UnmeasuredAsked,
} from "./delegation.ts";
import {
  checkOutcomes,
  crawlerLoads,
  decidedBefore,
  loads,
  probedRtts,
  saveMoveRates,
  unmeasured,
} from "./load-store.ts";
import { briefReason, slowFetchesBrief, slowFetchesIn } from "./policies/reason.ts";
import type { MoveRates } from "./recalibration/ageing.ts";
import { decidedByMeasuring, isFromHere } from "./round-store.ts";
import { formerSubnets, move, targetsFor, waiting } from "./target-store.ts";

/** Crawlers arriving at once that share a statement. */
const mostTogether = 200;

export type DelegationStore = ReturnType<typeof createDelegationStore>;

/**
 * `somebody` returns the distinct partitions of crawlers that could take a subnet. Empty if no crawler has domain sets.
 * `coordinatorNumber` fences writes to the leader. Null if there are no coordinators.
 */
export function createDelegationStore(
  pool: Pool,
  somebody: () => readonly Partition[] = () => [],
  coordinatorNumber: number | null = null,
) {
  const asLeader = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> =>
    await inTransaction(pool, async (client) => {
      if (coordinatorNumber !== null) await fence(client, coordinatorNumber);
      return await work(client);
    });
  const own = new Gathered(
    async (taken: readonly OwnSubnet[]) => await ownSubnets(pool, taken),
    mostTogether,
    arrivalLingerMs,
  );
  const subnetsIn = async (text: string, values: readonly unknown[] = []): Promise<SubnetId[]> =>
    (await readRows<{ subnet_id: SubnetId }>(pool, text, values)).map((row) => row.subnet_id);
  return {
    /** Visits every delegation by ascending subnet, without building a list. Returns how many. */
    readEach: async (visit: (delegation: Delegation) => void) => await readEach(pool, visit),
    /** Undelegated subnets are missing from the result. */
    read: async (subnetIds: readonly SubnetId[]): Promise<Delegation[]> =>
      await readRows<Delegation>(pool, `${selectDelegations} where subnet_id = any($1)`, [subnetIds]),
    /** Undelegated subnets with due URLs, except those in `except`, by the time their first host was admitted. */
    waiting: async (limit: number, except: readonly SubnetId[]) =>
      await waiting(pool, limit, except, somebody()),
    /** A URL and address to probe in these subnets (recalibration and retries). */
    targetsFor: async (subnetIds: readonly SubnetId[]) => await targetsFor(pool, subnetIds, somebody()),
    /** The latest rounds of whole subnets decided by measurement, oldest first. Anycast rounds teach nothing and are left out. */
    latestRounds: async (limit: number): Promise<MeasuredRound[]> =>
      await readRows<MeasuredRound>(pool, selectLatestRounds, [limit]),
    /** Stores round, probes and, if decided, the delegation and its history, in one transaction. */
    saveRound: async (round: FinishedRound) =>
      await asLeader(async (client) => await saveRound(client, round)),
    /** Delegates a crawler's own subnet without a probe (paper 4.1), unless it is already delegated. */
    delegateOwnSubnet: async (subnetId: SubnetId, crawlerId: CrawlerId, now: Date) =>
      await own.ask({ subnetId, crawlerId, now }),
    /** Makes the moves whose `from` still owns the subnet, in one transaction. Returns those made. */
    move: async (moves: readonly DelegationMove[], now: Date) =>
      await asLeader(async (client) => await move(client, moves, now)),
    /** Daily load of each crawler with a subnet, at this recrawl interval. */
    crawlerLoads: async (recrawlDays: number) => await crawlerLoads(pool, recrawlDays),
    /** Loads of these crawlers' subnets, with the owners' RTTs. `displaced` adds subnets that went to relieve a crawler. */
    loads: async (recrawlDays: number, crawlerIds: readonly CrawlerId[], which = { displaced: false }) =>
      await loads(pool, recrawlDays, crawlerIds, which),
    /** Subnets this crawler lost by leaving or draining, with the RTT it had measured. */
    formerSubnets: async (crawlerId: CrawlerId, since: Date) => await formerSubnets(pool, crawlerId, since),
    /** Measured RTTs per subnet from the latest round, for the variance rule and the runner-up search. */
    probedRtts: async (subnetIds: readonly SubnetId[]) => await probedRtts(pool, subnetIds),
    /** Delegations decided by a round before a time, oldest first after a position (null is the beginning). */
    decidedBefore: async (before: Date, behind: AgedDelegation | null, limit: number) =>
      await decidedBefore(pool, before, behind, limit),
    /** What the latest rounds show about how long decisions last. */
    checkOutcomes: async (mostRounds: number) => await checkOutcomes(pool, mostRounds),
    /** Saved for display only. The rates are learned again from rounds. */
    saveMoveRates: async (rates: MoveRates) =>
      await asLeader(async (client) => await saveMoveRates(client, rates)),
    /** Unmeasured delegations with something to probe, most daily fetches first. */
    unmeasured: async (asked: UnmeasuredAsked) => await unmeasured(pool, asked),
    /**
     * Records that the crawler moved. The measurements of its subnets, and its other measurements, become void. Returns the
     * changed delegations.
     */
    leavePlace: async (crawlerId: CrawlerId, now: Date) =>
      await inTransaction(pool, async (client) => await leavePlace(client, crawlerId, now)),
    /** Delegates a subnet as unmeasured until its first fetch is compared with others. Returns false if already delegated. */
    delegateProvisionally: async (subnetId: SubnetId, crawlerId: CrawlerId, now: Date): Promise<boolean> =>
      await asLeader(async (client) => {
        const { rowCount } = await client.query(insertProvisional, [subnetId, crawlerId, now]);
        return rowCount === 1;
      }),
    anycastSubnets: async () =>
      await subnetsIn("select subnet_id from delegation where anycast order by subnet_id"),
    /** Listed places that rounds found not to be anycast. */
    notAnycast: async (): Promise<string[]> =>
      (await readRows<{ place: string }>(pool, "select place from anycast_check")).map(({ place }) => place),
    /** Subnets of these hosts. Hosts that are not in the frontier or have no address have none. */
    subnetsOfHosts: async (hosts: readonly HostHash[]) =>
      hosts.length === 0 ? [] : await subnetsIn(selectSubnetsOfHosts, [hosts]),
  };
}

const selectSubnetsOfHosts = `
  select distinct subnet_id
  from frontier_host
  where host_hash = any($1::bigint[]) and state = 'resolved' and subnet_id is not null`;

const selectDelegations = `
  select subnet_id as "subnetId", crawler_id as "crawlerId", measured and not anycast as measured, rtt_ms as "rttMs",
    runner_up_id as "runnerUpId", runner_up_rtt_ms as "runnerUpRttMs"
  from delegation`;

async function readEach(pool: Pool, visit: (delegation: Delegation) => void): Promise<number> {
  const client = await pool.connect();
  let isUsable = false;
  try {
    const rows = await readCopy(client, `${selectDelegations} order by subnet_id`, (row) =>
      visit({
        subnetId: asSubnetId(row.int32(0)),
        crawlerId: asCrawlerId(row.int32(1)),
        measured: row.boolean(2),
        rttMs: row.isNull(3) ? null : row.float32(3),
        runnerUpId: row.isNull(4) ? null : asCrawlerId(row.int32(4)),
        runnerUpRttMs: row.isNull(5) ? null : row.float32(5),
      }),
    );
    isUsable = true;
    return rows;
  } finally {
    client.release(!isUsable);
  }
}

async function saveRound(client: PoolClient, round: FinishedRound): Promise<RoundId> {
  const roundId = await addRound(client, round);
  if (round.crawlerId !== null) await delegate(client, roundId, { ...round, crawlerId: round.crawlerId });
  if (round.notAnycast !== undefined) {
    await client.query(
      "insert into anycast_check (place, checked_at) values ($1, $2) on conflict (place) do nothing",
      [round.notAnycast, round.decidedAt],
    );
  }
  return roundId;
}

/**
 * Stores the round with every probe. For a round within a subnet, the subnet is stored separately, so that the round does not
 * count as one of the whole subnet.
 */
export async function addRound(
  client: PoolClient,
  round: Omit<FinishedRound, "subnetId"> & {
    readonly subnetId?: SubnetId;
    readonly withinSubnetId?: SubnetId;
  },
): Promise<RoundId> {
  const { rows } = await client.query<{ round_id: RoundId }>(
    `insert into probe_round (subnet_id, within_subnet_id, cause, policy, parameters, target_url, target_address,
       started_at, decided_at, crawler_id, runner_up_id, reason, method)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     returning round_id`,
    [
      round.subnetId ?? null,
      round.withinSubnetId ?? null,
      round.cause,
      round.policy,
      JSON.stringify(round.parameters),
      round.targetUrl,
      round.targetAddress,
      round.startedAt,
      round.decidedAt,
      round.crawlerId,
      round.runnerUpId,
      JSON.stringify(round.reason),
      round.probes.length === 0 ? null : (round.method ?? null),
    ],
  );
  const roundId = rows[0]!.round_id;
  const { probes } = round;
  await client.query(
    `insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms, detail, how)
     select $1, given.ordinal, given.crawler_id, given.method, given.outcome, given.rtt_ms, given.detail, given.how
     from unnest($2::int[], $3::text[], $4::text[], $5::real[], $6::text[], $7::text[])
       with ordinality as given (crawler_id, method, outcome, rtt_ms, detail, how, ordinal)`,
    [
      roundId,
      probes.map((probe) => probe.crawlerId),
      probes.map(({ outcome }) => outcome.method),
      probes.map(({ outcome }) => outcome.type),
      probes.map(({ outcome }) => (outcome.type === "measured" ? outcome.rttMs : null)),
      probes.map((probe) => detailOf(probe, round.cause)),
      probes.map(({ how }) => how ?? "probe"),
    ],
  );
  return roundId;
}

function detailOf({ outcome, how }: RoundProbe, cause: RoundCause): string {
  if (outcome.type !== "measured") return outcome.reason.replaceAll("\0", "");
  if (how === "get")
    return `the crawl's own ${cause === "new-subnet" ? "first fetch" : "latest fetches"}, no probe`;
  const late = Math.round(outcome.lateMs ?? 0);
  return late > 0 ? `noticed up to ${late} ms late: its machine was busy` : "";
}

/** The history records changes of the crawler, not confirmations. */
async function delegate(
  client: PoolClient,
  roundId: RoundId,
  round: FinishedRound & { crawlerId: CrawlerId },
): Promise<void> {
  const { rows } = await client.query<{ crawler_id: number; unanswered_rounds: number }>(
    "select crawler_id, unanswered_rounds from delegation where subnet_id = $1 for update",
    [round.subnetId],
  );
  // If there were no comparable crawlers, none failed to answer, so the subnet is due as soon as one can be compared.
  const isUnanswered = !round.measured && round.probes.length > 0;
  const unanswered = isUnanswered ? (rows[0]?.unanswered_rounds ?? 0) + 1 : 0;
  await client.query(
    `insert into delegation (subnet_id, crawler_id, round_id, cause, measured, rtt_ms, runner_up_id,
       runner_up_rtt_ms, delegated_at, anycast, unanswered_rounds, retry_at)
     values ($1, $2, $3, 'probe-round', $4, $5, $6, $7, $8, $9, least($10, 32000), $11)
     on conflict (subnet_id) do update
       set crawler_id = excluded.crawler_id, round_id = excluded.round_id, cause = excluded.cause,
           measured = excluded.measured, rtt_ms = excluded.rtt_ms, runner_up_id = excluded.runner_up_id,
           runner_up_rtt_ms = excluded.runner_up_rtt_ms, delegated_at = excluded.delegated_at,
           anycast = excluded.anycast, unanswered_rounds = excluded.unanswered_rounds,
           retry_at = excluded.retry_at`,
    [
      round.subnetId,
      round.crawlerId,
      roundId,
      round.measured,
      round.rttMs,
      round.runnerUpId,
      round.runnerUpRttMs,
      round.decidedAt,
      round.anycast === true,
      unanswered,
      unanswered === 0 ? null : new Date(round.decidedAt.getTime() + retryWaitMs(unanswered)),
    ],
  );
  const before = rows[0]?.crawler_id ?? null;
  if (before === round.crawlerId) return;
  await client.query(
    `insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [round.subnetId, round.decidedAt, before, round.crawlerId, round.cause, roundId, historyReason(round)],
  );
}

/** First wait before an unmeasurable subnet is probed again. */
const firstMs = 5 * 60_000;

/** Maximum wait: twice a day, to notice when the subnet answers again. */
const longestMs = 12 * 3_600_000;

/** The wait in ms after `unansweredRounds` (from 1). It doubles each time. */
const retryWaitMs = (unansweredRounds: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(30, unansweredRounds - 1));

/** Begins with the round's cause, if known. */
function historyReason(round: FinishedRound): string {
  const evidence = slowFetchesIn(round.parameters);
  const reason = briefReason(round.reason);
  return evidence ? `${slowFetchesBrief(evidence)}; ${reason}` : reason;
}

interface OwnSubnet {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly now: Date;
}

async function ownSubnets(pool: Pool, taken: readonly OwnSubnet[]): Promise<boolean[]> {
  const { rows } = await pool.query<{ subnet_id: number; crawler_id: number }>(
    `with added as (
       insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
       select subnet_id, crawler_id, 'own-subnet', true, delegated_at
       from unnest($1::int[], $2::int[], $3::timestamptz[]) as given (subnet_id, crawler_id, delegated_at)
       order by subnet_id
       on conflict (subnet_id) do nothing
       returning subnet_id, crawler_id, delegated_at
     ),
     noted as (
       insert into delegation_history (subnet_id, changed_at, to_crawler_id, cause, reason)
       select subnet_id, delegated_at, crawler_id, 'own-subnet', 'the crawler''s own address lies in it'
       from added
     )
     select subnet_id, crawler_id from added`,
    columnsOf(taken, ["subnetId", "crawlerId", "now"]),
  );
  const owners = new Map(rows.map((row) => [row.subnet_id, row.crawler_id]));
  return taken.map(({ subnetId, crawlerId }) => owners.get(subnetId) === crawlerId);
}

/**
 * Records that the crawler moved (`placed_at`). Its delegations wait to be measured, including its own subnet's. It is
 * removed as others' runner-up, and searches for nearby subnets like a newcomer. Anycast ranges were assigned by load, which
 * has not changed.
 */
async function leavePlace(client: PoolClient, crawlerId: CrawlerId, now: Date): Promise<SubnetId[]> {
  await client.query(
    "update crawler set placed_at = $2, joining_since = coalesce(joining_since, $2) where crawler_id = $1",
    [crawlerId, now],
  );
  await client.query("delete from crawler_rtt where $1 in (from_crawler_id, to_crawler_id)", [crawlerId]);
  await client.query(
    `update finer_delegation
     set measured = false, rtt_ms = null, review_at = least(review_at, $2)
     where crawler_id = $1`,
    [crawlerId, now],
  );
  await client.query(
    "update finer_delegation set runner_up_id = null, runner_up_rtt_ms = null where runner_up_id = $1",
    [crawlerId],
  );
  const { rows } = await client.query<{ subnet_id: SubnetId }>(
    `with held as (
       select subnet_id
       from delegation
       where crawler_id = $1 and not anycast or runner_up_id = $1
       order by subnet_id
       for update
     )
     update delegation d
     set cause = case when d.crawler_id = $1 and not anycast then 'crawler-moved' else cause end,
         measured = measured and (d.crawler_id <> $1 or anycast),
         rtt_ms = case when d.crawler_id = $1 and not anycast then null else rtt_ms end,
         unanswered_rounds = case when d.crawler_id = $1 and not anycast then 0 else unanswered_rounds end,
         retry_at = case when d.crawler_id = $1 and not anycast then null else retry_at end,
         runner_up_id = nullif(runner_up_id, $1),
         runner_up_rtt_ms = case when runner_up_id = $1 then null else runner_up_rtt_ms end
     from held
     where d.subnet_id = held.subnet_id
     returning d.subnet_id`,
    [crawlerId],
  );
  return rows.map((row) => row.subnet_id);
}

const insertProvisional = `
  with added as (
    insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
    values ($1, $2, 'first-fetch', false, $3)
    on conflict (subnet_id) do nothing
    returning subnet_id, crawler_id
  )
  insert into delegation_history (subnet_id, changed_at, to_crawler_id, cause, reason)
  select subnet_id, $3, crawler_id, 'first-fetch', 'the likeliest; its first fetch is the first measurement'
  from added`;

const selectLatestRounds = `
  with latest as (
    select round_id, subnet_id, method, started_at
    from probe_round
    where ${decidedByMeasuring}
    order by round_id desc
    limit $1
  )
  select l.subnet_id as "subnetId", l.method,
    json_agg(json_build_object('crawlerId', p.crawler_id, 'rttMs', p.rtt_ms) order by p.ordinal) as probes
  from latest l
  join probe p on p.round_id = l.round_id and p.method = l.method and p.rtt_ms is not null
    and ${isFromHere("p", "l")}
  group by l.round_id, l.subnet_id, l.method
  order by l.round_id`;
