/** The whole crawler against the real gateway and real sites on loopback. */
import { describe, expect, it, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import { startCrawler } from "#crawler/main";
import type { FetchResult } from "#protocol/result";
import { fetchResultSchema } from "#protocol/result";
import type { LoopbackGateway } from "../gateway/gateway-on-loopback.ts";
import { atEnd } from "../support/at-end.ts";
import { leaseOf, leasingGateway } from "./support/leasing-gateway.ts";
import { closedPort, html, startRawOrigin, startSite } from "./support/origin.ts";
import { partnerConsole } from "./support/partner-console.ts";
import { testConfig } from "./support/test-config.ts";

const resultsOf = (world: LoopbackGateway) => world.seen.batches.flatMap((batch) => batch.results);

async function run(world: LoopbackGateway, changes: Parameters<typeof testConfig>[0] = {}) {
  const crawler = await startCrawler(testConfig({ coordinatorUrl: world.url, ...changes }));
  atEnd(() => crawler.stop());
  return crawler;
}

async function resultsAfter(world: LoopbackGateway, count: number): Promise<FetchResult[]> {
  await vi.waitFor(() => expect(resultsOf(world).length).toBeGreaterThanOrEqual(count), 30_000);
  return resultsOf(world).map(({ result }) => result);
}

describe("a crawler", () => {
  it("fetches what it is leased and sends what the index needs", async () => {
    const page = "<html lang=en><title>Amber ships</title><p>They sailed <a href=/next>northwards</a></html>";
    const origin = await startSite((_request, response) => html(response, page));
    const world = await leasingGateway([leaseOf("1", [`${origin.url}/`])]);

    await run(world);
    const [result] = await resultsAfter(world, 1);

    expect(() => fetchResultSchema.parse(result)).not.toThrow();
    expect(result).toMatchObject({
      url: `${origin.url}/`,
      outcome: { type: "fetched", status: 200, truncated: false },
      address: "127.0.0.1",
      page: {
        title: "Amber ships",
        language: "en",
        textSearchConfig: "english",
        links: [{ url: `${origin.url}/next`, anchor: "northwards", nofollow: false }],
      },
    });
    expect(result?.page?.text).toBe("They sailed northwards");
    expect(origin.headers.at(-1)?.["user-agent"]).toBe("Nearcrawl/test");
  });

  // Issue 41: a partner who received a complaint had no record of requests.
  it("lists its requests, including robots.txt and failures, while it runs and afterwards", async () => {
    const origin = await startSite((request, response) => {
      if (request.url === "/moved") return void response.writeHead(301, { location: "/" }).end();
      html(response, "<p>ships");
    });
    const dead = `http://127.0.0.1:${await closedPort()}/`;
    const world = await leasingGateway([leaseOf("1", [`${origin.url}/moved`, dead])]);
    const config = testConfig({ coordinatorUrl: world.url });
    const crawler = await startCrawler(config);
    atEnd(() => crawler.stop());
    await resultsAfter(world, 2);
    const partner = partnerConsole();
    const read = async () => (await partner.run("fetched", "--json", "--home", config.home)).text;

    await vi.waitFor(async () => expect(await read()).toContain(`${dead}robots.txt`), 5000);
    await crawler.stop();
    const lines = (await read()).split("\n").map((line) => JSON.parse(line));

    expect(lines.map(({ url, how, status, failure }) => [how, url, status ?? failure])).toEqual(
      expect.arrayContaining([
        ["GET", `${origin.url}/robots.txt`, 404],
        ["GET", `${origin.url}/moved`, 301],
        ["GET", `${dead}robots.txt`, "connect-refused"],
      ]),
    );
    expect(lines.filter(({ url }) => url.startsWith(origin.url)).map(({ address }) => address)).toEqual(
      lines.filter(({ url }) => url.startsWith(origin.url)).map(() => "127.0.0.1"),
    );
  });

  it("sends unacknowledged results again after the coordinator returns", async () => {
    const origin = await startSite((request, response) => html(response, `<p>page ${request.url}`));
    const urls = Array.from({ length: 5 }, (_, index) => `${origin.url}/${index}`);
    const onResults = () => Promise.reject(new Error("the database is away"));
    const first = await leasingGateway([leaseOf("1", urls)], { handlers: { onResults } });
    const crawler = await run(first);
    await vi.waitFor(() => expect(crawler.status().spooledResults).toBe(5), 10_000);

    await first.close();
    const second = await leasingGateway([], { port: first.port });
    const results = await resultsAfter(second, 5);

    expect(results.map((result) => result.url)).toEqual(urls);
    expect(resultsOf(second).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    await vi.waitFor(() => expect(crawler.status().spooledResults).toBe(0), 10_000);
  });

  it("asks at once when woken and in a new session, despite an earlier wait", async () => {
    const asksOf = (world: LoopbackGateway) =>
      world.seen.messages.filter(({ message }) => message.type === "crawler:ready").length;
    const withoutWork = (port = 0) => leasingGateway([], { port, askAgainMs: 600_000 });
    const first = await withoutWork();
    const crawler = await run(first);
    await vi.waitFor(() => expect(crawler.status().holdingBack).toEqual(["nothing is due"]), 10_000);

    first.gateway.send(asCrawlerId(1), { type: "coordinator:wake" });
    await vi.waitFor(() => expect(asksOf(first)).toBe(2), 10_000);
    await first.close();
    const second = await withoutWork(first.port);

    await vi.waitFor(() => expect(asksOf(second)).toBe(1), 10_000);
  });

  it("drops its leases when the coordinator stays away longer than it reserves them", async () => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>slow"),
      "User-agent: *\nCrawl-delay: 30",
    );
    const urls = [`${origin.url}/1`, `${origin.url}/2`];
    // The crawler notices two heartbeats after the coordinator, which keeps leases for three seconds, so one second
    // remains.
    const settings = { heartbeatMs: 1000, departureSeconds: 3 };
    const world = await leasingGateway([leaseOf("5", urls)], { settings });
    const crawler = await run(world);
    await vi.waitFor(() => expect(crawler.status().openHosts).toBe(1), 10_000);

    await world.close();

    expect(crawler.status().openHosts).toBe(1);
    await vi.waitFor(() => expect(crawler.status().openHosts).toBe(0), 10_000);
  });

  it("is not blocked by more silent hosts than it has places", async () => {
    const silent = await Promise.all(
      Array.from({ length: 6 }, (_, index) => startRawOrigin(() => {}, `127.0.0.${index + 2}`)),
    );
    const origin = await startSite((_request, response) => html(response, "<p>here"));
    const silentLeases = silent.map(({ url }, index) =>
      leaseOf(`${index + 1}`, [`${url}/`], { host: `127.0.0.${index + 2}` }),
    );
    const world = await leasingGateway([...silentLeases, leaseOf("7", [`${origin.url}/`])]);

    const patient = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
    const crawler = await run(world, { limits: { concurrentHosts: 2 }, timeouts: patient });
    const [result] = await resultsAfter(world, 1);
    const { openHosts } = crawler.status();
    // Otherwise stopping would wait for them.
    await Promise.all(silent.map((silentOrigin) => silentOrigin.close()));

    expect(result).toMatchObject({ url: `${origin.url}/`, outcome: { type: "fetched" } });
    expect(openHosts).toBeGreaterThanOrEqual(6);
  });

  it("returns open slices and says goodbye when it stops", async () => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>slow"),
      "User-agent: *\nCrawl-delay: 30",
    );
    const urls = [`${origin.url}/1`, `${origin.url}/2`];
    const world = await leasingGateway([leaseOf("5", urls)]);
    const crawler = await run(world);
    await vi.waitFor(() => expect(origin.requests).toContain("GET /robots.txt"), 10_000);

    await crawler.stop();

    const said = world.seen.messages.map(({ message }) => message);
    expect(said).toContainEqual({
      type: "crawler:lease-end",
      leaseId: "5",
      reason: "the crawler stops",
      hostWaitMs: expect.closeTo(30_000, -4),
    });
    await vi.waitFor(() => expect(world.seen.leaves).toHaveLength(1), 10_000);
    expect(world.seen.leaves[0]?.code).toBe("stops");
  });

  it("closes all connections to sites when it stops", {
    timeout: 20_000,
  }, async () => {
    let isConnected = false;
    const silent = await startRawOrigin((socket) => {
      isConnected = true;
      socket.on("close", () => {
        isConnected = false;
      });
    });
    const world = await leasingGateway([leaseOf("6", [`${silent.url}/`])]);
    const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
    const crawler = await run(world, { timeouts });
    await vi.waitFor(() => expect(isConnected).toBe(true), 10_000);

    await crawler.stop();

    await vi.waitFor(() => expect(isConnected).toBe(false), 5000);
    expect(resultsOf(world)).toEqual([]);
  });
});
