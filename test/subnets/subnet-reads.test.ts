import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chainOf,
  subnetsInside,
  subnetsOfCrawler,
  subnetsOfHolder,
} from "#coordinator/tell/who/subnet-reads";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
});
afterAll(async () => await database?.close());

const ranges = (chain: readonly { range: string }[]) => chain.map((subnet) => subnet.range);

describe("the chain over an address", () => {
  it("goes from the most specific subnet to the top, a unary one first", async () => {
    const chain = await chainOf(database.pool, "1.2.3.4", "1.2.3.4");

    expect(ranges(chain)).toEqual(["1.2.3.4/32", "1.2.3.0/24", "1.2.0.0/16", "1.0.0.0/8"]);
    expect(chain.map((subnet) => subnet.unary)).toEqual([true, false, false, false]);
  });

  it.each([
    ["climbs when the subnet that starts nearest below ends before it", "1.2.200.1", ["1.2.0.0/16"]],
    ["leaves out subnets that an import removed", "1.2.3.2", ["1.2.3.0/24"]],
    ["prefers the smaller of two that start together", "2a00:9::5", ["2a00:9::/48", "2a00:9::/32"]],
    ["begins with the smaller of two ranges that cross, as the tree does", "46.10.1.7", ["46.10.0.0/23"]],
    ["has the larger of them beside the smaller", "46.10.2.7", ["46.10.1.0 - 46.10.9.255"]],
    ["keeps IPv6 and IPv4 apart", "2a00:1::5", ["2a00:1::/32"]],
    ...["2a00:2::5", "::1", "0.0.0.1", "3.0.0.1", "255.255.255.255"].map(
      (none) => ["is empty", none, []] as const,
    ),
  ] as const)("%s: %s", async (_, address, expected) => {
    await database.pool.query(
      `insert into subnet (subnet_id, first_address, last_address, parent_id, registry, added_in, crosses)
       overriding system value
       values (899, '2a00:9::', '2a00:9:ffff:ffff:ffff:ffff:ffff:ffff', null, 'ripencc', 1, false),
         (900, '2a00:9::', '2a00:9:0:ffff:ffff:ffff:ffff:ffff', 899, 'ripencc', 1, false),
         (901, '46.10.0.0', '46.10.1.255', null, 'ripencc', 1, true),
         (902, '46.10.1.0', '46.10.9.255', null, 'ripencc', 1, true)`,
    );

    const chain = ranges(await chainOf(database.pool, address, address));
    await database.pool.query("delete from subnet where subnet_id between 899 and 902");

    expect(chain.slice(0, expected.length || 1)).toEqual(expected);
  });

  it("ends when the parents are circular by a fault", async () => {
    await database.pool.query(
      `insert into subnet (subnet_id, first_address, last_address, parent_id, registry, added_in)
       overriding system value
       values (903, '47.10.0.0', '47.10.1.255', 904, 'ripencc', 1), (904, '47.10.0.0', '47.10.3.255', 903, 'ripencc', 1)`,
    );

    const looking = chainOf(database.pool, "47.10.0.7", "47.10.0.7");

    await expect(looking).resolves.not.toHaveLength(0);
    await database.pool.query("delete from subnet where subnet_id in (903, 904)");
  });

  it("carries holder, country, registry and own delegation", async () => {
    const [subnet] = await chainOf(database.pool, "1.2.4.4", "1.2.4.4");

    expect(subnet).toMatchObject({
      name: "EXAMPLE-NET",
      holder: { name: "Example Networks", handle: "ORG-EX1-AP" },
      country: "GR",
      registry: "apnic",
      delegation: {
        crawler: { name: "athens", state: "online" },
        runnerUp: { name: "berlin" },
        rttMs: 12.5,
        runnerUpRttMs: 48.25,
        cause: "probe-round",
        since: "2026-03-01T11:10:01.000Z",
        roundId: 1,
      },
    });
  });

  it("of a range starts at the smallest subnet that holds all of it", async () => {
    expect(ranges(await chainOf(database.pool, "1.2.3.0", "1.2.3.255"))[0]).toBe("1.2.3.0/24");
    expect(ranges(await chainOf(database.pool, "1.2.2.0", "1.2.3.255"))[0]).toBe("1.2.0.0/16");
    expect(ranges(await chainOf(database.pool, "1.2.9.2", "1.2.9.7"))[0]).toBe("1.2.9.0 - 1.2.9.9");
  });
});

describe("lists of subnets", () => {
  it("inside a range show the effective delegation, own or inherited", async () => {
    const list = await subnetsInside(database.pool, { first: "1.2.0.0", last: "1.2.255.255" }, 10);

    expect(list.more).toBe(false);
    expect(list.subnets.map((line) => [line.range, line.crawler, line.inherited])).toEqual([
      ["1.2.3.0/24", "athens", true],
      ["1.2.3.4/32", "athens", true],
      ["1.2.9.0 - 1.2.9.9", "berlin", false],
    ]);
  });

  it("are cut at the limit and say so", async () => {
    const list = await subnetsInside(database.pool, { first: "1.0.0.0", last: "1.255.255.255" }, 2);

    expect(list.subnets).toHaveLength(2);
    expect(list.more).toBe(true);
  });

  it("of a holder and of a crawler show their ranges", async () => {
    const held = await subnetsOfHolder(database.pool, 1, 10);
    const crawled = await subnetsOfCrawler(database.pool, 2, 10);

    expect(held.subnets.map((line) => line.range)).toEqual([
      "1.2.0.0/16",
      "1.2.9.0 - 1.2.9.9",
      "2a00:1::/32",
    ]);
    expect(crawled.subnets.map((line) => line.range)).toEqual(["1.2.9.0 - 1.2.9.9", "2a00:1::/32"]);
  });
});
