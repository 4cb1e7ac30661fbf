/** A world with names of several addresses, over real sockets: what each crawler is told. */
import { Resolver } from "node:dns/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { addressSeenBy } from "#ops/world/model";
import { ask, openTunnel } from "./behind-a-proxy.ts";

const world = generateWorld({ seed: 4, sites: 80, crawlers: 5, oddities: { geoDns: 0.1 } });
let running: RunningWorld;

beforeAll(async () => {
  running = await startWorld(world);
});
afterAll(() => running.close());

async function resolved(server: string, host: string): Promise<string> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  resolver.setServers([server]);
  const [address] = await resolver.resolve4(host);
  return address!;
}

describe("the name servers", () => {
  const site = world.sites.find(({ addresses }) => addresses.length > 1)!;

  it("tell each crawler the address nearest to it, and the coordinator the first", async () => {
    const told = await Promise.all(
      world.crawlers.map((_, crawler) => resolved(running.dnsAddressOf(crawler), site.host)),
    );

    expect(told).toEqual(world.crawlers.map((_, crawler) => addressSeenBy(world, site, crawler)));
    expect(new Set(told).size).toBeGreaterThan(1);
    expect(await resolved(running.dnsAddress, site.host)).toBe(site.address);
    expect(() => running.dnsAddressOf(5)).toThrow(/no crawler 5/);
  });

  it("lead to the same pages at every address", async () => {
    for (const address of site.addresses) {
      const tunnel = await openTunnel(running.proxyUrlOf(0), `${address}:80`);
      expect((await ask(tunnel, { host: site.host })).status).toBe(200);
    }
  });

  it("are one for all where no name has several addresses", async () => {
    const plain = await startWorld(generateWorld({ seed: 4, sites: 5, crawlers: 2 }));

    expect([plain.dnsAddressOf(0), plain.dnsAddressOf(1)]).toEqual([plain.dnsAddress, plain.dnsAddress]);
    await plain.close();
  });
});
