/** Requests for work answered in one transaction: each gets what it would get alone, at a bounded cost. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SubnetTurns } from "#coordinator/crawl/frontier/due-host-reads";
import type { LeaseRequest } from "#coordinator/crawl/frontier/frontier";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { leaseHosts } from "#coordinator/crawl/frontier/host-lease-writes";
import { returnLeases } from "#coordinator/crawl/frontier/lease-end-writes";
import type { FrontierOrder } from "#coordinator/crawl/frontier/order/strategies";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";
import { openServerDatabase } from "#db/server-database";
import type { Lease } from "#protocol/lease";
import { noon, storeWorld } from "../support/store-world.ts";

const world = storeWorld();
beforeEach(async () => {
  await world.rows("delete from address_turn");
  await world.rows("delete from url_shortlist");
});

/** The subnet 16.0.n.0/24 of that crawler. */
async function subnetOf(crawlerId: CrawlerId, n: number): Promise<SubnetId> {
  const [high, low] = [n >> 8, n & 255];
  const subnetId = await world.subnet(`16.${high}.${low}.0`, `16.${high}.${low}.255`);
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
  return subnetId;
}

interface Due {
  readonly subnetId: SubnetId;
  readonly hosts: number;
  readonly urls: number;
  /** The first host has been due for so long, each further one a second less. */
  readonly dueSeconds: number;
  /** Names start with it. */
  readonly name: string;
  /** All hosts have this address; left out: each has its own. */
  readonly address?: string;
}

/** Every other URL was visited before; links count from 0 to 96. */
async function seed({ subnetId, hosts, urls, dueSeconds, name, address }: Due): Promise<void> {
  await world.pool.query(
    `with named as (
       select hashtextextended($1 || n, 0) as host_hash, $1 || n || '.example' as host, n,
         $2::timestamptz - make_interval(secs => $3::float8 - n) as due_at
       from generate_series(1, $4::int) n
     ), added as (
       insert into frontier_host (host_hash, host, state, addresses, subnet_id, due_at, url_count)
       select host_hash, host, 'resolved',
         array[coalesce($7::inet, '32.0.0.0'::inet + abs(host_hash % 100000000))], $5, due_at, $6
       from named
     )
     insert into frontier_url (host_hash, url_hash, url, next_fetch_at, back_links, last_fetched_at)
     select host_hash, page, 'http://' || host || '/' || page, due_at + make_interval(secs => page / 1e6), page * 31 % 97,
       case when page % 2 = 0 then $2::timestamptz - interval '9 days' end
     from named
     cross join generate_series(1, $6::int) page`,
    [name, noon, dueSeconds, hosts, subnetId, urls, address ?? null],
  );
}

const terms = (order?: FrontierOrder) => ({
  leaseSeconds: 60,
  addressRestSeconds: 0,
  now: noon,
  ...(order === undefined ? {} : { order }),
});

const request = (crawlerId: CrawlerId, given: Partial<LeaseRequest> = {}): LeaseRequest => ({
  ...{ crawlerId, hosts: 5, urlsPerHost: 3 },
  ...terms(),
  ...given,
});

/** Each request of a crawler in a transaction of its own, or all in one. */
async function together(requests: readonly LeaseRequest[], order?: FrontierOrder): Promise<Lease[][]> {
  return await leaseHosts(world.pool, requests, terms(order), new SubnetTurns());
}

const said = (leases: readonly Lease[][]) =>
  leases.map((of) => of.map(({ host, urls }) => [host, urls.map(({ url }) => url)]));
const hostsOf = (leases: readonly Lease[]) => leases.map(({ host }) => host.replace(".example", ""));

