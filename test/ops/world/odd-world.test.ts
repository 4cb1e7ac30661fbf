/** A world with oddities over real sockets: what a crawler is told, and what its probes meet. */
import { Resolver } from "node:dns/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { addressSeenBy, type HeadBehaviour, type WorldSite } from "#ops/world/model";
import { obey } from "#ops/world/world-control";
import { ask, openTunnel, quickest, timeToConnect } from "./behind-a-proxy.ts";

const oddities = { geoDns: 0.1, headFromEdge: 0.15, headRefused: 0.15, headSilent: 0.15, blocking: 0.3 };
const world = generateWorld({ seed: 4, sites: 80, crawlers: 5, oddities });
const timeoutMs = 300;
let running: RunningWorld;

beforeAll(async () => {
  running = await startWorld(world, { timeoutMs });
});
afterAll(() => running.close());

/** A site that this crawler may connect to. */
const siteWith = (isOne: (site: WorldSite) => boolean) =>
  world.sites.find((site) => site.blocks.length === 0 && isOne(site))!;
const headSite = (head: HeadBehaviour) => siteWith((site) => site.head === head);
const tunnelTo = (crawler: number, target: string) => openTunnel(running.proxyUrlOf(crawler), target);
const connectMs = (crawler: number, target: string) => timeToConnect(running.proxyUrlOf(crawler), target);

async function resolved(server: string, host: string): Promise<string> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  resolver.setServers([server]);
  const [address] = await resolver.resolve4(host);
  return address!;
}

describe("the name servers", () => {
  const site = siteWith(({ addresses }) => addresses.length > 1);

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
      const tunnel = await tunnelTo(0, `${address}:80`);
      expect((await ask(tunnel, { host: site.host })).status).toBe(200);
    }
  });

  it("are one for all where no name has several addresses", async () => {
    const plain = await startWorld(generateWorld({ seed: 4, sites: 5, crawlers: 2 }));

    expect([plain.dnsAddressOf(0), plain.dnsAddressOf(1)]).toEqual([plain.dnsAddress, plain.dnsAddress]);
    await plain.close();
  });
});

describe("HEAD", () => {
  const headMs = (site: WorldSite, crawler: number) =>
    quickest(world.rttMs(crawler, site.address)! / 3, async () => {
      const tunnel = await tunnelTo(crawler, `${site.address}:80`);
      return (await ask(tunnel, { host: site.host, method: "HEAD" })).firstByteMs;
    });

  it("is answered by an edge long before the site itself could, while handshakes go all the way", async () => {
    const site = headSite("edge");
    const rttsMs = world.crawlers.map((_, crawler) => world.rttMs(crawler, site.address)!);
    const far = rttsMs.indexOf(Math.max(...rttsMs));

    expect(rttsMs[far]).toBeGreaterThan(60);
    expect(await headMs(site, far)).toBeLessThan(rttsMs[far]! / 2);
    expect(await connectMs(far, `${site.address}:80`)).toBeGreaterThan(rttsMs[far]! - 1.5);
    const tunnel = await tunnelTo(far, `${site.address}:80`);
    expect((await ask(tunnel, { host: site.host })).firstByteMs).toBeGreaterThan(rttsMs[far]! - 1.5);
  });

  it("is refused with 405 where a site does not know it", async () => {
    const site = headSite("refused");
    const tunnel = await tunnelTo(0, `${site.address}:80`);
    const again = await tunnelTo(0, `${site.address}:80`);

    expect((await ask(tunnel, { host: site.host, method: "HEAD" })).status).toBe(405);
    expect((await ask(again, { host: site.host })).status).toBe(200);
  });

  it("gets no answer at all from some, which is logged", async () => {
    const site = headSite("silent");
    const { socket } = await tunnelTo(0, `${site.address}:80`);
    const other = await tunnelTo(0, `${site.address}:80`);
    let heard = "";
    socket.on("data", (chunk) => {
      heard += chunk;
    });
    socket.write(`HEAD / HTTP/1.1\r\nHost: ${site.host}\r\n\r\n`);

    // Asked for later, over a connection of the same length, and a page takes longer than a head.
    const page = await ask(other, { host: site.host });

    socket.destroy();
    expect(page.status).toBe(200);
    expect(heard).toBe("");
    expect(running.requestLog.entries()).toContainEqual(
      expect.objectContaining({ host: site.host, method: "HEAD", status: 0 }),
    );
  });
});

describe("a site that blocks crawlers", () => {
  it.each(["refused", "timeout"] as const)("answers the blocked ones with: %s", async (how) => {
    const site = world.sites.find(({ blocks }) => blocks.some((block) => block.how === how))!;
    const { crawlerIndex } = site.blocks.find((block) => block.how === how)!;
    const allowed = world.crawlers.findIndex((_, crawler) =>
      site.blocks.every((block) => block.crawlerIndex !== crawler),
    );

    expect(await tunnelTo(crawlerIndex, `${site.address}:80`)).toMatchObject({
      headers: { "x-proxy-error": how },
    });
    const tunnel = await tunnelTo(allowed, `${site.address}:80`);
    tunnel.socket.destroy();
    expect(tunnel.status).toBe(200);
  });
});

describe("lost handshakes", () => {
  const site = siteWith(() => true);
  const target = `${site.address}:80`;

  it("are answered a second late, or never", async () => {
    running.setLoss({ share: 1, neverShare: 0 });
    const lateMs = await connectMs(0, target);
    running.setLoss({ share: 1, neverShare: 1 });
    const lost = await tunnelTo(0, target);
    running.setLoss({ share: 0, neverShare: 0 });

    expect(lateMs).toBeGreaterThan(1000 + world.rttMs(0, site.address)! - 1.5);
    expect(lost).toMatchObject({ headers: { "x-proxy-error": "timeout" } });
    expect(await quickest(500, () => connectMs(0, target))).toBeLessThan(900);
  });

  it("refuse senseless shares", () => {
    expect(() => running.setLoss({ share: 1.5, neverShare: 0 })).toThrow(/loss of 1.5/);
  });
});

describe("orders to a running world", () => {
  it("set spikes, the daily wave, the clock and loss", () => {
    const orders = [
      { type: "spikes", share: 0, spikeMs: 50 },
      { type: "daily-wave", waveMs: 0, peakHour: 3 },
      { type: "clock", nowMs: Date.UTC(2026, 0, 1) },
      { type: "loss", share: 0, neverShare: 0 },
    ];

    for (const order of orders) expect(obey(running, order)).toEqual({ type: "done", order: order.type });
    expect(obey(running, { type: "loss", share: 2, neverShare: 0 })).toMatchObject({ type: "refused" });
  });
});
