/**
 * Table address_turn: over the whole fleet an address is asked by one crawler at a time, however many hosts are
 * behind it and whoever has their subnets. A lease begins only when all addresses of its host are the crawler's
 * turn; triggers on table lease count the open ones, so that a turn ends however a lease ends, and the address then
 * rests before somebody else's begins. A turn in which leases follow each other without end is over after half
 * a minute: its crawler begins nothing more there until the address is anybody's.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import { prepared } from "../database/transaction.ts";
import { hostsInARow } from "./budgets.ts";
import { shareOf } from "./order/mix.ts";

/** Most addresses of a host that are looked at, as in a lease (protocol/lease.ts). */
export const maxAddresses = 64;

/** Of those that crawlers were led to, and of what they reported. */
const maxSeen = 8;

/** Then somebody else may be waiting. */
const turnSeconds = 30;

/** SQL: the keys of all known addresses of a host. */
export const addressKeysOf = (host: string): string => `array(
  select distinct address_key(a)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a)`;

/** SQL: true for a turn `t` in which the crawler may begin nothing at time $2. */
const isTaken = (crawlerId: string) => `(
  (t.crawler_id <> ${crawlerId} or t.since <= $2::timestamptz - interval '${turnSeconds} s')
  and (t.leases > 0 or t.free_at > $2))`;

/**
 * SQL: none of the host's addresses is taken. Counted and not asked for by `exists`, which the planner makes a join of
 * the whole table of; this looks up a host's few addresses, of the hosts that come so far. `crawlerId` is an expression.
 */
export const isFreeFor = (host: string, crawlerId: string): string => `(
  select count(*)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a
  cross join lateral (select from address_turn t where t.address = address_key(a) and ${isTaken(crawlerId)} offset 0) t
) = 0`;

/** Longest rest that a crawler keeps for an address by itself (migrating-crawler/limits/address-pace.ts). */
const defaultRestSeconds = 10;

interface HostOfTurn {
  readonly crawler_id: CrawlerId;
  readonly address_keys: readonly string[];
}

/** Of these hosts, which are locked, those whose addresses are all their crawler's turn now: leases may begin on them. */
export async function hostsInTurn<Host extends HostOfTurn>(
  client: PoolClient,
  hosts: readonly Host[],
  at: { readonly addressRestSeconds?: number; readonly now: Date },
): Promise<Host[]> {
  if (hosts.length === 0) return [];
  const turns = await takeTurns(client, hosts, at);
  return hosts.filter(({ address_keys, crawler_id }) =>
    address_keys.every((key) => turns.get(key) === crawler_id),
  );
}

/**
 * Takes the turns at these hosts' addresses, as far as they are free, until the transaction's leases are counted; gives
 * whose they are of those that were got: of two crawlers that want the same one, it is theirs whose host comes first. In the
 * order of the addresses, so that two who want the same ones wait for each other.
 */
async function takeTurns(
  client: PoolClient,
  hosts: readonly HostOfTurn[],
  {
    addressRestSeconds = defaultRestSeconds,
    now,
  }: { readonly addressRestSeconds?: number; readonly now: Date },
): Promise<ReadonlyMap<string, CrawlerId>> {
  const wanted = hosts.flatMap(({ address_keys, crawler_id }) =>
    address_keys.map((address) => ({ address, crawler_id })),
  );
  const { rows } = await prepared<{ address: string; crawler_id: CrawlerId }>(
    client,
    `insert into address_turn as t (address, crawler_id, rest_seconds, since)
     select distinct on (address) address, crawler_id, $4::real, $2::timestamptz
     from unnest($3::cidr[], $1::int[]) with ordinality as given (address, crawler_id, place)
     order by address, place
     on conflict (address) do update
     set crawler_id = excluded.crawler_id, rest_seconds = excluded.rest_seconds,
         since = case when t.crawler_id = excluded.crawler_id and t.leases > 0 then t.since else excluded.since end
     where not ${isTaken("excluded.crawler_id")}
     returning text(address) as address, crawler_id`,
    [
      wanted.map(({ crawler_id }) => crawler_id),
      now,
      wanted.map(({ address }) => address),
      addressRestSeconds,
    ],
  );
  return new Map(rows.map((row) => [row.address, row.crawler_id]));
}

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

/** Rows of addresses where nothing has been leased for an hour. */
export async function forgetTurns(pool: Pool, now: Date): Promise<void> {
  await pool.query(
    "delete from address_turn where leases = 0 and free_at < $1::timestamptz - interval '1 hour'",
    [now],
  );
}

// Whose turn it is among a crawler's subnets, as this coordinator remembers it: of which the latest hosts were, and how
// far its subnets have been gone through. Lost with the process, which costs a subnet one turn at most.

/** Subnets that are looked into at a time. */
const subnetsAtATime = 64;

export class SubnetTurns {
  readonly #recent = new Map<CrawlerId, readonly string[]>();
  readonly #reached = new Map<CrawlerId, SubnetId>();
  readonly #carried = new Map<CrawlerId, number>();

  /** The subnets of the latest hosts, the latest last. */
  recentOf(crawlerId: CrawlerId): readonly string[] {
    return this.#recent.get(crawlerId) ?? [];
  }

  note(crawlerId: CrawlerId, subnets: readonly string[]): void {
    this.#recent.set(crawlerId, [...this.recentOf(crawlerId), ...subnets].slice(-hostsInARow));
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
