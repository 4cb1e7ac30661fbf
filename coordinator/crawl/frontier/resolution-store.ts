import type { Pool, PoolClient } from "pg";
import { asSubnetId, type HostHash, type SubnetId } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import { hostHashOf } from "#core/url-key";
import { inTransaction } from "../../database/transaction.ts";
import { finerIdOf } from "../../place/delegation/overrides/override-store.ts";
import { lockHosts } from "./admission-writes.ts";
import type { Resolution } from "./frontier.ts";
import { settleHosts } from "./lease-end-writes.ts";
import { markByAddress } from "./site-rule-writes.ts";

/** Time after which a claimed host whose answer was not saved is offered again. */
const claimSeconds = 120;
/** Bounds for a name server's TTL. */
const minTtlSeconds = 30;
const maxTtlSeconds = 86_400;
/** Consecutive failures through which a resolved host keeps its addresses. */
const toleratedFailures = 3;
/** First pause after a failure. It doubles each time, up to the longest TTL. */
const retrySeconds = 30;

/** New hosts first, then those with due work whose addresses have expired. */
export async function hostsToResolve(pool: Pool, limit: number, now: Date): Promise<string[]> {
  return await inTransaction(pool, async (client) => {
    const fresh = await claim(client, "state in ('unresolved', 'unresolvable') and opt_out_id is null", {
      limit,
      now,
    });
    const outdated = await claim(client, "state = 'resolved' and due_at <= $2", {
      limit: limit - fresh.length,
      now,
    });
    return [...fresh, ...outdated];
  });
}

async function claim(
  client: PoolClient,
  condition: string,
  { limit, now }: { readonly limit: number; readonly now: Date },
): Promise<string[]> {
  if (limit <= 0) return [];
  const { rows } = await client.query<{ host: string }>(
    `with claimed as (
       select host_hash
       from frontier_host
       where ${condition} and resolve_at <= $2
       order by resolve_at, host_hash
       limit $1
       for update skip locked
     )
     update frontier_host h
     set resolve_at = $2::timestamptz + make_interval(secs => ${claimSeconds})
     from claimed
     where h.host_hash = claimed.host_hash
     returning h.host`,
    [limit, now],
  );
  return rows.map((row) => row.host);
}

export async function saveResolutions(
  pool: Pool,
  resolutions: readonly Resolution[],
  now: Date,
): Promise<void> {
  const known = [...new Map(resolutions.map((one) => [one.host, one])).values()];
  await inTransaction(pool, async (client) => {
    await lockHosts(
      client,
      known.map((one) => hostHashOf(one.host)),
    );
    await saveResolved(client, ofType(known, "resolved"), now);
    const moved = ofType(known, "resolved").map((one) => hostHashOf(one.host));
    await settleHosts(client, await markByAddress(client, moved));
    await saveRefused(client, ofType(known, "refused"));
    await saveFailed(client, ofType(known, "failed"), now);
  });
}

function ofType<Type extends Resolution["type"]>(resolutions: readonly Resolution[], type: Type) {
  return resolutions.filter((one): one is Extract<Resolution, { type: Type }> => one.type === type);
}

async function saveResolved(
  client: PoolClient,
  resolved: readonly Extract<Resolution, { type: "resolved" }>[],
  now: Date,
): Promise<void> {
  await client.query(
    `update frontier_host h
     set state = 'resolved', state_reason = '', resolve_failures = 0,
         addresses = string_to_array(given.addresses, ' ')::inet[],
         subnet_id = given.subnet_id, domain = coalesce(h.domain, given.domain),
         finer_id = ${finerIdOf({
           hash: "h.host_hash",
           subnetId: "given.subnet_id",
           address: "(string_to_array(given.addresses, ' ')::inet[])[1]",
         })},
         resolve_at = $5::timestamptz + make_interval(secs => given.ttl)
     from unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $6::text[])
       as given (host_hash, addresses, subnet_id, ttl, domain)
     where h.host_hash = given.host_hash and h.state <> 'refused'`,
    [
      resolved.map((one) => hostHashOf(one.host)),
      resolved.map((one) => one.addresses.join(" ")),
      resolved.map((one) => one.subnetId),
      resolved.map((one) => Math.round(Math.min(Math.max(one.ttlSeconds, minTtlSeconds), maxTtlSeconds))),
      now,
      resolved.map((one) => registrableDomain(one.host)),
    ],
  );
}

