/**
 * Adds URLs to the frontier: one row per URL even with concurrent writers, and no more per host than the scope allows.
 * A host's URLs change only under the lock on its row, which guarantees both properties.
 */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import { nameOf, type UrlAddress, type UrlKey, urlKeyOf } from "#core/url-key";
import { writeCopy } from "#db/copy";
import { listOf, prepared } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import { addBackLinks, type LinkedUrl, linksWithin } from "./back-link-writes.ts";
import { hostBudgetSql } from "./budgets.ts";
import { withinChannels } from "./channel-reads.ts";
import { type HeldUrl, heldAmong, takeNamed, takeWithinBudget, writeHeld } from "./held-url-store.ts";
import {
  deepest,
  type HostCounts,
  type HostRoom,
  linksIn,
  mostHeldSql,
  type NewUrl,
  type PlacedUrl,
  placeUrls,
  roomAtFirst,
} from "./place-urls.ts";
import { capDelaysMs, optedOutAmong, withoutOptedOut } from "./site-rule-writes.ts";

/** Keeps each URL once, at its smallest depth, without those that are too deep. */
export function distinctUrls(urls: readonly AdmittedUrl[], maxDepth: number): AdmittedUrl[] {
  const byUrl = new Map<string, AdmittedUrl>();
  for (const url of urls) {
    const name = nameOf(url.key);
    const known = byUrl.get(name);
    if (url.depth <= maxDepth && (known === undefined || url.depth < known.depth)) byUrl.set(name, url);
  }
  return [...byUrl.values()];
}

/**
 * Adds up to `most` unknown hosts that have not opted out, and returns them. Must run before `lockHosts`, which locks
 * them too. They are due at once, as their first URLs will be.
 */
export async function addHosts(
  client: PoolClient,
  given: readonly UrlKey[],
  now: Date,
  most: number | null = null,
): Promise<HostHash[]> {
  const oneOfEach = [...new Map(given.map((key) => [key.hostHash, key])).values()];
  return await insertHosts(client, await withoutOptedOut(client, oneOfEach), { most, now });
}

interface HostsAtFirst {
  readonly most?: number | null;
  readonly outsideLinks?: ReadonlyMap<HostHash, number>;
  readonly counts?: ReadonlyMap<HostHash, HostCounts>;
  /** How many hosts its domain had before it. Absent if that is ignored, as for hosts named by people. */
  readonly places?: ReadonlyMap<HostHash, number>;
  readonly now: Date;
}

async function insertHosts(
  client: PoolClient,
  keys: readonly UrlKey[],
  { most = null, outsideLinks, counts, places, now }: HostsAtFirst,
): Promise<HostHash[]> {
  if (keys.length === 0) return [];
  const of = (figure: keyof HostCounts) =>
    listOf(keys.map(({ hostHash }) => counts?.get(hostHash)?.[figure] ?? 0));
  const caps = await capDelaysMs(client, keys);
  const { rows } = await prepared<{ host_hash: HostHash }>(
    client,
    `insert into frontier_host (host_hash, host, resolve_at, admitted_at, due_at, outside_links, url_count, held_urls,
       list_urls, left_out_urls, cap_delay_ms, domain, domain_place)
     select host_hash, host, $3, $3, $3, greatest(0, ${linksWithin("links::bigint")}), urls, held, lists, left_out, cap,
       domain, place
     from unnest($1::bigint[], $2::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::int[], $11::text[],
         $12::int[])
       as given (host_hash, host, links, urls, held, lists, left_out, cap, domain, place)
     where not exists (select from frontier_host known where known.host_hash = given.host_hash)
     order by host_hash
     limit $4
     on conflict (host_hash) do nothing
     returning host_hash`,
    [
      listOf(keys.map((key) => key.hostHash)),
      keys.map((key) => key.host),
      now,
      most,
      listOf(keys.map((key) => outsideLinks?.get(key.hostHash) ?? 0)),
      of("urls"),
      of("held"),
      of("lists"),
      of("leftOut"),
      keys.map(({ host }) => caps.get(host) ?? null),
      keys.map(({ host }) => registrableDomain(host)),
      listOf(keys.map(({ hostHash }) => places?.get(hostHash) ?? 0)),
    ],
  );
  return rows.map((row) => row.host_hash);
}

