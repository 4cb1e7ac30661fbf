/** The emulated Internet over real sockets: what a crawler behind its proxy sees. */
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { downloadTimeMs } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { addressSeenBy } from "#ops/world/model";
import { PageChanges, type StartOptions } from "#ops/world/world-state";

const world = generateWorld({ seed: 11, sites: 60, crawlers: 4 });
let running: RunningWorld;

beforeAll(async () => {
  running = await startWorld(world, { timeoutMs: 300 });
});
afterAll(() => running.close());

const tunnelTo = (crawler: number, target: string) => openTunnel(running.proxyUrlOf(crawler), target);
const connectMs = (crawler: number, target: string) => timeToConnect(running.proxyUrlOf(crawler), target);

describe("a proxy of the emulated Internet", () => {
  it("takes one round trip for a connection, whichever crawler and site", async () => {
    for (const crawler of [0, 1, 2, 3]) {
      const site = world.sites[crawler * 7]!;
      const rttMs = world.rttMs(crawler, site.address)!;
      const tookMs = await quickest(latestMs(rttMs), () => connectMs(crawler, `${site.address}:80`));

      // Never early by more than a timer's resolution.
      expect(tookMs).toBeGreaterThan(rttMs - 1.5);
      expect(tookMs).toBeLessThan(latestMs(rttMs));
    }
  });

  it("takes one round trip and the server's delay for a request", async () => {
    const site = world.sites[5]!;
    const rttMs = world.rttMs(2, site.address)!;
    const { socket } = await tunnelTo(2, `${site.address}:80`);
    const expectedMs = rttMs + site.serverDelayMs;
    const tookMs = await quickest(latestMs(expectedMs), async () => {
      const startMs = performance.now();
      socket.write(`HEAD / HTTP/1.1\r\nHost: ${site.host}\r\n\r\n`);
      await once(socket, "data");
      return performance.now() - startMs;
    });
    socket.destroy();

    expect(tookMs).toBeGreaterThan(expectedMs - 2);
    expect(tookMs).toBeLessThan(latestMs(expectedMs));
  });

  it("takes as long for a download as the formula says", async () => {
    const slowest = world.sites.toSorted((a, b) => a.bandwidthKbps - b.bandwidthKbps)[0]!;
    const largest = await largestPage();
    for (const [site, path] of [[slowest, "/"], largest] as const) {
      const rttMs = world.rttMs(1, site.address)!;
      const download = async () => {
        const tunnel = await tunnelTo(1, `${site.address}:80`);
        const before = tunnel.socket.bytesRead;
        const reply = await ask(tunnel, { host: site.host, path });
        return { bytes: tunnel.socket.bytesRead - before, tookMs: tunnel.tookMs + reply.totalMs };
      };
      const { bytes } = await download();
      const expectedMs = downloadTimeMs({ rttMs, bodyBytes: bytes, ...site });
      const tookMs = await quickest(latestMs(expectedMs), async () => (await download()).tookMs);

      expect(tookMs).toBeGreaterThan(expectedMs * 0.95 - 2);
      expect(tookMs).toBeLessThan(latestMs(expectedMs));
    }
  });

  async function largestPage() {
    const sizes = await Promise.all(
      world.sites.map(async (site) => ({
        site,
        bytes: (await ask({ port: running.originPort }, { host: site.host })).body.length,
      })),
    );
    const { site } = sizes.toSorted((a, b) => b.bytes - a.bytes)[0]!;
    return [site, "/"] as const;
  }

  it("refuses another crawler's address after one round trip, so that crawlers can measure each other", async () => {
    const rttMs = world.crawlerRttMs(0, 3);
    const target = `${world.crawlers[3]!.address}:80`;
    const tookMs = await quickest(latestMs(rttMs), () => connectMs(0, target));

    expect(await tunnelTo(0, target)).toMatchObject({ status: 502, headers: { "x-proxy-error": "refused" } });
    expect(tookMs).toBeGreaterThan(rttMs - 1.5);
    expect(tookMs).toBeLessThan(latestMs(rttMs));
  });

  it("refuses ports without a web server", async () => {
    expect(await tunnelTo(0, `${world.sites[0]!.address}:443`)).toMatchObject({
      headers: { "x-proxy-error": "refused" },
    });
  });

  it("tells unreachable names and addresses from registered ones without an answer", async () => {
    const site = world.sites[0]!;
    const nobody = world.subnets.find((subnet) => subnet.kind === "allocation")!.range.last as number;
    const text = [24, 16, 8, 0].map((shift) => (nobody >>> shift) & 255).join(".");
    expect(world.rttMs(0, text), site.host).toBeNull();

    expect(await tunnelTo(0, "nobody.example:80")).toMatchObject({
      headers: { "x-proxy-error": "unreachable" },
    });
    expect(await tunnelTo(0, "10.0.0.1:80")).toMatchObject({ headers: { "x-proxy-error": "unreachable" } });
    expect(await tunnelTo(0, `${text}:80`)).toMatchObject({ headers: { "x-proxy-error": "timeout" } });
  });

  it.each(["GET http://a.example/ HTTP/1.1\r\n\r\n", "CONNECT a:99999 HTTP/1.1\r\n\r\n"])(
    "ends a connection that asks for something else: %j",
    async (bytes) => {
      const { hostname, port } = new URL(running.proxyUrlOf(0));
      const socket = connect(Number(port), hostname);
      socket.write(Buffer.from(bytes, "latin1"));

      const answer = await new Promise<string>((resolve) => {
        let received = "";
        socket.on("data", (chunk: Buffer) => {
          received += chunk.toString("latin1");
        });
        socket.on("close", () => resolve(received));
      });
      expect(answer).toMatch(/^HTTP\/1\.1 40[05]/);
    },
  );
});

