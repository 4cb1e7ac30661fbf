/**
 * Delegations finer than a subnet (table finer_delegation). `frontier_host.finer_id`, the finer delegation of a host, is
 * updated within the transactions that change either.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import { urlHost } from "#core/ip/url-host";
import { columnsOf, inTransaction } from "../../../database/transaction.ts";
import { isFromHere } from "../round-store.ts";
import { addRound } from "../store.ts";
import {
  type DelegatedHost,
  type FinerDecision,
  type FinerDelegation,
  type FinerId,
  type FinerRound,
  type HostPlace,
  maxFinerDelegations,
  type PlannedPart,
  type ReviewTimes,
  type SeenAnswer,
} from "./override.ts";

export type FinerDelegationStore = ReturnType<typeof createFinerDelegationStore>;

export function createFinerDelegationStore(pool: Pool) {
  const write = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> =>
    await inTransaction(pool, work);
  return {
    /** Returns those of the hosts that are resolved and have a subnet and a URL. */
    hostPlaces: async (hosts: readonly HostHash[]): Promise<HostPlace[]> => {
      const { rows } = await pool.query<HostPlace>(selectHostPlaces, [hosts]);
      return rows;
    },
    saveRound: async (round: FinerRound) => await write(async (client) => await addRound(client, round)),
    /** Delegates a host by itself or updates its delegation. Returns false if the limit is reached. */
    setHost: async (host: DelegatedHost, times: ReviewTimes) =>
      await write(async (client) => await setHost(client, host, times)),
    partsOf: async (subnetId: SubnetId) =>
      await finerIn(pool, "f.subnet_id = $1 and f.host_hash is null order by f.first_address", [subnetId]),
    /**
     * Sets a leaf's parts. If there are none, the leaf is joined again. Returns null, without changes, if the leaf has left
     * `subnetCrawlerId` meanwhile, otherwise counts of added and ended parts.
     */
    setParts: async (leaf: SplitLeaf, times: ReviewTimes) =>
      await write(async (client) => await setParts(client, leaf, times)),
    dueForReview: async (limit: number, now: Date) =>
      await finerIn(pool, "f.review_at <= $1 order by f.review_at, f.finer_id limit $2", [now, limit]),
    /** Records a review that confirmed or changed the crawler. A null decision only postpones the next review. */
    reviewed: async (
      finerId: FinerId,
      decision: (FinerDecision & { readonly reason: string }) | null,
      { now, reviewAt }: ReviewTimes,
    ): Promise<void> =>
      await write(async (client) => {
        const { rows } = await client.query<{ subnetId: SubnetId; from: CrawlerId }>(
          `select subnet_id as "subnetId", crawler_id as "from" from finer_delegation where finer_id = $1 for update`,
          [finerId],
        );
        if (rows.length === 0) return;
        if (decision === null) {
          await client.query("update finer_delegation set review_at = $2 where finer_id = $1", [
            finerId,
            reviewAt,
          ]);
          return;
        }
        await client.query(updateReviewed, [
          finerId,
          reviewAt,
          now,
          ...decisionColumns.map((name) => decision[name]),
        ]);
        const change = { ...rows[0]!, ...decision, to: decision.crawlerId, cause: "review" };
        if (change.from !== change.to) await recordChanges(client, [change], now);
      }),
    /** Ends a finer delegation, so that the subnet's applies again. */
    end: async (finerId: FinerId, reason: string, now: Date): Promise<void> => {
      const ended = { where: "f.finer_id = $1", values: [finerId], reason };
      await write(async (client) => await endFiner(client, ended, now));
    },
    crawlers: async (): Promise<CrawlerId[]> => {
      const text = "select distinct crawler_id from finer_delegation order by crawler_id";
      return (await pool.query<{ crawler_id: CrawlerId }>(text)).rows.map((row) => row.crawler_id);
    },
    /**
     * Passes on a departed crawler's finer delegations: to the nearest heir by the latest round, otherwise to the subnet's
     * crawler if it is an heir, as unmeasured until a review. The other ones stay unchanged.
     */
    inherit: async (gone: CrawlerId, heirs: readonly CrawlerId[], now: Date) =>
      await write(async (client) => {
        const { rows } = await client.query<{ moved: number; left: number }>(inheritSql, [gone, heirs, now]);
        return rows[0]!;
      }),
    /** Ends parts whose subnet is no longer in force or has a newly registered subnet within. Returns their number. */
    endOutdated: async (now: Date) => await write(async (client) => await endFiner(client, outdated, now)),
  };
}

