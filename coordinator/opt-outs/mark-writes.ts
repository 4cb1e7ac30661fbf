/**
 * The frontier and the index in line with table opt_out: hosts are marked and their leases end, pages of what was
 * confirmed are deleted, marks of what has ended go. Everything is done in batches and may be done again: a
 * coordinator that is killed in between leaves the rest to the next pass, of whichever coordinator.
 *
 * In a slice on another server this is done at once, by what the table says and not its replica there; and once more when the
 * replica has the same, since hosts that were added meanwhile could not know better. Only then an opt-out counts as applied.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { forgetDifferencesOfHosts } from "../changes/change-writes.ts";
import { ofAll, type Slices, slicesOf } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";
import { type LeasePools, writingLeases } from "../frontier/address-turn-writes.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { isOfSite, optOutLock, otherOptOutOfHost } from "../frontier/back-link-writes.ts";
import { endLeasesOn, settleHosts } from "../frontier/lease-end-writes.ts";
import { enterHeirs, isComparable, removeTexts, type Text } from "../results/near-text-store.ts";
import type { AppliedOptOuts, EndedLease, OptOutMarks } from "./opt-out.ts";

const hostsPerBatch = 500;
const pagesPerBatch = 500;
/** Of a change that no visit found. */
const reasonOfOptOut = "its site has opted out";
/** After an opt-out was lifted: for so long crawlers may still refuse what they were told to stop. */
const stopKeptMinutes = 15;

/** How far the frontier is in line with an opt-out (column applied). */
const applied = { marked: 1, deleted: 2, unmarked: 3 } as const;

export function createOptOutMarks(from: Pool | Slices): OptOutMarks {
  const slices = slicesOf(from);
  return { apply: async (now) => await apply(slices, now) };
}

interface OptOutRow {
  readonly opt_out_id: number;
  readonly applied: number;
  readonly ended: boolean;
  readonly confirmed: boolean;
  readonly site: string | null;
  readonly first_address: string | null;
  readonly last_address: string | null;
}

interface AppliedInSlice extends AppliedOptOuts {
  /** Whoever adds hosts there knows of it from now on. */
  readonly isFinal: boolean;
}

async function apply(slices: Slices, now: Date): Promise<AppliedOptOuts> {
  const { rows } = await slices.shared.query<OptOutRow>(
    `select opt_out_id, applied, ended_at is not null as ended, confirmed_at is not null as confirmed, site,
       first_address, last_address
     from opt_out
     where in_force_at is not null
       and applied < case when ended_at is not null then ${applied.unmarked}
                          when confirmed_at is not null then ${applied.deleted} else ${applied.marked} end
     order by opt_out_id`,
  );
  let [hosts, pages] = [0, 0];
  const leases: EndedLease[] = [];
  for (const optOut of rows) {
    const done = await ofAll(slices, async ({ number, pool }) => {
      return await applyIn({ pool, turns: slices.shared }, { optOut, isFirst: number === 0, now });
    });
    for (const one of done) {
      hosts += one.hosts;
      pages += one.pages;
      leases.push(...one.leases);
    }
    if (slices.down.length === 0 && done.every(({ isFinal }) => isFinal))
      await setApplied(slices.shared, optOut.opt_out_id, stageOf(optOut));
  }
  return { hosts, leases, pages };
}

function stageOf({ ended, confirmed }: OptOutRow): number {
  if (ended) return applied.unmarked;
  return confirmed ? applied.deleted : applied.marked;
}

async function applyIn(
  pools: LeasePools,
  { optOut, isFirst, now }: { readonly optOut: OptOutRow; readonly isFirst: boolean; readonly now: Date },
): Promise<AppliedInSlice> {
  const { pool } = pools;
  // First, so that whatever is added after it needs no mark of ours.
  const isFinal = isFirst || (await isKnownAt(pool, optOut));
  if (optOut.ended) {
    await unmark(pool, optOut.opt_out_id, now);
    return { isFinal, hosts: 0, leases: [], pages: 0 };
  }
  const marked = optOut.applied < applied.marked ? await mark(pools, optOut, now) : { hosts: 0, leases: [] };
  const pages = optOut.confirmed ? await deletePages(pool, optOut.opt_out_id, now) : 0;
  return { isFinal, ...marked, pages };
}