/** Hosts inserted with their first URLs counted. `addUrls` must still write those URLs. */
interface WelcomedHosts {
  readonly hosts: ReadonlySet<HostHash>;
  readonly placed: readonly PlacedUrl[];
}

/**
 * Inserts unknown hosts that have not opted out (`keys`, one of each), with their URLs counted. Must run before `lockHosts`.
 * Returns only hosts that no other transaction added meanwhile.
 */
export async function welcomeHosts(
  client: PoolClient,
  keys: readonly UrlKey[],
  urls: readonly AdmittedUrl[],
  at: Pick<Admission, "pagesPerHost" | "now"> & Pick<HostsAtFirst, "outsideLinks" | "places">,
): Promise<WelcomedHosts> {
  const roomOf = (hostHash: HostHash) => roomAtFirst(at.pagesPerHost, at.places?.get(hostHash));
  const rooms = new Map(
    keys.map(({ hostHash }) => [hostHash, { refused: null, lists: 0, ...roomOf(hostHash) }]),
  );
  const theirs = await wanted(
    client,
    urls.filter(({ key }) => rooms.has(key.hostHash)),
  );
  const { placed, counts } = placeUrls(theirs, rooms);
  const hosts = new Set(await insertHosts(client, keys, { ...at, counts }));
  return { hosts, placed: placed.filter(({ url }) => hosts.has(url.key.hostHash)) };
}

/** Locks these hosts' rows in hash order until the transaction ends. */
export async function lockHosts(client: PoolClient, hosts: Iterable<HostHash>): Promise<void> {
  await prepared(
    client,
    "select from frontier_host where host_hash = any($1::bigint[]) order by host_hash for update",
    [listOf(new Set(hosts))],
  );
}

export interface Admission {
  readonly pagesPerHost: number;
  /** Whether hosts' budgets apply in addition to the scope's limit. URLs beyond the budget are held. */
  readonly budgeted: boolean;
  /** Hosts added by this transaction, with their URLs already counted. */
  readonly welcomed?: WelcomedHosts;
  readonly outsideLinks?: ReadonlyMap<HostHash, number>;
  /** Net link changes, each URL once. They count for URLs that the frontier holds or is about to. */
  readonly links: readonly LinkedUrl[];
  readonly now: Date;
}

/**
 * Adds unknown URLs, shallowest first, as far as their hosts have room. URLs of refused hosts are refused, and those of
 * hosts that opted out or that channels exclude are left out. Hosts must be locked and `given` made by `distinctUrls`.
 */
export async function addUrls(
  client: PoolClient,
  given: readonly AdmittedUrl[],
  { links, welcomed = nobody, outsideLinks = new Map(), ...limits }: Admission,
): Promise<AddedUrls> {
  const urls = await wanted(
    client,
    given.filter(({ key }) => !welcomed.hosts.has(key.hostHash)),
  );
  const known = await knownAmong(client, urls);
  const beyond = urls.filter((_url, index) => !known.has(index));
  const rooms = await roomsOf(client, beyond, limits);
  const held = await heldAmong(
    client,
    beyond.filter(({ key }) => rooms.get(key.hostHash)?.holdsSome === true),
  );
  const unknown = beyond.filter((url) => !held.has(url));
  const { placed, counts } = placeUrls(unknown, rooms);
  const linksTo = new Map(links.map((one) => [nameOf(one), one]));
  const added = [...welcomed.placed, ...placed].map((one) => {
    const name = nameOf(one.url.key);
    const count = linksTo.get(name)?.links ?? 0;
    linksTo.delete(name);
    return { ...one, links: count };
  });
  const isHeld = ({ state }: PlacedUrl) => state === "held";
  await writeNewUrls(
    client,
    added.filter((one) => !isHeld(one)),
    limits.now,
  );
  await writeHeld(client, added.filter(isHeld), limits.now);
  const theirs = [...outsideLinks].filter(([hostHash]) => !welcomed.hosts.has(hostHash));
  await countAtHosts(client, { counts, outsideLinks: new Map(theirs) }, limits.now);
  await addBackLinks(client, [...linksTo.values()]);
  const seen = urls.filter((url, index) => known.has(index) || held.has(url));
  return {
    newUrls: added.filter((one) => !isHeld(one)).length,
    held: [...seen, ...added.map(({ url }) => url)].map(({ key }) => key.urlHash),
  };
}

