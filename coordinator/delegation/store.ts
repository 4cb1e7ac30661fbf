/** Tables delegation, delegation_history, probe_round and probe: which crawler has a subnet, since when and why. */
import type { Pool, PoolClient } from "pg";
import { arrivalLingerMs, Gathered } from "#core/coalesce";
import type { RoundCause } from "#core/delegation-cause";
import { asCrawlerId, asRoundId, asSubnetId, type CrawlerId, type RoundId, type SubnetId } from "#core/ids";
import { type CopiedRow, readCopy } from "#db/copy";
import type { ProbeMethod } from "#protocol/messages";
import { crawlerLoads, loads, probedRtts, unmeasured } from "../balance/load-store.ts";
import { fence } from "../crawlers/coordinator-presence-store.ts";
import { columnsOf, inTransaction } from "../database/transaction.ts";
import type { Partition } from "../domain-sets/partition.ts";
import type { Delegation, DelegationStore, FinishedRound, MeasuredRound, RoundProbe } from "./delegation.ts";
import { briefReason, slowFetchesBrief, slowFetchesIn } from "./policies/reason.ts";
import { retryWaitMs } from "./queue.ts";
import { checkOutcomes, decidedBefore, saveMoveRates } from "./recalibration/ageing-store.ts";
import { decidedByMeasuring, isFromHere } from "./round-reads.ts";
import { formerSubnets, move, subnetsOfHosts, targetsFor, waiting } from "./target-store.ts";

/** Of crawlers that arrive at once. */
const mostTogether = 200;

/**
 * `somebody`: what the crawlers may have that could take a subnet now, each partition once; none: nobody has domain sets.
 * `coordinatorNumber`: rounds and moves are written as long as this one leads; null: there are no coordinators.
 */
export function createDelegationStore(
  pool: Pool,
  somebody: () => readonly Partition[] = () => [],
  coordinatorNumber: number | null = null,
): DelegationStore {
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
  return {
    readEach: async (visit) => await readEach(pool, visit),
    read: async (subnetIds) => await read(pool, subnetIds),
    waiting: async (limit, except) => await waiting(pool, { limit, except, somebody: somebody() }),
    targetsFor: async (subnetIds) => await targetsFor(pool, subnetIds, somebody()),
    latestRounds: async (limit) => await latestRounds(pool, limit),
    saveRound: async (round) => await asLeader(async (client) => await saveRound(client, round)),
    delegateOwnSubnet: async (subnetId, crawlerId, now) => await own.ask({ subnetId, crawlerId, now }),
    move: async (moves, now) => await asLeader(async (client) => await move(client, moves, now)),
    crawlerLoads: async (recrawlDays) => await crawlerLoads(pool, recrawlDays),
    loads: async (recrawlDays, crawlerIds, { displaced } = { displaced: false }) =>
      await loads(pool, recrawlDays, { crawlerIds, displaced }),
    formerSubnets: async (crawlerId, since) => await formerSubnets(pool, crawlerId, since),
    probedRtts: async (subnetIds) => await probedRtts(pool, subnetIds),
    decidedBefore: async (before, behind, limit) => await decidedBefore(pool, before, behind, limit),
    checkOutcomes: async (mostRounds) => await checkOutcomes(pool, mostRounds),
    saveMoveRates: async (rates) => await asLeader(async (client) => await saveMoveRates(client, rates)),

    unmeasured: async (asked) => await unmeasured(pool, asked),
    leavePlace: async (crawlerId, now) =>
      await inTransaction(pool, async (client) => await leavePlace(client, crawlerId, now)),
    delegateProvisionally: async (subnetId, crawlerId, now) =>
      await asLeader(async (client) => await delegateProvisionally(client, subnetId, crawlerId, now)),
    anycastSubnets: async () => await anycastSubnets(pool),
    notAnycast: async () => await notAnycast(pool),
    subnetsOfHosts: async (hosts) => await subnetsOfHosts(pool, hosts),
  };
}

