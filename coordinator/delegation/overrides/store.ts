/** Which hosts a finer delegation covers: `frontier_host.finer_id` follows tables and addresses. */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";

/**
 * SQL: the finer delegation of a host, null when it goes with its subnet. Its own comes before the part of the
 * leaf that holds its first address. It is held until the transaction ends: who ends it waits, and then finds
 * this host among those that it covers, so that no host is left with a crawler that is none.
 */
export const finerIdOf = (host: { hash: string; subnetId: string; address: string }): string => `coalesce(
  (select finer_id from finer_delegation where host_hash = ${host.hash} for key share),
  (select finer_id
   from finer_delegation
   where host_hash is null
     and subnet_id = ${host.subnetId}
     and ${host.address} between first_address and last_address
   limit 1
   for key share))`;

/** Of hosts that are in the frontier: which finer delegation is theirs now. Locks those that change. */
export async function followFinerDelegations(
  client: PoolClient,
  hosts: { readonly ofSubnet: number } | { readonly hashes: readonly HostHash[] },
): Promise<void> {
  const chosen =
    "ofSubnet" in hosts ? "h.subnet_id = $1 and h.state = 'resolved'" : "h.host_hash = any($1::bigint[])";
  const finerId = finerIdOf({ hash: "h.host_hash", subnetId: "h.subnet_id", address: "h.addresses[1]" });
  await client.query(
    `with changed as (
       select h.host_hash
       from frontier_host h
       where ${chosen} and h.finer_id is distinct from ${finerId}
       order by h.host_hash
       for update
     )
     update frontier_host h
     set finer_id = ${finerId}
     from changed
     where h.host_hash = changed.host_hash`,
    ["ofSubnet" in hosts ? hosts.ofSubnet : hosts.hashes],
  );
}
