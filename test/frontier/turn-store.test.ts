/** Over the whole fleet, an address is asked by one crawler at a time, whoever has the hosts that are behind it. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { forgetTurns } from "#coordinator/frontier/address-turn-writes";
import type { CrawlerId } from "#core/ids";
import { asLeaseId, asSubnetId } from "#core/ids";
import {
  arrivedResult,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
  type World,
} from "../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

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
const hostsOf = (leases: Awaited<ReturnType<typeof leased>>) => leases.map(({ host }) => host).sort();

const giveBack = async (crawlerId: CrawlerId, leaseId: string, seconds: number) =>
  await world.frontier.returnLease(
    { leaseId: asLeaseId(leaseId), crawlerId, hostWaitMs: 0 },
    secondsAfterNoon(seconds),
  );

describe("an address", () => {
  it("that two crawlers have hosts at is the turn of one, and after a rest the other's", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");

    const [first] = await leased(north);
    const meanwhile = await leased(south);
    await giveBack(north, first!.leaseId, 10);
    const tooEarly = await leased(south, 14);
    const rested = await leased(south, 15);

    expect(first?.host).toBe("a.example");
    expect([hostsOf(meanwhile), hostsOf(tooEarly), hostsOf(rested)]).toEqual([[], [], ["b.example"]]);
  });

  it("is one crawler's with all hosts that it has there, and free when the last of them is", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", north, "192.0.2.1");
    await host("c", south, "192.0.2.1");

    const both = await leased(north);
    await giveBack(north, both[0]!.leaseId, 1);
    const oneLeft = await leased(south, 10);
    await giveBack(north, both[1]!.leaseId, 11);
    const noneLeft = await leased(south, 16);

    expect([hostsOf(both), hostsOf(oneLeft), hostsOf(noneLeft)]).toEqual([
      ["a.example", "b.example"],
      [],
      ["c.example"],
    ]);
  });

  it("goes to the crawler that had it without a rest: it keeps the pace itself", async () => {
    const { north, host } = await fleet();
    await host("a", north, "192.0.2.1");

    const [first] = await leased(north);
    await giveBack(north, first!.leaseId, 1);

    expect(hostsOf(await leased(north, 1))).toEqual(["a.example"]);
  });

  it("rests longer after a lease that ran out, since a request may be under way", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.1");
    await leased(north);

    await world.frontier.returnExpired(secondsAfterNoon(60));

    expect(hostsOf(await leased(south, 89))).toEqual([]);
    expect(hostsOf(await leased(south, 90))).toEqual(["b.example"]);
  });

  it("of IPv6 counts with its /64, and not with its neighbours", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "2001:db8:0:1::1");
    await host("b", south, "2001:db8:0:1:ffff::2");
    await host("c", south, "2001:db8:0:2::1");
    await leased(north);

    expect(hostsOf(await leased(south))).toEqual(["c.example"]);
  });

  it("that is one of several of a host holds up the host", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1", "192.0.2.2", "2001:db8::1");
    await host("b", south, "192.0.2.3", "192.0.2.2");
    await host("c", south, "192.0.2.3");
    await leased(north);

    expect(hostsOf(await leased(south))).toEqual(["c.example"]);
  });

  it("is anybody's after half a minute of leases that follow each other", async () => {
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

    expect([hostsOf(tooLong), hostsOf(resting), hostsOf(others)]).toEqual([[], [], ["z.example"]]);
  });

  it("is one crawler's even when twenty ask at once", async () => {
    const { north, south, host } = await fleet();
    for (const name of ["a", "b", "c", "d"])
      await host(name, north, "192.0.2.1", `192.0.2.${name.charCodeAt(0)}`);
    for (const name of ["s", "t", "u", "v"]) await host(name, south, "192.0.2.1");

    const asked = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await leased(n % 2 === 0 ? north : south, 0, 2)),
    );

    const [ofNorth, ofSouth] = [0, 1].map((side) => asked.flatMap((got, n) => (n % 2 === side ? got : [])));
    expect(Math.min(ofNorth!.length, ofSouth!.length)).toBe(0);
    expect(Math.max(ofNorth!.length, ofSouth!.length)).toBe(4);
  });

  it("that only crawlers were led to counts from the host's next lease on, once a second one names it", async () => {
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

  it("that nobody asks any more is forgotten", async () => {
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

  it("that nobody else has a host at holds nobody up", async () => {
    const { north, south, host } = await fleet();
    await host("a", north, "192.0.2.1");
    await host("b", south, "192.0.2.2");

    expect([hostsOf(await leased(north)), hostsOf(await leased(south))]).toEqual([
      ["a.example"],
      ["b.example"],
    ]);
  });
});
