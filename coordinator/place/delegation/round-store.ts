/** Recorded probe rounds and changes of delegations, as people ask for them, and the removal of old ones. */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { rangeText } from "#db/range-text";
import { alone, deleteOldest, inTurns, type TurnClock } from "../../database/bounded-work.ts";
import { roundMs, toldRows } from "../../database/cached-read.ts";
import { crawlerJson } from "../crawlers/crawler-store.ts";
import type { DelegationChange, FinerReport, RecordedRound, RoundProbe } from "./rounds-api.ts";

/**
 * SQL: rounds of whole subnets, decided by measurements of one method. Anycast rounds and those in which the owner
 * kept its subnet for earlier evidence teach nothing.
 */
export const decidedByMeasuring = `subnet_id is not null
  and crawler_id is not null
  and method is not null
  and reason ->> 'type' not in ('anycast', 'kept')`;

/** SQL: the crawler has not moved since that round began. If it has, its measurements are void. */
export const isFromHere = (probe: string, round: string) =>
  `not exists (select from crawler moved where moved.crawler_id = ${probe}.crawler_id and moved.placed_at > ${round}.started_at)`;

async function roundWhere(pool: Pool, where: string, id: number): Promise<RecordedRound | null> {
  const [round] = await toldRows<Omit<RecordedRound, "probes">>(
    pool,
    `select p.round_id as "roundId", coalesce(p.subnet_id, p.within_subnet_id) as "subnetId", p.cause, p.policy,
       p.parameters, p.target_url as "targetUrl", host(p.target_address) as "targetAddress",
       p.started_at as "startedAt", p.decided_at as "decidedAt", p.reason, ${crawlerJson("c")} as crawler,
       ${crawlerJson("r")} as "runnerUp"
     from probe_round p
     left join crawler c using (crawler_id)
     left join crawler r on r.crawler_id = p.runner_up_id
     where ${where}`,
    [id],
  );
  if (round === undefined) return null;
  const probes = await toldRows<RoundProbe>(
    pool,
    `select ordinal, ${crawlerJson("c")} as crawler, method, outcome, rtt_ms as "rttMs", detail
     from probe
     join crawler c using (crawler_id)
     where round_id = $1
     order by ordinal
     limit 1000`,
    [round.roundId],
  );
  return { ...round, probes: probes.map((probe) => ({ ...probe, rttMs: roundMs(probe.rttMs) })) };
}

export const roundById = async (pool: Pool, roundId: number): Promise<RecordedRound | null> =>
  await roundWhere(pool, "p.round_id = $1", roundId);

export const latestRoundOf = async (pool: Pool, subnetId: number): Promise<RecordedRound | null> =>
  await roundWhere(pool, "p.subnet_id = $1 order by p.decided_at desc, p.round_id desc limit 1", subnetId);

/** Former owners of the subnet, newest change first. */
export const historyOf = async (pool: Pool, subnetId: number, limit: number): Promise<DelegationChange[]> =>
  await toldRows<DelegationChange>(
    pool,
    `select h.subnet_id as "subnetId", h.changed_at as "changedAt", f.name as "from", t.name as "to", h.cause,
       r.round_id as "roundId", h.reason
     from delegation_history h
     left join probe_round r on r.round_id = h.round_id
     left join crawler f on f.crawler_id = h.from_crawler_id
     left join crawler t on t.crawler_id = h.to_crawler_id
     where h.subnet_id = $1
     order by h.changed_at desc
     limit $2`,
    [subnetId, limit],
  );

type FinerRow = Omit<FinerReport, "type" | "range"> & Readonly<Record<"first" | "last", string | null>>;