/** Leased URLs stay with their crawler, which refuses the address itself. */
async function saveRefused(
  client: PoolClient,
  refused: readonly Extract<Resolution, { type: "refused" }>[],
): Promise<void> {
  if (refused.length === 0) return;
  const hosts: HostHash[] = refused.map((one) => hostHashOf(one.host));
  await client.query(
    `update frontier_host h
     set state = 'refused', state_reason = given.reason, subnet_id = null,
         addresses = string_to_array(given.addresses, ' ')::inet[]
     from unnest($1::bigint[], $2::text[], $3::text[]) as given (host_hash, addresses, reason)
     where h.host_hash = given.host_hash`,
    [hosts, refused.map((one) => one.addresses.join(" ")), refused.map((one) => one.reason)],
  );
  await client.query(
    `update frontier_url u
     set state = 'refused', last_outcome = 'refused-address', last_reason = h.state_reason
     from frontier_host h
     where h.host_hash = any($1::bigint[]) and u.host_hash = h.host_hash and u.state = 'due'`,
    [hosts],
  );
  await settleHosts(client, hosts);
}

async function saveFailed(
  client: PoolClient,
  failed: readonly Extract<Resolution, { type: "failed" }>[],
  now: Date,
): Promise<void> {
  await client.query(
    `update frontier_host h
     set state = case when h.state = 'resolved' and h.resolve_failures + 1 <= ${toleratedFailures}
                      then 'resolved' else 'unresolvable' end,
         state_reason = given.reason,
         resolve_failures = least(h.resolve_failures + 1, 1000),
         resolve_at = $3::timestamptz
           + make_interval(secs => least(${maxTtlSeconds}, ${retrySeconds} * 2 ^ least(h.resolve_failures, 20)))
     from unnest($1::bigint[], $2::text[]) as given (host_hash, reason)
     where h.host_hash = given.host_hash and h.state <> 'refused'`,
    [failed.map((one) => hostHashOf(one.host)), failed.map((one) => one.reason.replaceAll("\0", "")), now],
  );
}

const hostsPerBatch = 2_000;

/** Walks resolved hosts by hash. Skips hosts whose first address changed meanwhile, as their resolution updates them. */
export async function reassignSubnets(
  pool: Pool,
  subnetOf: (address: string) => SubnetId | null,
): Promise<number> {
  let changed = 0;
  let after: string | null = null;
  while (true) {
    const { rows }: { rows: { host_hash: string; address: string; subnet_id: number | null }[] } =
      await pool.query(
        `select host_hash, host(addresses[1]) as address, subnet_id
         from frontier_host
         where state = 'resolved' and ($1::bigint is null or host_hash > $1)
         order by host_hash
         limit ${hostsPerBatch}`,
        [after],
      );
    const moved = rows
      .map((row) => ({ ...row, to: subnetOf(row.address) }))
      .filter((row) => row.to !== (row.subnet_id === null ? null : asSubnetId(row.subnet_id)));
    changed += await assign(pool, moved);
    if (rows.length < hostsPerBatch) return changed;
    after = rows.at(-1)!.host_hash;
  }
}

async function assign(
  pool: Pool,
  moved: readonly { host_hash: string; address: string; to: SubnetId | null }[],
): Promise<number> {
  if (moved.length === 0) return 0;
  return await inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      `with given as (
         select h.host_hash, g.subnet_id
         from unnest($1::bigint[], $2::text[], $3::int[]) as g (host_hash, address, subnet_id)
         join frontier_host h on h.host_hash = g.host_hash and host(h.addresses[1]) = g.address
         order by h.host_hash
         for update of h
       )
       update frontier_host h
       set subnet_id = given.subnet_id,
           finer_id = ${finerIdOf({ hash: "h.host_hash", subnetId: "given.subnet_id", address: "h.addresses[1]" })}
       from given
       where h.host_hash = given.host_hash`,
      [moved.map((row) => row.host_hash), moved.map((row) => row.address), moved.map((row) => row.to)],
    );
    return rowCount ?? 0;
  });
}
