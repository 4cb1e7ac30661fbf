/**
 * The cost of a crawl on the wire through the real link and gateway: every byte that the crawler sends, including frame
 * headers and masks, against the bytes of the pages' HTML.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { canParseUrl } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { quietLog } from "#crawler/core/log";
import { extractPage } from "#crawler/extract/extract-page";
import { Carrier } from "#crawler/link/carrier";
import { CoordinatorLink } from "#crawler/link/coordinator-link";
import { Spool } from "#crawler/spool/spool";
import type { CrawlerHeartbeat } from "#protocol/messages";
import { type FetchResult, sealAfter } from "#protocol/result";
import { helloOf, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { knownBy, signedHello, type TestIdentity, testIdentity } from "../../gateway/sealing-crawler.ts";
import { atEnd } from "../../support/at-end.ts";
import { sharedData } from "../../support/shared-data.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** RFC 6455 section 5.2: two bytes, four of mask, and two or eight of an extended length. */
const frameHeadBytes = 8;

interface Shipped {
  readonly wireBytes: number;
  readonly arrived: readonly FetchResult[];
}

/** Ships results as a crawler does, with a heartbeat and a request for work after every tenth. */
async function ship(results: readonly FetchResult[], identity?: TestIdentity): Promise<Shipped> {
  const world = await startGateway({
    zlibSync: null,
    settings: { resultCredits: 1000 },
    handlers: identity ? knownBy("amber", identity.publicKey) : {},
  });
  const home = temporaryFolder("nearcrawl-wire-");
  const spool = new Spool({ home, maxBytes: 1e9 });
  let carrier: Carrier | undefined;
  const link = new CoordinatorLink({
    url: world.url,
    hello: (connection) =>
      identity
        ? signedHello("amber", identity, { spoolId: spool.id, ...(connection ?? {}) })
        : helloOf("amber", { spoolId: spool.id }),
    sign: identity?.sign,
    heartbeat: () => heartbeat,
    handlers: {
      onWelcome: (welcome) => carrier?.onWelcome(welcome.acknowledgedSequence),
      onMessage: (message) => {
        if (message.type === "coordinator:acknowledge") carrier?.onAcknowledge(message.sequence);
      },
      onRoom: () => carrier?.pump(),
      onDown() {},
      onStopped() {},
    },
    log: quietLog,
    random: () => 0,
  });
  atEnd(() => link.stop({ reason: "the test is over" }));
  carrier = new Carrier({ spool, link, log: quietLog });
  link.start();
  await vi.waitFor(() => expect(link.isUp).toBe(true));

  for (const [at, result] of results.entries()) {
    carrier.keep(String(1_000_000 + Math.floor(at / 20)), result);
    if (at % 10 !== 9) continue;
    link.send({ ...heartbeat, pages: at, fetchedBytes: at * 20_000, shippedBytes: at * 3000 });
    link.send({ type: "crawler:ready", freeHosts: 1 + (at % 7) });
  }
  link.seal();
  await carrier.drained();
  spool.close();
  const arrived = world.seen.batches.flatMap((batch) => batch.results).map(({ result }) => result);
  // At least one seal per batch, since none is accepted without one.
  const seals = Math.max(world.seen.batches.length, Math.ceil(results.length / sealAfter.results));
  const frames = results.length + 2 * Math.floor(results.length / 10) + 1 + seals;
  return { wireBytes: link.sentBytes + frames * frameHeadBytes, arrived };
}

const heartbeat: CrawlerHeartbeat = {
  type: "crawler:heartbeat",
  openHosts: 32,
  spooledResults: 3,
  pages: 0,
  fetchedBytes: 0,
  shippedBytes: 0,
  holdingBack: [],
};

/** Builds a fetch around the page; times are tenths of a millisecond, as the carrier rounds them. */
function fetched(url: string, bodyBytes: number, random: () => number): FetchResult {
  const tenths = (most: number) => Math.round(random() * most * 10) / 10;
  return {
    url,
    fetchedAt: new Date(1_795_000_000_000 + Math.floor(random() * 1e9)).toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: `198.51.${Math.floor(random() * 100)}.${Math.floor(random() * 250)}`,
    timing: {
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: tenths(200),
      totalMs: tenths(400),
    },
    wireBytes: Math.floor(bodyBytes / 4),
    bodyBytes,
    etag: `"${Math.floor(random() * 2 ** 48).toString(16)}-${Math.floor(random() * 2 ** 20).toString(16)}"`,
    lastModified: new Date(1_700_000_000_000 + Math.floor(random() * 9e10)).toUTCString(),
    hostDelayMs: 1000,
    connection: { http: "2", tls: "TLSv1.3" },
    page: null,
  };
}

