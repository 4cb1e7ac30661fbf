/**
 * All writes of table address_turn: whose turn an address is, and how many open leases that crawler has on hosts there. All of
 * this is part of the leases' transaction: turns are taken just before leases are written, those of hosts that got none after
 * all are given back, and turns end with the leases.
 *
 * A turn is over when the latest of its leases would have run out and its address has rested, whatever it counts. One that is
 * over may begin anew, of the same crawler or another, before an old lease's end is told. That end is then not taken off the new
 * turn: a lease is of a turn only if it ran out after the turn began, and not after the turn does.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId, HostHash } from "#core/ids";
import { registrableDomain } from "#core/ip/registrable-domain";
import { inTransaction, prepared } from "../../database/transaction.ts";

/** Longest rest that a crawler keeps for an address by itself (migrating-crawler/limits/address-pace.ts). */
const defaultRestSeconds = 10;

/**
 * Rests after a lease that ran out: a crawler that lost its lease may be in the middle of a request, which takes a minute at
 * most.
 */
const restsAfterExpiry = 6;

/** Then somebody else may be waiting. */
const turnSeconds = 30;

/** SQL: the turn `t` has open leases at that time. */
export const hasLeases = (at: string): string => `(t.leases > 0 and t.expires_at > ${at})`;

/** SQL: true for a turn `t` in which the crawler may begin nothing at time $2. */
export const isTaken = (crawlerId: string): string => `(
  (t.crawler_id <> ${crawlerId} or t.since <= $2::timestamptz - interval '${turnSeconds} s')
  and (${hasLeases("$2::timestamptz")} or t.free_at > $2))`;

// An address's time is shared between the registrable domains that have hosts there. Its crawler asks one host after the other,
// and sees to it that each domain has the same time (migrating-crawler/limits/address-pace.ts); here hosts of each domain must be
// leased at all. Counts and times are kept with the turn: a restart forgives nobody.

/** Open leases of one domain at an address: as many hosts as keep it busy, since it rests for a quarter of a host's rest. */
const mostOfDomain = 8;

/** SQL: the turn `t` has as many open leases of that domain as it may: a single one of whoever uses most of an address with others. */
export const hasItsShare = (domain: string): string => {
  const used = `coalesce((t.used_ms ->> ${domain})::float8, 0)`;
  const all = "coalesce((t.used_ms ->> '')::float8, 0)";
  return `(${hasLeases("$2::timestamptz")} and coalesce((t.open_leases ->> ${domain})::float8, 0)
    >= case when ${used} * 2 > ${all} and ${used} < ${all} * 0.99 then 1 else ${mostOfDomain} end)`;
};

/** After so long, what a domain used counts half. Postgres before 17 cannot subtract infinite times, so a day is the longest that is looked back. */
const halfOfUseSeconds = 600;

/** A transaction that writes leases, and the turns that go with them. */
export interface LeaseTransaction {
  readonly client: PoolClient;
  readonly turns: TurnsInHand;
}

/** Runs `work` in one transaction, as `inTransaction` does. */
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

/** A lease of which a turn is told. */
export interface LeaseOfTurn {
  readonly crawler_id: CrawlerId;
  /** An array of cidr, and a time: as text, since they are only handed back. */
  readonly addresses: string;
  readonly expires_at: string;
  readonly host: string;
  /** How long its host's answers took in all. */
  readonly used_ms: number;
}

/** SQL: the columns of a LeaseOfTurn; what it used is looked up where `isEnding`. */
export const turnColumns = (lease: string, isEnding = "true"): string =>
  `${lease}.crawler_id, ${lease}.addresses::text as addresses, ${lease}.expires_at::text as expires_at, ${lease}.host,
    case when ${isEnding} then (
      select coalesce(sum(f.total_ms), 0)::float8
      from page_fetch f
      where f.host_hash = ${lease}.host_hash and f.fetched_at >= ${lease}.granted_at
    ) else 0 end as used_ms`;

interface EndOfLease {
  readonly lease: LeaseOfTurn;
  /** Null: it was never written, and nobody asked anything. */
  readonly closedAt: string | null;
  readonly ranOut: boolean;
}

/** What one transaction takes and ends. */
class TurnsInHand {
  readonly #client: PoolClient;
  /** That the transaction runs under. */
  readonly #settings: string;
  /** By their hosts; those that were not kept. */
  readonly #taken = new Map<HostHash, LeaseOfTurn>();
  readonly #ended: EndOfLease[] = [];

  constructor(client: PoolClient, settings: string) {
    this.#client = client;
    this.#settings = settings;
  }

  /** Of these hosts, which are locked, those whose addresses are all their crawler's turn now: leases may begin on them. */
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

  /** These hosts have got leases. The turns of all others are given back when the transaction ends. */
  keep(hosts: Iterable<HostHash>): void {
    for (const host of hosts) this.#taken.delete(host);
  }

  /** These leases, which were open, have ended. */
  end(
    leases: readonly LeaseOfTurn[],
    { closedAt, ranOut }: { readonly closedAt: Date; readonly ranOut: boolean },
  ): void {
    const at = closedAt.toISOString();
    for (const lease of leases)
      if (lease.addresses !== "{}") this.#ended.push({ lease, closedAt: at, ranOut });
  }

  /** One statement for all that ended or is given back; none where there is nothing. */
  async write(): Promise<void> {
    const unused = [...this.#taken.values()].map((lease) => ({ lease, closedAt: null, ranOut: false }));
    const ends = [...this.#ended, ...unused];
    if (ends.length > 0) await endTurns(this.#client, ends, this.#settings);
  }
}

interface Claim {
  readonly crawlerId: CrawlerId;
  leases: number;
  /** By registrable domain. */
  readonly of: Map<string, number>;
}

/**
 * What hosts want of the addresses, and those that can be in turn: of two crawlers that want the same address, it is theirs
 * whose host comes first, and the other's hosts there are left out. So are those of a domain that has its share of an address.
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

/**
 * Takes the turns at these addresses as far as they are free, and counts their leases; gives the addresses that were got. In
 * the order of the addresses, so that two who want the same ones wait for each other.
 */
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

/** Takes these leases off their turns; the addresses rest then, unless nobody asked anything. In the order of the addresses. */
async function endTurns(client: PoolClient, ends: readonly EndOfLease[], settings: string): Promise<void> {
  await prepared(
    client,
    // A text for each settings: a plan that was made under others would be kept.
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

/** By a clock that went back since; coordinators' clocks differ by less. */
const isOfTheFuture = `(t.leases > 0 and t.since > $1::timestamptz + interval '10 minutes'
       or t.free_at > $1::timestamptz + ${longestRest} + interval '10 minutes')`;

/**
 * Turns that are over although they count leases count none from then on, and rows of addresses where nothing has been leased
 * for an hour go.
 */
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
