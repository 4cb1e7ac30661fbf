/**
 * Which hosts a finer delegation covers: `frontier_host.finer_id` follows tables and addresses, in the transaction that
 * changes the finer delegations.
 */
import type { PoolClient } from "pg";
import { asRoundId, type HostHash, type RoundId } from "#core/ids";
import { columnsOf } from "../../database/transaction.ts";
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
  /** Those that had one of these. */
  | { readonly hadFiner: readonly number[] };

function chosenBy(hosts: CoveredHosts): { readonly condition: string; readonly value: unknown } {
  if ("ofSubnet" in hosts)
    return { condition: "h.subnet_id = $1 and h.state = 'resolved'", value: hosts.ofSubnet };
  if ("hashes" in hosts) return { condition: "h.host_hash = any($1::bigint[])", value: hosts.hashes };
  return { condition: "h.finer_id = any($1::int[])", value: hosts.hadFiner };
}

/** Of hosts that are in the frontier: which finer delegation is theirs now. Locks those that change. */
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