describe("a batch answers as its requests would be answered one by one", () => {
  const byLinks: FrontierOrder = { name: "back-links", newShare: 0.7, worthShare: 0.5 };
  const orders = [undefined, { name: "anansi", newShare: 0.5 }, byLinks] as const;

  it.each([1, 2, 3, 4, 5, 6])("whatever is due, and of whom (seed %i)", async (number) => {
    const random = seededRandom(20261126 + number);
    const below = (most: number) => Math.floor(random() * most);
    const order = orders[number % orders.length];
    const requests: LeaseRequest[] = [];
    let subnets = 0;
    for (let crawler = 0; crawler < 6; crawler++) {
      const crawlerId = await world.crawler(`c${crawler}`);
      // With eight or fewer they are all looked into; otherwise the front of what is due is, and then they are in turn.
      for (let n = below(14); n >= 0; n--) {
        const subnetId = await subnetOf(crawlerId, subnets++);
        const dueSeconds = 100 + below(5000) + random();
        await seed({ subnetId, hosts: below(8), urls: 1 + below(6), dueSeconds, name: `s${subnets}-` });
      }
      requests.push(request(crawlerId, { hosts: 1 + below(20), urlsPerHost: 1 + below(4) }));
    }
    await world.rows("update frontier_host set worth = 1 + host_hash % 90 where host_hash % 3 <> 0");
    await world.rows("create table as_it_was as table frontier_host");

    try {
      const singly: Lease[][] = [];
      for (const one of requests) singly.push(...(await together([one], order)));
      await world.rows("delete from lease");
      await world.rows("delete from address_turn");
      await world.rows("delete from url_shortlist");
      await world.rows("delete from frontier_host");
      await world.rows("insert into frontier_host select * from as_it_was");
      const atOnce = await together(requests, order);

      expect(said(atOnce)).toEqual(said(singly));
      expect(atOnce.flat().length).toBeGreaterThan(10);
      const parts = await world.rows(
        "select distinct tableoid from frontier_host where lease_id is not null",
      );
      expect(parts.length).toBeGreaterThan(1);
    } finally {
      await world.rows("drop table as_it_was");
    }
  });

  it("crawlers with different domain sets get their own hosts", async () => {
    const [north, south, all] = [
      await world.crawler("north"),
      await world.crawler("south"),
      await world.crawler("all"),
    ];
    for (const [n, crawlerId] of [north, south, all].entries()) {
      const subnetId = await subnetOf(crawlerId, n);
      await seed({ subnetId, hosts: 3, urls: 1, dueSeconds: 100, name: `a${n}-` });
    }
    await world.rows("update crawler set domain_sets = '{not .example}' where name = 'north'");
    await world.rows("update crawler set domain_sets = '{not .org}' where name = 'south'");

    const [ofNorth, ofSouth, ofAll] = await together([request(north), request(south), request(all)]);

    expect([ofNorth!, ofSouth!, ofAll!].map(hostsOf)).toEqual([
      [],
      ["a1-1", "a1-2", "a1-3"],
      ["a2-1", "a2-2", "a2-3"],
    ]);
  });
});

describe("in a batch", () => {
  it("an address that two want goes to the host that is due longer, whoever asked first", async () => {
    const [north, south] = [await world.crawler("north"), await world.crawler("south")];
    const address = "33.0.0.1";
    const late = { subnetId: await subnetOf(north, 0), dueSeconds: 100, name: "late" };
    const early = { subnetId: await subnetOf(south, 1), dueSeconds: 200, name: "early" };
    for (const one of [late, early]) await seed({ ...one, hosts: 1, urls: 1, address });

    const [ofNorth, ofSouth] = await together([request(north), request(south)]);

    expect([ofNorth!, ofSouth!].map(hostsOf)).toEqual([[], ["early1"]]);
  });

  it("a crawler that asks without end has one place: others wait for one of its requests at most", async () => {
    const [greedy, modest] = [await world.crawler("greedy"), await world.crawler("modest")];
    await seed({ subnetId: await subnetOf(greedy, 0), hosts: 300, urls: 1, dueSeconds: 1000, name: "g" });
    await seed({ subnetId: await subnetOf(modest, 1), hosts: 1, urls: 1, dueSeconds: 1, name: "m" });
    const frontier = createFrontierStore(world.pool);
    const answered: CrawlerId[] = [];
    const ask = async (crawlerId: CrawlerId) => {
      await frontier.leaseHosts(request(crawlerId, { hosts: 1 }));
      answered.push(crawlerId);
    };

    await Promise.all([...Array.from({ length: 100 }, async () => await ask(greedy)), ask(modest)]);

    expect(answered.indexOf(modest)).toBeLessThan(30);
  });
});

describe("a crawler with few subnets", () => {
  it.each([
    ["has all hosts of one where one has to do", 1, 20, [20]],
    ["has as many of each", 2, 10, [5, 5]],
  ])("%s, and none of another crawler's", async (_, count, hosts, expected) => {
    const [north, south] = [await world.crawler("north"), await world.crawler("south")];
    const subnets = [...Array(count).fill(north), south];
    for (const [n, crawlerId] of subnets.entries())
      await seed({
        subnetId: await subnetOf(crawlerId, n),
        ...{ hosts: 30, urls: 1, dueSeconds: 1000 - n, name: `s${n}-` },
      });

    const [leases] = await together([request(north, { hosts })]);

    const from = hostsOf(leases!).map((host) => host.slice(0, 2));
    expect(expected.map((_one, n) => from.filter((name) => name === `s${n}`).length)).toEqual(expected);
    expect(from).toHaveLength(hosts);
  });
});

