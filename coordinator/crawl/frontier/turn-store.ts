/**
 * Table address_turn: over the whole fleet an address is asked by one crawler at a time, however many hosts are
 * behind it and whoever has their subnets. A lease begins only when all addresses of its host are the crawler's
 * turn; the open ones are counted (address-turn-writes.ts, which decides), and when the last has ended the address rests
 * before somebody else's begins. A turn in which leases follow each other without end is over after half a minute: its
 * crawler begins nothing more there until the address is anybody's. What is read here spares looks at hosts that would get no
 * turn, and may be a little old.
 */
import type { PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { prepared } from "../../database/transaction.ts";
import { hasItsShare, isTaken } from "./address-turn-writes.ts";
import { hostsInARow } from "./budgets.ts";
import { shareOf } from "./order/mix.ts";

/** Most addresses of a host that are looked at, as in a lease (protocol/lease.ts). */
export const maxAddresses = 64;

/** Of those that crawlers were led to, and of what they reported. */
const maxSeen = 8;

/** SQL: the keys of all known addresses of a host. */
export const addressKeysOf = (host: string): string => `array(
  select distinct address_key(a)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a)`;

/**
 * SQL: none of the host's addresses is taken, and its domain has not its share of one already. Counted and not asked for by
 * `exists`, which the planner makes a join of the whole table of; this looks up a host's few addresses, of the hosts that come so
 * far. `crawlerId` is an expression.
 */
export const isFreeFor = (host: string, crawlerId: string): string => `(
  select count(*)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a
  cross join lateral (
    select
    from address_turn t
    where t.address = address_key(a)
      and (${isTaken(crawlerId)} or ${hasItsShare(`coalesce(${host}.domain, ${host}.host)`)})
    offset 0
  ) t
) = 0`;

/**
 * Addresses that results say the hosts were asked at, and that our resolver did not name. From the next lease on they
 * are the host's once a second crawler has named them for it: a single one could take up anybody's turns.
 */
export async function noteSeenAddresses(
  client: PoolClient,
  crawlerId: CrawlerId,
  seen: readonly { readonly hostHash: HostHash; readonly address: string }[],
): Promise<void> {
  if (seen.length === 0) return;
  await client.query(
    `update frontier_host h
     set seen_addresses = case when ${isReportedBy("<>")}
           then (array_prepend(given.address, h.seen_addresses))[1:${maxSeen}] else h.seen_addresses end,
         reported_addresses = (array_prepend(given.address, h.reported_addresses))[1:${maxSeen}],
         reported_by = (array_prepend($3::int, h.reported_by))[1:${maxSeen}]
     from (
       select distinct on (host_hash) host_hash, address
       from unnest($1::bigint[], $2::inet[]) as all_seen (host_hash, address)
       order by host_hash
     ) given
     where h.host_hash = given.host_hash
       and address_key(given.address) <> all(${addressKeysOf("h")})
       and (${isReportedBy("<>")} or not ${isReportedBy("=")})`,
    [seen.map(({ hostHash }) => hostHash), seen.map(({ address }) => address), crawlerId],
  );
}

/** SQL: the address was reported for the host before, by crawler $3 or by another one. */
const isReportedBy = (how: "=" | "<>"): string => `exists (
  select from unnest(h.reported_addresses, h.reported_by) as report (address, crawler_id)
  where address_key(report.address) = address_key(given.address) and report.crawler_id ${how} $3::int)`;

// Whose turn it is among a crawler's subnets, as this coordinator remembers it: of which the latest hosts were, and how
// far its subnets have been gone through. Lost with the process, which costs a subnet one turn at most.

/** Subnets that are looked into at a time. */
const subnetsAtATime = 64;

export class SubnetTurns {
  readonly #recent = new Map<CrawlerId, readonly (readonly string[])[]>();
  readonly #reached = new Map<CrawlerId, SubnetId>();
  readonly #carried = new Map<CrawlerId, number>();

  /** What the latest hosts counted for, the latest last. */
  recentOf(crawlerId: CrawlerId): readonly (readonly string[])[] {
    return this.#recent.get(crawlerId) ?? [];
  }

  note(crawlerId: CrawlerId, shares: readonly (readonly string[])[]): void {
    this.#recent.set(crawlerId, [...this.recentOf(crawlerId), ...shares].slice(-hostsInARow));
  }

  /** The next of each crawler's subnets in turn, after the one reached; from the start again at the end. */
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

  /** Of so many hosts those that go by their worth; what falls between two whole numbers is carried on. */
  byWorth(crawlerId: CrawlerId, hosts: number, share: number): number {
    const { slots, carry } = shareOf(hosts, share, this.#carried.get(crawlerId) ?? 0);
    this.#carried.set(crawlerId, carry);
    return slots;
  }

  /** All of a crawler's subnets, in their order, as their turn is: those after the one reached first. */
  inTurn(crawlerId: CrawlerId, subnets: readonly SubnetId[]): SubnetId[] {
    const reached = this.#reached.get(crawlerId) ?? 0;
    return [...subnets.filter((id) => id > reached), ...subnets.filter((id) => id <= reached)];
  }

  reach(crawlerId: CrawlerId, subnetId: SubnetId): void {
    this.#reached.set(crawlerId, subnetId);
  }
}
