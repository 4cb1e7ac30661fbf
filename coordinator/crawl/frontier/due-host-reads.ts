/**
 * Chooses the hosts that crawlers get next, from their subnets and their finer delegations. The host that has been due
 * longest goes first. Each subnet has a maximum share (budgets.ts), and the worthiest hosts have a share where the
 * order asks for it (order/strategies.ts).
 *
 * Many requests are answered together, one statement per step. If a crawler has few subnets, only those are searched.
 * Otherwise the front of all due work is read in index order. If that is not enough (others' hosts were due longer, or
 * one subnet has all of it), the crawler's subnets are searched in turn, a few at a time. Each step reads a bounded
 * number of rows, however many hosts there are.
 */

import type { PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { columnsOf, prepared } from "../../database/transaction.ts";
import { layerTexts, type Partition, withHeldHosts } from "../../place/domain-sets/partition.ts";
import { addressKeysOf, maxAddresses } from "./address-turn-store.ts";
import { countEach, firstHosts, hostsInARow, largestShare, type Sharing, splitByShare } from "./budgets.ts";
import {
  atFront,
  atWorth,
  byFiner,
  bySubnets,
  columns,
  foundColumns,
  inTurn,
  isIpv4,
  isReadyOfKnown,
  type Way,
} from "./due-host-sql.ts";
import type { LeaseRequest } from "./frontier.ts";
import type { KeptRate } from "./host-pace.ts";
import { hostsByTurns, shareOf, worthShareOf } from "./order/strategies.ts";

export interface HostRow {
  host_hash: HostHash;
  host: string;
  crawler_id: CrawlerId;
  addresses: string[];
  /** The crawler must have the turn at all of them (address-turn-store.ts). */
  address_keys: string[];
  /** The last crawler's pace, or an operator's slower cap. Null if neither is known. */
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
  backed_off_at: Date | null;
  usual_ms: number | null;
  payments_asked: number | null;
  challenges: number | null;
  tolerated: KeptRate | null;
}

export const paceColumns = `greatest(h.crawl_delay_ms, h.cap_delay_ms) as crawl_delay_ms, h.back_off_ms, h.backed_off_at,
       h.usual_ms, h.tolerated, h.payments_asked, h.challenges`;

/** A host as found, before it is locked. */
interface DueHost {
  host_hash: HostHash;
  crawler_id: CrawlerId;
  due_at: Date;
  /** Its rank by due time, which is later than the due time if other hosts of its domain are due before it. */
  stands_at: Date;
  /** Its subnet or finer delegation, its domain and, where it applies, the group of hosts beyond their domains' first. */
  shares: Sharing["shares"];
  subnet_id: SubnetId;
  /** Worth of its best new URL (order/order-sql.ts). Null if unknown or if it has no new URL. */
  worth: number | null;
  /** Minimum score of the URLs to lease. Only set for hosts chosen by worth. */
  leastWorth?: number | null;
}

export interface LockedHost extends HostRow {
  readonly leastWorth: number | null;
  /** Carried over from its previous lease (order/strategies.ts). Null before its first mixed lease. */
  readonly mix_carry: number | null;
}

export interface Asked extends LeaseNeeds {
  readonly request: LeaseRequest;
  /** The crawler's subnets. Null if there are many. */
  readonly subnets: readonly SubnetId[] | null;
}

const maxLeases = 1_000;

/** Maximum searches of a crawler's subnets per request. */
const mostLooks = 8;

/** A second try is made when other coordinators had locked the rows. */
const tries = 2;

/** Locks the chosen hosts and skips those locked by others. Each crawler asks once. */
export async function lockDueHosts(
  client: PoolClient,
  asked: readonly Asked[],
  at: { readonly turns: SubnetTurns; readonly now: Date },
): Promise<LockedHost[]> {
  const locked: LockedHost[] = [];
  for (const alike of byPartition(asked)) {
    const searches = alike.map((one) => new Search(one, at.turns));
    const find = new Finder(client, alike[0]!, at.now);
    for (let pass = 0; pass < tries; pass++) {
      const open = searches.filter(({ missing }) => missing > 0);
      if (open.length === 0) break;
      await searchAll(find, open, at.turns);
      locked.push(...(await lockChosen(client, open, at)));
    }
  }
  return locked;
}

/** Groups requests with the same partition and protocol, as one statement needs. */
function byPartition(asked: readonly Asked[]): Asked[][] {
  const groups = new Map<string, Asked[]>();
  for (const one of asked) {
    const sets = one.partition.length === 0 ? "" : JSON.stringify(one.partition.map(layerTexts));
    const key = `${one.withoutIpv6} ${sets}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

async function searchAll(find: Finder, searches: readonly Search[], turns: SubnetTurns): Promise<void> {
  await find.into(
    searches.filter(({ asked }) => asked.hasFinerDelegations),
    byFiner,
    (search) => search.missing,
  );
  const anywhere = searches.filter(({ asked }) => asked.subnets === null);
  await find.into(anywhere, atFront, (search) => search.missing);
  await lookIntoFew(
    find,
    searches.filter(({ asked }) => asked.subnets !== null),
  );
  // One extra host shows what the next ones are worth.
  const byWorth = searches.filter((search) => search.byWorth > 0);
  const worthiest = await find.all(byWorth, atWorth, (search) => search.byWorth + 1);
  for (const search of byWorth) search.goByWorth(worthiest.get(search.crawlerId) ?? []);
  for (const search of searches) search.share();
  await lookInTurn(find, anywhere, turns);
  const idle = anywhere.filter((search) => search.isFruitless && search.hasMoreSubnets);
  await find.into(idle, bySubnets, (search) => search.missing);
  for (const search of searches) search.share();
}

/** The candidates for one crawler, and the choice among them. */
class Search {
  readonly asked: Asked;
  readonly crawlerId: CrawlerId;
  missing: number;
  byWorth: number;
  /** True while some subnets have not been searched in turn. */
  hasMoreSubnets = true;
  readonly looked = new Set<SubnetId>();
  readonly #turns: SubnetTurns;
  readonly #known = new Set<HostHash>();
  #hosts: DueHost[] = [];
  #within: readonly DueHost[] = [];
  #beyond: readonly DueHost[] = [];

  constructor(asked: Asked, turns: SubnetTurns) {
    const { request } = asked;
    this.asked = asked;
    this.crawlerId = request.crawlerId;
    this.missing = Math.min(request.hosts, maxLeases);
    this.#turns = turns;
    this.byWorth = turns.byWorth(request.crawlerId, this.missing, worthShareOf(request.order));
  }

  /** Empty if the crawler has many subnets. */
  subnetsInTurn(): SubnetId[] {
    return this.#turns.inTurn(this.crawlerId, this.asked.subnets ?? []);
  }

  /** How many more hosts the crawler needs if no subnet may exceed its share. */
  get lacking(): number {
    return this.missing - this.#within.length;
  }

  get isEnough(): boolean {
    return this.#within.length + this.#beyond.length >= this.missing;
  }

  get isFruitless(): boolean {
    return this.#hosts.length === 0;
  }

  isFull(subnetId: SubnetId): boolean {
    const hosts = this.#within.filter((host) => host.subnet_id === subnetId).length;
    return hosts >= largestShare(this.missing);
  }

  add(hosts: readonly DueHost[], most = hosts.length): DueHost[] {
    const added = hosts.filter(({ host_hash }) => !this.#known.has(host_hash)).slice(0, most);
    for (const { host_hash } of added) this.#known.add(host_hash);
    this.#hosts.push(...added);
    return added;
  }

  /** Chooses some of the hosts by worth, under an order that asks for it (order/strategies.ts). */
  goByWorth(worthiest: readonly DueHost[]): void {
    const longestDue = this.#hosts.toSorted(longestDueFirst);
    const { byWorth } = this;
    this.#hosts = hostsByTurns({ worthiest, longestDue }, { wanted: this.missing, byWorth });
    for (const { host_hash } of this.#hosts) this.#known.add(host_hash);
  }

  /** Runs both before and after the crawler's other subnets are searched. */
  share(): void {
    if (this.byWorth === 0 && this.#within.length + this.#beyond.length === 0)
      this.#hosts.sort(longestDueFirst);
    const recent = this.#turns.recentOf(this.crawlerId);
    const { within, beyond } = splitByShare(this.#hosts, { wanted: this.missing, recent });
    this.#within = within;
    this.#beyond = beyond;
  }

  chosen(): DueHost[] {
    return [...this.#within, ...this.#beyond].slice(0, this.missing);
  }

  /** Records which of the chosen hosts were locked. If others held some, the search continues. */
  got(hosts: readonly DueHost[]): void {
    this.#turns.note(
      this.crawlerId,
      hosts.map(({ shares }) => shares),
    );
    this.missing = hosts.length === this.chosen().length ? 0 : this.missing - hosts.length;
    this.byWorth = 0;
    this.hasMoreSubnets = true;
    this.#hosts = [];
    this.#within = [];
    this.#beyond = [];
    this.looked.clear();
    const last = hosts.at(-1);
    if (this.asked.subnets !== null && last !== undefined) this.#turns.reach(this.crawlerId, last.subnet_id);
  }
}

const longestDueFirst = (a: DueHost, b: DueHost) => a.stands_at.getTime() - b.stands_at.getTime();

/** Searches the few subnets of each crawler. Searches those with more due hosts again if the first pass was not enough. */
async function lookIntoFew(find: Finder, searches: readonly Search[]): Promise<void> {
  let looks = searches
    .filter(({ lacking }) => lacking > 0)
    .map((search) => {
      const [subnets, { missing }] = [search.subnetsInTurn(), search];
      const most = Math.min(largestShare(missing), Math.ceil((2 * missing) / subnets.length));
      return { search, subnets, most };
    });
  for (let look = 0; look < 2; look++) {
    const found = await find.inTurn(
      looks.flatMap(({ search: { crawlerId }, subnets, most }) =>
        subnets.map((subnetId) => ({ crawlerId, subnetId, most })),
      ),
    );
    looks = looks.flatMap(({ search, subnets, most }) => {
      const hosts = found.get(search.crawlerId) ?? [];
      search.add(hosts);
      search.share();
      const had = countEach(hosts.map(({ subnet_id }) => subnet_id));
      const full = subnets.filter((id) => (had.get(id) ?? 0) >= most);
      return search.isEnough ? [] : [{ search, subnets: full, most: search.missing }];
    });
  }
}

/**
 * Searches the crawlers' other subnets in turn: once if hosts beyond the share would do, otherwise until there are
 * enough. If nothing was found and a crawler has more subnets than were searched, all of them are swept.
 */
async function lookInTurn(find: Finder, searches: readonly Search[], turns: SubnetTurns): Promise<void> {
  let open = searches.filter((search) => search.lacking > 0);
  for (let look = 0; look < mostLooks && open.length > 0; look++) {
    const crawlerIds = open.map(({ crawlerId }) => crawlerId);
    const next = await turns.next(find.client, crawlerIds);
    const subnetsOf = new Map<Search, readonly SubnetId[]>();
    for (const search of open) {
      const subnets = (next.get(search.crawlerId) ?? []).filter(
        (id) => !search.looked.has(id) && !search.isFull(id),
      );
      if (subnets.length === 0) search.hasMoreSubnets = false;
      else subnetsOf.set(search, subnets);
    }
    const found = await find.inTurn(
      [...subnetsOf].flatMap(([{ crawlerId, missing }, subnets]) =>
        subnets.map((subnetId) => ({ crawlerId, subnetId, most: largestShare(missing) })),
      ),
    );
    for (const [search, subnets] of subnetsOf) {
      for (const id of subnets) search.looked.add(id);
      const { lacking } = search;
      const got = search.add(found.get(search.crawlerId) ?? [], lacking);
      const last = got.reduce((most, { subnet_id }) => Math.max(most, subnets.indexOf(subnet_id)), -1);
      turns.reach(search.crawlerId, got.length === lacking ? subnets[last]! : subnets.at(-1)!);
      search.share();
    }
    open = [...subnetsOf.keys()].filter((search) => search.lacking > 0 && !search.isEnough);
  }
}

interface FoundHost extends Omit<DueHost, "shares"> {
  readonly finer_id: number | null;
  readonly host: string;
  readonly domain: string | null;
  readonly domain_place: number;
}

/** Runs the queries for many crawlers at once, or none if there are no crawlers. */
class Finder {
  readonly client: PoolClient;
  readonly #asked: Pick<LeaseNeeds, "partition" | "withoutIpv6">;
  readonly #now: Date;

  constructor(client: PoolClient, asked: Pick<LeaseNeeds, "partition" | "withoutIpv6">, now: Date) {
    this.client = client;
    this.#asked = asked;
    this.#now = now;
  }

  async into(searches: readonly Search[], way: Way, wanted: (search: Search) => number): Promise<void> {
    const found = await this.all(searches, way, wanted);
    for (const search of searches) search.add(found.get(search.crawlerId) ?? []);
  }

  async all(
    searches: readonly Search[],
    way: Way,
    wanted: (search: Search) => number,
  ): Promise<ReadonlyMap<CrawlerId, DueHost[]>> {
    if (searches.length === 0) return new Map();
    return await this.#find(
      `${way.before}
     select asked.crawler_id, ${columns(foundColumns, "h")}, h.stands_at
     from unnest($1::int[], $3::int[]) as asked (crawler_id, wanted)
     cross join lateral (${way.hosts}
     ) h
     order by ${way.order}`,
      [searches.map(({ crawlerId }) => crawlerId), this.#now, searches.map(wanted)],
    );
  }

  async inTurn(
    looks: readonly { readonly crawlerId: CrawlerId; readonly subnetId: SubnetId; readonly most: number }[],
  ): Promise<ReadonlyMap<CrawlerId, DueHost[]>> {
    if (looks.length === 0) return new Map();
    const [crawlerIds, most, subnetIds] = columnsOf(looks, ["crawlerId", "most", "subnetId"]);
    return await this.#find(inTurn, [crawlerIds, this.#now, most, subnetIds]);
  }

  async #find(statement: string, given: readonly unknown[]): Promise<ReadonlyMap<CrawlerId, DueHost[]>> {
    const { partition, withoutIpv6 } = this.#asked;
    const also = withoutIpv6 ? isIpv4 : undefined;
    const { text, values } = withHeldHosts(statement, partition, given.length + 1, also);
    const { rows } = await prepared<FoundHost>(this.client, text, [...given, ...values]);
    const found = new Map<CrawlerId, DueHost[]>();
    for (const row of rows) {
      const subnet = row.finer_id === null ? String(row.subnet_id) : `finer ${row.finer_id}`;
      const isBeyond = row.domain_place >= firstHosts;
      const shares = [subnet, row.domain ?? row.host, ...(isBeyond ? ["beyond the first"] : [])] as const;
      const host = { ...row, shares };
      const hosts = found.get(row.crawler_id);
      if (hosts === undefined) found.set(row.crawler_id, [host]);
      else hosts.push(host);
    }
    return found;
  }
}

/** Locks the hosts that nobody else has leased or locked meanwhile, in due order. */
async function lockChosen(
  client: PoolClient,
  searches: readonly Search[],
  { now }: { readonly now: Date },
): Promise<LockedHost[]> {
  const chosen = new Map(searches.flatMap((search) => search.chosen().map((host) => [host.host_hash, host])));
  if (chosen.size === 0) return [];
  const { rows } = await prepared<Omit<LockedHost, "crawler_id" | "leastWorth">>(
    client,
    `select h.host_hash, h.host, ${paceColumns}, h.mix_carry,
       array(select host(a) from unnest(h.addresses[1:${maxAddresses}]) a) as addresses,
       ${addressKeysOf("h")}::text[] as address_keys
     from frontier_host h
     where h.host_hash = any($1::bigint[]) and ${isReadyOfKnown("h")}
     for update of h skip locked`,
    [[...chosen.keys()], now],
  );
  const locked = new Set(rows.map((row) => row.host_hash));
  for (const search of searches) search.got(search.chosen().filter(({ host_hash }) => locked.has(host_hash)));
  return rows
    .map((row) => ({ row, as: chosen.get(row.host_hash)! }))
    .sort((a, b) => longestDueFirst(a.as, b.as))
    .map(({ row, as }) => ({ ...row, crawler_id: as.crawler_id, leastWorth: as.leastWorth ?? null }));
}

// Looks up, for all requests together, which conditions each search needs. A condition that no crawler needs costs nothing.

interface LeaseNeeds {
  /** The crawler's domain sets that its hosts must match, in addition to the request's. */
  readonly partition: Partition;
  readonly hasFinerDelegations: boolean;
  /** True if the crawler's last hello said that it does not use IPv6. */
  readonly withoutIpv6: boolean;
}

// Remembers in memory which shares each crawler's latest hosts counted towards, and how far its subnets were searched.
// After a restart a subnet misses its turn at most once.

const subnetsAtATime = 64;

export class SubnetTurns {
  readonly #recent = new Map<CrawlerId, readonly (readonly string[])[]>();
  readonly #reached = new Map<CrawlerId, SubnetId>();
  readonly #carried = new Map<CrawlerId, number>();

  recentOf(crawlerId: CrawlerId): readonly (readonly string[])[] {
    return this.#recent.get(crawlerId) ?? [];
  }

  note(crawlerId: CrawlerId, shares: readonly (readonly string[])[]): void {
    this.#recent.set(crawlerId, [...this.recentOf(crawlerId), ...shares].slice(-hostsInARow));
  }

  /** Returns the next of each crawler's subnets in turn, starting over at the end. */
  async next(
    client: PoolClient,
    crawlerIds: readonly CrawlerId[],
  ): Promise<ReadonlyMap<CrawlerId, readonly SubnetId[]>> {
    const { rows } = await prepared<{ crawler_id: CrawlerId; later: SubnetId[]; earlier: SubnetId[] }>(
      client,
      `select asked.crawler_id,
         array(
           select subnet_id from delegation
           where crawler_id = asked.crawler_id and subnet_id > asked.reached
           order by subnet_id limit ${subnetsAtATime}
         ) as later,
         array(
           select subnet_id from delegation
           where crawler_id = asked.crawler_id and subnet_id <= asked.reached
           order by subnet_id limit ${subnetsAtATime}
         ) as earlier
       from unnest($1::int[], $2::int[]) as asked (crawler_id, reached)`,
      [crawlerIds, crawlerIds.map((crawlerId) => this.#reached.get(crawlerId) ?? 0)],
    );
    return new Map(
      rows.map(({ crawler_id, later, earlier }) => [
        crawler_id,
        [...later, ...earlier].slice(0, subnetsAtATime),
      ]),
    );
  }

  /** How many of these hosts are chosen by worth. The fraction is carried to the next request. */
  byWorth(crawlerId: CrawlerId, hosts: number, share: number): number {
    const { slots, carry } = shareOf(hosts, share, this.#carried.get(crawlerId) ?? 0);
    this.#carried.set(crawlerId, carry);
    return slots;
  }

  /** Returns all of a crawler's subnets in turn order: those after the last searched one first. */
  inTurn(crawlerId: CrawlerId, subnets: readonly SubnetId[]): SubnetId[] {
    const reached = this.#reached.get(crawlerId) ?? 0;
    return [...subnets.filter((id) => id > reached), ...subnets.filter((id) => id <= reached)];
  }

  reach(crawlerId: CrawlerId, subnetId: SubnetId): void {
    this.#reached.set(crawlerId, subnetId);
  }
}
