/** Over the whole fleet, one crawler at a time uses an address, whoever has the hosts behind it: turns are taken, returned or expire. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { forgetTurns } from "#coordinator/crawl/frontier/address-turn-store";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { asLeaseId, asSubnetId, type CrawlerId } from "#core/ids";
import type { Lease } from "#protocol/lease";
import {
  arrivedResult,
  batchOf,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  storeWorld,
} from "../support/store-world.ts";
import { watched } from "../support/watched-pool.ts";

const world = storeWorld();

/** North and south have a /24 each; hosts are put into either, at whatever addresses. */
async function fleet() {
  const [north, south] = [await world.crawler("north"), await world.crawler("south")];
  const northern = await world.subnet("198.51.100.0", "198.51.100.255");
  const southern = await world.subnet("203.0.113.0", "203.0.113.255");
  await world.delegations.delegateOwnSubnet(northern, north, noon);
  await world.delegations.delegateOwnSubnet(southern, south, noon);
  const host = async (name: string, of: CrawlerId, ...addresses: string[]) => {
    await world.frontier.admit(seeds(`http://${name}.example/`, `http://${name}.example/2`), scope, noon);
    const subnetId = asSubnetId(of === north ? northern : southern);
    await world.frontier.saveResolutions(
      [{ type: "resolved", host: `${name}.example`, addresses, subnetId, ttlSeconds: 3600 }],
      noon,
    );
  };
  return { north, south, host };
}

const leased = async (crawlerId: CrawlerId, seconds = 0, hosts = 10) => {
  const now = secondsAfterNoon(seconds);
  const request = { crawlerId, hosts, urlsPerHost: 1, leaseSeconds: 60, addressRestSeconds: 5, now };
  return await world.frontier.leaseHosts(request);
};
const hostsOf = (leases: readonly Lease[]) => leases.map(({ host }) => host.replace(".example", "")).sort();
const turns = async () =>
  (
    await world.pool.query(
      "select host(address) as address, crawler_id, leases from address_turn order by address",
    )
  ).rows;

const giveBack = async (crawlerId: CrawlerId, leaseId: string, seconds: number) =>
  await world.frontier.returnLease(
    { leaseId: asLeaseId(leaseId), crawlerId, hostWaitMs: 0 },
    secondsAfterNoon(seconds),
  );

