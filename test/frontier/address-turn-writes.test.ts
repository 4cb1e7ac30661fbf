/** Turns at addresses: what is taken is given back or runs out. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool, PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forgetTurns } from "#coordinator/frontier/address-turn-writes";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { createResultStore } from "#coordinator/results/result-store";
import { asLeaseId, asSubnetId, type CrawlerId } from "#core/ids";
import type { Lease } from "#protocol/lease";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  spoolId,
  type World,
} from "../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world?.close());

/** North and south have a subnet each. */
async function fleet() {
  const crawlers = new Map<string, CrawlerId>();
  for (const [n, name] of ["north", "south"].entries()) {
    const crawlerId = await world.crawler(name);
    const subnetId = await world.subnet(`198.51.${n}.0`, `198.51.${n}.255`);
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    crawlers.set(name, crawlerId);
  }
  const frontier = createFrontierStore(world.pool);
  const host = async (name: string, of: "north" | "south", ...addresses: string[]) => {
    await world.frontier.admit(seeds(`http://${name}.example/`, `http://${name}.example/2`), scope, noon);
    const [row] = await world.rows<{ subnet_id: number }>(
      `select d.subnet_id from delegation d where d.crawler_id = ${crawlers.get(of)}`,
    );
    const subnetId = asSubnetId(row!.subnet_id);
    await world.frontier.saveResolutions(
      [{ type: "resolved", host: `${name}.example`, addresses, subnetId, ttlSeconds: 3600 }],
      noon,
    );
  };
  const ask = async (name: "north" | "south", seconds = 0): Promise<Lease[]> =>
    await frontier.leaseHosts({
      ...{ crawlerId: crawlers.get(name)!, hosts: 10, urlsPerHost: 1, leaseSeconds: 60 },
      ...{ addressRestSeconds: 5, now: secondsAfterNoon(seconds) },
    });
  return { ask, frontier, host, north: crawlers.get("north")!, south: crawlers.get("south")! };
}

const hostsOf = (leases: readonly Lease[]) => leases.map(({ host }) => host.replace(".example", "")).sort();
const turns = async () =>
  (
    await world.pool.query(
      "select host(address) as address, crawler_id, leases from address_turn order by address",
    )
  ).rows;

describe("turns", () => {
  it("let one crawler have an address, and the other after a rest", async () => {
    const { ask, frontier, host, north } = await fleet();
    await host("a", "north", "192.0.2.1");
    await host("b", "north", "192.0.2.1", "192.0.2.2");
    await host("c", "south", "192.0.2.2");

    const first = hostsOf(await ask("north"));
    const meanwhile = hostsOf(await ask("south", 1));
    await frontier.returnLeasesOf(north, secondsAfterNoon(10));
    const resting = hostsOf(await ask("south", 14));
    const rested = hostsOf(await ask("south", 15));

    expect([first, meanwhile, resting, rested]).toEqual([["a", "b"], [], [], ["c"]]);
  });

  it("are one crawler's even when twenty ask at once", async () => {
    const { ask, host } = await fleet();
    for (const [n, name] of ["a", "b", "c", "d"].entries())
      await host(name, "north", "192.0.2.1", `192.0.2.${10 + n}`);
    for (const [n, name] of ["s", "t", "u", "v"].entries())
      await host(name, "south", `192.0.2.${20 + n}`, "192.0.2.1");

    const asked = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await ask(n % 2 === 0 ? "north" : "south")),
    );

    const [ofNorth, ofSouth] = [0, 1].map((side) => asked.flatMap((got, n) => (n % 2 === side ? got : [])));
    expect(Math.min(ofNorth!.length, ofSouth!.length)).toBe(0);
    expect(Math.max(ofNorth!.length, ofSouth!.length)).toBe(4);
    // And those who got nothing have left nothing behind.
    expect((await turns()).reduce((sum, { leases }) => sum + leases, 0)).toBe(8);
  });

  it("end with the results that complete a lease", async () => {
    const { ask, host, north } = await fleet();
    await host("a", "north", "192.0.2.1");
    await host("b", "south", "192.0.2.1");
    const [lease] = await ask("north");

    const arrived = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: lease!.urls[0]!.url });
    const batch = { crawlerId: north, spoolId, results: [arrived], lastSequence: 1, scope };
    const results = createResultStore(world.pool, null);
    const taken = await results.take({ ...batch, now: secondsAfterNoon(2) });

    expect(taken.stored).toBe(1);
    expect([hostsOf(await ask("south", 6)), hostsOf(await ask("south", 7))]).toEqual([[], ["b"]]);
  });
});