/** A deleted crawler keeps its place among the answers without a name. */
async function finerWhere(pool: Pool, where: string, id: HostHash | number): Promise<FinerReport[]> {
  const rows = await toldRows<FinerRow>(
    pool,
    `select f.subnet_id as "subnetId", h.host, host(f.first_address) as first, host(f.last_address) as last,
       ${crawlerJson("c")} as crawler, ${crawlerJson("r")} as "runnerUp", f.measured, f.rtt_ms as "rttMs",
       f.runner_up_rtt_ms as "runnerUpRttMs", f.subnet_rtt_ms as "subnetRttMs", f.cause, f.found_at as "foundAt",
       f.delegated_at as since, f.round_id as "roundId",
       (select coalesce(json_agg(json_build_object(
            'crawler', case when s.value->>'crawlerId' is null then null
                            else coalesce(v.name, 'crawler ' || (s.value->>'crawlerId')) end,
            'addresses', s.value->'addresses') order by s.ordinality), '[]')
        from jsonb_array_elements(f.seen) with ordinality as s
        left join crawler v on v.crawler_id = (s.value->>'crawlerId')::int) as seen
     from finer_delegation f
     join crawler c on c.crawler_id = f.crawler_id
     left join crawler r on r.crawler_id = f.runner_up_id
     left join frontier_host h on h.host_hash = f.host_hash
     where ${where}`,
    [id],
  );
  return rows.map(({ first, last, ...finer }) => ({
    ...finer,
    type: first === null ? "host" : "part",
    range: first === null || last === null ? null : rangeText(first, last),
    rttMs: roundMs(finer.rttMs),
    runnerUpRttMs: roundMs(finer.runnerUpRttMs),
    subnetRttMs: roundMs(finer.subnetRttMs),
  }));
}

/** The finer delegation of the host itself or of its part. Null if its subnet's delegation applies. */
export async function finerOfHost(pool: Pool, hostHash: HostHash): Promise<FinerReport | null> {
  const ofHost = "f.finer_id = (select finer_id from frontier_host where host_hash = $1)";
  return (await finerWhere(pool, ofHost, hostHash))[0] ?? null;
}

export const partsOf = async (pool: Pool, subnetId: number): Promise<FinerReport[]> =>
  await finerWhere(
    pool,
    "f.subnet_id = $1 and f.host_hash is null order by f.first_address limit 100",
    subnetId,
  );

// Removes old rounds and changes. A round stays while it decides a delegation or is the latest of its subnet, which holds
// the known RTTs.

/** Rounds examined per statement, with about as many probes. */
const roundsAtOnce = 2000;
const changesAtOnce = 5000;

/**
 * Walks the rounds by number, some per run, and starts over at the end, because a later round may replace one that stayed.
 * The cost of a walk grows with the number of subnets.
 */
export class OldRounds {
  readonly #pool: Pool;
  #after = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Removes rounds decided before `before`. Returns how many, or null if another coordinator is doing so. */
  async forget(before: Date, turn: TurnClock): Promise<number | null> {
    return await alone(this.#pool, "nearcrawl-old-rounds", async () => {
      let deleted = 0;
      await inTurns(turn, async () => {
        const asked = [this.#after, roundsAtOnce, before];
        const { rows } = await this.#pool.query<{ last: number | null; more: boolean; deleted: number }>(
          forgetSql,
          asked,
        );
        const found = rows[0]!;
        deleted += found.deleted;
        this.#after = found.more ? (found.last ?? 0) : 0;
        return found.more ? 1 : 0;
      });
      return deleted;
    });
  }
}

const forgetSql = `
  with looked as materialized (
    select round_id, subnet_id, decided_at
    from probe_round
    where round_id > $1
    order by round_id
    limit $2
  ), gone as (
    delete from probe_round
    where round_id in (
      select r.round_id
      from looked r
      where r.decided_at < $3
        and not exists (select from delegation d where d.subnet_id = r.subnet_id and d.round_id = r.round_id)
        and not exists (select from finer_delegation f where f.round_id = r.round_id)
        and (
          r.subnet_id is null
          or exists (
            select from probe_round later
            where later.subnet_id = r.subnet_id and (later.decided_at, later.round_id) > (r.decided_at, r.round_id)
          )
        )
    )
    returning round_id
  )
  select max(round_id) as last, count(*) = $2 and bool_or(decided_at < $3) as more,
    (select count(*)::int from gone) as deleted
  from looked`;

export async function forgetDelegationChanges(pool: Pool, before: Date, turn: TurnClock): Promise<number> {
  const aged = { table: "delegation_history", column: "changed_at" };
  return await inTurns(turn, async () => await deleteOldest(pool, aged, before, changesAtOnce));
}