describe("an address", () => {
  it("shared by two crawlers' hosts is used by one, and after a rest by the other", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");

    const [first] = await leased(north);
    const meanwhile = await leased(south);
    await giveBack(north, first!.leaseId, 10);
    const tooEarly = await leased(south, 14);
    const rested = await leased(south, 15);

    expect(first?.host).toBe("a.example");
    expect([hostsOf(meanwhile), hostsOf(tooEarly), hostsOf(rested)]).toEqual([[], [], ["b"]]);
  });

  it("belongs to one crawler for all its hosts there, and is free when the last of them is", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", north, "192.0.2.1");
    await host("c", south, "192.0.2.1");

    const both = await leased(north);
    await giveBack(north, both[0]!.leaseId, 1);
    const oneLeft = await leased(south, 10);
    await giveBack(north, both[1]!.leaseId, 11);
    const noneLeft = await leased(south, 16);

    expect([hostsOf(both), hostsOf(oneLeft), hostsOf(noneLeft)]).toEqual([["a", "b"], [], ["c"]]);
  });

  it("goes back to the same crawler without a rest, since that keeps the pace itself", async () => {
    const { north, host } = await fleet();
    await host("a", north, "192.0.2.1");

    const [first] = await leased(north);
    await giveBack(north, first!.leaseId, 1);

    expect(hostsOf(await leased(north, 1))).toEqual(["a"]);
  });

  it("rests longer after an expired lease, since a request may be under way", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");
    await leased(north);

    await world.frontier.returnExpired(secondsAfterNoon(60));

    expect(hostsOf(await leased(south, 89))).toEqual([]);
    expect(hostsOf(await leased(south, 90))).toEqual(["b"]);
  });

  it("of IPv6 counts with its /64, and not with its neighbours", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "2001:db8:0:1::1");
    await host("b", south, "2001:db8:0:1:ffff::2");
    await host("c", south, "2001:db8:0:2::1");
    await leased(north);

    expect(hostsOf(await leased(south))).toEqual(["c"]);
  });

  it("in use blocks every host that also has it", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1", "192.0.2.2", "2001:db8::1");
    await host("b", south, "192.0.2.3", "192.0.2.2");
    await host("c", south, "192.0.2.3");
    await leased(north);

    expect(hostsOf(await leased(south))).toEqual(["c"]);
  });

  it("is free for others after half a minute of continuous leases", async () => {
    const { north, south, host } = await fleet();
    for (const name of ["a", "b", "c"]) await host(name, north, "192.0.2.1");
    await host("z", south, "192.0.2.1");

    const [first] = await leased(north, 0, 1);
    const [second] = await leased(north, 20, 1);
    await giveBack(north, first!.leaseId, 25);
    const tooLong = await leased(north, 30);
    await giveBack(north, second!.leaseId, 40);
    const resting = await leased(north, 44);
    const others = await leased(south, 45);

    expect([hostsOf(tooLong), hostsOf(resting), hostsOf(others)]).toEqual([[], [], ["z"]]);
  });

  it("belongs to one crawler even when twenty requests collide", async () => {
    const { north, south, host } = await fleet();
    for (const [index, name] of ["a", "b", "c", "d", "s", "t", "u", "v"].entries())
      await host(name, index < 4 ? north : south, "192.0.2.1", `192.0.2.${name.charCodeAt(0)}`);

    const asked = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await leased(n % 2 === 0 ? north : south, 0, 2)),
    );

    const [ofNorth, ofSouth] = [0, 1].map((side) => asked.flatMap((got, n) => (n % 2 === side ? got : [])));
    expect(Math.min(ofNorth!.length, ofSouth!.length)).toBe(0);
    expect(Math.max(ofNorth!.length, ofSouth!.length)).toBe(4);
    // And those who got nothing have left nothing behind.
    expect((await turns()).reduce((sum, { leases }) => sum + leases, 0)).toBe(8);
  });

  it("that only crawlers were directed to counts from the next lease, once a second crawler reports it", async () => {
    const { north, south, host } = await fleet();
    const third = await world.crawler("third");
    await host("a", north, "192.0.2.1");
    await host("b", south, "8.8.8.8");
    const reported = async (crawlerId: CrawlerId, seconds: number) => {
      await world.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [noon]);
      const [lease] = await leased(crawlerId, seconds);
      const [first] = lease!.urls;
      const arrived = arrivedResult({ sequence: seconds + 1, leaseId: lease!.leaseId, url: first!.url });
      const batch = [{ ...arrived, result: { ...arrived.result, address: "8.8.8.8" } }];
      await world.take(crawlerId, batch, secondsAfterNoon(seconds));
      return lease!.host;
    };
    const hasA = async (crawlerId: CrawlerId) =>
      await world.pool.query(
        "update delegation set crawler_id = $1 where subnet_id = (select subnet_id from frontier_host where host = 'a.example')",
        [crawlerId],
      );
    const seen = async () =>
      (
        await world.rows<{ seen: string[] }>(
          "select seen_addresses::text[] as seen from frontier_host where host = 'a.example'",
        )
      )[0]?.seen;

    const byOne = [await reported(north, 0), await seen()];
    const twiceByOne = [await reported(north, 3600), await seen()];
    await hasA(third);
    const byAnother = [await reported(third, 7200), await seen()];
    await leased(third, 10_800);

    expect([byOne, twiceByOne]).toEqual(Array(2).fill(["a.example", []]));
    expect(byAnother).toEqual(["a.example", ["8.8.8.8/32"]]);
    expect(hostsOf(await leased(south, 10_800))).toEqual([]);
  });

  it("without leases for an hour is forgotten", async () => {
    const { north, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", north, "192.0.2.2");
    const [first] = await leased(north);
    await giveBack(north, first!.leaseId, 1);

    const left = async (seconds: number) => {
      await forgetTurns(world.pool, secondsAfterNoon(seconds));
      return await world.rows("select leases from address_turn");
    };
    // One rests until a few seconds after noon; the other's lease runs out after a minute, and half a minute is rest.
    const rested = [await left(3606), await left(3607), await left(3690), await left(3691)];

    expect(rested).toEqual([[{ leases: 0 }, { leases: 0 }], [{ leases: 0 }], [{ leases: 0 }], []]);
  });
});

describe("turns", () => {
  it("end with the results that complete a lease", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");
    const [lease] = await leased(north);

    const arrived = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: lease!.urls[0]!.url });
    const batch = batchOf(north, [arrived], { now: secondsAfterNoon(2) });
    const taken = await createResultStore(world.pool, null).take(batch);

    expect(taken.stored).toBe(1);
    expect([hostsOf(await leased(south, 6)), hostsOf(await leased(south, 7))]).toEqual([[], ["b"]]);
  });
});

