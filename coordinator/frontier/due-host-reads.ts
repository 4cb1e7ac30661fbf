/**
 * Which hosts a crawler gets next: those of its subnets that have no finer delegation, and those of its finer
 * delegations; longest due first, with at most a share for any one subnet (frontier/subnet-share), and with a share
 * for the worthiest where the order asks for them (frontier/order/host-turns).
 *
 * Of everything that is due, the front is looked at in the order of an index. Where it does not hold enough (others'
 * hosts have been due for longer, or one subnet of the crawler has all of it), the crawler's subnets are looked into in
 * turn, a few at a time. Each step reads a bounded number of rows, however many hosts there are.
 */
import type { PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { prepared } from "../database/transaction.ts";
import { isHeld, type Partition, withHeldHosts } from "../domain-sets/partition.ts";
import { largestShare, splitByShare } from "./budgets.ts";
import type { FrontierStore } from "./frontier.ts";
import { hostsByTurns } from "./order/mix.ts";
import { worthShareOf } from "./order/strategies.ts";
import { addressKeysOf, isFreeFor, maxAddresses, type SubnetTurns } from "./turn-store.ts";

export type LeaseRequest = Parameters<FrontierStore["leaseHosts"]>[0];

export interface HostRow {
  host_hash: HostHash;
  host: string;
  due_at: Date;
  /** Set where it goes by that: the least score of what is leased of it. */
  leastWorth?: number | null;
  addresses: string[];
  /** What has to be the crawler's turn (address-turns.ts). */
  address_keys: string[];
  /** The pace that the last crawler left; null: nobody has told. */
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
  backed_off_at: Date | null;
  usual_ms: number | null;
}

/** Of a subnet, or of a finer delegation, which counts as one; `subnet_id` is the subnet's. */
interface DueHost extends HostRow {
  subnet: string;
  subnet_id: number;
  /** What its best new URL is worth (host-worths.ts); null: not known, or there is none. */
  worth: number | null;
}

/** Most leases in one message (messages.ts). */
const maxLeases = 1_000;

/** Hosts at the front that are looked at: of everybody's, so that a crawler with a hundredth of the work finds 20. */
const front = 2_000;

/** Times that a crawler's subnets are looked into for one request, a few of them each time. */
const mostLooks = 8;

/** Locks them; hosts that another coordinator has in hand are passed over. */
export async function lockDueHosts(
  client: PoolClient,
  request: LeaseRequest & Pick<LeaseNeeds, "hasFinerDelegations">,
  turns: SubnetTurns,
): Promise<HostRow[]> {
  const wanted = Math.min(request.hosts, maxLeases);
  if (wanted < 1) return [];
  const recent = turns.recentOf(request.crawlerId);
  const finer = request.hasFinerDelegations ? await lockBy(client, byFiner, request) : [];
  const early = [...(await lockBy(client, atFront, request)), ...finer];
  const byTurns = await withWorthiest(client, early.sort(longestDueFirst), { request, turns, wanted });
  const { within, beyond } = splitByShare(byTurns, { wanted, recent });
  const isEnough = within.length === wanted;
  const others = isEnough ? [] : await lockInTurn(client, { request, turns, wanted, within, beyond });
  const shared = splitByShare([...within, ...others], { wanted, recent });
  const chosen = [...shared.within, ...beyond, ...shared.beyond].slice(0, wanted);
  turns.note(
    request.crawlerId,
    chosen.map(({ subnet }) => subnet),
  );
  return chosen.sort(longestDueFirst);
}

/** Under an order that asks what hosts are worth some of them go by that (frontier/order/host-turns). */
async function withWorthiest(
  client: PoolClient,
  longestDue: readonly DueHost[],
  at: { readonly request: LeaseRequest; readonly turns: SubnetTurns; readonly wanted: number },
): Promise<readonly DueHost[]> {
  const { request, turns, wanted } = at;
  const byWorth = turns.byWorth(request.crawlerId, wanted, worthShareOf(request.order));
  if (byWorth === 0) return longestDue;
  // One more tells what those that come next are worth.
  const worthiest = await lockBy(client, atWorth, { ...request, hosts: byWorth + 1 });
  return hostsByTurns({ worthiest, longestDue }, { wanted, byWorth });
}

const longestDueFirst = (a: HostRow, b: HostRow) => a.due_at.getTime() - b.due_at.getTime();

/** May be leased at time $2. */
const isOpen = (host: string) => `${host}.state = 'resolved'
       and ${host}.lease_id is null
       and ${host}.due_at <= $2
       and ${host}.not_before <= $2`;

interface Way {
  readonly from: string;
  readonly where: string;
  readonly order: string;
}

/** The sum hides the order from the planner, which would go through everybody's hosts in it to find these few. */
const ownOrder = "h.due_at + interval '0', h.host_hash";

/** One host after the other, until there are enough: joined otherwise, all of the front would be read each time. */
const atFront: Way = {
  from: `frontier_host h`,
  where: `h.finer_id is null
       and h.host_hash = any(array(
         select first.host_hash
         from (
           select f.host_hash, f.subnet_id, f.due_at, f.addresses, f.seen_addresses, f.host, f.language
           from frontier_host f
           where ${isOpen("f")} and f.finer_id is null
           order by f.due_at, f.host_hash
           limit ${front}
         ) first
         cross join lateral (
           select d.crawler_id
           from delegation d
           where d.subnet_id = first.subnet_id and d.crawler_id = $1
           offset 0
         ) own
         where ${isFreeFor("first", "own.crawler_id")} and ${isHeld("first")}
         order by first.due_at, first.host_hash
         limit $3
       ))`,
  order: ownOrder,
};

/**
 * The worthiest of everybody's, as far as an index has them in order. Of those that are looked at first some rest or are
 * not due any more.
 */
const atWorth: Way = {
  from: "frontier_host h",
  where: `h.finer_id is null
       and h.host_hash = any(array(
         select f.host_hash
         from (
           select *
           from frontier_host best
           where best.worth is not null and best.state = 'resolved' and best.lease_id is null
           order by best.worth desc, best.host_hash
           limit ${2 * front}
         ) f
         cross join lateral (
           select d.crawler_id
           from delegation d
           where d.subnet_id = f.subnet_id and d.crawler_id = $1
           offset 0
         ) own
         where ${isOpen("f")} and f.finer_id is null and ${isFreeFor("f", "own.crawler_id")} and ${isHeld("f")}
         order by f.worth desc, f.host_hash
         limit $3
       ))`,
  order: "h.worth desc, h.host_hash",
};

const byFiner: Way = {
  from: "frontier_host h join finer_delegation d on d.finer_id = h.finer_id",
  where: `d.crawler_id = $1 and ${isFreeFor("h")} and ${isHeld("h")}`,
  order: "h.due_at, h.host_hash",
};

/** The first of each subnet of $4, then the second of each, and so on up to $5 of each; but for the hosts $6. */
const inTurn: Way = {
  from: "frontier_host h",
  where: `h.finer_id is null
       and h.host_hash = any(array(
         select one.host_hash
         from unnest($4::int[]) with ordinality as turn (subnet_id, ordinal)
         cross join lateral (
           select f.host_hash, row_number() over (order by f.due_at, f.host_hash) as place
           from (
             select f.host_hash, f.due_at
             from frontier_host f
             where f.subnet_id = turn.subnet_id
               and ${isOpen("f")}
               and f.finer_id is null
               and f.host_hash <> all($6::bigint[])
               and ${isFreeFor("f")}
               and ${isHeld("f")}
             order by f.due_at, f.host_hash
             limit $5
           ) f
         ) one
         order by one.place, turn.ordinal
         limit $3
       ))`,
  order: ownOrder,
};

/** Everything that is due for the crawler. */
const bySubnets: Way = {
  from: "frontier_host h join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null",
  where: `d.crawler_id = $1 and ${isFreeFor("h")} and ${isHeld("h")}`,
  order: ownOrder,
};

/**
 * Hosts of the crawler's other subnets, from the one whose turn it is: one look where hosts `beyond` the share would do
 * as well, otherwise until there are enough. All of a crawler's subnets are swept where it has more of them than that,
 * and nothing else was found.
 */
async function lockInTurn(
  client: PoolClient,
  at: {
    readonly request: LeaseRequest;
    readonly turns: SubnetTurns;
    readonly wanted: number;
    readonly within: readonly DueHost[];
    readonly beyond: readonly DueHost[];
  },
): Promise<DueHost[]> {
  const { request, turns, wanted, within, beyond } = at;
  const locked: DueHost[] = [];
  const looked = new Set<number>();
  const full = new Set(beyond.map(({ subnet_id }) => subnet_id));
  for (let look = 0; look < mostLooks; look++) {
    const subnets = (await turns.next(client, request.crawlerId)).filter(
      (id) => !looked.has(id) && !full.has(id),
    );
    if (subnets.length === 0) return locked;
    for (const id of subnets) looked.add(id);
    const known = [...within, ...beyond, ...locked].map(({ host_hash }) => host_hash);
    const hosts = wanted - within.length - locked.length;
    const got = await lockBy(client, inTurn, { ...request, hosts }, [subnets, largestShare(wanted), known]);
    locked.push(...got);
    const last = got.reduce((most, { subnet_id }) => Math.max(most, subnets.indexOf(subnet_id)), -1);
    turns.reach(request.crawlerId, got.length === hosts ? subnets[last]! : subnets.at(-1)!);
    if (got.length === hosts || within.length + beyond.length + locked.length >= wanted) return locked;
  }
  const isNothing = within.length + beyond.length + locked.length === 0;
  return isNothing ? await lockBy(client, bySubnets, request) : locked;
}

async function lockBy(
  client: PoolClient,
  way: Way,
  request: LeaseRequest,
  further: readonly unknown[] = [],
): Promise<DueHost[]> {
  const { text, values } = withHeldHosts(
    `select h.host_hash, h.host, h.due_at, h.worth, h.crawl_delay_ms, h.back_off_ms, h.backed_off_at, h.usual_ms,
       array(select host(a) from unnest(h.addresses[1:${maxAddresses}]) a) as addresses,
       ${addressKeysOf("h")}::text[] as address_keys,
       h.subnet_id, coalesce('finer ' || h.finer_id, h.subnet_id::text) as subnet
     from ${way.from}
     where ${way.where}
       and ${isOpen("h")}
     order by ${way.order}
     limit $3
     for update of h skip locked`,
    request.partition ?? [],
    4 + further.length,
  );
  const given = [request.crawlerId, request.now, Math.min(request.hosts, maxLeases), ...further];
  const { rows } = await prepared<DueHost>(client, text, [...given, ...values]);
  return rows;
}

// What a request for leases has to look at, asked at once, so that what a crawler has none of costs it nothing.

export interface LeaseNeeds {
  /** What the crawler's hosts must be held by: its domain sets, after those that the request names. */
  readonly partition: Partition;
  readonly hasFinerDelegations: boolean;
  /** Whether any channel knows texts that leases may say (channels/known-texts). */
  readonly hasKnownTexts: boolean;
}