const selectHostPlaces = `
  select h.host_hash as "hostHash", h.host, u.url, array(select host(a) from unnest(h.addresses) a) as addresses,
     h.subnet_id as "subnetId",
     exists (select from finer_delegation f where f.host_hash = h.host_hash) as "byItself"
   from frontier_host h
   cross join lateral (
     select url
     from frontier_url
     where host_hash = h.host_hash and state = 'due'
     limit 1
   ) u
   where h.host_hash = any($1::bigint[])
     and h.state = 'resolved'
     and h.subnet_id is not null
     and h.opt_out_id is null`;

interface FinerRow extends Omit<FinerDelegation, "place" | "target"> {
  readonly hostHash: HostHash | null;
  readonly first: string;
  readonly last: string;
  readonly url: string;
  readonly address: string;
}

async function finerIn(pool: Pool, where: string, values: readonly unknown[]): Promise<FinerDelegation[]> {
  const { rows } = await pool.query<FinerRow>(
    `select f.finer_id as "finerId", f.subnet_id as "subnetId", f.host_hash as "hostHash",
       host(f.first_address) as first, host(f.last_address) as last, f.crawler_id as "crawlerId",
       f.round_id as "roundId", f.rtt_ms as "rttMs", f.runner_up_id as "runnerUpId",
       f.runner_up_rtt_ms as "runnerUpRttMs", f.subnet_rtt_ms as "subnetRttMs", d.crawler_id as "subnetCrawlerId",
       r.target_url as url, host(r.target_address) as address
     from finer_delegation f
     join probe_round r using (round_id)
     left join delegation d on d.subnet_id = f.subnet_id
     where ${where}`,
    [...values],
  );
  return rows.map(({ hostHash, first, last, url, address, ...finer }) => {
    const host = urlHost(url);
    const place =
      hostHash === null ? { type: "part" as const, first, last } : { type: "host" as const, hostHash, host };
    return { ...finer, place, target: { url, host, address } };
  });
}

/** A host, or a part by its addresses. */
type Placed = FinerDecision & {
  readonly hostHash?: HostHash;
  readonly first?: string;
  readonly last?: string;
};

const decisionColumns = [
  "crawlerId",
  "roundId",
  "rttMs",
  "runnerUpId",
  "runnerUpRttMs",
  "subnetRttMs",
] as const;

/** Writes finer delegations of one subnet and replaces existing ones. Takes either hosts or parts. */
export async function putFiner(
  client: PoolClient,
  of: { readonly subnetId: SubnetId; readonly cause: string; readonly seen?: readonly SeenAnswer[] },
  given: readonly Placed[],
  { now, reviewAt }: ReviewTimes,
): Promise<void> {
  if (given.length === 0) return;
  const isHost = given[0]!.hostHash !== undefined;
  await client.query(
    `insert into finer_delegation (subnet_id, cause, seen, host_hash, first_address, last_address, crawler_id, round_id,
       measured, rtt_ms, runner_up_id, runner_up_rtt_ms, subnet_rtt_ms, found_at, delegated_at, review_at)
     select $1, $2, $3, host_hash, first_address, last_address, crawler_id, round_id, rtt_ms is not null, rtt_ms,
       runner_up_id, runner_up_rtt_ms, subnet_rtt_ms, $4, $4, $5
     from unnest($6::bigint[], $7::inet[], $8::inet[], $9::int[], $10::int[], $11::real[], $12::int[], $13::real[],
       $14::real[]) as given (host_hash, first_address, last_address, crawler_id, round_id, rtt_ms, runner_up_id,
       runner_up_rtt_ms, subnet_rtt_ms)
     on conflict ${isHost ? "(host_hash)" : "(subnet_id, first_address) where host_hash is null"} do update
       set subnet_id = excluded.subnet_id, crawler_id = excluded.crawler_id, round_id = excluded.round_id,
           cause = excluded.cause, measured = excluded.measured, rtt_ms = excluded.rtt_ms,
           runner_up_id = excluded.runner_up_id, runner_up_rtt_ms = excluded.runner_up_rtt_ms,
           subnet_rtt_ms = excluded.subnet_rtt_ms, seen = excluded.seen, review_at = excluded.review_at,
           delegated_at = case when finer_delegation.crawler_id = excluded.crawler_id
                               then finer_delegation.delegated_at else excluded.delegated_at end`,
    [
      of.subnetId,
      of.cause,
      JSON.stringify(of.seen ?? []),
      now,
      reviewAt,
      ...columnsOf(given, ["hostHash", "first", "last", ...decisionColumns]),
    ],
  );
}

async function setHost(client: PoolClient, host: DelegatedHost, times: ReviewTimes): Promise<boolean> {
  const { subnetId, hostHash, seen, crawlerId: to, roundId, reason } = host;
  const { rowCount } = await client.query("select from finer_delegation where host_hash = $1", [hostHash]);
  const isKnown = rowCount === 1;
  if (!isKnown && (await roomFor(client, 1)) < 1) return false;
  await putFiner(client, { subnetId, cause: "differs-by-place", seen }, [host], times);
  await followFinerDelegations(client, { hashes: [hostHash] });
  if (isKnown) return true;
  const from = await subnetCrawler(client, subnetId);
  const change = { subnetId, from, to, cause: "differs-by-place", roundId, reason };
  await recordChanges(client, [change], times.now);
  return true;
}