it("noise delays every handshake by its mean, and never makes one early", async () => {
  const site = world.sites[8]!;
  const rttMs = world.rttMs(0, site.address)!;
  const noisy = await startWorld(world, { noiseMs: 20 });
  const taken: number[] = [];
  for (let time = 0; time < 24; time++)
    taken.push(await timeToConnect(noisy.proxyUrlOf(0), `${site.address}:80`));
  await noisy.close();

  expect(Math.min(...taken)).toBeGreaterThan(rttMs - 1.5);
  expect(taken.reduce((sum, ms) => sum + ms, 0) / taken.length - rttMs).toBeGreaterThan(10);
});

describe("an origin", () => {
  const straight = (asked: Asked) => ask({ port: running.originPort }, asked);

  it("links every page of a site from its front page, directly or indirectly", async () => {
    const pagesReached = await Promise.all(world.sites.map((site) => reachedFrom(site.host)));

    for (const [index, site] of world.sites.entries()) {
      expect(pagesReached[index], site.host).toBeGreaterThanOrEqual(site.pages);
    }
  });

  /** Pages found by following links from the front page. */
  async function reachedFrom(host: string): Promise<number> {
    const seen = new Set<string>();
    const queue = ["/"];
    let pages = 0;
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      if (seen.has(path)) continue;
      seen.add(path);
      const reply = await straight({ host, path });
      if (reply.status === 200) pages++;
      for (const [, href] of reply.body.toString().matchAll(/<a href="(\/[^"]*)"/g))
        if (href) queue.push(href);
    }
    return pages;
  }

  it("gives the same bytes for the same page, and compresses where asked", async () => {
    const { host } = world.sites[1]!;
    const [plain, again, packed] = await Promise.all([
      straight({ host }),
      straight({ host }),
      straight({ host, headers: { "accept-encoding": "gzip, br" } }),
    ]);

    expect(again!.body.equals(plain!.body)).toBe(true);
    expect(packed!.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(packed!.body).equals(plain!.body)).toBe(true);
    expect(plain!.body.toString()).toMatch(/<title>.+<\/title>[\s\S]*<meta name="description"[\s\S]*<h1>/);
    expect(plain!.body.length).toBeGreaterThan(3000);
    expect(plain!.body.length).toBeLessThan(48_000);
  });

  it("answers 304 to a validator that still holds", async () => {
    const { host } = world.sites[1]!;
    const first = await straight({ host, method: "HEAD" });
    const etag = String(first.headers.etag);
    const since = String(first.headers["last-modified"]);

    const replies = await Promise.all([
      straight({ host, headers: { "if-none-match": etag } }),
      straight({ host, headers: { "if-modified-since": since } }),
      straight({ host, headers: { "if-none-match": '"other"', "if-modified-since": since } }),
    ]);
    expect(first.status).toBe(200);
    expect(first.body.length).toBe(0);
    expect(replies.map((reply) => reply.status)).toEqual([304, 304, 200]);
  });

  it("has sites with and without robots.txt, with redirects, duplicates, missing pages and pages not to be indexed", async () => {
    const of = (path: string) => Promise.all(world.sites.map(({ host }) => straight({ host, path })));
    const robots = await of("/robots.txt");
    const starts = await of("/start");
    const prints = await of("/print/1");
    const logins = await of("/login");
    const missing = await of("/moved/away.html");
    const sitemaps = await of("/sitemap.xml");

    expect(new Set(robots.map((reply) => reply.status))).toEqual(new Set([200, 404]));
    expect(robots.some((reply) => reply.body.includes("Disallow: /private/"))).toBe(true);
    expect(starts.some((reply) => [301, 302].includes(reply.status) && reply.headers.location)).toBe(true);
    expect(prints.some((reply) => reply.status === 200)).toBe(true);
    expect(logins.some((reply) => reply.body.includes('content="noindex"'))).toBe(true);
    expect(new Set(missing.map((reply) => reply.status))).toEqual(new Set([404]));
    expect(sitemaps.some((reply) => reply.body.includes("<loc>"))).toBe(true);
  });

  it("finds a site only at its own address", async () => {
    const [here, there] = [
      world.sites[0]!,
      world.sites.find((site) => site.address !== world.sites[0]!.address)!,
    ];
    const tunnel = await tunnelTo(0, `${here.address}:80`);

    expect((await ask(tunnel, { host: there.host })).status).toBe(404);
    expect((await straight({ host: "nobody.example" })).status).toBe(404);
    expect((await straight({ host: here.host, method: "POST" })).status).toBe(405);
  });

  it("logs who asked for what, and through whose proxy", async () => {
    const site = world.sites[2]!;
    const tunnel = await tunnelTo(2, `${site.address}:80`);
    await ask(tunnel, { host: site.host, path: "/?logged", headers: { "user-agent": "test/1" } });

    expect(running.requestLog.entries().at(-1)).toMatchObject({
      host: site.host,
      path: "/?logged",
      method: "GET",
      status: 200,
      crawlerIndex: 2,
      userAgent: "test/1",
    });
  });
});

