/**
 * Table address_turn. Across the fleet, one crawler at a time uses an address, however many hosts are behind it and whoever
 * has their subnets. A lease begins only when its crawler has the turn at every address of the host. Turns belong to the
 * leases' transaction: they are taken and counted just before leases are written, returned for hosts that got none, and ended
 * with the leases. After the last lease the address is left alone for a while before the next turn. A turn of continuous
 * leases ends after half a minute: its crawler begins nothing more there until the address is free.
 *
 * A turn is over once its latest lease would have expired and the address has rested, whatever its count. A new turn may then
 * begin before the end of an old lease is reported, and that end must not be subtracted from the new turn. So a lease belongs
 * to a turn only if it expired after the turn began and not after the turn ends.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import { inTransaction, prepared } from "../../database/transaction.ts";

/** Maximum pause that a crawler keeps at an address by itself (migrating-crawler/limits/address-pace.ts). */
const defaultRestSeconds = 10;

/** Rest periods after an expired lease, whose crawler may be in the middle of a request of at most a minute. */
const restsAfterExpiry = 6;

/** Time after which a turn's crawler begins nothing more, because others may be waiting. */
const turnSeconds = 30;

/** SQL: turn `t` has open leases at that time. */
export const hasLeases = (at: string): string => `(t.leases > 0 and t.expires_at > ${at})`;

/** SQL: the crawler may begin nothing in turn `t` at time $2. */
export const isTaken = (crawlerId: string): string => `(
  (t.crawler_id <> ${crawlerId} or t.since <= $2::timestamptz - interval '${turnSeconds} s')
  and (${hasLeases("$2::timestamptz")} or t.free_at > $2))`;

// Registrable domains with hosts at one address share its time. The crawler gives each domain equal time
// (migrating-crawler/limits/address-pace.ts), provided that hosts of each are leased at all. Counts and times are
// stored with the turn, so a restart resets nothing.

/** Maximum open leases per domain at an address. They keep the address busy, as it pauses a quarter as long as a host. */
const mostOfDomain = 8;

/** SQL: turn `t` has all the open leases that the domain is allowed: one if the domain uses most of a shared address. */
const hasItsShare = (domain: string): string => {
  const used = `coalesce((t.used_ms ->> ${domain})::float8, 0)`;
  const all = "coalesce((t.used_ms ->> '')::float8, 0)";
  return `(${hasLeases("$2::timestamptz")} and coalesce((t.open_leases ->> ${domain})::float8, 0)
    >= case when ${used} * 2 > ${all} and ${used} < ${all} * 0.99 then 1 else ${mostOfDomain} end)`;
};

/** Half-life of a domain's use. Look-back is limited to a day, since Postgres before 17 cannot subtract infinite times. */
const halfOfUseSeconds = 600;

export interface LeaseTransaction {
  readonly client: PoolClient;
  readonly turns: TurnsInHand;
}

export async function writingLeases<T>(
  pool: Pool,
  work: (on: LeaseTransaction) => Promise<T>,
  settings = "",
): Promise<T> {
  return await inTransaction(
    pool,
    async (client) => {
      const turns = new TurnsInHand(client, settings);
      const result = await work({ client, turns });
      await turns.write();
      return result;
    },
    settings,
  );
}

interface HostOfTurn {
  readonly host_hash: HostHash;
  readonly host: string;
  readonly crawler_id: CrawlerId;
  readonly address_keys: readonly string[];
}

interface TurnTerms {
  readonly addressRestSeconds?: number;
  readonly leaseSeconds: number;
  readonly now: Date;
}

export interface LeaseOfTurn {
  readonly crawler_id: CrawlerId;
  /** cidr[] and timestamp, kept as text because they are only passed back. */
  readonly addresses: string;
  readonly expires_at: string;
  readonly host: string;
  readonly used_ms: number;
}

/** SQL: the columns of a LeaseOfTurn. Usage is only looked up where `isEnding`. */
export const turnColumns = (lease: string, isEnding = "true"): string =>
  `${lease}.crawler_id, ${lease}.addresses::text as addresses, ${lease}.expires_at::text as expires_at, ${lease}.host,
    case when ${isEnding} then (
      select coalesce(sum(f.total_ms), 0)::float8
      from page_fetch f
      where f.host_hash = ${lease}.host_hash and f.fetched_at >= ${lease}.granted_at
    ) else 0 end as used_ms`;

interface EndOfLease {
  readonly lease: LeaseOfTurn;
  /** Null if the lease was never written and nothing was requested. */
  readonly closedAt: string | null;
  readonly ranOut: boolean;
}

class TurnsInHand {
  readonly #client: PoolClient;
  readonly #settings: string;
  readonly #taken = new Map<HostHash, LeaseOfTurn>();
  readonly #ended: EndOfLease[] = [];

  constructor(client: PoolClient, settings: string) {
    this.#client = client;
    this.#settings = settings;
  }

