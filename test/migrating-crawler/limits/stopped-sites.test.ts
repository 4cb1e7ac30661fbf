/** What the crawler does when a site opts out while it is being crawled. */
import { describe, expect, it, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import { StoppedSites } from "#crawler/limits/stopped-sites";
import { startCrawler } from "#crawler/main";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { atEnd } from "../../support/at-end.ts";
import { leaseOf } from "../support/leasing-gateway.ts";
import { html, startOrigin } from "../support/origin.ts";
import { testConfig } from "../support/test-config.ts";

const amber = asCrawlerId(1);
const words = "the site has opted out";
const stop = (domain: string): CoordinatorMessage => ({
  type: "coordinator:stop-hosts",
  domains: [domain],
  reason: words,
});

const stopParts = (scope: "url" | "prefix" | "host", of: string, erases = false): CoordinatorMessage => ({
  type: "coordinator:stop-parts",
  parts: [{ scope, of, erases }],
  reason: words,
});

/** A crawler with a gateway whose leases the test grants, and a site that never answers `/slow`. */
async function crawlerAtWork() {
  const gateway: LoopbackGateway = await startGateway({ zlibSync: null });
  const cutOff: string[] = [];
  const origin = await startOrigin((request, response) => {
    const host = String(request.headers.host);
    if (request.url === "/robots.txt" && host.startsWith("leading.")) {
      return void response.writeHead(301, { location: `http://site.${host.slice(8)}/robots.txt` }).end();
    }
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    if (request.url !== "/slow") return html(response, "<p>page");
    request.on("close", () => cutOff.push(String(request.headers.host?.split(":")[0])));
  });
  const timeouts = { connectMs: 2000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
  const crawler = await startCrawler(testConfig({ coordinatorUrl: gateway.url, timeouts }));
  atEnd(() => crawler.stop());
  // Unrequested leases are not begun.
  const asks = () => gateway.seen.messages.filter(({ message }) => message.type === "crawler:ready");
  await vi.waitFor(() => expect(asks()).toHaveLength(1), 20_000);
  const grant = (leaseId: string, host: string, paths: readonly string[]) => {
    const urls = paths.map((path) => `http://${host}:${origin.port}${path}`);
    const lease = leaseOf(leaseId, urls, { host, addresses: [] });
    gateway.gateway.send(amber, { type: "coordinator:tasks", leases: [lease], askAgainMs: 50, reason: "" });
  };
  const endOf = async (leaseId: string) =>
    await vi.waitFor(() => {
      const ends = gateway.seen.messages.map(({ message }) => message);
      const end = ends.find((one) => one.type === "crawler:lease-end" && one.leaseId === leaseId);
      expect(end).toBeDefined();
      return end;
    }, 3000);
  return { gateway, origin, grant, endOf, cutOff };
}

describe("a site that was stopped", () => {
  it("gets no further request, the running one is aborted, and its lease goes back with the reason", async () => {
    const { gateway, origin, grant, endOf, cutOff } = await crawlerAtWork();
    grant("1", "www.site.localhost", ["/slow", "/next"]);
    await vi.waitFor(() => expect(origin.requests).toContain("GET /slow"), 20_000);

    gateway.gateway.send(amber, stop("site.localhost"));
    const end = await endOf("1");

    expect(end).toMatchObject({ reason: words });
    await vi.waitFor(() => expect(cutOff).toEqual(["www.site.localhost"]), 3000);
    expect(origin.requests).toEqual(["GET /robots.txt", "GET /slow"]);
    expect(gateway.seen.batches).toEqual([]);
  });

  it("is refused in a later lease, as a probe's target and behind a redirect; its neighbour is not", async () => {
    const { gateway, origin, grant, endOf } = await crawlerAtWork();
    gateway.gateway.send(amber, stop("site.localhost"));

    grant("2", "site.localhost", ["/a"]);
    grant("3", "mysite.localhost", ["/b"]);
    // Its robots.txt redirects there.
    grant("4", "leading.localhost", ["/c"]);
    const end = await endOf("2");
    const probed = await gateway.gateway.probe(amber, {
      host: "deep.site.localhost",
      address: "127.0.0.1",
      port: origin.port,
      secure: false,
      method: "connect",
      tries: 1,
      deadlineMs: 1000,
    });

    expect(end).toMatchObject({ reason: words });
    expect(probed).toMatchObject({ type: "failed", reason: words });
    await endOf("4");
    await vi.waitFor(() => expect(origin.requests).toContain("GET /b"), 20_000);
    const asked = new Set(origin.headers.map(({ host }) => String(host).split(":")[0]));
    expect([...asked].sort()).toEqual(["leading.localhost", "mysite.localhost"]);
  });
});

describe("a part of a site that was stopped", () => {
  it("gets no request, and its pages are not kept, while the lease continues with the rest", async () => {
    const { gateway, origin, grant, endOf } = await crawlerAtWork();
    const at = (path: string) => `//site.localhost:${origin.port}${path}`;
    gateway.gateway.send(amber, stopParts("prefix", at("/private")));
    gateway.gateway.send(amber, stopParts("url", at("/a"), true));
    gateway.gateway.send(amber, stopParts("host", "other.localhost"));

    grant("5", "site.localhost", ["/private/x", "/a", "/private", "/privates", "/a?b"]);
    const results = () => gateway.seen.batches.flatMap((batch) => batch.results);
    await vi.waitFor(() => expect(results()).toHaveLength(2), 20_000);

    // Covers one host without its subdomains.
    grant("6", "other.localhost", ["/a"]);
    grant("7", "www.other.localhost", ["/b"]);

    expect(await endOf("6")).toMatchObject({ reason: words });
    await vi.waitFor(() => expect(origin.requests).toContain("GET /b"), 20_000);
    const asked = origin.requests.filter((line) => /private|\/a/.test(line));
    expect(asked).toEqual(["GET /privates", "GET /a?b"]);
  });
});

describe("a stop", () => {
  it("is forgotten after 15 minutes, and the oldest of very many are", () => {
    const sites = new StoppedSites();
    sites.stop(["a.example"], words, 0);

    const before = sites.stopOf("www.A.example.", 899_999)?.words;
    const after = sites.stopOf("a.example", 900_000);
    sites.stop(
      Array.from({ length: 10_001 }, (_, at) => `${at}.example`),
      words,
      0,
    );

    expect([before, after]).toEqual([words, null]);
    expect(sites.stopOf("0.example", 1)).toBeNull();
    expect(sites.stopOf("10000.example", 1)).not.toBeNull();
  });
});