async function readEach(pool: Pool, visit: (delegation: Delegation) => void): Promise<number> {
  const client = await pool.connect();
  let isUsable = false;
  try {
    const rows = await readCopy(client, selectDelegations, (row) => visit(delegationIn(row)));
    isUsable = true;
    return rows;
  } finally {
    client.release(!isUsable);
  }
}

/** Those that are delegated. */
async function read(pool: Pool, subnetIds: readonly SubnetId[]): Promise<Delegation[]> {
  const { rows } = await pool.query<{
    subnet_id: number;
    crawler_id: number;
    measured: boolean;
    rtt_ms: number | null;
    runner_up_id: number | null;
    runner_up_rtt_ms: number | null;
  }>(
    `select subnet_id, crawler_id, measured and not anycast as measured, rtt_ms, runner_up_id, runner_up_rtt_ms
     from delegation
     where subnet_id = any($1)`,
    [subnetIds],
  );
  return rows.map((row) => ({
    subnetId: asSubnetId(row.subnet_id),
    crawlerId: asCrawlerId(row.crawler_id),
    measured: row.measured,
    rttMs: row.rtt_ms,
    runnerUpId: row.runner_up_id === null ? null : asCrawlerId(row.runner_up_id),
    runnerUpRttMs: row.runner_up_rtt_ms,
  }));
}

const selectDelegations = `
  select subnet_id, crawler_id, measured and not anycast as measured, rtt_ms, runner_up_id, runner_up_rtt_ms
  from delegation
  order by subnet_id`;

function delegationIn(row: CopiedRow): Delegation {
  return {
    subnetId: asSubnetId(row.int32(0)),
    crawlerId: asCrawlerId(row.int32(1)),
    measured: row.boolean(2),
    rttMs: row.isNull(3) ? null : row.float32(3),
    runnerUpId: row.isNull(4) ? null : asCrawlerId(row.int32(4)),
    runnerUpRttMs: row.isNull(5) ? null : row.float32(5),
  };
}

