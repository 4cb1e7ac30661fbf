/**
 * At-least-once on the wire becomes exactly-once here: the row of the crawler's spool, which holds the
 * highest sequence that is committed, is locked first and raised in the same transaction that stores the
 * results.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { nameOf } from "#core/url-key";
import { maxRedirects } from "#protocol/result";
import { watchChanges } from "../changes/change-writes.ts";
import { withTexts } from "../channels/known-text-store.ts";
import { noteForeign, splitByOwner } from "../federation/foreign-url-store.ts";
import { addHosts, addUrls, hastenChanged, lockHosts, releaseHeld } from "../frontier/admission-writes.ts";
import { removeBackLinks } from "../frontier/back-link-writes.ts";
import { pageWorth } from "../frontier/budgets.ts";
import type { AdmittedUrl } from "../frontier/frontier.ts";
import { settleHosts } from "../frontier/lease-end-writes.ts";
import { noteSeenAddresses } from "../frontier/turn-store.ts";
import { noteStated } from "../recrawl/url-sql.ts";
import {
  type CountedResult,
  mostListsInARow,
  type ResultStore,
  type TakenResults,
} from "./arrived-result.ts";
import { countOutsideLinks, updateHosts } from "./host-writes.ts";
import { siftResults } from "./lease-rule-reads.ts";
import { replaceLinks } from "./link-writes.ts";
import { notePageLinks } from "./page-link-writes.ts";
import { writePages } from "./page-writes.ts";
import type { Batch } from "./result-rows.ts";
import * as write from "./result-writes.ts";
import { recordSeals } from "./result-writes.ts";

export type ResultBatch = Parameters<ResultStore["take"]>[0];

/** Stores a batch inside the caller's transaction: what is new and under a lease, and the acknowledged sequence. */
export async function takeBatch(client: PoolClient, batch: ResultBatch): Promise<TakenResults> {
  const acknowledged = await lockSpool(client, batch);
  const fresh = firstOfEach(
    batch.results.filter((one) => one.sequence > acknowledged),
    (one) => String(one.sequence),
  );
  const sifted = await siftResults(client, batch, fresh);
  const { refused } = sifted;
  const counted = await withTexts(client, sifted.counted);
  const { newUrls, newHosts } = counted.length === 0 ? nothingNew : await store(client, batch, counted);
  await acknowledge(client, batch);
  await recordSeals(client, batch);
  return {
    stored: counted.length,
    duplicates: batch.results.length - fresh.length,
    withoutLease: fresh.length - counted.length,
    newUrls,
    ...(newHosts === 0 ? {} : { newHosts }),
    ...(refused.length === 0 ? {} : { refused }),
  };
}

const nothingNew = { newUrls: 0, newHosts: 0 };

async function lockSpool(client: PoolClient, { crawlerId, spoolId }: ResultBatch): Promise<number> {
  await client.query(
    "insert into spool (crawler_id, spool_id) values ($1, $2) on conflict (crawler_id, spool_id) do nothing",
    [crawlerId, spoolId],
  );
  const { rows } = await client.query<{ acknowledged_sequence: string }>(
    "select acknowledged_sequence from spool where crawler_id = $1 and spool_id = $2 for update",
    [crawlerId, spoolId],
  );
  return Number(rows[0]!.acknowledged_sequence);
}

async function acknowledge(client: PoolClient, batch: ResultBatch): Promise<void> {
  const highest = batch.results.reduce((max, one) => Math.max(max, one.sequence), batch.lastSequence);
  await client.query(
    `update spool
     set acknowledged_sequence = greatest(acknowledged_sequence, $3)
     where crawler_id = $1 and spool_id = $2`,
    [batch.crawlerId, batch.spoolId, highest],
  );
}

async function store(
  client: PoolClient,
  { crawlerId, scope, now, mostNewHosts }: ResultBatch,
  results: readonly CountedResult[],
): Promise<{ newUrls: number; newHosts: number }> {
  const batch: Batch = { crawlerId, results, now };
  const found = await splitByOwner(client, results.flatMap(admittedBy), scope.maxDepth);
  const urls = found.own;
  const pageHosts: readonly HostHash[] = [...new Set(results.map(({ key }) => key.hostHash))];

  const linkFacts = await notePageLinks(client, results, now);
  const links = await replaceLinks(client, results);
  const newHosts = scope.admitNewHosts ? await addHosts(client, keysOf(urls), now, mostNewHosts) : 0;
  await lockHosts(client, [
    ...pageHosts,
    ...[...keysOf(urls), ...links.added, ...links.removed].map((one) => one.hostHash),
  ]);
  const noteChanges = await watchChanges(client, batch);
  await write.insertFetches(client, batch);
  const nearDuplicates = await writePages(client, batch);
  const worths = results.map((counted) => {
    return pageWorth(counted.result, nearDuplicates.has(nameOf(counted.key)), counted.before.worth);
  });
  await write.updateUrls(client, { ...batch, linkFacts }, worths);
  await write.countLeasesDown(client, batch);
  await updateHosts(client, batch, worths);
  await noteSeenAddresses(client, crawlerId, results.flatMap(seenAddress));
  await releaseHeld(client, pageHosts, scope.pagesPerHost);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links: links.added, now };
  const newUrls = await addUrls(client, urls, limits);
  await noteStated(client, urls);
  await hastenChanged(client, urls, now);
  await removeBackLinks(client, links.removed);
  await countOutsideLinks(client, links);
  await noteChanges(links);
  await settleHosts(client, pageHosts);
  await noteForeign(client, found, { links, now });
  return { newUrls, newHosts };
}

/** Counted from the page that names them, unless from a seed; without those that too many hops led to. */
function admittedBy({ admit, before }: CountedResult): AdmittedUrl[] {
  return admit.flatMap((url) => {
    const { key, depth, fromSeed = false, redirects = 0, lists = 0, isList = false } = url;
    const isPlain = !fromSeed && redirects === 0 && lists === 0 && !isList;
    if (isPlain) return { key, depth: before.depth + depth };
    const hops = redirects === 0 ? 0 : before.redirects + redirects;
    const nested = lists === 0 ? 0 : before.lists + lists;
    if (hops > maxRedirects || nested > mostListsInARow) return [];
    return { ...url, depth: fromSeed ? depth : before.depth + depth, redirects: hops, lists: nested };
  });
}

/** Where the host was asked, when that is an address of the public Internet. */
function seenAddress({ key, result }: CountedResult): { hostHash: HostHash; address: string }[] {
  const address = result.address === null ? null : parseAddress(result.address);
  if (result.address === null || address === null || specialPurposeOf(address) !== null) return [];
  return [{ hostHash: key.hostHash, address: result.address }];
}

const keysOf = (urls: readonly AdmittedUrl[]) => urls.map((url) => url.key);

function firstOfEach<T>(values: readonly T[], nameOf: (value: T) => string): T[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const name = nameOf(value);
    return seen.has(name) ? false : seen.add(name) !== undefined;
  });
}