describe("of turns", () => {
  it("what was taken for a host that gets no lease is given back", async () => {
    const { ask, host, north } = await fleet();
    await host("a", "north", "192.0.2.1");
    await host("b", "north", "192.0.2.1", "192.0.2.2");
    // As its host has it, something of b is due.
    await world.rows("update frontier_url set next_fetch_at = 'infinity' where url like 'http://b.%'");

    const got = hostsOf(await ask("north"));

    expect(got).toEqual(["a"]);
    expect(await turns()).toEqual([
      { address: "192.0.2.1", crawler_id: north, leases: 1 },
      { address: "192.0.2.2", crawler_id: north, leases: 0 },
    ]);
  });

  it("all is given back when leases cannot be written", async () => {
    const { ask, host } = await fleet();
    await host("a", "north", "192.0.2.1");
    await world.rows("alter table lease add constraint none_of_a check (host <> 'a.example')");

    try {
      await expect(ask("north")).rejects.toThrow("none_of_a");
    } finally {
      await world.rows("alter table lease drop constraint none_of_a");
    }

    expect((await turns()).filter(({ leases }) => leases > 0)).toEqual([]);
    expect(hostsOf(await ask("north"))).toEqual(["a"]);
  });

  it("the end of an old lease takes nothing off a turn that began after it had run out", async () => {
    const { ask, frontier, host, north, south } = await fleet();
    await host("a", "north", "192.0.2.1");
    await host("b", "south", "192.0.2.1");
    await host("c", "north", "192.0.2.1");
    await ask("north");

    // The leases of north run out after 60 s, and the address rests for 30 s more; nobody has closed them.
    const early = hostsOf(await ask("south", 89));
    const late = hostsOf(await ask("south", 90));
    await frontier.returnLeasesOf(north, secondsAfterNoon(91));
    const others = hostsOf(await ask("north", 100));

    expect([early, late, others]).toEqual([[], ["b"], []]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: south, leases: 1 }]);
  });

  it("nor off a new turn of the same crawler", async () => {
    const { ask, frontier, host, north } = await fleet();
    await host("a", "north", "192.0.2.1");
    const [old] = await ask("north");
    await host("b", "north", "192.0.2.1");
    await host("c", "south", "192.0.2.1");

    const again = hostsOf(await ask("north", 90));
    await frontier.returnLease({ leaseId: asLeaseId(old!.leaseId), crawlerId: north }, secondsAfterNoon(91));

    expect(again).toEqual(["b"]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: north, leases: 1 }]);
    expect(hostsOf(await ask("south", 100))).toEqual([]);
  });

  it("no more statements are needed for many leases than for one", async () => {
    const { host, north } = await fleet();
    let sequence = 0;
    const counted = async (names: readonly string[]) => {
      for (const name of names) {
        const address = `192.0.2.${10 + name.charCodeAt(0) - 97}`;
        await host(name, "north", "192.0.2.1", address);
      }
      const statements: string[] = [];
      const pool = counting(world.pool, statements);
      const frontier = createFrontierStore(pool);
      const terms = { urlsPerHost: 1, leaseSeconds: 60, addressRestSeconds: 0, now: noon };
      const numbers: number[] = [];
      const since = () => numbers.push(statements.splice(0).length);
      const leases = await frontier.leaseHosts({ crawlerId: north, hosts: names.length, ...terms });
      expect(leases).toHaveLength(names.length);
      since();
      await Promise.all(
        leases.slice(1).map(async ({ leaseId }) => {
          await frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId: north }, noon);
        }),
      );
      since();
      const [{ leaseId, urls }] = leases as [Lease];
      sequence += 1;
      const arrived = arrivedResult({ sequence, leaseId, url: urls[0]!.url });
      const batch = { crawlerId: north, spoolId, results: [arrived], lastSequence: sequence, scope };
      await createResultStore(pool, null).take({ ...batch, now: noon });
      since();
      await world.rows("update frontier_host set not_before = 'infinity'");
      return numbers;
    };
    // The first lease that is given back goes alone, the others together.
    const [few, many] = [await counted([..."abc"]), await counted([..."defghijklmnopqrst"])];

    expect(many).toEqual(few);
    expect(Math.max(...many)).toBeLessThan(60);
  });
});

/** The same pool; what it is asked is noted, without looks for hosts, of which there are more where few subnets have many. */
function counting(pool: Pool, statements: string[]): Pool {
  const connect = async () => {
    const client = await pool.connect();
    const query = (first: unknown, ...more: unknown[]) => {
      const text = typeof first === "string" ? first : (first as { text: string }).text;
      if (!/ as asked \(/.test(text)) statements.push(text);
      return (client.query as (...all: unknown[]) => unknown).call(client, first, ...more);
    };
    return Object.assign(Object.create(client) as PoolClient, {
      query,
      release: (broken?: boolean) => client.release(broken),
    });
  };
  return Object.assign(Object.create(pool) as Pool, { connect });
}

it("a turn of a clock that went back since is over after a rest", async () => {
  const { ask, frontier, host } = await fleet();
  const day = 86_400;
  await host("a", "north", "192.0.2.1");
  await host("b", "north", "192.0.2.2");
  await host("c", "south", "192.0.2.1");
  await host("d", "south", "192.0.2.2");
  const leases = await ask("north", day);
  const b = leases.find((lease) => lease.host === "b.example")!;
  await frontier.returnLease(
    { leaseId: asLeaseId(b.leaseId), crawlerId: (await turns())[0]!.crawler_id },
    secondsAfterNoon(day + 1),
  );

  await forgetTurns(world.pool, noon);

  expect([hostsOf(await ask("south", 29)), hostsOf(await ask("south", 30))]).toEqual([[], ["c", "d"]]);
});

it("whoever writes leases tells of their turns, and nobody else writes table address_turn", () => {
  const root = join(import.meta.dirname, "../..");
  const sources = ["coordinator", "rir-import", "ops", "db"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name)),
  );
  const writing = (table: string) =>
    sources.filter((name) =>
      new RegExp(`\\b(insert into|update|delete from) ${table}\\b`).test(
        readFileSync(join(root, name), "utf8"),
      ),
    );

  expect(writing("address_turn")).toEqual(["coordinator/frontier/address-turn-writes.ts"]);
  // Two are parts of statements: of those in host-lease-writes and cross-fetch-store, and of closed leases alone. One sets
  // times right that a wrong clock wrote, and ends no lease.
  expect(writing("lease").toSorted()).toEqual([
    "coordinator/frontier/closed-lease-store.ts",
    "coordinator/frontier/lease-end-writes.ts",
    "coordinator/frontier/of-the-future-writes.ts",
    "coordinator/frontier/open-lease-reads.ts",
    "coordinator/results/result-writes.ts",
    "coordinator/trust/cross-fetch-verdict-store.ts",
  ]);
});
