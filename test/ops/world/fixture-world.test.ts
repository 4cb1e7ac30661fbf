import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { instanceOf } from "#ops/world/compare";
import { worldFromFixture } from "#ops/world/fixture-world";
import { pathOf } from "#ops/world/model";
import { sharedData } from "../../support/shared-data.ts";

/** Two crawlers, three sites; two sites share a leaf, one lies directly in an inner node. */
const small = {
  name: "small",
  unit: "ms RTT",
  crawlers: [
    { path: ["root", "north", "city", "c1"], org: "partner 1", cc: "c9" },
    { path: ["root", "south", "c2"], org: "partner 2", cc: "DE" },
  ],
  crawlerRtt: [
    [0.3, 80],
    [80, 0.3],
  ],
  targets: [
    { path: ["root", "north", "city", "shop"], org: "shop", cc: "c9", rtt: [5, 85] },
    { path: ["root", "north", "city", "shop"], org: "shop", cc: "c9", rtt: [6, 86] },
    { path: ["root", "north", "city"], org: "city works", cc: "c9", rtt: [7, 87] },
  ],
};

describe("a world from a fixture", () => {
  it("gives the paths addresses: the registry hierarchy is the tree of the fixture", () => {
    const world = worldFromFixture({ json: small });

    expect(world.sites.map((site) => pathOf(world, site.subnet))).toEqual([
      ["root", "north", "city", "shop"],
      ["root", "north", "city", "shop"],
      ["root", "north", "city", "city-own"],
    ]);
    expect(world.crawlers.map((crawler) => pathOf(world, crawler.subnet))).toEqual([
      ["root", "north", "city", "c1"],
      ["root", "south", "c2"],
    ]);
  });

  it("keeps the measured round trips", () => {
    const world = worldFromFixture({ json: small });

    expect(world.sites.map((site) => [0, 1].map((crawler) => world.rttMs(crawler, site.address)))).toEqual([
      [5, 85],
      [6, 86],
      [7, 87],
    ]);
    expect(world.crawlerRttMs(0, 1)).toBe(80);
    expect(world.rttMs(0, "9.9.9.9")).toBeNull();
  });

  it("gives countries two letters, the same for the same label", () => {
    const world = worldFromFixture({ json: small });

    const [first, second, third] = world.sites.map((site) => site.country);
    expect(first).toMatch(/^[A-Z]{2}$/);
    expect([second, third]).toEqual([first, first]);
    expect(world.crawlers.map((crawler) => crawler.country)).toEqual([first, "DE"]);
  });

  it("takes the first sites when fewer are asked for", () => {
    expect(worldFromFixture({ json: small, sites: 1 }).sites).toHaveLength(1);
  });

  it.each([
    ["no object", [], /fixture: the whole file/],
    ["a missing row", { ...small, crawlerRtt: [[0, 1]] }, /crawlerRtt: 1 values for 2/],
    [
      "a short row",
      { ...small, targets: [{ ...small.targets[0], rtt: [1] }] },
      /targets\[0\].rtt: 1 values for 2/,
    ],
    [
      "a negative RTT",
      { ...small, targets: [{ ...small.targets[0], rtt: [1, -1] }] },
      /targets\[0\].rtt\[1\]/,
    ],
  ])("refuses %s and says where", (_, json, reason) => {
    expect(() => worldFromFixture({ json })).toThrow(reason);
  });
});

const pl12 = sharedData("latency/PL12.json");

describe.skipIf(pl12 === null)("the measured matrix of 12 crawlers", () => {
  it("comes back from its world with the same tree, the same groups and the same round trips", () => {
    const json = JSON.parse(readFileSync(pl12!, "utf8"));
    const world = worldFromFixture({ json });
    const back = instanceOf(world);

    expect(back.targets.map((target) => [target.path, target.org, target.rtt])).toEqual(
      json.targets.map((target: { path: string[]; org: string; rtt: number[] }) => [
        target.path,
        target.org,
        target.rtt,
      ]),
    );
    const pairs = new Set(
      json.targets.map((target: { cc: string }, index: number) => `${target.cc} ${back.targets[index]!.cc}`),
    );
    expect(pairs.size).toBe(new Set(back.targets.map((target) => target.cc)).size);
    for (const { address } of world.sites) expect(specialPurposeOf(parseAddress(address)!)).toBeNull();
  });
});