describe("a request reads a bounded number of rows", () => {
  /** Rows of hosts and of URLs that the request read, by any way, as the server counts them; two steps look at 2,000 and 4,000. */
  async function rowsRead(
    one: LeaseRequest,
    order?: FrontierOrder,
  ): Promise<{ hosts: number; urls: number }> {
    // One connection, which tells what it counted when it is asked to.
    const { pool, close } = await openServerDatabase({
      databaseUrl: world.database.url,
      schema: world.database.schema,
      maxConnections: 1,
    });
    const counted = async () => {
      await pool.query("select pg_stat_force_next_flush()");
      const { rows } = await pool.query<{ hosts: number; urls: number }>(
        `select coalesce(sum(read) filter (where relname like 'frontier_host%'), 0)::int as hosts,
           coalesce(sum(read) filter (where relname like 'frontier_url%'), 0)::int as urls
         from (
           select relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read
           from pg_stat_user_tables where schemaname = current_schema()
         ) t`,
      );
      return rows[0]!;
    };
    try {
      const before = await counted();
      const [leases] = await leaseHosts(pool, [one], terms(order), new SubnetTurns());
      expect(leases).toHaveLength(one.hosts);
      const after = await counted();
      return { hosts: after.hosts - before.hosts, urls: after.urls - before.urls };
    } finally {
      await close();
    }
  }

  it.each([undefined, { name: "back-links", newShare: 0.7, worthShare: 0.5 } as const])(
    "of 30,000 hosts in one subnet, and of a host with 30,000 due URLs (%j)",
    async (order) => {
      const north = await world.crawler("north");
      // More subnets than are all looked into.
      for (let n = 0; n < 12; n++) await subnetOf(north, n);
      const subnetId = await subnetOf(north, 12);
      await seed({ subnetId, hosts: 30_000, urls: 1, dueSeconds: 40_000, name: "h" });
      await seed({ subnetId, hosts: 1, urls: 30_000, dueSeconds: 50_000, name: "huge" });
      await world.rows("update frontier_host set worth = 1");
      await world.rows("analyze frontier_host, frontier_url");

      const read = await rowsRead(request(north, { hosts: 20 }), order);

      expect(read.hosts).toBeLessThan(7000);
      expect(read.urls).toBeLessThan(2500);
    },
  );
});

describe("a connection that planned while tables were empty", () => {
  let north: CrawlerId;
  let connection: Awaited<ReturnType<typeof openServerDatabase>>;
  beforeEach(async () => {
    north = await world.crawler("north");
    await seed({
      subnetId: await subnetOf(north, 0),
      ...{ hosts: 40, urls: 1, dueSeconds: 1000, name: "h" },
    });
    // As it is after a night without work: the planner knows that they are empty.
    await world.rows("truncate lease, address_turn");
    for (const table of ["lease", "address_turn"]) await world.rows(`vacuum analyze ${table}`);
    connection = await openServerDatabase({
      databaseUrl: world.database.url,
      schema: world.database.schema,
      maxConnections: 1,
    });
  });
  afterEach(async () => await connection.close());

  async function leaseAndReturn(order?: FrontierOrder): Promise<void> {
    const { pool } = connection;
    const asked = [request(north, { hosts: 10 })];
    const [leases] = await leaseHosts(pool, asked, terms(order), new SubnetTurns());
    const ends = leases!.map(({ leaseId }) => ({
      lease: { leaseId: asLeaseId(leaseId), crawlerId: north },
      now: noon,
    }));
    expect((await returnLeases(pool, ends)).filter((host) => host !== null)).toHaveLength(10);
  }

  it("reads addresses and leases by key when they are full", async () => {
    const rowsRead = async () => {
      await connection.pool.query("select pg_stat_force_next_flush()");
      const { rows } = await connection.pool.query<{ read: number }>(
        `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
         from pg_stat_user_tables where schemaname = current_schema() and relname in ('lease', 'address_turn')`,
      );
      return rows[0]!.read;
    };
    await leaseAndReturn();
    await world.rows(
      `insert into address_turn (address, crawler_id, rest_seconds, since)
       select ('64.0.0.0'::inet + n)::cidr, ${north}, 10, now() from generate_series(1, 3000) n`,
    );
    await world.rows(
      `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
       select ${north}, n, 'other' || n || '.example', now(), now() + interval '1 hour', 1, 1
       from generate_series(1, 3000) n`,
    );
    const before = await rowsRead();

    await leaseAndReturn();

    expect((await rowsRead()) - before).toBeLessThan(500);
  });

  it.each([undefined, { name: "back-links", newShare: 0.7, worthShare: 0.5 } as const])(
    "compares no row of a batch with every other (%j)",
    async (order) => {
      await leaseAndReturn(order);

      const { rows } = await connection.pool.query<{ name: string; text: string; parameters: number }>(
        `select name, statement as text, cardinality(parameter_types) as parameters from pg_prepared_statements
         where name like 'nearcrawl-%'`,
      );
      expect(rows.length).toBeGreaterThan(5);
      // The plans that were made, and no new ones.
      await connection.pool.query("set plan_cache_mode = force_generic_plan");
      const joinedByGoingThrough: string[] = [];
      for (const { name, text, parameters } of rows) {
        const values = Array.from({ length: parameters }, () => "null").join();
        const plan = await connection.pool.query<{ "QUERY PLAN": string }>(
          `explain execute "${name}" (${values})`,
        );
        const lines = plan.rows.map((line) => line["QUERY PLAN"]).join("\n");
        if (/Nested Loop.*\n(\s+Disabled: true\n)?\s+Join Filter/.test(lines))
          joinedByGoingThrough.push(text);
      }
      expect(joinedByGoingThrough).toEqual([]);
    },
  );
});
