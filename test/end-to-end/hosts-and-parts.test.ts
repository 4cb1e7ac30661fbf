/**
 * GeoDNS, and ranges used in two places, on the emulated Internet: the crawl notices both by itself, the leaf is split and the
 * hosts are delegated one by one, each to the crawler nearest to the address it sees; `who` gives the reason; and what a
 * departed crawler owned in this way goes to another.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { parseAddress } from "#core/ip/address";
import { parseRange, rangeHolds } from "#core/ip/range";
import { generateWorld } from "#ops/world/generate-world";
import { addressSeenBy, type WorldSite } from "#ops/world/model";
import { until } from "../support/until.ts";
import { type EmulatedFleet, emulatedFleet, excessMs, frontPages } from "./emulated-fleet.ts";

const world = generateWorld({
  seed: 4,
  sites: 30,
  crawlers: 5,
  oddities: { geoDns: 0.1, splitLeaves: 0.3 },
});
const split = world.splitLeaves[0]!;
const inSplitLeaf = world.sites.filter(({ subnet }) => subnet === split.subnet);
const byPlace = world.sites.filter(({ addresses }) => addresses.length > 1);
const scope = { pagesPerHost: 3, maxDepth: 3, admitNewHosts: true };

let fleet: EmulatedFleet;
let webUrl: string;
/** The coordinator's clock runs ahead by this: names are resolved again when their TTL is over. */
let aheadMs = 0;

beforeAll(async () => {
  fleet = await emulatedFleet({
    world,
    network: { noiseMs: 1 },
    now: () => new Date(Date.now() + aheadMs),
    settings: {
      delegation: { expectedCrawlers: 5, settleSeconds: 20 },
      scope: { ...scope, admitNewHosts: false },
      // Every page is due again at once, and each slice opens its own connection.
      recrawl: { intervalHours: 0.0002 },
      lease: { urlsPerHost: 1, addressRestSeconds: 0 },
      finer: { everySeconds: 0.2 },
      balance: { policy: "none" },
      recalibration: { everySeconds: 3600 },
      departureSeconds: 600,
      heartbeatSeconds: 2,
    },
    crawlerSettings: { politenessFloorMs: 200 },
  });
  ({ webUrl } = await fleet.addCoordinator());
  await fleet.startAll((index) => ({ resolvers: [fleet.internet.dnsAddressOf(index)] }));
  await fleet.admit(frontPages([...inSplitLeaf, ...byPlace]), scope);
}, 60_000);

afterAll(async () => await fleet?.close(), 60_000);

const who = async (question: string): Promise<WhoAnswer> =>
  (await (await fetch(`${webUrl}/api/who?q=${encodeURIComponent(question)}`)).json()) as WhoAnswer;

const excessOf = (site: WorldSite, crawler: string): number =>
  excessMs(world, crawler, (index) => addressSeenBy(world, site, index));

describe("hosts and parts", { timeout: 320_000 }, () => {
  it("splits a leaf whose halves are far apart and delegates each half to its nearest crawler", async () => {
    await until(
      async () => (await fleet.rows("select from finer_delegation where host_hash is null")).length > 0,
      100_000,
    );
    const crawlerOf = async (site: WorldSite) => (await who(site.host)).effective?.crawler.name ?? "";
    const excess = async () =>
      Promise.all(inSplitLeaf.map(async (site) => excessOf(site, await crawlerOf(site))));
    await until(async () => (await excess()).every((ms) => ms <= 5), 100_000);

    const { parts, chain } = await who(inSplitLeaf[0]!.host);
    const leaf = parseRange(chain[0]!.range)!;
    const [part] = parts;
    const apart = inSplitLeaf.filter(({ address }) =>
      rangeHolds(parseRange(part!.range!)!, parseAddress(address)!),
    );
    expect(parts).toHaveLength(1);
    expect(leaf).not.toEqual(parseRange(part!.range!));
    // The part is one side of the boundary.
    const sides = apart.map(({ address }) => Number(parseAddress(address)!.value) >= split.boundary);
    expect(new Set(sides).size).toBe(1);
    expect(apart.length).toBeLessThan(inSplitLeaf.length);
  });

  it("shows the addresses by which the leaf is split, and their distance from the rest", async () => {
    const { standing } = await who(inSplitLeaf[0]!.host);

    expect(standing.find(({ code }) => code === "leaf-split")?.words).toMatch(
      /is split below its registered range: addresses [\d.]+–[\d.]+ measure \d+ ms from the rest and go to/,
    );
  });

  it("fetches a part's pages by the part's crawler", async () => {
    const since = new Date();
    const fetched = async () =>
      await fleet.rows<{ crawler: string; wanted: string }>(
        `select distinct c.name as crawler, w.name as wanted
         from page_fetch f
         join frontier_host h using (host_hash)
         join finer_delegation p on p.finer_id = h.finer_id
         join crawler c on c.crawler_id = f.crawler_id
         join crawler w on w.crawler_id = p.crawler_id
         where f.fetched_at > $1::timestamptz + interval '2 seconds'`,
        [since],
      );
    await until(async () => (await fetched()).length > 0, 100_000);

    for (const { crawler, wanted } of await fetched()) expect(crawler).toBe(wanted);
  });

  it("delegates hosts that resolve by place one by one, near the address their crawler sees", async () => {
    const suspects = async () => await fleet.rows("select from probe_round where cause = 'differs-by-place'");
    await until(async () => (await suspects()).length > 0, 100_000);
    const hosts = async () =>
      (await fleet.rows("select from finer_delegation where host_hash is not null")).length;
    // Each name is probed several times, with rounds of other names in between.
    for (let asking = 0; asking < 12 && (await hosts()) === 0; asking++) {
      const before = (await suspects()).length;
      aheadMs += 301_000;
      await until(async () => (await suspects()).length > before || (await hosts()) > 0, 100_000);
    }
    await until(async () => (await hosts()) > 0, 100_000);

    const delegated = await fleet.rows<{ host: string; crawler: string; seen: unknown[] }>(
      `select h.host, c.name as crawler, f.seen
       from finer_delegation f
       join frontier_host h on h.host_hash = f.host_hash
       join crawler c on c.crawler_id = f.crawler_id`,
    );
    for (const { host, crawler, seen } of delegated) {
      const site = byPlace.find((one) => one.host === host);
      expect(site, host).toBeDefined();
      // One round, and a busy machine adds to its measurements; the difference to a distant crawler is larger.
      expect(excessOf(site!, crawler)).toBeLessThanOrEqual(10);
      expect(seen.length).toBe(world.crawlers.length + 1);
    }
    const { standing } = await who(delegated[0]!.host);
    expect(standing.find(({ code }) => code === "differs-by-place")?.words).toMatch(
      /^This host answers differently by place: delegated by host, to .+, since .+ Seen by the coordinator /,
    );
  });

  it("gives a departed crawler's hosts and parts to another", async () => {
    const [before] = await fleet.rows<{ name: string; finer_id: number }>(
      `select c.name, f.finer_id from finer_delegation f join crawler c using (crawler_id)
       where f.host_hash is null limit 1`,
    );
    const index = world.crawlers.findIndex(({ name }) => name === before!.name);

    await fleet.stopOne(index);
    aheadMs += 700_000;
    const now = async () =>
      (
        await fleet.rows<{ name: string }>(
          "select c.name from finer_delegation f join crawler c using (crawler_id) where f.finer_id = $1",
          [before!.finer_id],
        )
      )[0]?.name;
    await until(async () => (await now()) !== before!.name, 100_000);

    expect(await now()).not.toBe(before!.name);
  });
});
