import { isHeld } from "../../place/domain-sets/partition.ts";
import { isFreeFor } from "./address-turn-store.ts";
import { apartInDomainMinutes, firstHosts } from "./budgets.ts";

/** Hosts read at the front of all due work, so that a crawler with a hundredth of the work finds 20. */
export const front = 2_000;

/** Hosts read per subnet, to find some whose addresses are free: many names may share one taken address. */
const mostOfSubnet = 500;

/** How many of a subnet's hosts are ranked by their domains' shares at a time. */
const sharedOfSubnet = 64;

/** A host is placed by its first address. IPv4 addresses come first. */
export const isIpv4 = (host: string) => `family(${host}.addresses[1]) = 4`;

/** SQL: the host may be leased at time $2, because it is due and has rested. */
const isReady = (host: string) => `${host}.state = 'resolved'
         and ${host}.lease_id is null
         and ${host}.due_at is not null
         and greatest(${host}.due_at, ${host}.not_before) <= $2`;

/** SQL: the same for hosts known by key, phrased so that the planner does not use the due index. */
export const isReadyOfKnown = (host: string) => `${host}.state = 'resolved'
         and num_nonnulls(${host}.lease_id) = 0
         and greatest(${host}.due_at, ${host}.not_before) <= $2
         and num_nonnulls(${host}.due_at) = 1`;

export const foundColumns = [
  ...["host_hash", "due_at", "subnet_id", "finer_id", "worth", "host", "domain", "domain_place"],
] as const;
const soughtColumns = [
  ...foundColumns,
  ...["language", "addresses", "seen_addresses", "not_before"],
] as const;
export const columns = (names: readonly string[], of: string) =>
  names.map((name) => `${of}.${name}`).join(", ");

const domainOf = (host: string) => `coalesce(${host}.domain, ${host}.host)`;

/** SQL: a host's rank by due time, given its position among its domain's waiting hosts, which the column `order` sorts. */
const standsAt = (
  host: string,
  within: string,
  order: string,
) => `${host}.due_at + interval '${apartInDomainMinutes} minutes'
  * (row_number() over (partition by ${within}${domainOf(host)} order by ${order}) - 1)`;

/** A way to find hosts for the crawlers `asked`. $1 are the crawlers' ids, $2 is the time. */
export interface Way {
  readonly before: string;
  readonly hosts: string;
  readonly order: string;
}

/**
 * Reads rows of an index and keeps those in the crawlers' subnets. Grouped by crawler once, since reading again per
 * crawler would scan them as often as there are crawlers.
 */
const fromIndex = (rows: {
  readonly where: string;
  readonly order: string;
  /** The column that decides the order of handing out. */
  readonly by: string;
  readonly limit: number;
}): Way => ({
  before: `with sought as materialized (
       select crawler_id, array_agg(host_hash order by ${rows.by}, host_hash) as host_hashes,
         array_agg(stands_at order by ${rows.by}, host_hash) as stand_at
       from (
       select own.crawler_id, f.host_hash, f.worth, ${standsAt("f", "own.crawler_id, ", "f.due_at, f.host_hash")} as stands_at
       from (
         select i.host_hash, i.host, i.domain, i.language, i.due_at, i.not_before, i.subnet_id, i.finer_id, i.worth, i.addresses
         from frontier_host i
         where i.state = 'resolved' and i.lease_id is null and ${rows.where}
         order by ${rows.order}, i.host_hash
         limit ${rows.limit}
       ) f
       cross join lateral (
         select d.crawler_id
         from delegation d
         where d.subnet_id = f.subnet_id and d.crawler_id = any($1::int[])
         offset 0
       ) own
       where f.finer_id is null and f.due_at <= $2 and f.not_before <= $2 and ${isHeld("f")}
       ) theirs
       group by crawler_id
     )`,
  // Hosts are checked one by one, so that turns of addresses are looked up only until there are enough.
  hosts: `
       select ${columns(foundColumns, "f")}, one.stands_at
       from (
         select one.host_hash, one.stands_at
         from sought
         cross join unnest(sought.host_hashes, sought.stand_at) with ordinality as one (host_hash, stands_at, place)
         where sought.crawler_id = asked.crawler_id
         order by one.place
         offset 0
       ) one
       cross join lateral (select * from frontier_host where host_hash = one.host_hash offset 0) f
       where ${isFreeFor("f", "asked.crawler_id")}
       limit asked.wanted`,
  order: `h.${rows.by}, h.host_hash`,
});