interface ManifestEntry {
  readonly file: string;
  readonly url: string;
  readonly contentType: string | null;
}

const pages = sharedData("suites/pages");

describe.skipIf(pages === null)("the real pages", () => {
  test("take less than a twentieth of their HTML in any order and arrive unchanged", {
    timeout: 120_000,
  }, async () => {
    const { results, htmlBytes } = await resultsOfPages();

    const byHost = await ship(results.toSorted((a, b) => (hostOf(a.url) < hostOf(b.url) ? -1 : 1)));
    const shuffled = await ship(shuffle(results, seededRandom(7)));

    console.log(
      `${results.length} pages, HTML : wire = ${ratio(htmlBytes, byHost)} by host, ` +
        `${ratio(htmlBytes, shuffled)} shuffled`,
    );
    expect(htmlBytes / byHost.wireBytes).toBeGreaterThan(20);
    expect(htmlBytes / shuffled.wireBytes).toBeGreaterThan(20);
    expect(inOrder(shuffled.arrived)).toEqual(inOrder(results));
    expect(inOrder(byHost.arrived)).toEqual(inOrder(results));
  });

  async function resultsOfPages(): Promise<{ results: FetchResult[]; htmlBytes: number }> {
    const entries = JSON.parse(readFileSync(join(pages!, "manifest.json"), "utf8")) as ManifestEntry[];
    const random = seededRandom(5);
    const results: FetchResult[] = [];
    let htmlBytes = 0;
    for (const [at, entry] of entries.entries()) {
      const bytes = readFileSync(join(pages!, entry.file));
      const url = canParseUrl(entry.url) ? entry.url : `https://site-${at}.example/page`;
      const contentType = entry.contentType ?? "text/html";
      const body = { url, bytes, contentType, contentLanguage: null, robotsTag: undefined };
      const { page } = await extractPage({ ...body, quiet: async () => {} });
      htmlBytes += bytes.length;
      results.push({ ...fetched(url, bytes.length, random), page });
    }
    return { results, htmlBytes };
  }
});

test("pages with shared navigation take much less", async () => {
  const random = seededRandom(9);
  const word = () => Math.floor(random() * 2 ** 40).toString(36);
  const navigation = Array.from({ length: 80 }, () => ({ url: `/${word()}/${word()}`, anchor: word() }));
  const results = Array.from({ length: 60 }, (_, at) => {
    const host = `https://site-${at % 6}.example`;
    const links = [
      ...navigation,
      ...Array.from({ length: 10 }, () => ({ url: `/${word()}`, anchor: word() })),
    ];
    const page = pageWith(links.map(({ url, anchor }) => ({ url: host + url, anchor, nofollow: false })));
    return { ...fetched(`${host}/${word()}`, 40_000, random), page };
  });

  const packed = await ship(results);
  const { length: jsonBytes } = deflateRawSync(results.map((result) => JSON.stringify(result)).join(""));

  expect(packed.wireBytes).toBeLessThan(0.6 * jsonBytes);
  expect(packed.arrived).toEqual(results);
});

test("unchanged pages take less than 100 bytes each, including seals", async () => {
  const random = seededRandom(3);
  const results = Array.from({ length: 300 }, (_, at): FetchResult => {
    const slug = Array.from({ length: 4 }, () => Math.floor(random() * 2 ** 24).toString(36)).join("-");
    const url = `https://www.news-${at % 20}.example/2026/11/${slug}`;
    return {
      ...fetched(url, 0, random),
      outcome: { type: "unchanged", status: 304 },
      address: "198.51.100.7",
    };
  });

  const { wireBytes, arrived } = await ship(results, testIdentity());

  expect(wireBytes / results.length).toBeLessThan(100);
  expect(arrived).toEqual(results);
});

function pageWith(links: NonNullable<FetchResult["page"]>["links"]): FetchResult["page"] {
  return {
    contentType: "text/html",
    charset: "utf-8",
    canonicalUrl: null,
    title: "",
    description: "",
    headings: [],
    language: "en",
    textSearchConfig: "english",
    text: "Ships",
    words: 1,
    links,
    robots: { noindex: false, nofollow: false },
    digest: "0123456789abcdef".repeat(4),
    simhash: "0123456789abcdef",
  };
}

function shuffle<Item>(items: readonly Item[], random: () => number): Item[] {
  const keyed = items.map((item) => ({ item, key: random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

const hostOf = (url: string) => new URL(url).host;
const inOrder = (results: readonly FetchResult[]) =>
  results.toSorted((a, b) => (a.fetchedAt < b.fetchedAt ? -1 : 1));
const ratio = (htmlBytes: number, { wireBytes }: Shipped) => (htmlBytes / wireBytes).toFixed(1);
