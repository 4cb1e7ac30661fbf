/**
 * Which hosts a finer delegation covers: `frontier_host.finer_id` follows tables and addresses. In slice 0, which lies beside the
 * table of finer delegations, in the transaction that changes it; in the other slices after that, with the values that were
 * committed, since the replica there may not have them yet. Whoever is ended in between leaves hosts behind, which
 * `followLeftBehind` finds by the replica.
 */
import type { Pool, PoolClient } from "pg";
import { asRoundId, type HostHash, type RoundId } from "#core/ids";
import { apartOf, type Slices } from "../../database/slices.ts";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import { saveProbes } from "../store.ts";
import type { FinerRound } from "./override.ts";

interface HostColumns {
  readonly hash: string;
  readonly subnetId: string;
  readonly address: string;
}

/**
 * SQL: the finer delegation of a host, null when it goes with its subnet. Its own comes before the part of the
 * leaf that holds its first address. It is held until the transaction ends: who ends it waits, and then finds
 * this host among those that it covers, so that no host is left with a crawler that is none.
 */
export const finerIdOf = (host: HostColumns): string => finerIdIn("finer_delegation", host, "for key share");

/** The same, of a table or rows that are given. */
const finerIdIn = (finer: string, host: HostColumns, held = ""): string => `coalesce(
  (select finer_id from ${finer} where host_hash = ${host.hash} ${held}),
  (select finer_id
   from ${finer}
   where host_hash is null
     and subnet_id = ${host.subnetId}
     and ${host.address} between first_address and last_address
   limit 1
   ${held}))`;

const ofHost = { hash: "h.host_hash", subnetId: "h.subnet_id", address: "h.addresses[1]" };

type CoveredHosts =
  | { readonly ofSubnet: number }
  | { readonly hashes: readonly HostHash[] }
  /** Those that had one of these. */
  | { readonly hadFiner: readonly number[] };

function chosenBy(hosts: CoveredHosts): { readonly condition: string; readonly value: unknown } {
  if ("ofSubnet" in hosts)
    return { condition: "h.subnet_id = $1 and h.state = 'resolved'", value: hosts.ofSubnet };
  if ("hashes" in hosts) return { condition: "h.host_hash = any($1::bigint[])", value: hosts.hashes };
  return { condition: "h.finer_id = any($1::int[])", value: hosts.hadFiner };
}

/** A transaction that changes finer delegations, and the hosts that follow it. */
export interface FinerWork {
  readonly client: PoolClient;
  readonly covered: CoveredHosts[];
}

/** The hosts follow in slice 0 within the transaction, and in the others when it is committed. */
export async function changeFiner<T>(slices: Slices, change: (work: FinerWork) => Promise<T>): Promise<T> {
  const { result, covered } = await inTransaction(slices.shared, async (client) => {
    const work: FinerWork = { client, covered: [] };
    return { result: await change(work), covered: work.covered };
  });
  for (const { pool } of apartOf(slices))
    for (const hosts of covered) await followApart(slices.shared, pool, hosts);
  return result;
}

/** Of hosts that are in the frontier: which finer delegation is theirs now. Locks those that change. */
export async function followFinerDelegations(
  { client, covered }: FinerWork,
  hosts: CoveredHosts,
): Promise<void> {
  covered.push(hosts);
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

/** Hosts that follow by one statement. */
const followingAtOnce = 1000;

/** In a slice (`pool`) that lies elsewhere than the finer delegations. */
async function followApart(shared: Pool, pool: Pool, hosts: CoveredHosts): Promise<void> {
  const { condition, value } = chosenBy(hosts);
  const { rows } = await pool.query<{ host_hash: HostHash; subnet_id: number | null }>(
    `select h.host_hash, h.subnet_id from frontier_host h where ${condition} order by h.host_hash`,
    [value],
  );
  for (let at = 0; at < rows.length; at += followingAtOnce) {
    const some = rows.slice(at, at + followingAtOnce);
    const hashes = some.map((row) => row.host_hash);
    const { rows: finer } = await shared.query<Record<string, unknown>>(
      `select finer_id, host_hash, subnet_id, first_address, last_address
       from finer_delegation
       where host_hash = any($1::bigint[]) or (host_hash is null and subnet_id = any($2::int[]))`,
      [hashes, [...new Set(some.map((row) => row.subnet_id))]],
    );
    await pool.query(
      `with given as materialized (
         select *
         from unnest($2::int[], $3::bigint[], $4::int[], $5::inet[], $6::inet[])
           as given (finer_id, host_hash, subnet_id, first_address, last_address)
       ),
       changed as (
         select h.host_hash
         from frontier_host h
         where h.host_hash = any($1::bigint[]) and h.finer_id is distinct from ${finerIdIn("given", ofHost)}
         order by h.host_hash
         for update
       )
       update frontier_host h
       set finer_id = ${finerIdIn("given", ofHost)}
       from changed
       where h.host_hash = changed.host_hash`,
      [hashes, ...columnsOf(finer, ["finer_id", "host_hash", "subnet_id", "first_address", "last_address"])],
    );
  }
}

/**
 * Hosts of slices other than 0 whose finer delegation is not what the replica says: somebody was ended before they had followed,
 * or an address came while the replica was behind. Gives how many were looked at.
 */
export async function followLeftBehind(slices: Slices): Promise<number> {
  let found = 0;
  for (const { pool } of apartOf(slices)) {
    const { rows } = await pool.query<{ host_hash: HostHash }>(
      `select h.host_hash
       from frontier_host h
       where h.finer_id is not null and h.finer_id is distinct from ${finerIdIn("finer_delegation", ofHost)}
       union
       select h.host_hash
       from finer_delegation f
       join frontier_host h on h.host_hash = f.host_hash
       where h.finer_id is distinct from f.finer_id
       union
       select h.host_hash
       from (select distinct subnet_id from finer_delegation where host_hash is null) f
       join frontier_host h on h.subnet_id = f.subnet_id and h.state = 'resolved'
       where h.finer_id is distinct from ${finerIdIn("finer_delegation", ofHost)}`,
    );
    found += rows.length;
    if (rows.length > 0) await followApart(slices.shared, pool, { hashes: rows.map((row) => row.host_hash) });
  }
  return found;
}

// What is kept of finer delegations for good: their rounds with every probe, and the lines of the history.

/** The round's subnet stands apart, so that it is no round of the subnet as a whole. */
export async function saveFinerRound(client: PoolClient, round: FinerRound): Promise<RoundId> {
  const { rows } = await client.query<{ round_id: number }>(
    `insert into probe_round (within_subnet_id, cause, policy, parameters, target_url, target_address,
       started_at, decided_at, crawler_id, runner_up_id, reason, method)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     returning round_id`,
    [
      round.withinSubnetId,
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
  return roundId;
}

interface RecordedChange {
  readonly subnetId: number;
  readonly from: number | null;
  readonly to: number;
  readonly cause: string;
  readonly roundId: number;
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