export const atFront = fromIndex({
  where: "i.due_at <= $2",
  order: "i.due_at",
  by: "stands_at",
  limit: front,
});

/** The hosts of all crawlers with the highest worth, in index order. Some of the first ones may be resting or no longer due. */
export const atWorth = fromIndex({
  where: "i.worth is not null",
  order: "i.worth desc",
  by: "worth desc",
  limit: 2 * front,
});

export const byFiner: Way = {
  before: "",
  hosts: `
       select ${columns(foundColumns, "f")}, f.due_at as stands_at
       from finer_delegation d
       cross join lateral (
         select * from frontier_host i where i.finer_id = d.finer_id and ${isReady("i")} offset 0
       ) f
       where d.crawler_id = asked.crawler_id
         and ${isFreeFor("f", "asked.crawler_id")} and ${isHeld("f")}
       order by f.due_at, f.host_hash
       limit asked.wanted`,
  order: "h.due_at, h.host_hash",
};

export const bySubnets: Way = {
  before: "",
  hosts: `
       select ${columns(foundColumns, "f")}, f.due_at as stands_at
       from delegation d
       cross join lateral (
         select * from frontier_host i
         where i.subnet_id = d.subnet_id and i.finer_id is null and ${isReady("i")}
         offset 0
       ) f
       where d.crawler_id = asked.crawler_id
         and ${isFreeFor("f", "asked.crawler_id")} and ${isHeld("f")}
       order by f.due_at, f.host_hash
       limit asked.wanted`,
  order: "h.due_at, h.host_hash",
};

/**
 * The first hosts of a subnet, in waiting order, that may be leased, with those at the front ranked by their domains' shares.
 * The first hosts of all domains have an index of their own, so that one domain's many hosts cannot hide the others.
 */
const ofSubnet = (places: string) => {
  const waiting = (more: string, limit: number) => `
             select ${columns(soughtColumns, "i")}
             from frontier_host i
             where i.subnet_id = asked.subnet_id and ${isReady("i")} and i.finer_id is null and i.domain_place ${places}
             order by greatest(i.due_at, i.not_before)
             ${more} limit ${limit}`;
  return `
         select f.*
         from (
           (select w.*, ${standsAt("w", "", "greatest(w.due_at, w.not_before)")} as stands_at
            from (${waiting("", sharedOfSubnet)}) w
            order by stands_at)
           union all
           (select w.*, w.due_at as stands_at
            from (${waiting(`offset ${sharedOfSubnet}`, mostOfSubnet - sharedOfSubnet)}) w)
         ) f
         where ${isFreeFor("f", "asked.crawler_id")} and ${isHeld("f")}
         limit asked.most`;
};

/** The first host of each requested subnet, then the second of each, and so on. */
export const inTurn = `
     select asked.crawler_id, ${columns(foundColumns, "h")}, h.stands_at
     from unnest($1::int[], $3::int[], $4::int[]) with ordinality as asked (crawler_id, most, subnet_id, turn)
     cross join lateral (
       select from delegation where subnet_id = asked.subnet_id and crawler_id = asked.crawler_id offset 0
     ) d
     cross join lateral (
       select *, row_number() over (order by stands_at) as place
       from (
         (${ofSubnet(`< ${firstHosts}`)})
         union all
         (${ofSubnet(`>= ${firstHosts}`)})
       ) one
     ) h
     order by h.place, asked.turn`;