describe("of turns", () => {
  it("a turn taken for a host that gets no lease is given back", async () => {
    const { north, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", north, "192.0.2.1", "192.0.2.2");
    // As its host has it, something of b is due.
    await world.rows("update frontier_url set next_fetch_at = 'infinity' where url like 'http://b.%'");

    const got = hostsOf(await leased(north));

    expect(got).toEqual(["a"]);
    expect(await turns()).toEqual([
      { address: "192.0.2.1", crawler_id: north, leases: 1 },
      { address: "192.0.2.2", crawler_id: north, leases: 0 },
    ]);
  });

  it("all turns are given back when leases cannot be written", async () => {
    const { north, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await world.rows("alter table lease add constraint none_of_a check (host <> 'a.example')");

    try {
      await expect(leased(north)).rejects.toThrow("none_of_a");
    } finally {
      await world.rows("alter table lease drop constraint none_of_a");
    }

    expect((await turns()).filter(({ leases }) => leases > 0)).toEqual([]);
    expect(hostsOf(await leased(north))).toEqual(["a"]);
  });

  it("the end of an expired lease is not subtracted from a turn that began later", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");
    await host("c", north, "192.0.2.1");
    await leased(north);

    // The leases of north run out after 60 s, and the address rests for 30 s more; nobody has closed them.
    const early = hostsOf(await leased(south, 89));
    const late = hostsOf(await leased(south, 90));
    await world.frontier.returnLeasesOf(north, secondsAfterNoon(91));
    const others = hostsOf(await leased(north, 100));

    expect([early, late, others]).toEqual([[], ["b"], []]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: south, leases: 1 }]);
  });

  it("nor from a new turn of the same crawler", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    const [old] = await leased(north);
    await host("b", north, "192.0.2.1");
    await host("c", south, "192.0.2.1");

    const again = hostsOf(await leased(north, 90));
    await world.frontier.returnLease(
      { leaseId: asLeaseId(old!.leaseId), crawlerId: north },
      secondsAfterNoon(91),
    );

    expect(again).toEqual(["b"]);
    expect(await turns()).toEqual([{ address: "192.0.2.1", crawler_id: north, leases: 1 }]);
    expect(hostsOf(await leased(south, 100))).toEqual([]);
  });

  it("many leases need no more statements than one", async () => {
    const { north, host } = await fleet();
    let sequence = 0;
    const counted = async (names: readonly string[]) => {
      for (const name of names) {
        const address = `192.0.2.${10 + name.charCodeAt(0) - 97}`;
        await host(name, north, "192.0.2.1", address);
      }
      const statements: string[] = [];
      // Without looks for hosts, of which there are more where few subnets have many.
      const pool = watched(world.pool, async (_client, text) => {
        if (!/ as asked \(/.test(text)) statements.push(text);
      });
      const frontier = createFrontierStore(pool);
      const terms = { urlsPerHost: 1, leaseSeconds: 60, addressRestSeconds: 0, now: noon };
      const numbers: number[] = [];
      const since = () => numbers.push(statements.splice(0).length);
      const leases = await frontier.leaseHosts({ crawlerId: north, hosts: names.length, ...terms });
      expect(leases).toHaveLength(names.length);
      since();
      await Promise.all(
        leases.slice(1).map(async ({ leaseId }) => {
          await world.frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId: north }, noon);
        }),
      );
      since();
      const [{ leaseId, urls }] = leases as [Lease];
      sequence += 1;
      const arrived = arrivedResult({ sequence, leaseId, url: urls[0]!.url });
      await createResultStore(pool, null).take(batchOf(north, [arrived]));
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

it("a turn written by a clock that was set back since ends after a rest", async () => {
  const { north, south, host } = await fleet();
  const day = 86_400;
  await host("a", north, "192.0.2.1");
  await host("b", north, "192.0.2.2");
  await host("c", south, "192.0.2.1");
  await host("d", south, "192.0.2.2");
  const leases = await leased(north, day);
  const b = leases.find((lease) => lease.host === "b.example")!;
  await world.frontier.returnLease(
    { leaseId: asLeaseId(b.leaseId), crawlerId: (await turns())[0]!.crawler_id },
    secondsAfterNoon(day + 1),
  );

  await forgetTurns(world.pool, noon);

  expect([hostsOf(await leased(south, 29)), hostsOf(await leased(south, 30))]).toEqual([[], ["c", "d"]]);
});

it("only the modules that keep turns write leases, and only one writes table address_turn", () => {
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

  expect(writing("address_turn")).toEqual(["coordinator/crawl/frontier/address-turn-store.ts"]);
  // Two are parts of statements: of those in host-lease-writes and cross-fetch-store,. One sets
  // times right that a wrong clock wrote, and ends no lease.
  expect(writing("lease").toSorted()).toEqual([
    "coordinator/crawl/frontier/lease-end-writes.ts",
    "coordinator/crawl/frontier/of-the-future-writes.ts",
    "coordinator/crawl/frontier/open-lease-reads.ts",
    "coordinator/crawl/results/result-store.ts",
    "coordinator/crawl/trust/cross-fetch-verdict-store.ts",
  ]);
});
