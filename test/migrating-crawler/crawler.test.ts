/** The whole crawler against the real gateway and real sites on loopback. */
import { describe, expect, it, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import { startCrawler } from "#crawler/main";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { Lease } from "#protocol/lease";
import type { FetchResult } from "#protocol/result";
import { fetchResultSchema } from "#protocol/result";
import { type LoopbackGateway, startGateway } from "../gateway/gateway-on-loopback.ts";
import { atEnd } from "../support/at-end.ts";
import { closedPort, html, type Origin, startOrigin, startRawOrigin } from "./support/origin.ts";
import { partnerConsole } from "./support/partner-console.ts";
import { testConfig } from "./support/test-config.ts";

/** A gateway that answers the first requests for work with these leases, one each, then with nothing. */
async function gatewayWith(
  leases: Lease[],
  port?: number,
  settings: NonNullable<Parameters<typeof startGateway>[0]["settings"]> = {},
): Promise<LoopbackGateway> {
  const waiting = [...leases];
  const world: LoopbackGateway = await startGateway({
    zlibSync: null,
    settings,
    ...(port === undefined ? {} : { port }),
    handlers: {
      async onMessage(crawlerId, message, { wireBytes }) {
        world.seen.messages.push({ crawlerId, message, wireBytes });
        if (message.type !== "crawler:ready") return;
        const next = waiting.splice(0, 1);
        const reason = next.length === 0 ? "nothing is due" : "";
        const tasks: CoordinatorMessage = { type: "coordinator:tasks", leases: next, askAgainMs: 50, reason };
        world.gateway.send(crawlerId, tasks);
      },
    },
  });
  return world;
}

async function site(handle: Parameters<typeof startOrigin>[0]): Promise<Origin> {
  return startOrigin(handle);
}

function leaseOf(leaseId: string, urls: readonly string[], changes: Partial<Lease> = {}): Lease {
  return {
    leaseId,
    host: "127.0.0.1",
    addresses: ["127.0.0.1"],
    expiresInSeconds: 60,
    waitMs: 0,
    urls: urls.map((url) => ({ url, etag: null, lastModified: null })),
    ...changes,
  };
}

const resultsOf = (world: LoopbackGateway) => world.seen.batches.flatMap((batch) => batch.results);

async function run(world: LoopbackGateway, changes: Parameters<typeof testConfig>[0] = {}) {
  const crawler = await startCrawler(testConfig({ coordinatorUrl: world.url, ...changes }));
  atEnd(() => crawler.stop());
  return crawler;
}

async function resultsAfter(world: LoopbackGateway, count: number): Promise<FetchResult[]> {
  await vi.waitFor(() => expect(resultsOf(world).length).toBeGreaterThanOrEqual(count), 10_000);
  return resultsOf(world).map(({ result }) => result);
}

describe("a crawler", () => {
  it("fetches what it is leased and ships what the index needs", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      html(
        response,
        "<html lang=en><title>Amber ships</title><p>They sailed <a href=/next>northwards</a></html>",
      );
    });
    const world = await gatewayWith([leaseOf("1", [`${origin.url}/`])]);

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
    expect(result?.page?.lexemes).toBe("'amber':1A 'ship':2A 'sail':4 'northward':5");
    expect(origin.headers.at(-1)?.["user-agent"]).toBe("Nearcrawl/test");
  });

  // Issue 41: a partner who gets a complaint had nothing to look it up in.
  it("keeps a list of what it asked of whom, robots.txt and failures too, to be read while it runs and after it has stopped", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      if (request.url === "/moved") return void response.writeHead(301, { location: "/" }).end();
      html(response, "<p>ships");
    });
    const dead = `http://127.0.0.1:${await closedPort()}/`;
    const world = await gatewayWith([leaseOf("1", [`${origin.url}/moved`, dead])]);
    const config = testConfig({ coordinatorUrl: world.url });
    const crawler = await startCrawler(config);
    atEnd(() => crawler.stop());
    await resultsAfter(world, 2);
    const partner = partnerConsole();
    const read = async () => (await partner.run("fetched", "--json", "--home", config.home)).text;

    await vi.waitFor(async () => expect(await read()).toContain(`${dead}robots.txt`), 5000);
    await crawler.stop();
    const lines = (await read()).split("\n").map((line) => JSON.parse(line));
    partner.close();

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

  it("makes lexemes as the coordinator's Postgres does", async () => {
    const origin = await site((_request, response) =>
      html(response, "<html lang=de><p>Die Lehrerinnen sammeln</html>"),
    );
    const world = await gatewayWith([leaseOf("1", [`${origin.url}/`])], undefined, { postgresVersion: 15 });

    await run(world);
    const [result] = await resultsAfter(world, 1);

    expect(result?.page?.lexemes).toBe("'lehrerinn':2 'sammeln':3");
  });

  it("tells the coordinator what its partner denies", async () => {
    const world = await gatewayWith([]);

    await run(world, { denyRanges: ["192.0.2.0/24"], denyDomains: ["Shop.example"] });
    await vi.waitFor(() => expect(world.seen.arrivals).toHaveLength(1), 10_000);

    expect(world.seen.arrivals[0]?.hello.denies).toEqual({
      networks: ["192.0.2.0/24"],
      domains: ["shop.example"],
    });
  });

  it("gives back what the day's limit does not allow", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      html(response, "<p>page");
    });
    const urls = ["/1", "/2", "/3"].map((path) => origin.url + path);
    const world = await gatewayWith([leaseOf("7", urls)]);

    const crawler = await run(world, { limits: { pagesPerDay: 3 } });
    await vi.waitFor(
      () =>
        expect(world.seen.messages.map(({ message }) => message)).toContainEqual({
          type: "crawler:lease-end",
          leaseId: "7",
          reason: "the day's 3 pages are used up",
        }),
      10_000,
    );

    expect(resultsOf(world)).toHaveLength(2);
    expect(crawler.status().holdingBack).toContain("the day's 3 pages are used up");
  });

  it("sends again after the coordinator comes back what it had not acknowledged", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      html(response, `<p>page ${request.url}`);
    });
    const urls = Array.from({ length: 5 }, (_, index) => `${origin.url}/${index}`);
    const first = await startGateway({
      zlibSync: null,
      handlers: {
        async onResults() {
          throw new Error("the database is away");
        },
        async onMessage(crawlerId, message) {
          if (message.type !== "crawler:ready") return;
          const leases = [leaseOf("1", urls)];
          first.gateway.send(crawlerId, {
            type: "coordinator:tasks",
            leases,
            askAgainMs: 60_000,
            reason: "",
          });
        },
      },
    });
    const crawler = await run(first);
    await vi.waitFor(() => expect(crawler.status().spooledResults).toBe(5), 10_000);

    await first.close();
    const second = await gatewayWith([], first.port);
    const results = await resultsAfter(second, 5);

    expect(results.map((result) => result.url)).toEqual(urls);
    expect(resultsOf(second).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
    await vi.waitFor(() => expect(crawler.status().spooledResults).toBe(0), 10_000);
  });

  it("asks at once when it is woken, and in a new session, however long it was told to wait", async () => {
    const asksOf = (world: LoopbackGateway) =>
      world.seen.messages.filter(({ message }) => message.type === "crawler:ready").length;
    const withoutWork = async (port?: number) => {
      const world: LoopbackGateway = await startGateway({
        zlibSync: null,
        ...(port === undefined ? {} : { port }),
        handlers: {
          async onMessage(crawlerId, message, { wireBytes }) {
            world.seen.messages.push({ crawlerId, message, wireBytes });
            if (message.type !== "crawler:ready") return;
            const nothing = { leases: [], askAgainMs: 600_000, reason: "nothing is due" };
            world.gateway.send(crawlerId, { type: "coordinator:tasks", ...nothing });
          },
        },
      });
      return world;
    };
    const first = await withoutWork();
    const crawler = await run(first);
    await vi.waitFor(() => expect(crawler.status().holdingBack).toEqual(["nothing is due"]), 10_000);

    first.gateway.send(asCrawlerId(1), { type: "coordinator:wake" });
    await vi.waitFor(() => expect(asksOf(first)).toBe(2), 10_000);
    await first.close();
    const second = await withoutWork(first.port);

    await vi.waitFor(() => expect(asksOf(second)).toBe(1), 10_000);
  });

  it("lets go of its leases when the coordinator stays away for longer than it keeps them", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.end("User-agent: *\nCrawl-delay: 30");
      html(response, "<p>slow");
    });
    const urls = [`${origin.url}/1`, `${origin.url}/2`];
    // Noticed two heartbeats later than by the coordinator, which keeps them for three seconds: one is left.
    const settings = { heartbeatMs: 1000, departureSeconds: 3 };
    const world = await gatewayWith([leaseOf("5", urls)], undefined, settings);
    const crawler = await run(world);
    await vi.waitFor(() => expect(crawler.status().openHosts).toBe(1), 10_000);

    await world.close();

    expect(crawler.status().openHosts).toBe(1);
    await vi.waitFor(() => expect(crawler.status().openHosts).toBe(0), 10_000);
  });

  it("is not held up by hosts that keep silent, though they are more than it may deal with at a time", async () => {
    const silent = await Promise.all(
      Array.from({ length: 6 }, (_, index) => startRawOrigin(() => {}, `127.0.0.${index + 2}`)),
    );
    atEnd(() => Promise.all(silent.map((origin) => origin.close())));
    const origin = await site((_request, response) => html(response, "<p>here"));
    const silentLeases = silent.map(({ url }, index) =>
      leaseOf(`${index + 1}`, [`${url}/`], { host: `127.0.0.${index + 2}` }),
    );
    const world = await gatewayWith([...silentLeases, leaseOf("7", [`${origin.url}/`])]);

    const patient = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
    const crawler = await run(world, { limits: { concurrentHosts: 2 }, timeouts: patient });
    const [result] = await resultsAfter(world, 1);
    const { openHosts } = crawler.status();
    // Or stopping would wait for them.
    await Promise.all(silent.map((silentOrigin) => silentOrigin.close()));

    expect(result).toMatchObject({ url: `${origin.url}/`, outcome: { type: "fetched" } });
    expect(openHosts).toBeGreaterThanOrEqual(6);
  });

  it("gives open slices back and says goodbye when it stops", async () => {
    const origin = await site((request, response) => {
      if (request.url === "/robots.txt") return void response.end("User-agent: *\nCrawl-delay: 30");
      html(response, "<p>slow");
    });
    const urls = [`${origin.url}/1`, `${origin.url}/2`];
    const world = await gatewayWith([leaseOf("5", urls)]);
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
    expect(world.seen.leaves[0]?.reason).toContain("the crawler stops");
  });

  it("leaves no site connected when it stops, nor takes in what comes later", {
    timeout: 20_000,
  }, async () => {
    let isConnected = false;
    const silent = await startRawOrigin((socket) => {
      isConnected = true;
      socket.on("close", () => {
        isConnected = false;
      });
    });
    const world = await gatewayWith([leaseOf("6", [`${silent.url}/`])]);
    const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
    const crawler = await run(world, { timeouts });
    await vi.waitFor(() => expect(isConnected).toBe(true), 10_000);

    await crawler.stop();

    await vi.waitFor(() => expect(isConnected).toBe(false), 5000);
    expect(resultsOf(world)).toEqual([]);
  });
});