const urlColumns = [
  "host_hash",
  "url_hash",
  "url",
  "state",
  "depth",
  "redirects",
  "lists",
  "back_links",
  "discovered_at",
  "next_fetch_at",
  "last_outcome",
  "last_reason",
];

/**
 * Inserts new URLs of locked hosts by COPY, which logs the rows of a block as one record. They are sorted by host, since
 * the indexes are written in that order.
 */
async function writeNewUrls(client: PoolClient, urls: readonly NewUrl[], now: Date): Promise<void> {
  if (urls.length === 0) return;
  await writeCopy(client, { table: "frontier_url", columns: urlColumns }, async (rows) => {
    for (const { url, state, reason, links, foundAt = now } of urls) {
      const { key, depth, redirects = 0, lists = 0 } = url;
      rows.row();
      rows.bigint(key.hostHash);
      rows.bigint(key.urlHash);
      rows.text(key.url);
      rows.text(state);
      rows.int16(Math.min(deepest, depth));
      rows.int16(redirects);
      rows.int16(lists);
      rows.int32(linksIn(links));
      rows.timestamp(foundAt);
      rows.timestamp(foundAt);
      if (state === "refused") rows.text("refused-address");
      else rows.null();
      if (reason === null || reason === "") rows.null();
      else rows.text(reason);
      if (rows.isFull) await rows.flush();
    }
  });
}

/** Removes URLs excluded by channels or opt-outs, whatever their source. */
async function wanted<Url extends AdmittedUrl>(
  client: PoolClient,
  given: readonly Url[],
): Promise<readonly Url[]> {
  const urls = await withinChannels(client, given);
  const out = await optedOutAmong(
    client,
    urls.map(({ key }) => key),
  );
  return out.size === 0 ? urls : urls.filter(({ key }) => !out.has(key.url));
}

const nobody: WelcomedHosts = { hosts: new Set(), placed: [] };

export interface AddedUrls {
  /** Does not count held URLs. */
  readonly newUrls: number;
  readonly held: readonly UrlHash[];
}

/** Indexes into the given URLs. The query fixes the join order, since the planner would otherwise read every URL. */
async function knownAmong(client: PoolClient, urls: readonly AdmittedUrl[]): Promise<ReadonlySet<number>> {
  if (urls.length === 0) return new Set();
  const { rows } = await prepared<{ known: number[] }>(
    client,
    `with looked_up as materialized (
       select ordinal, exists (
           select from frontier_url u where u.host_hash = given.host_hash and u.url_hash = given.url_hash
         ) as is_known
       from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, url_hash, ordinal)
     )
     select coalesce(array_agg(ordinal::int), '{}') as known from looked_up where is_known`,
    [listOf(urls.map(({ key }) => key.hostHash)), listOf(urls.map(({ key }) => key.urlHash))],
  );
  return new Set(rows[0]!.known.map((ordinal) => ordinal - 1));
}

async function roomsOf(
  client: PoolClient,
  urls: readonly AdmittedUrl[],
  { budgeted, pagesPerHost }: Pick<Admission, "budgeted" | "pagesPerHost">,
): Promise<ReadonlyMap<HostHash, HostRoom & { readonly holdsSome: boolean }>> {
  if (urls.length === 0) return new Map();
  const { rows } = await prepared<HostRoom & { hostHash: HostHash; holdsSome: boolean }>(
    client,
    budgeted ? readRooms.budget : readRooms.limit,
    [listOf(new Set(urls.map(({ key }) => key.hostHash))), pagesPerHost],
  );
  return new Map(rows.map((row) => [row.hostHash, row]));
}

