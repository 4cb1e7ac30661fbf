/**
 * How URLs come into the frontier: one row per URL whatever collides, and never more per host than the
 * scope allows. Both hold because the URLs of a host change only under the lock on the host's row.
 */
import type { PoolClient } from "pg";
import type { HostHash, UrlHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import { nameOf, type UrlAddress, type UrlKey, urlKeyOf } from "#core/url-key";
import { listOf, prepared } from "../../database/transaction.ts";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import {
  addBackLinks,
  type LinkedUrl,
  linksWithin,
  optedOutAmong,
  withoutOptedOut,
} from "./back-link-writes.ts";
import { withinChannels } from "./channel-reads.ts";
import { type HeldUrl, heldAmong, takeNamed, takeWithinBudget, writeHeld } from "./held-url-store.ts";
import { hostBudgetSql } from "./host-budget-sql.ts";
import { writeNewUrls } from "./new-url-writes.ts";
import {
  type HostCounts,
  type HostRoom,
  mostHeldSql,
  type PlacedUrl,
  placeUrls,
  roomAtFirst,
} from "./place-urls.ts";
import { capDelaysMs } from "./site-cap-reads.ts";

/** One entry per URL, with its smallest depth; without those that are too deep. */
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
 * Adds the hosts that the frontier does not hold, but for those that opted out, `most` of them; gives those it added.
 * Before `lockHosts`, which locks them too. They are due at once, which their first URLs will be.
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

/** What new hosts have from the start, by host: that spares writing their rows once more. */
interface HostsAtFirst {
  readonly most?: number | null;
  readonly outsideLinks?: ReadonlyMap<HostHash, number>;
  readonly counts?: ReadonlyMap<HostHash, HostCounts>;
  /** How many hosts of its domain were there before it; absent: of no account, as for those that people name. */
  readonly places?: ReadonlyMap<HostHash, number>;
  readonly now: Date;
}

/** A key of each. */
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

/** Hosts that came with their first URLs: those still have to be written, by `addUrls`. */
interface WelcomedHosts {
  readonly hosts: ReadonlySet<HostHash>;
  readonly placed: readonly PlacedUrl[];
}

/**
 * Adds hosts that the frontier does not hold and that did not opt out (`keys`, one of each), with those of the URLs that
 * are theirs counted; before `lockHosts`. A host that somebody else added meanwhile is not among those given back.
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

/** Locks the rows of these hosts in the order of their hashes, until the transaction ends. */
export async function lockHosts(client: PoolClient, hosts: Iterable<HostHash>): Promise<void> {
  await prepared(
    client,
    "select from frontier_host where host_hash = any($1::bigint[]) order by host_hash for update",
    [listOf(new Set(hosts))],
  );
}

export interface Admission {
  /** The operator's limit. */
  readonly pagesPerHost: number;
  /** Whether the hosts' budgets hold too; what is over them is held. */
  readonly budgeted: boolean;
  /** Hosts that this transaction added, whose URLs are counted. */
  readonly welcomed?: WelcomedHosts;
  /** Links from other hosts that came, less those that went, to be counted by host. */
  readonly outsideLinks?: ReadonlyMap<HostHash, number>;
  /** Links that came and went, which count for a URL that the frontier holds, or does from now on; each URL once. */
  readonly links: readonly LinkedUrl[];
  readonly now: Date;
}

/**
 * Adds the URLs that are unknown, the shallowest first, as far as their hosts have room; a URL of a refused
 * host is refused with it, and one of a host that opted out, or that its channel leaves out, is left out. The hosts are
 * locked. `given` as `distinctUrls` gives them.
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

/** Without what channels leave out, and without URLs that opted out: none of them comes in, whoever names it. */
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
  /** Without those that are merely held. */
  readonly newUrls: number;
  /** Of those given, what the frontier holds now. */
  readonly held: readonly UrlHash[];
}

/** Places among those given. The planner would read all URLs that there are, if it were left the choice. */
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

/** Of hosts that opted out there is none. */
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

/** The hosts are read by the list of their hashes: joined by hash, the planner may go through all hosts that there are. */
const roomStatement = (budget: string): string =>
  `select h.host_hash as "hostHash", case when h.state = 'refused' then coalesce(h.state_reason, '') end as refused,
     greatest(0, ${budget} - h.url_count) as open,
     greatest(0, least(${mostHeldSql("h.domain_place")}, $2::int - greatest(${budget}, h.url_count)) - h.held_urls) as holds,
     h.list_urls as lists, h.held_urls > 0 as "holdsSome"
   from frontier_host h
   where h.host_hash = any($1::bigint[]) and h.opt_out_id is null`;

const readRooms = { budget: roomStatement(hostBudgetSql("h", "$2::int")), limit: roomStatement("$2::int") };

/** Each host's row is written once. */
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

// URLs that were found while their host's budget was used up, and wait for it to grow (frontier/budgets.ts).

/** Held URLs of these hosts, which are locked, become due as far as the budgets have grown; the shallowest first. */
export async function releaseHeld(
  client: PoolClient,
  hosts: readonly HostHash[],
  { pagesPerHost, now }: Pick<Admission, "pagesPerHost" | "now">,
): Promise<void> {
  await letIn(client, await takeWithinBudget(client, hosts, pagesPerHost), now);
}

/** Those of the URLs that are held become due, whatever the budgets of their hosts, which are locked. */
export async function releaseNamed(
  client: PoolClient,
  keys: readonly UrlAddress[],
  now: Date,
): Promise<void> {
  await letIn(client, await takeNamed(client, keys), now);
}

/** What a channel leaves out by now goes, and what the frontier holds (an old coordinator did not see it held) is in it. */
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