export async function subnetCrawler(client: PoolClient, subnetId: SubnetId): Promise<CrawlerId | null> {
  const { rows } = await client.query<{ crawler_id: CrawlerId }>(
    "select crawler_id from delegation where subnet_id = $1",
    [subnetId],
  );
  return rows[0]?.crawler_id ?? null;
}

interface SplitLeaf {
  readonly subnetId: SubnetId;
  readonly subnetCrawlerId: CrawlerId;
  readonly parts: readonly PlannedPart[];
}

async function setParts(
  client: PoolClient,
  leaf: SplitLeaf,
  times: ReviewTimes,
): Promise<{ added: number; ended: number } | null> {
  const { subnetId, subnetCrawlerId: from } = leaf;
  const owned = await client.query(
    "select from delegation where subnet_id = $1 and crawler_id = $2 for update",
    [subnetId, from],
  );
  if (owned.rowCount === 0) return null;
  const others = {
    where: `f.subnet_id = $1 and f.host_hash is null
       and (f.first_address, f.last_address) not in (select * from unnest($2::inet[], $3::inet[]))`,
    values: [subnetId, ...columnsOf(leaf.parts, ["first", "last"])],
    reason: "these addresses measure like the rest of the subnet again",
  };
  const ended = await endFiner(client, others, times.now);
  const { rows } = await client.query<{ first: string }>(
    "select host(first_address) as first from finer_delegation where subnet_id = $1 and host_hash is null",
    [subnetId],
  );
  const known = new Set(rows.map((row) => row.first));
  const fresh = leaf.parts.filter((part) => !known.has(part.first));
  const added = fresh.slice(0, await roomFor(client, fresh.length));
  const parts = leaf.parts.filter((part) => known.has(part.first) || added.includes(part));
  await putFiner(client, { subnetId, cause: "measures-apart" }, parts, times);
  const changes = added.map((part) => ({
    ...part,
    ...{ subnetId, from, to: part.crawlerId, cause: "measures-apart" },
  }));
  await recordChanges(client, changes, times.now);
  await followFinerDelegations(client, { ofSubnet: subnetId });
  return { added: added.length, ended };
}

/** How many of the wanted ones may be added. */
export async function roomFor(client: PoolClient, wanted: number): Promise<number> {
  if (wanted === 0) return 0;
  const { rows } = await client.query<{ finer: number }>(
    "select count(*)::int as finer from finer_delegation",
  );
  return Math.max(0, Math.min(wanted, maxFinerDelegations - rows[0]!.finer));
}

const updateReviewed = `
  update finer_delegation
  set crawler_id = $4, round_id = $5, measured = $6::real is not null, rtt_ms = $6, runner_up_id = $7,
      runner_up_rtt_ms = $8, subnet_rtt_ms = $9, review_at = $2,
      cause = case when crawler_id = $4 then cause when host_hash is null then 'measures-apart' else 'differs-by-place' end,
      delegated_at = case when crawler_id = $4 then delegated_at else $3 end
  where finer_id = $1`;

/** Which finer delegations (`f`) end, and the reason for the history. */
interface Ended {
  readonly where: string;
  readonly values: readonly unknown[];
  readonly reason: string;
}

/** Ends finer delegations. Their hosts return to their subnets or to a part. Returns their number. */
export async function endFiner(
  client: PoolClient,
  { where, values, reason }: Ended,
  now: Date,
): Promise<number> {
  const { rows } = await client.query<{ finer_id: number }>(
    `select f.finer_id from finer_delegation f where ${where} order by f.finer_id for update`,
    [...values],
  );
  const ids = rows.map((row) => row.finer_id);
  if (ids.length === 0) return 0;
  await client.query(
    `with ended as (
       delete from finer_delegation
       where finer_id = any($1::int[])
       returning subnet_id, crawler_id
     )
     insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, reason)
     select ended.subnet_id, $2, ended.crawler_id, d.crawler_id, 'joined-again', $3
     from ended
     left join delegation d using (subnet_id)`,
    [ids, now, reason],
  );
  await followFinerDelegations(client, { hadFiner: ids });
  return ids.length;
}

const outdated: Ended = {
  where: `f.host_hash is null and exists (
       select
       from subnet s
       where s.subnet_id = f.subnet_id
         and (s.removed_in is not null or exists (
           select
           from subnet inner_subnet
           where inner_subnet.removed_in is null
             and inner_subnet.first_address between s.first_address and f.last_address
             and inner_subnet.last_address between f.first_address and s.last_address
             and inner_subnet.first_address <> inner_subnet.last_address
             and inner_subnet.subnet_id <> s.subnet_id
         )))`,
  values: [],
  reason: "the registry has other ranges there now",
};

