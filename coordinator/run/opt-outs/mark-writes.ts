/**
 * Brings frontier and index in line with table opt_out: marks hosts and ends their leases, deletes pages once
 * confirmed or after they were hidden for a week, and removes marks when an opt-out ends. The work is in batches that
 * can be repeated, so any coordinator can finish an interrupted pass.
 */
import type { Pool, PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { forgetDifferencesOf } from "../../crawl/changes/change-writes.ts";
import { type LeaseTransaction, writingLeases } from "../../crawl/frontier/address-turn-store.ts";
import { lockHosts } from "../../crawl/frontier/admission-writes.ts";
import { optedOutUrl } from "../../crawl/frontier/frontier.ts";
import {
  endLeasesOn,
  lockLeasesOn,
  settleHosts,
  takeOffLease,
} from "../../crawl/frontier/lease-end-writes.ts";
import { isInPartSql, isOptedOut, otherOptOutOfHost } from "../../crawl/frontier/site-rule-writes.ts";
import { enterHeirs, isComparable, removeTexts, type Text } from "../../crawl/results/page-writes.ts";
import { inTransaction } from "../../database/transaction.ts";
import { type ErasedRows, eraseMentions, erasePage, reasonOfOptOut } from "./erase-writes.ts";
import type { AppliedOptOuts, EndedLease, OptOutTarget } from "./opt-out.ts";
import { hostsOf, type TargetRow, targetColumns, targetOf, targetOfRow, urlsOf } from "./store.ts";

const hostsPerBatch = 500;
const pagesPerBatch = 500;
/** For how many minutes crawlers may still refuse a site after its opt-out was lifted. */
const stopKeptMinutes = 15;

/** How far an opt-out has been applied (column `applied`). */
const applied = { marked: 1, deleted: 2, unmarked: 3 } as const;

export type OptOutMarks = ReturnType<typeof createOptOutMarks>;

export function createOptOutMarks(pool: Pool) {
  return {
    /** Can be repeated, also by several coordinators at once. */
    apply: async (now: Date): Promise<AppliedOptOuts> => await apply(pool, "true", now),
    /** Completes the erasure of a page. Returns the number of rows by table. */
    async erase(optOutId: number, now: Date): Promise<ErasedRows> {
      await apply(pool, `opt_out_id = ${optOutId}`, now);
      // The coordinator that was notified may have erased the page already.
      const { rows } = await pool.query<{ erased: ErasedRows }>(
        "select erased_rows as erased from opt_out where opt_out_id = $1",
        [optOutId],
      );
      return rows[0]?.erased ?? {};
    },
  };
}

interface OptOutRow extends TargetRow {
  readonly opt_out_id: number;
  readonly applied: number;
  readonly ended: boolean;
  /** Whether the pages are deleted now instead of hidden. */
  readonly deletes: boolean;
  readonly erases: boolean;
}

/** `condition` is SQL that selects opt-outs. */
async function apply(pool: Pool, condition: string, now: Date): Promise<AppliedOptOuts> {
  const { rows } = await pool.query<OptOutRow>(
    `select opt_out_id, applied, ended_at is not null as ended, deletes, erased_at is not null as erases, ${targetColumns}
     from opt_out
     cross join lateral (select confirmed_at is not null or coalesce(deletes_at <= $1, false) as deletes) by_now
     where in_force_at is not null and ${condition}
       and applied < case when ended_at is not null then ${applied.unmarked}
                          when deletes then ${applied.deleted} else ${applied.marked} end
     order by opt_out_id`,
    [now],
  );
  let [hosts, pages] = [0, 0];
  const leases: EndedLease[] = [];
  const erased: ErasedRows[] = [];
  for (const optOut of rows) {
    const done =
      optOut.erases && !optOut.ended
        ? await erasing(pool, optOut, now, (rows) => void erased.push(rows))
        : await applyOne(pool, optOut, now);
    if (done === null) continue;
    hosts += done.hosts;
    pages += done.pages;
    leases.push(...done.leases);
    await setApplied(pool, optOut.opt_out_id, stageOf(optOut));
  }
  return { hosts, leases, pages, erased: sumOfRows(erased) };
}

/** Takes a lock, so that rows are counted once. Returns null if another process has erased the page. */
async function erasing(
  pool: Pool,
  optOut: OptOutRow,
  now: Date,
  note: (rows: ErasedRows) => void,
): Promise<AppliedOptOuts | null> {
  const { opt_out_id: optOutId, url } = optOut;
  return await inTransaction(pool, async (client) => {
    await client.query(
      "select pg_advisory_xact_lock(hashtext('nearcrawl erasures ' || current_schema()), $1)",
      [optOutId],
    );
    const { rows } = await client.query<{ erased: ErasedRows }>(
      "select erased_rows as erased from opt_out where opt_out_id = $1 and applied < $2",
      [optOutId, applied.deleted],
    );
    if (rows[0] === undefined) return null;
    const done = await applyOne(pool, optOut, now);
    const found = [done.erased, await eraseMentions(pool, url!)];
    for (const one of found) note(one);
    const sum = sumOfRows([rows[0].erased, ...found]);
    await client.query(
      "update opt_out set erased_rows = $2, applied = greatest(applied, $3) where opt_out_id = $1",
      [optOutId, JSON.stringify(sum), applied.deleted],
    );
    return done;
  });
}

function sumOfRows(some: readonly ErasedRows[]): ErasedRows {
  const sum: Record<string, number> = {};
  for (const [table, count] of some.flatMap((rows) => Object.entries(rows)))
    sum[table] = (sum[table] ?? 0) + count;
  return sum;
}

function stageOf({ ended, deletes }: OptOutRow): number {
  if (ended) return applied.unmarked;
  return deletes ? applied.deleted : applied.marked;
}

async function applyOne(pool: Pool, optOut: OptOutRow, now: Date): Promise<AppliedOptOuts> {
  const { opt_out_id: optOutId, deletes, ended } = optOut;
  const urls = urlsOf(targetOfRow(optOut));
  if (ended) {
    await (urls === null ? unmark(pool, optOutId, now) : unmarkUrls(pool, { ...optOut, ...urls }, now));
    return { hosts: 0, leases: [], pages: 0, erased: {} };
  }
  if (urls !== null) return await applyToUrls(pool, { ...optOut, ...urls }, now);
  const marked = optOut.applied < applied.marked ? await mark(pool, optOut, now) : { hosts: 0, leases: [] };
  const pages = deletes ? await deletePages(pool, pagesOfHosts(optOutId), now) : 0;
  return { ...marked, pages, erased: {} };
}

async function setApplied(pool: Pool, optOutId: number, to: number): Promise<void> {
  await pool.query("update opt_out set applied = greatest(applied, $2) where opt_out_id = $1", [
    optOutId,
    to,
  ]);
}

/**
 * First sets the marks, so that no lease begins, then ends open leases. This takes two transactions, because leases
 * are locked before hosts everywhere (transaction.ts).
 */
async function mark(
  pool: Pool,
  optOut: OptOutRow,
  now: Date,
): Promise<{ hosts: number; leases: EndedLease[] }> {
  const rows = await coveredBy(pool, targetOfRow(optOut));
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
    leases.push(...(await writingLeases(pool, async (on) => await endLeasesOn(on, hosts, now))));
  }
  return { hosts: rows.length, leases };
}