/** By the replica; nobody is adding hosts any more who read it before. */
async function isKnownAt(pool: Pool, { opt_out_id, ended }: OptOutRow): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    await client.query(`select pg_advisory_xact_lock(${optOutLock})`);
    const { rowCount } = await client.query(
      "select from opt_out where opt_out_id = $1 and in_force_at is not null and (ended_at is not null) = $2",
      [opt_out_id, ended],
    );
    return rowCount === 1;
  });
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
  optOut: OptOutRow,
  now: Date,
): Promise<{ hosts: number; leases: EndedLease[] }> {
  const { pool } = pools;
  const rows = await coveredBy(pool, optOut);
  const leases: EndedLease[] = [];
  for (const hosts of batchesOf(rows, hostsPerBatch)) {
    await inTransaction(pool, async (client) => {
      await lockHosts(client, hosts);
      await client.query(
        "update frontier_host set opt_out_id = coalesce(opt_out_id, $2) where host_hash = any($1::bigint[])",
        [hosts, optOut.opt_out_id],
      );
      await settleHosts(client, hosts);
    });
    leases.push(...(await writingLeases(pools, async (on) => await endLeasesOn(on, hosts, now))));
  }
  return { hosts: rows.length, leases };
}

/** That are covered by an opt-out, or once were. */
export async function hostsCoveredBy(pool: Pool, optOutId: number): Promise<{ host_hash: HostHash }[]> {
  const { rows } = await pool.query<Place>(
    "select site, first_address, last_address from opt_out where opt_out_id = $1",
    [optOutId],
  );
  return rows[0] === undefined ? [] : await coveredBy(pool, rows[0]);
}

type Place = Pick<OptOutRow, "site" | "first_address" | "last_address">;

/** Of a site by the index of names; of a network, which only operators opt out, by a look at every host. */
async function coveredBy(pool: Pool, optOut: Place): Promise<{ host_hash: HostHash }[]> {
  const { site, first_address, last_address } = optOut;
  const found =
    site === null
      ? await pool.query<{ host_hash: HostHash }>(
          `select host_hash
           from frontier_host
           where exists (select from unnest(addresses) a where a between $1::inet and $2::inet)`,
          [first_address, last_address],
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
         set opt_out_id = ${otherOptOutOfHost("$3")},
             not_before = greatest(not_before, $2::timestamptz + interval '${stopKeptMinutes} minutes')
         where host_hash = any($1::bigint[])`,
        [hosts, now, optOutId],
      );
      await settleHosts(client, hosts);
    });
  }
}

/**
 * What the index has of the hosts, and the validators: a page that comes back must be fetched whole. Readers of changes are told
 * that it is gone, and nothing of what it was.
 */
async function deletePages(pool: Pool, optOutId: number, now: Date): Promise<number> {
  await forgetDifferencesOfHosts(pool, optOutId);
  let pages = 0;
  for (;;) {
    const deleted = await inTransaction(pool, async (client) => await deleteSome(client, optOutId, now));
    pages += deleted;
    if (deleted < pagesPerBatch) return pages;
  }
}

async function deleteSome(client: PoolClient, optOutId: number, now: Date): Promise<number> {
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
  // Of what is not to be indexed they were told before.
  await client.query(
    `with gone as (
       delete from page p using unnest($1::bigint[], $2::bigint[]) as given (host_hash, url_hash)
       where p.host_hash = given.host_hash and p.url_hash = given.url_hash
       returning p.*
     )
     insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, reason, language)
     select host_hash, url_hash, url, 'gone', $3, $4, language from gone where not noindex`,
    [hosts, urls, now, reasonOfOptOut],
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