const inheritSql = `
   with given as (
    select finer_id, subnet_id, round_id
    from finer_delegation
    where crawler_id = $1
    order by finer_id
    for update
  ), heir as (
    select given.finer_id, given.subnet_id, given.round_id, measured.rtt_ms,
      coalesce(measured.crawler_id, d.crawler_id) as crawler_id
    from given
    join probe_round r on r.round_id = given.round_id
    left join lateral (
      select p.crawler_id, min(p.rtt_ms) as rtt_ms
      from probe p
      where p.round_id = r.round_id
        and p.outcome = 'measured'
        and p.method = coalesce(r.method, p.method)
        and p.crawler_id = any($2::int[])
        and ${isFromHere("p", "r")}
      group by p.crawler_id
      order by 2, 1
      limit 1
    ) measured on true
    left join delegation d on d.subnet_id = given.subnet_id and d.crawler_id = any($2::int[])
  ), moved as (
    update finer_delegation f
    set crawler_id = heir.crawler_id, cause = 'crawler-left', measured = heir.rtt_ms is not null,
        rtt_ms = heir.rtt_ms, runner_up_id = null, runner_up_rtt_ms = null, delegated_at = $3,
        review_at = case when heir.rtt_ms is null then $3 else f.review_at end
    from heir
    where f.finer_id = heir.finer_id and heir.crawler_id is not null
    returning f.subnet_id, f.crawler_id, f.round_id, f.rtt_ms
  ), recorded as (
    insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
    select subnet_id, $3, $1, crawler_id, 'crawler-left', round_id,
      case when rtt_ms is null then 'its crawler is gone; the subnet''s crawler has it until it is probed again'
           else 'its crawler is gone; this one was the next best' end
    from moved
  )
  select (select count(*)::int from moved) as moved,
    (select count(*)::int from heir where crawler_id is null) as left`;

interface RecordedChange {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId | null;
  readonly to: CrawlerId;
  readonly cause: string;
  readonly roundId: RoundId;
  readonly reason: string;
}

export async function recordChanges(
  client: PoolClient,
  changes: readonly RecordedChange[],
  now: Date,
): Promise<void> {
  if (changes.length === 0) return;
  await client.query(
    `insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, round_id, reason)
     select subnet_id, $1, from_id, to_id, cause, round_id, reason
     from unnest($2::int[], $3::int[], $4::int[], $5::text[], $6::int[], $7::text[])
       as given (subnet_id, from_id, to_id, cause, round_id, reason)`,
    [now, ...columnsOf(changes, ["subnetId", "from", "to", "cause", "roundId", "reason"])],
  );
}

interface HostColumns {
  readonly hash: string;
  readonly subnetId: string;
  readonly address: string;
}

/**
 * SQL: the finer delegation of a host: its own, otherwise the part that contains its first address, otherwise null. It is
 * locked until the transaction ends, so that a transaction that ends it waits and then finds this host too.
 */
export const finerIdOf = (host: HostColumns): string => `coalesce(
  (select finer_id from finer_delegation where host_hash = ${host.hash} for key share),
  (select finer_id
   from finer_delegation
   where host_hash is null
     and subnet_id = ${host.subnetId}
     and ${host.address} between first_address and last_address
   limit 1
   for key share))`;

const ofHost = { hash: "h.host_hash", subnetId: "h.subnet_id", address: "h.addresses[1]" };

type CoveredHosts =
  | { readonly ofSubnet: number }
  | { readonly hashes: readonly HostHash[] }
  /** Selects hosts that had one of these finer delegations. */
  | { readonly hadFiner: readonly number[] };

function chosenBy(hosts: CoveredHosts): { readonly condition: string; readonly value: unknown } {
  if ("ofSubnet" in hosts)
    return { condition: "h.subnet_id = $1 and h.state = 'resolved'", value: hosts.ofSubnet };
  if ("hashes" in hosts) return { condition: "h.host_hash = any($1::bigint[])", value: hosts.hashes };
  return { condition: "h.finer_id = any($1::int[])", value: hosts.hadFiner };
}

/** Updates the finer delegation of hosts in the frontier. Locks those that change. */
export async function followFinerDelegations(client: PoolClient, hosts: CoveredHosts): Promise<void> {
  const { condition, value } = chosenBy(hosts);
  await client.query(
    `with changed as (
       select h.host_hash
       from frontier_host h
       where ${condition} and h.finer_id is distinct from ${finerIdOf(ofHost)}
       order by h.host_hash
       for update
     )
     update frontier_host h
     set finer_id = ${finerIdOf(ofHost)}
     from changed
     where h.host_hash = changed.host_hash`,
    [value],
  );
}