/** Returns hosts that the opt-out covers or once covered. */
export async function hostsCoveredBy(pool: Pool, optOutId: number): Promise<{ host_hash: HostHash }[]> {
  const target = await targetOf(pool, optOutId);
  return target === null ? [] : await coveredBy(pool, target);
}

async function coveredBy(pool: Pool, target: OptOutTarget): Promise<{ host_hash: HostHash }[]> {
  const { sql, values } = hostsOf(target);
  const select = `select host_hash from frontier_host h where ${sql}`;
  return (await pool.query<{ host_hash: HostHash }>(select, values)).rows;
}

/** Maximum hosts restored in one transaction, with all their URLs. */
const liftedPerBatch = 20;

/**
 * SQL: when the rows `u` of frontier_url selected by `chosen` are due after an opt-out was lifted at `now`. A host's
 * first URL is due once crawlers have forgotten the stop, the others over six hours, so that no site gets all
 * requests at once.
 */
const dueAgain = (now: string, chosen: string) => `(
  select u.host_hash, u.url_hash, ${now}::timestamptz + interval '${stopKeptMinutes} minutes' + interval '6 hours' * (
      (row_number() over (partition by u.host_hash order by u.next_fetch_at, u.url_hash) - 1)::float8
      / count(*) over (partition by u.host_hash)
    ) as due_at
  from frontier_url u
  where ${chosen}
) again`;