it("changing pages get new texts and validators by their process's seed, and never old ones again", async () => {
  const dayMs = 86_400_000;
  const process = {
    seed: 3,
    startMs: 0,
    changesPerDay: (_: string, path: string) => (path === "/still" ? 0 : 10),
  };
  const [one, other] = [new PageChanges(process), new PageChanges(process)];
  const versions = Array.from(
    { length: 100 },
    (_, page) => one.at("a.example", `/${page}`, 10 * dayMs).version,
  );
  const { host } = world.sites[0]!;
  const frontPage = async (options: StartOptions) => {
    const internet = await startWorld(world, options);
    const { headers, body } = await ask({ port: internet.originPort }, { host });
    await internet.close();
    return { etag: headers.etag, modifiedMs: Date.parse(headers["last-modified"]!), text: body.toString() };
  };
  const changed = await frontPage({ changes: { ...process, startMs: Date.now() - dayMs } });
  const planned = await frontPage({});

  expect(Math.abs(versions.reduce((sum, count) => sum + count, 0) / 10_000 - 1)).toBeLessThan(0.05);
  expect(other.at("a.example", "/7", 4 * dayMs).version).toBeLessThan(versions[7]!);
  expect(other.at("a.example", "/7", 10 * dayMs)).toMatchObject({ version: versions[7] });
  expect(other.at("a.example", "/7", dayMs)).toMatchObject({ version: versions[7] });
  expect(one.at("a.example", "/still", 1e15).version).toBe(0);
  expect(changed.text).not.toBe(planned.text);
  expect(changed.etag).not.toBe(planned.etag);
  expect(changed.modifiedMs).toBeGreaterThan(Date.now() - 2 * dayMs);
});