  /** Returns those of the locked hosts that may be leased, because their crawler now has the turn at all their addresses. */
  async begin<Host extends HostOfTurn>(hosts: readonly Host[], terms: TurnTerms): Promise<Host[]> {
    const { claims, claimants } = claimsOf(hosts);
    if (claimants.length === 0) return [];
    const turns = claims.size === 0 ? new Set<string>() : await takeTurns(this.#client, claims, terms);
    const expiresAt = new Date(terms.now.getTime() + terms.leaseSeconds * 1000).toISOString();
    for (const { host_hash, host, crawler_id, address_keys } of claimants) {
      const got = address_keys.filter((key) => turns.has(key));
      const lease = { crawler_id, host, expires_at: expiresAt, used_ms: 0 };
      if (got.length > 0) this.#taken.set(host_hash, { ...lease, addresses: `{${got.join()}}` });
    }
    return claimants.filter(({ address_keys }) => address_keys.every((key) => turns.has(key)));
  }

  /** Marks hosts that got leases. All other turns are given back when the transaction ends. */
  keep(hosts: Iterable<HostHash>): void {
    for (const host of hosts) this.#taken.delete(host);
  }

  end(
    leases: readonly LeaseOfTurn[],
    { closedAt, ranOut }: { readonly closedAt: Date; readonly ranOut: boolean },
  ): void {
    const at = closedAt.toISOString();
    for (const lease of leases)
      if (lease.addresses !== "{}") this.#ended.push({ lease, closedAt: at, ranOut });
  }

  /** Writes all ended and returned turns in one statement. */
  async write(): Promise<void> {
    const unused = [...this.#taken.values()].map((lease) => ({ lease, closedAt: null, ranOut: false }));
    const ends = [...this.#ended, ...unused];
    if (ends.length > 0) await endTurns(this.#client, ends, this.#settings);
  }
}

interface Claim {
  readonly crawlerId: CrawlerId;
  leases: number;
  readonly of: Map<string, number>;
}

/**
 * Determines which hosts can take their addresses. When two crawlers want an address, the one whose host comes first
 * gets it and the other's hosts are left out. Hosts of a domain that has used its share are left out, too.
 */
function claimsOf<Host extends HostOfTurn>(
  hosts: readonly Host[],
): { readonly claims: ReadonlyMap<string, Claim>; readonly claimants: readonly Host[] } {
  const claims = new Map<string, Claim>();
  const claimants = hosts.filter(({ host, address_keys, crawler_id: crawlerId }) => {
    const domain = registrableDomain(host);
    const known = address_keys.flatMap((key) => claims.get(key) ?? []);
    if (known.some((claim) => claim.crawlerId !== crawlerId)) return false;
    if (known.some((claim) => (claim.of.get(domain) ?? 0) >= mostOfDomain)) return false;
    for (const key of address_keys) {
      const claim = claims.get(key) ?? { crawlerId, leases: 0, of: new Map<string, number>() };
      claims.set(key, claim);
      claim.leases += 1;
      claim.of.set(domain, (claim.of.get(domain) ?? 0) + 1);
    }
    return true;
  });
  return { claims, claimants };
}

/** Takes the free turns among these addresses, counts leases and returns what it took. Address order prevents deadlocks. */
async function takeTurns(
  client: PoolClient,
  claims: ReadonlyMap<string, Claim>,
  { addressRestSeconds = defaultRestSeconds, leaseSeconds, now }: TurnTerms,
): Promise<ReadonlySet<string>> {
  const goesOn = `t.crawler_id = excluded.crawler_id and ${hasLeases("$2::timestamptz")}`;
  const { rows } = await prepared<{ address: string }>(
    client,
    `insert into address_turn as t (address, crawler_id, leases, rest_seconds, since, expires_at, open_leases)
     select address, crawler_id, leases, $5::real, $2::timestamptz, $2::timestamptz + make_interval(secs => $6), open_leases
     from unnest($1::int[], $3::cidr[], $4::int[], $7::jsonb[]) as given (crawler_id, address, leases, open_leases)
     order by address
     on conflict (address) do update
     set crawler_id = excluded.crawler_id, rest_seconds = excluded.rest_seconds,
         leases = excluded.leases + case when ${goesOn} then t.leases else 0 end,
         open_leases = case when ${goesOn} then sums_by_key(t.open_leases, excluded.open_leases, 1) else excluded.open_leases end,
         since = case when ${goesOn} then t.since else excluded.since end,
         expires_at = greatest(excluded.expires_at, case when ${goesOn} then t.expires_at end)
     where not ${isTaken("excluded.crawler_id")}
     returning text(address) as address`,
    [
      [...claims.values()].map(({ crawlerId }) => crawlerId),
      now,
      [...claims.keys()],
      [...claims.values()].map(({ leases }) => leases),
      addressRestSeconds,
      leaseSeconds + addressRestSeconds * restsAfterExpiry,
      [...claims.values()].map(({ of }) => JSON.stringify(Object.fromEntries(of))),
    ],
  );
  return new Set(rows.map(({ address }) => address));
}

/** Subtracts these leases from their turns. Used addresses are left alone for a while. Address order prevents deadlocks. */
async function endTurns(client: PoolClient, ends: readonly EndOfLease[], settings: string): Promise<void> {
  await prepared(
    client,
    // The settings make each statement's text distinct, because a plan prepared under others would be reused.
    `/* ${settings} */
     with by_domain as (
       select address, crawler_id, domain, count(*)::int as leases, sum(used_ms) as used_ms,
         min(expires_at) as first_expires_at, max(expires_at) as last_expires_at, max(closed_at) as closed_at,
         max(closed_at) filter (where ran_out) as ran_out_at
       from unnest($1::int[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::boolean[], $6::text[], $7::float8[])
           as given (crawler_id, addresses, expires_at, closed_at, ran_out, domain, used_ms),
         unnest(given.addresses::cidr[]) as address
       group by address, crawler_id, domain
     ), ended as materialized (
       select address, crawler_id, sum(leases)::int as leases, min(first_expires_at) as first_expires_at,
         max(last_expires_at) as last_expires_at, max(closed_at) as closed_at, max(ran_out_at) as ran_out_at,
         jsonb_object_agg(domain, -leases) as closed_leases,
         jsonb_object_agg(domain, used_ms) || jsonb_build_object('', sum(used_ms)) as used_ms
       from by_domain
       group by address, crawler_id
       order by address
     )
     update address_turn t
     set leases = greatest(0, t.leases - ended.leases),
         open_leases = sums_by_key(t.open_leases, ended.closed_leases, 1),
         used_ms = case when ended.closed_at is null then t.used_ms else sums_by_key(t.used_ms, ended.used_ms,
           0.5 ^ greatest(0, least(60, extract(epoch from ended.closed_at
             - greatest(t.used_at, ended.closed_at - interval '1 day'))::float8 / ${halfOfUseSeconds}))) end,
         used_at = coalesce(ended.closed_at, t.used_at),
         free_at = greatest(t.free_at, ended.closed_at + make_interval(secs => t.rest_seconds),
           ended.ran_out_at + make_interval(secs => t.rest_seconds * ${restsAfterExpiry}))
     from ended
     where t.address = ended.address
       and t.address = any(array(select address from ended))
       and t.crawler_id = ended.crawler_id
       and ended.first_expires_at > t.since
       and ended.last_expires_at <= t.expires_at`,
    [
      ends.map(({ lease }) => lease.crawler_id),
      ends.map(({ lease }) => lease.addresses),
      ends.map(({ lease }) => lease.expires_at),
      ends.map(({ closedAt }) => closedAt),
      ends.map(({ ranOut }) => ranOut),
      ends.map(({ lease }) => registrableDomain(lease.host)),
      ends.map(({ lease }) => lease.used_ms),
    ],
  );
}

const longestRest = `make_interval(secs => t.rest_seconds * ${restsAfterExpiry})`;

/** The turn was written by a clock that has since been set back. Clocks of coordinators differ by less than this. */
const isOfTheFuture = `(t.leases > 0 and t.since > $1::timestamptz + interval '10 minutes'
       or t.free_at > $1::timestamptz + ${longestRest} + interval '10 minutes')`;

/** Resets the count of turns that are over and removes rows of addresses without a lease for an hour. */
export async function forgetTurns(pool: Pool, now: Date): Promise<void> {
  await pool.query(
    `update address_turn t
     set leases = 0, open_leases = '{}', expires_at = '-infinity',
         free_at = case when ${isOfTheFuture} then $1::timestamptz + ${longestRest}
           else greatest(t.free_at, t.expires_at) end
     where (t.leases > 0 and t.expires_at <= $1) or ${isOfTheFuture}`,
    [now],
  );
  await pool.query(
    "delete from address_turn where leases = 0 and free_at < $1::timestamptz - interval '1 hour'",
    [now],
  );
}

// Reads that skip hosts which would get no turn. They may be slightly stale.

/** Maximum addresses of a host that are considered, as in a lease (protocol/lease.ts). */
export const maxAddresses = 64;

/** How many of `maxAddresses` may be addresses to which crawlers were directed and which they reported. */
const maxSeen = 8;

export const addressKeysOf = (host: string): string => `array(
  select distinct address_key(a)
  from unnest(${host}.addresses[1:${maxAddresses}] || ${host}.seen_addresses) a)`;

/**
 * SQL: no address of the host is taken, and its domain has not used up its share of one. The statement counts because
 * the planner would turn `exists` into a join with the whole table, while this looks up a few addresses. `crawlerId` is
 * an expression.
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
 * next lease after a second crawler reports them, since a single crawler could otherwise block the turns at any
 * address.
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
