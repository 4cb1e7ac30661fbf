/** The oddities of generated worlds, where they are requested. */
import { describe, expect, it } from "vitest";
import { parseAddress } from "#core/ip/address";
import { isUnary, rangeHolds } from "#core/ip/range";
import { generateWorld } from "#ops/world/generate-world";
import { addressSeenBy, type WorldSite } from "#ops/world/model";
import { distanceKm } from "#ops/world/places";

const someOddities = {
  geoDns: 0.04,
  splitLeaves: 0.04,
};
const size = { seed: 5, sites: 800, crawlers: 20 } as const;
const world = generateWorld({ ...size, oddities: someOddities });
const crawlers = world.crawlers.map((_, index) => index);
const leafOf = (address: string) =>
  world.subnets.findLastIndex(({ range }) => !isUnary(range) && rangeHolds(range, parseAddress(address)!));

describe("a world without oddities", () => {
  const plain = generateWorld(size);

  it("has none of them, and is the world that no oddities were asked of", () => {
    const none = generateWorld({ ...size, oddities: { geoDns: 0 } });

    expect([none.sites, none.subnets]).toEqual([plain.sites, plain.subnets]);
    expect(plain.splitLeaves).toEqual([]);
    for (const site of plain.sites) {
      expect(site.addresses).toEqual([site.address]);
    }
  });

  it("refuses shares that are none", () => {
    expect(() => generateWorld({ ...size, oddities: { geoDns: 2 } })).toThrow(/geoDns is 2/);
  });
});

describe("a name with several addresses", () => {
  const named = world.sites.filter((site) => site.addresses.length > 1);

  it("has two to four, in ranges of their own", () => {
    expect(named.length).toBeGreaterThan(20);
    for (const { addresses, subnet } of named) {
      expect(addresses.length).toBeLessThanOrEqual(4);
      expect(leafOf(addresses[0]!)).toBe(subnet);
      expect(new Set(addresses.map(leafOf)).size).toBe(addresses.length);
    }
  });

  it("resolves to the nearest for each crawler, and to the first for anybody else", () => {
    for (const site of named) {
      expect(addressSeenBy(world, site, null)).toBe(site.address);
      for (const crawler of crawlers) {
        const seenMs = world.rttMs(crawler, addressSeenBy(world, site, crawler))!;
        expect(seenMs).toBe(Math.min(...site.addresses.map((address) => world.rttMs(crawler, address)!)));
      }
    }
    const told = named.map(
      (site) => new Set(crawlers.map((crawler) => addressSeenBy(world, site, crawler))).size,
    );
    expect(told.filter((addresses) => addresses > 1).length / named.length).toBeGreaterThan(0.8);
  });
});

describe("a split leaf", () => {
  it("is one registered range, used in one place below its boundary and far away above it", () => {
    expect(world.splitLeaves.length).toBeGreaterThan(2);
    for (const { subnet, boundary, places } of world.splitLeaves) {
      const { range } = world.subnets[subnet]!;
      const sites = world.sites.filter((site) => site.subnet === subnet);
      const isBelow = (site: WorldSite) => (parseAddress(site.address)!.value as number) < boundary;
      const [below, above] = [sites.filter(isBelow), sites.filter((site) => !isBelow(site))];

      expect(boundary).toBeGreaterThan(range.first as number);
      expect(boundary).toBeLessThan(range.last as number);
      expect(new Set(below.map((site) => site.place))).toEqual(new Set([places[0]]));
      expect(above.every((site) => site.place === places[1])).toBe(true);
      expect(distanceKm(world.places[places[0]]!, world.places[places[1]]!)).toBeGreaterThan(1500);
    }
  });
});
