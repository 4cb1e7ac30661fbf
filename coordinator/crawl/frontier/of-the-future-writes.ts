/**
 * Repairs times written by a clock that was ahead: hosts and URLs whose last fetch, admission or robots.txt lies in
 * the future. Each keeps the span that its rule gave it, counted from now. Open leases and turns recover by themselves
 * (lease-end-writes, address-turn-store).
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { inTransaction } from "../../database/transaction.ts";
import { forgetTurns } from "./address-turn-store.ts";
import { lockHosts } from "./admission-writes.ts";
import { settleHosts } from "./lease-end-writes.ts";

/** SQL: the column is later than now. Clocks of coordinators differ by less than this. */
const isBeyond = (column: string, now: string) => `${column} > ${now}::timestamptz + interval '10 minutes'`;

const hostTimes = ["robots_at", "challenged_since", "challenged_at", "payment_asked_at", "backed_off_at"];

const hostsPerBatch = 500;

/** Whether a lease was granted or closed in the future, which shows that a clock was ahead. */
export async function wasAhead(pool: Pool, now: Date): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    `select exists (select from lease where ${isBeyond("closed_at", "$1")} or ${isBeyond("granted_at", "$1")}) as found`,
    [now],
  );
  return rows[0]!.found;
}

/** Checks all hosts and URLs. Returns how many hosts were repaired. */
export async function bringBack(pool: Pool, now: Date): Promise<number> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    `select host_hash from frontier_host
     where ${["admitted_at", ...hostTimes].map((column) => isBeyond(column, "$1")).join(" or ")}
     union
     select host_hash from frontier_url
     where ${isBeyond("last_fetched_at", "$1")} or ${isBeyond("discovered_at", "$1")}`,
    [now],
  );
  for (let at = 0; at < rows.length; at += hostsPerBatch)
    await bringHostsBack(
      pool,
      rows.slice(at, at + hostsPerBatch).map((row) => row.host_hash),
      now,
    );
  await pool.query(
    `update lease set granted_at = least(granted_at, $1), closed_at = least(closed_at, $1)
     where closed_at is not null and (${isBeyond("closed_at", "$1")} or ${isBeyond("granted_at", "$1")})`,
    [now],
  );
  await forgetTurns(pool, now);
  return rows.length;
}

async function bringHostsBack(pool: Pool, hosts: readonly HostHash[], now: Date): Promise<void> {
  await inTransaction(pool, async (client) => {
    await lockHosts(client, hosts);
    const askedAt = `(
      select max(asked)
      from unnest(array[${hostTimes.map((column) => `h.${column}`).join(", ")}, (
        select max(u.last_fetched_at) from frontier_url u where u.host_hash = h.host_hash
      )]) asked
      where ${isBeyond("asked", "$2")}
    )`;
    await client.query(
      `update frontier_host h
       set not_before = case
             when h.not_before > $2 then least(h.not_before, $2::timestamptz + greatest(interval '0', h.not_before - ${askedAt}))
             else h.not_before
           end,
           resolve_at = case when h.state = 'unresolved' then least(h.resolve_at, $2) else h.resolve_at end,
           ${["admitted_at", ...hostTimes].map((column) => `${column} = least(h.${column}, $2)`).join(", ")}
       where h.host_hash = any($1::bigint[])`,
      [hosts, now],
    );
    await client.query(
      `update frontier_url u
       set next_fetch_at = case
             when ${isBeyond("u.last_fetched_at", "$2")}
               then $2::timestamptz + greatest(interval '0', u.next_fetch_at - u.last_fetched_at)
             else least(u.next_fetch_at, $2)
           end,
           last_fetched_at = least(u.last_fetched_at, $2), discovered_at = least(u.discovered_at, $2)
       where u.host_hash = any($1::bigint[])
         and (${isBeyond("u.last_fetched_at", "$2")} or u.last_fetched_at is null and ${isBeyond("u.discovered_at", "$2")})`,
      [hosts, now],
    );
    await settleHosts(client, hosts);
  });
}