/** Hosts are read by a list of hashes: with a hash join, the planner might read all hosts. */
const roomStatement = (budget: string): string =>
  `select h.host_hash as "hostHash", case when h.state = 'refused' then coalesce(h.state_reason, '') end as refused,
     greatest(0, ${budget} - h.url_count) as open,
     greatest(0, least(${mostHeldSql("h.domain_place")}, $2::int - greatest(${budget}, h.url_count)) - h.held_urls) as holds,
     h.list_urls as lists, h.held_urls > 0 as "holdsSome"
   from frontier_host h
   where h.host_hash = any($1::bigint[]) and h.opt_out_id is null`;

const readRooms = { budget: roomStatement(hostBudgetSql("h", "$2::int")), limit: roomStatement("$2::int") };

async function countAtHosts(
  client: PoolClient,
  given: {
    readonly counts: ReadonlyMap<HostHash, HostCounts>;
    readonly outsideLinks: ReadonlyMap<HostHash, number>;
  },
  now: Date,
): Promise<void> {
  const { counts, outsideLinks } = given;
  const linked = [...outsideLinks].filter(([, links]) => links !== 0).map(([hostHash]) => hostHash);
  const hosts = [...new Set([...counts.keys(), ...linked])];
  if (hosts.length === 0) return;
  const of = (figure: keyof HostCounts) => listOf(hosts.map((host) => counts.get(host)?.[figure] ?? 0));
  await prepared(
    client,
    `update frontier_host h
     set url_count = h.url_count + a.urls,
         held_urls = greatest(0, h.held_urls + a.held),
         list_urls = h.list_urls + a.lists,
         left_out_urls = h.left_out_urls + a.left_out,
         outside_links = greatest(0, ${linksWithin("h.outside_links + a.links")}),
         due_at = case when a.due > 0 then least(h.due_at, $8) else h.due_at end
     from unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[], $7::bigint[])
       as a (host_hash, due, urls, held, lists, left_out, links)
     where h.host_hash = a.host_hash`,
    [
      listOf(hosts),
      of("due"),
      of("urls"),
      of("held"),
      of("lists"),
      of("leftOut"),
      listOf(hosts.map((host) => outsideLinks.get(host) ?? 0)),
      now,
    ],
  );
}

// URLs found while their host's budget was used up, waiting for it to grow (frontier/budgets.ts).

/** Makes held URLs of these locked hosts due, shallowest first, up to their present budgets. */
export async function releaseHeld(
  client: PoolClient,
  hosts: readonly HostHash[],
  { pagesPerHost, now }: Pick<Admission, "pagesPerHost" | "now">,
): Promise<void> {
  await letIn(client, await takeWithinBudget(client, hosts, pagesPerHost), now);
}

/** Makes the named held URLs due, whatever the budgets. Hosts must be locked. */
export async function releaseNamed(
  client: PoolClient,
  keys: readonly UrlAddress[],
  now: Date,
): Promise<void> {
  await letIn(client, await takeNamed(client, keys), now);
}

/** Drops URLs that a channel now excludes or the frontier already holds, since an older coordinator ignores held URLs. */
async function letIn(client: PoolClient, taken: readonly HeldUrl[], now: Date): Promise<void> {
  if (taken.length === 0) return;
  const counts = new Map<HostHash, HostCounts>();
  const countOf = (host: HostHash) => {
    const count = counts.get(host) ?? { urls: 0, due: 0, held: 0, lists: 0, leftOut: 0 };
    counts.set(host, count);
    return count;
  };
  const urls = taken.flatMap(({ host_hash, url, ...held }) => {
    countOf(host_hash).held -= 1;
    const key = urlKeyOf(url);
    return typeof key === "string" ? [] : [{ ...held, key }];
  });
  const free = await wanted(client, urls);
  const known = await knownAmong(client, free);
  const due = free.filter((_url, index) => !known.has(index));
  for (const { key } of due) {
    const count = countOf(key.hostHash);
    count.urls += 1;
    count.due += 1;
  }
  await writeNewUrls(
    client,
    due.map(({ back_links: links, discovered_at: foundAt, ...url }) => ({
      url,
      state: "due",
      reason: null,
      links,
      foundAt,
    })),
    now,
  );
  await countAtHosts(client, { counts, outsideLinks: new Map() }, now);
}
