/** Keeps `frontier_host.finer_id`, the finer delegation of a host, in step within the transaction that changes finer delegations. */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";

interface HostColumns {
  readonly hash: string;
  readonly subnetId: string;
  readonly address: string;
}

/**
 * SQL: the finer delegation of a host: its own, else the part that contains its first address, else null. It is locked
 * until the transaction ends, so that whoever ends it waits and then finds this host among those it covers.
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
  /** Hosts that had one of these. */
  | { readonly hadFiner: readonly number[] };

function chosenBy(hosts: CoveredHosts): { readonly condition: string; readonly value: unknown } {
  if ("ofSubnet" in hosts)
    return { condition: "h.subnet_id = $1 and h.state = 'resolved'", value: hosts.ofSubnet };
  if ("hashes" in hosts) return { condition: "h.host_hash = any($1::bigint[])", value: hosts.hashes };
  return { condition: "h.finer_id = any($1::int[])", value: hosts.hadFiner };
}

/** Updates the finer delegation of hosts in the frontier; locks those that change. */
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
