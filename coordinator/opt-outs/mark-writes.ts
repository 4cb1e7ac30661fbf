/**
 * The frontier and the index in line with table opt_out: hosts are marked and their leases end, pages of what was
 * confirmed are deleted, marks of what has ended go. Everything is done in batches and may be done again: a
 * coordinator that is killed in between leaves the rest to the next pass, of whichever coordinator.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { forgetDifferencesOfHosts } from "../changes/change-writes.ts";
import { inTransaction } from "../database/transaction.ts";
import { type LeasePools, type TurnsPool, writingLeases } from "../frontier/address-turn-writes.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { isOfSite, optOutOfHost } from "../frontier/back-link-writes.ts";
import { endLeasesOn, settleHosts } from "../frontier/lease-end-writes.ts";
import { enterHeirs, isComparable, removeTexts, type Text } from "../results/near-text-store.ts";
import type { AppliedOptOuts, EndedLease, OptOutMarks } from "./opt-out.ts";

const hostsPerBatch = 500;
const pagesPerBatch = 500;
/** After an opt-out was lifted: for so long crawlers may still refuse what they were told to stop. */
const stopKeptMinutes = 15;

/** How far the frontier is in line with an opt-out (column applied). */
const applied = { marked: 1, deleted: 2, unmarked: 3 } as const;

export function createOptOutMarks(pool: Pool, turns: TurnsPool = { turns: pool }): OptOutMarks {
  return { apply: async (now) => await apply({ pool, ...turns }, now) };
}

async function apply(pools: LeasePools, now: Date): Promise<AppliedOptOuts> {
  const { pool } = pools;
  const { rows } = await pool.query<{
    opt_out_id: number;
    applied: number;
    ended: boolean;
    confirmed: boolean;
  }>(
    `select opt_out_id, applied, ended_at is not null as ended, confirmed_at is not null as confirmed
     from opt_out
     where in_force_at is not null
       and applied < case when ended_at is not null then ${applied.unmarked}
                          when confirmed_at is not null then ${applied.deleted} else ${applied.marked} end
     order by opt_out_id`,
  );
  let [hosts, pages] = [0, 0];
  const leases: EndedLease[] = [];
  for (const { opt_out_id: optOutId, ...row } of rows) {
    if (row.ended) {
      await unmark(pool, optOutId, now);
      await setApplied(pool, optOutId, applied.unmarked);
      continue;
    }
    if (row.applied < applied.marked) {
      const marked = await mark(pools, optOutId, now);
      hosts += marked.hosts;
      leases.push(...marked.leases);
      await setApplied(pool, optOutId, applied.marked);
    }
    if (row.confirmed) {
      pages += await deletePages(pool, optOutId);
      await setApplied(pool, optOutId, applied.deleted);
    }
  }
  return { hosts, leases, pages };
}

async function setApplied(pool: Pool, optOutId: number, to: number): Promise<void> {
  await pool.query("update opt_out set applied = greatest(applied, $2) where opt_out_id = $1", [
    optOutId,
    to,
  ]);
}

/**
 * First the marks, so that no lease begins, then the end of those that are open: leases are locked before hosts
 * everywhere (transaction.ts), so it takes two transactions.
 */
async function mark(
  pools: LeasePools,
  optOutId: number,
  now: Date,
): Promise<{ hosts: number; leases: EndedLease[] }> {
  const { pool } = pools;
  const rows = await hostsCoveredBy(pool, optOutId);
  const leases: EndedLease[] = [];
  for (const hosts of batchesOf(rows, hostsPerBatch)) {
    await inTransaction(pool, async (client) => {
      await lockHosts(client, hosts);
      await client.query(
        "update frontier_host set opt_out_id = coalesce(opt_out_id, $2) where host_hash = any($1::bigint[])",
        [hosts, optOutId],
      );
      await settleHosts(client, hosts);
    });
    leases.push(...(await writingLeases(pools, async (on) => await endLeasesOn(on, hosts, now))));
  }
  return { hosts: rows.length, leases };
}

/** Of a site by the index of names; of a network, which only operators opt out, by a look at every host. */
export async function hostsCoveredBy(pool: Pool, optOutId: number): Promise<{ host_hash: HostHash }[]> {
  const { rows } = await pool.query<{ site: string | null }>(
    "select site from opt_out where opt_out_id = $1",
    [optOutId],
  );
  const site = rows[0]?.site ?? null;
  const found =
    site === null
      ? await pool.query<{ host_hash: HostHash }>(
          `select h.host_hash
           from opt_out o
           join frontier_host h
             on exists (select from unnest(h.addresses) a where a between o.first_address and o.last_address)
           where o.opt_out_id = $1 and o.site is null`,
          [optOutId],
        )
      : await pool.query<{ host_hash: HostHash }>(
          `select host_hash from frontier_host where ${isOfSite("host", "$1::text")}`,
          [site],
        );
  return found.rows;
}

/** Another opt-out may cover some of the hosts still. */
async function unmark(pool: Pool, optOutId: number, now: Date): Promise<void> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    "select host_hash from frontier_host where opt_out_id = $1",
    [optOutId],
  );
  for (const hosts of batchesOf(rows, hostsPerBatch)) {
    await inTransaction(pool, async (client) => {
      await lockHosts(client, hosts);
      await client.query(
        `update frontier_host h
         set opt_out_id = ${optOutOfHost},
             not_before = greatest(not_before, $2::timestamptz + interval '${stopKeptMinutes} minutes')
         where host_hash = any($1::bigint[])`,
        [hosts, now],
      );
      await settleHosts(client, hosts);
    });
  }
}

/** What the index has of the hosts, and the validators: a page that comes back must be fetched whole. */
async function deletePages(pool: Pool, optOutId: number): Promise<number> {
  await forgetDifferencesOfHosts(pool, optOutId);
  let pages = 0;
  for (;;) {
    const deleted = await inTransaction(pool, async (client) => await deleteSome(client, optOutId));
    pages += deleted;
    if (deleted < pagesPerBatch) return pages;
  }
}

async function deleteSome(client: PoolClient, optOutId: number): Promise<number> {
  const { rows } = await client.query<Text>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.simhash, p.words
     from page p
     where p.host_hash in (select host_hash from frontier_host where opt_out_id = $1)
     limit ${pagesPerBatch}`,
    [optOutId],
  );
  const hosts = rows.map((row) => row.hostHash);
  const urls = rows.map((row) => row.urlHash);
  await lockHosts(client, hosts);
  const ownerless = await removeTexts(client, rows.filter(isComparable));
  await client.query(
    `delete from page p using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where p.host_hash = given.host_hash and p.url_hash = given.url_hash`,
    [hosts, urls],
  );
  await client.query(
    `delete from out_link o using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where o.host_hash = given.host_hash and o.url_hash = given.url_hash`,
    [hosts, urls],
  );
  await client.query(
    `update frontier_url u set etag = null, last_modified = null, digest = null
     from unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
     where u.host_hash = given.host_hash and u.url_hash = given.url_hash`,
    [hosts, urls],
  );
  await enterHeirs(client, ownerless);
  return rows.length;
}

function batchesOf(rows: readonly { host_hash: HostHash }[], size: number): HostHash[][] {
  const hosts = rows.map((row) => row.host_hash);
  return Array.from({ length: Math.ceil(hosts.length / size) }, (_, at) =>
    hosts.slice(at * size, (at + 1) * size),
  );
}
