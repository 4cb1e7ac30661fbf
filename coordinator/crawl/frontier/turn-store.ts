/**
 * Table address_turn: across the fleet one crawler at a time uses an address, however many hosts are behind it and
 * whoever has their subnets. A lease begins only when all addresses of its host are the crawler's turn. Open leases
 * are counted (address-turn-writes.ts, which decides); after the last one the address rests before another turn. A
 * turn of continuous leases ends after half a minute: its crawler begins nothing more there until the address is free.
 * The reads here only skip hosts that would get no turn, and may be slightly stale.
 */
import type { PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { prepared } from "../../database/transaction.ts";
import { hasItsShare, isTaken } from "./address-turn-writes.ts";
import { hostsInARow } from "./budgets.ts";
import { shareOf } from "./order/mix.ts";

/** Addresses of a host considered, as in a lease (protocol/lease.ts). */
export const maxAddresses = 64;

/** Of those, addresses to which crawlers were directed and which they reported. */
const maxSeen = 8;

/** SQL: the keys of all known addresses of a host. */
export const addressKeysOf = (host: string): string => `array(
  select distinct address_key(a)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a)`;

/**
 * SQL: no address of the host is taken and its domain has not its share of one. It counts, because the planner would
 * turn `exists` into a join with the whole table; this looks up a few addresses. `crawlerId` is an expression.
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
 * Stores addresses at which results say hosts were reached but that our resolver did not return. They count from the
 * next lease after a second crawler reports them, since a single crawler could otherwise block anybody's turns.
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

// Remembers in memory which shares each crawler's latest hosts counted towards and how far its subnets were searched.
// A restart costs a subnet one turn at most.

/** Subnets searched at a time. */
const subnetsAtATime = 64;

export class SubnetTurns {
  readonly #recent = new Map<CrawlerId, readonly (readonly string[])[]>();
  readonly #reached = new Map<CrawlerId, SubnetId>();
  readonly #carried = new Map<CrawlerId, number>();

  /** Shares of the latest hosts, latest last. */
  recentOf(crawlerId: CrawlerId): readonly (readonly string[])[] {
    return this.#recent.get(crawlerId) ?? [];
  }

  note(crawlerId: CrawlerId, shares: readonly (readonly string[])[]): void {
    this.#recent.set(crawlerId, [...this.recentOf(crawlerId), ...shares].slice(-hostsInARow));
  }

  /** The next of each crawler's subnets in turn, starting over at the end. */
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

  /** How many of these hosts go by worth; fractions are carried on. */
  byWorth(crawlerId: CrawlerId, hosts: number, share: number): number {
    const { slots, carry } = shareOf(hosts, share, this.#carried.get(crawlerId) ?? 0);
    this.#carried.set(crawlerId, carry);
    return slots;
  }

  /** All of a crawler's subnets in turn order: those after the last searched one first. */
  inTurn(crawlerId: CrawlerId, subnets: readonly SubnetId[]): SubnetId[] {
    const reached = this.#reached.get(crawlerId) ?? 0;
    return [...subnets.filter((id) => id > reached), ...subnets.filter((id) => id <= reached)];
  }

  reach(crawlerId: CrawlerId, subnetId: SubnetId): void {
    this.#reached.set(crawlerId, subnetId);
  }
}