it("name servers lead each crawler to the nearest of a name's addresses, the coordinator to the first", async () => {
  const odd = generateWorld({ seed: 4, sites: 80, crawlers: 5, oddities: { geoDns: 0.1 } });
  const site = odd.sites.find(({ addresses }) => addresses.length > 1)!;
  const internet = await startWorld(odd);
  const resolved = async (server: string) => {
    const resolver = new Resolver({ timeout: 2000, tries: 2 });
    resolver.setServers([server]);
    return (await resolver.resolve4(site.host))[0]!;
  };

  const told = await Promise.all(odd.crawlers.map((_, crawler) => resolved(internet.dnsAddressOf(crawler))));
  const common = await resolved(internet.dnsAddress);
  const tunnel = await openTunnel(internet.proxyUrlOf(0), `${site.addresses[1]}:80`);
  const { status } = await ask(tunnel, { host: site.host });
  await internet.close();

  expect(told).toEqual(odd.crawlers.map((_, crawler) => addressSeenBy(odd, site, crawler)));
  expect(new Set(told).size).toBeGreaterThan(1);
  expect([common, status]).toEqual([site.address, 200]);
  expect(running.dnsAddressOf(1)).toBe(running.dnsAddress);
  expect(() => internet.dnsAddressOf(5)).toThrow(/no crawler 5/);
});

// A crawler's steps behind its proxy: open a tunnel, request a page, and time both.

interface Tunnel {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly socket: Socket;
  /** From the request to the proxy's answer. */
  readonly tookMs: number;
}

function openTunnel(proxyUrl: string, target: string): Promise<Tunnel> {
  const { hostname, port } = new URL(proxyUrl);
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const request = httpRequest({ host: hostname, port, method: "CONNECT", path: target, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      response.resume();
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, headers, socket: response.socket, tookMs: performance.now() - startMs });
    });
    request.on("connect", ({ statusCode = 0, headers }, socket) => {
      if (statusCode !== 200) socket.destroy();
      resolve({ status: statusCode, headers, socket: socket as Socket, tookMs: performance.now() - startMs });
    });
    request.end();
  });
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly firstByteMs: number;
  readonly totalMs: number;
}

interface Asked {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** A request over an open connection, or directly to the origins' port. */
function ask(
  via: { socket: Socket } | { port: number },
  { host, path = "/", method = "GET", headers = {} }: Asked,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const connection =
      "socket" in via ? { createConnection: () => via.socket } : { host: "127.0.0.1", port: via.port };
    const request = httpRequest({ ...connection, path, method, headers: { host, ...headers } });
    request.on("error", reject);
    request.on("response", (response) => {
      const firstByteMs = performance.now() - startMs;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
          firstByteMs,
          totalMs: performance.now() - startMs,
        }),
      );
    });
    request.end();
  });
}

/** The limit of a wait of this length: far below a second round trip, and above the timers' delay on a busy machine. */
const latestMs = (expectedMs: number) => expectedMs * 1.1 + 5;

/** The minimum of several times: a busy machine makes single tries late, never early. Stops as soon as one is short enough. */
async function quickest(enoughMs: number, measure: () => Promise<number>): Promise<number> {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 25 && bestMs > enoughMs; tries++) bestMs = Math.min(bestMs, await measure());
  return bestMs;
}

async function timeToConnect(proxyUrl: string, target: string): Promise<number> {
  const tunnel = await openTunnel(proxyUrl, target);
  tunnel.socket.destroy();
  return tunnel.tookMs;
}