/**
 * Another opt-out may still cover some of the hosts. Restored URLs are fetched soon, since their pages were deleted
 * or are old.
 */
async function unmark(pool: Pool, optOutId: number, now: Date): Promise<void> {
  const { rows } = await pool.query<{ host_hash: HostHash }>(
    "select host_hash from frontier_host where opt_out_id = $1",
    [optOutId],
  );
  for (const hosts of batchesOf(rows, liftedPerBatch)) {
    await inTransaction(pool, async (client) => {
      await lockHosts(client, hosts);
      const { rows: free } = await client.query<{ host_hash: HostHash; opt_out_id: number | null }>(
        `update frontier_host h
         set opt_out_id = ${otherOptOutOfHost("$3")},
             not_before = greatest(not_before, $2::timestamptz + interval '${stopKeptMinutes} minutes')
         where host_hash = any($1::bigint[])
         returning host_hash, opt_out_id`,
        [hosts, now, optOutId],
      );
      await client.query(
        `update frontier_url u set next_fetch_at = least(u.next_fetch_at, again.due_at)
         from ${dueAgain("$2", "u.host_hash = any($1::bigint[]) and u.state = 'due'")}
         where u.host_hash = again.host_hash and u.url_hash = again.url_hash`,
        [free.filter((row) => row.opt_out_id === null).map((row) => row.host_hash), now],
      );
      await settleHosts(client, hosts);
    });
  }
}

const urlsPerBatch = 5000;

/** An opt-out of a part of a host, with SQL that matches a column of URLs, for parameters $1 to $3. */
type PartRow = OptOutRow & NonNullable<ReturnType<typeof urlsOf>>;

const reasonOf = ({ opt_out_id }: Pick<OptOutRow, "opt_out_id">) => `opt-out ${opt_out_id}`;

async function applyToUrls(pool: Pool, optOut: PartRow, now: Date): Promise<AppliedOptOuts> {
  const leases: EndedLease[] = [];
  for (let marked = urlsPerBatch; marked === urlsPerBatch; ) {
    const batch = await writingLeases(pool, async (on) => await markUrls(on, optOut, now));
    marked = batch.marked;
    leases.push(...batch.leases);
  }
  const pages = { sql: `p.host_hash = $1 and ${optOut.sql("p.url")}`, values: optOut.values };
  if (optOut.erases) {
    const erased = await erasePage(pool, optOut.url!, now);
    return { hosts: 0, leases, pages: erased.page ?? 0, erased };
  }
  if (optOut.deletes) return { hosts: 0, leases, pages: await deletePages(pool, pages, now), erased: {} };
  await inTransaction(pool, async (client) => {
    await lockHosts(client, [optOut.values[0]]);
    await client.query(
      `with hidden as (
         update page p set noindex = true, hidden_by = $${pages.values.length + 2} where ${pages.sql} and not noindex
         returning host_hash, url_hash, url, language
       )
       insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, reason, language)
       select host_hash, url_hash, url, 'gone', $${pages.values.length + 1}, '${reasonOfOptOut}', language from hidden`,
      [...pages.values, now, optOut.opt_out_id],
    );
  });
  return { hosts: 0, leases, pages: 0, erased: {} };
}

/** Refuses these URLs and removes them from leases and comparisons. */
async function markUrls({ client, turns }: LeaseTransaction, optOut: PartRow, now: Date) {
  const { values } = optOut;
  const hosts: [HostHash] = [values[0]];
  await lockLeasesOn(client, hosts);
  await lockHosts(client, hosts);
  const { rows } = await client.query<{ url_hash: UrlHash }>(
    `update frontier_url u
     set state = 'refused', last_outcome = '${optedOutUrl}', last_reason = $4
     where u.host_hash = $1 and u.url_hash = any (array(
       select url_hash from frontier_url u
       where u.host_hash = $1 and ${optOut.sql("u.url")} and not ${isOptedOut("u")} limit ${urlsPerBatch}))
     returning u.url_hash`,
    [...values, reasonOf(optOut)],
  );
  const urls = rows.map((row) => row.url_hash);
  if (urls.length === 0) return { marked: 0, leases: [] };
  await client.query(
    "delete from double_check where host_hash = $1 and url_hash = any($2::bigint[]) and verdict is null",
    [hosts[0], urls],
  );
  const leases = await takeOffLease({ client, turns }, { hostHash: hosts[0], urls }, now);
  await settleHosts(client, hosts);
  return { marked: urls.length, leases };
}

