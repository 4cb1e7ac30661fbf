/** Table site_cap, and column cap_delay_ms of the hosts that it affects. */
import type { Pool, PoolClient } from "pg";
import { UsageError } from "#core/errors";
import type { HostHash } from "#core/ids";
import { inTransaction } from "../../database/transaction.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { capOfHost, isOfSite, optOutLock } from "../frontier/site-rule-writes.ts";
import { type ListedCap, mostSiteCaps, type SiteCap } from "./site-cap.ts";

export type SiteCapStore = ReturnType<typeof createSiteCapStore>;

export function createSiteCapStore(pool: Pool) {
  return {
    list: async (): Promise<readonly ListedCap[]> => await listed(pool, "true", []),

    /** Replaces an existing cap of the site. Throws a UsageError if there are too many caps. */
    set: async (cap: SiteCap): Promise<ListedCap> => {
      await write(pool, async (client) => await insert(client, cap));
      await applyTo(pool, cap.site);
      return (await listed(pool, "s.site = $1", [cap.site]))[0] ?? { ...cap, hosts: 0 };
    },

    remove: async (site: string): Promise<SiteCap | null> => {
      const removed = await write(pool, async (client) => await deleteCap(client, site));
      if (removed !== null) await applyTo(pool, site);
      return removed;
    },
  };
}

/** Locks out admission, so that hosts admitted later get the new caps. */
async function write<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  return await inTransaction(pool, async (client) => {
    await client.query(`select pg_advisory_xact_lock(${optOutLock})`);
    return await work(client);
  });
}

const columns = `s.site, s.delay_ms as "delayMs", s.words, s.set_by as "setBy", s.set_at as "setAt"`;

/** Maximum hosts counted per site. */
const mostCounted = 100_000;

async function listed(pool: Pool, condition: string, values: readonly unknown[]): Promise<ListedCap[]> {
  const { rows } = await pool.query<ListedCap>(
    `select ${columns}, (
       select count(*)::float8
       from (select from frontier_host h where ${isOfSite("h.host", "s.site")} limit ${mostCounted}) one
     ) as hosts
     from site_cap s
     where ${condition}
     order by s.site`,
    [...values],
  );
  return rows;
}

async function insert(client: PoolClient, { site, delayMs, words, setBy, setAt }: SiteCap): Promise<void> {
  const { rows } = await client.query<{ others: number }>(
    "select count(*)::int as others from site_cap where site <> $1",
    [site],
  );
  if (rows[0]!.others >= mostSiteCaps)
    throw new UsageError(`there are ${mostSiteCaps} caps, as many as there may be: remove one first`);
  await client.query(
    `insert into site_cap (site, delay_ms, words, set_by, set_at)
     values ($1, $2, $3, $4, $5)
     on conflict (site) do update
     set delay_ms = excluded.delay_ms, words = excluded.words, set_by = excluded.set_by, set_at = excluded.set_at`,
    [site, delayMs, words, setBy, setAt],
  );
}

async function deleteCap(client: PoolClient, site: string): Promise<SiteCap | null> {
  const { rows } = await client.query<SiteCap>(
    `delete from site_cap s where s.site = $1 returning ${columns}`,
    [site],
  );
  return rows[0] ?? null;
}

const hostsPerBatch = 500;

/** Applies all caps to the site's hosts, since another cap may also cover some of them. */
async function applyTo(pool: Pool, site: string): Promise<void> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    `select h.host_hash
     from frontier_host h
     where ${isOfSite("h.host", "$1::text")} and h.cap_delay_ms is distinct from ${capOfHost}`,
    [site],
  );
  const hosts = rows.map((row) => row.host_hash);
  for (let from = 0; from < hosts.length; from += hostsPerBatch)
    await inTransaction(pool, async (client) => {
      const batch = hosts.slice(from, from + hostsPerBatch);
      await lockHosts(client, batch);
      await client.query(
        `update frontier_host h set cap_delay_ms = ${capOfHost} where h.host_hash = any($1::bigint[])`,
        [batch],
      );
    });
}