async function saveRound(client: PoolClient, round: FinishedRound): Promise<RoundId> {
  const { rows } = await client.query<{ round_id: number }>(
    `insert into probe_round (subnet_id, cause, policy, parameters, target_url, target_address,
       started_at, decided_at, crawler_id, runner_up_id, reason, method)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     returning round_id`,
    [
      round.subnetId,
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
  const roundId = asRoundId(rows[0]!.round_id);
  await saveProbes(client, roundId, round);
  if (round.crawlerId !== null) await delegate(client, roundId, { ...round, crawlerId: round.crawlerId });
  if (round.notAnycast !== undefined) {
    await client.query(
      "insert into anycast_check (place, checked_at) values ($1, $2) on conflict (place) do nothing",
      [round.notAnycast, round.decidedAt],
    );
  }
  return roundId;
}

/** The probes of a round, whatever it was for. */
export async function saveProbes(
  client: PoolClient,
  roundId: RoundId,
  round: Pick<FinishedRound, "probes" | "cause">,
): Promise<void> {
  await client.query(
    `insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms, detail, how)
     select $1, given.ordinal, given.crawler_id, given.method, given.outcome, given.rtt_ms, given.detail, given.how
     from unnest($2::int[], $3::text[], $4::text[], $5::real[], $6::text[], $7::text[])
       with ordinality as given (crawler_id, method, outcome, rtt_ms, detail, how, ordinal)`,
    [
      roundId,
      round.probes.map((probe) => probe.crawlerId),
      round.probes.map(({ outcome }) => outcome.method),
      round.probes.map(({ outcome }) => outcome.type),
      round.probes.map(({ outcome }) => (outcome.type === "measured" ? outcome.rttMs : null)),
      round.probes.map((probe) => detailOf(probe, round.cause)),
      round.probes.map(({ how }) => how ?? "probe"),
    ],
  );
}

function detailOf({ outcome, how }: RoundProbe, cause: RoundCause): string {
  if (outcome.type !== "measured") return outcome.reason.replaceAll("\0", "");
  if (how === "get")
    return `the crawl's own ${cause === "new-subnet" ? "first fetch" : "latest fetches"}, no probe`;
  const late = Math.round(outcome.lateMs ?? 0);
  return late > 0 ? `noticed up to ${late} ms late: its machine was busy` : "";
}

/** The history gets a line when the crawler changes, not when a round confirms it. */
async function delegate(
  client: PoolClient,
  roundId: RoundId,
  round: FinishedRound & { crawlerId: CrawlerId },
): Promise<void> {
  const { rows } = await client.query<{ crawler_id: number; unanswered_rounds: number }>(
    "select crawler_id, unanswered_rounds from delegation where subnet_id = $1 for update",
    [round.subnetId],
  );
  // Where nobody could be compared, nobody was silent: it is due again as soon as somebody can be.
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

/** What led to the round goes first, where it is known. */
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

/** Whether each was free. */
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

// Delegations that are not the last word: for the time being, unmeasured, or by load.

/**
 * From here on the crawler is elsewhere (`placed_at`). Its delegations wait to be measured, also that of the subnet that it was in;
 * who would inherit from others is not known any more, where it was this one; and it looks for what is near to it as a newcomer
 * does. Anycast ranges were given away by load, which has not changed.
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
  const { rows } = await client.query<{ subnet_id: number }>(
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
  return rows.map((row) => asSubnetId(row.subnet_id));
}

/** Until the crawler's first fetch has been held against others: unmeasured, so that a restart finds it again. */
async function delegateProvisionally(
  client: PoolClient,
  subnetId: SubnetId,
  crawlerId: CrawlerId,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `with added as (
       insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at)
       values ($1, $2, 'first-fetch', false, $3)
       on conflict (subnet_id) do nothing
       returning subnet_id, crawler_id
     )
     insert into delegation_history (subnet_id, changed_at, to_crawler_id, cause, reason)
     select subnet_id, $3, crawler_id, 'first-fetch', 'the likeliest; its first fetch is the first measurement'
     from added`,
    [subnetId, crawlerId, now],
  );
  return rowCount === 1;
}

async function notAnycast(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ place: string }>("select place from anycast_check");
  return rows.map(({ place }) => place);
}

async function anycastSubnets(pool: Pool): Promise<SubnetId[]> {
  const { rows } = await pool.query<{ subnet_id: number }>(
    "select subnet_id from delegation where anycast order by subnet_id",
  );
  return rows.map((row) => asSubnetId(row.subnet_id));
}

// What the latest probe rounds measured: tables probe_round and probe.

/** Rounds of whole subnets, decided by measurements of the method that was compared; anycast ones teach nothing. */
async function latestRounds(pool: Pool, limit: number): Promise<MeasuredRound[]> {
  const { rows } = await pool.query<LatestRow>(
    `with latest as (
       select round_id, subnet_id, method, started_at
       from probe_round
       where ${decidedByMeasuring}
       order by round_id desc
       limit $1
     )
     select l.subnet_id, l.method,
       array_agg(p.crawler_id order by p.ordinal) as crawler_ids,
       array_agg(p.rtt_ms order by p.ordinal) as rtts_ms
     from latest l
     join probe p on p.round_id = l.round_id and p.method = l.method and p.rtt_ms is not null
       and ${isFromHere("p", "l")}
     group by l.round_id, l.subnet_id, l.method
     order by l.round_id`,
    [limit],
  );
  return rows.map(roundOf);
}

interface LatestRow {
  subnet_id: number;
  method: ProbeMethod;
  crawler_ids: number[];
  rtts_ms: number[];
}

function roundOf(row: LatestRow): MeasuredRound {
  const probes = row.crawler_ids.map((id, at) => ({ crawlerId: asCrawlerId(id), rttMs: row.rtts_ms[at]! }));
  return { subnetId: asSubnetId(row.subnet_id), method: row.method, probes };
}