/** URLs that another opt-out covers, too, get its number instead. */
async function unmarkUrls(pool: Pool, optOut: PartRow, now: Date): Promise<void> {
  const hosts = [optOut.values[0]];
  await inTransaction(pool, async (client) => {
    await lockHosts(client, hosts);
    await client.query(
      `update frontier_url u set last_reason = 'opt-out ' || other.opt_out_id
       from opt_out other
       where u.host_hash = $1 and ${isOptedOut("u")} and u.last_reason = $2 and other.opt_out_id <> $3
         and other.site = $4 and other.ended_at is null and other.in_force_at is not null
         and ${isInPartSql("u.url", "other.scope", "other.url")}`,
      [...hosts, reasonOf(optOut), optOut.opt_out_id, optOut.site],
    );
    // All URLs of a host at a special-purpose address are refused.
    await client.query(
      `update frontier_url u
       set state = case when h.state = 'refused' then 'refused' else 'due' end,
           last_outcome = case when h.state = 'refused' then 'refused-address' end,
           last_reason = case when h.state = 'refused' then h.state_reason end, next_fetch_at = again.due_at
       from frontier_host h, ${dueAgain("$2", `u.host_hash = $1 and ${isOptedOut("u")} and u.last_reason = $3`)}
       where u.host_hash = again.host_hash and u.url_hash = again.url_hash and h.host_hash = u.host_hash`,
      [...hosts, now, reasonOf(optOut)],
    );
    // Removes validators, since a 304 would leave the pages hidden.
    await client.query(
      `with shown as (
         update page p
         set noindex = ${isOptedOut("u")},
             hidden_by = case when ${isOptedOut("u")} then substring(u.last_reason from '\\d+')::int end
         from frontier_url u
         where p.host_hash = $1 and p.hidden_by = $3 and u.host_hash = p.host_hash and u.url_hash = p.url_hash
         returning p.*
       )
       insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, status, language, digest_after, title_after, words_after)
       select host_hash, url_hash, url, 'came-back', $2, status, language, digest, title, words from shown where not noindex`,
      [...hosts, now, optOut.opt_out_id],
    );
    await settleHosts(client, hosts);
  });
}

/** SQL, with its parameters, that selects pages `p`, changes or other rows with a host's hash and a URL. */
interface PagesOf {
  readonly sql: string;
  readonly values: readonly unknown[];
}

const pagesOfHosts = (optOutId: number): PagesOf => ({
  sql: "p.host_hash in (select host_hash from frontier_host where opt_out_id = $1)",
  values: [optOutId],
});

/**
 * Deletes pages from the index, and validators, so that a restored page is fetched in full. Readers of changes see a
 * deletion without content.
 */
async function deletePages(pool: Pool, of: PagesOf, now: Date): Promise<number> {
  await forgetDifferencesOf(pool, of);
  let pages = 0;
  for (;;) {
    const deleted = await inTransaction(pool, async (client) => await deleteSome(client, of, now));
    pages += deleted;
    if (deleted < pagesPerBatch) return pages;
  }
}

async function deleteSome(client: PoolClient, { sql, values }: PagesOf, now: Date): Promise<number> {
  const { rows } = await client.query<Text>(
    `select p.host_hash as "hostHash", p.url_hash as "urlHash", p.simhash, p.words
     from page p
     where ${sql}
     limit ${pagesPerBatch}`,
    [...values],
  );
  const hosts = rows.map((row) => row.hostHash);
  const urls = rows.map((row) => row.urlHash);
  await lockHosts(client, hosts);
  const ownerless = await removeTexts(client, rows.filter(isComparable));
  // Readers already know of pages that must not be indexed.
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
