/**
 * A crawled site moves behind a bot gate: from its sockets through the crawler, the protocol and the stores to exports, changes,
 * search and pages; and back, when the gate opens.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import { fixedPlan } from "#coordinator/crawl/recrawl/recrawl-plan";
import { defaultRecrawlSettings } from "#coordinator/crawl/recrawl/visit-findings";
import { takeResults } from "#coordinator/crawl/results/take-results";
import { exportIndex } from "#coordinator/tell/search/export/export-index";
import { createExportReads } from "#coordinator/tell/search/export/export-reads";
import { NdjsonFile } from "#coordinator/tell/search/export/ndjson-store";
import { sitesInput, sitesQuestion } from "#coordinator/tell/sites/sites-api";
import { findSites } from "#coordinator/tell/sites/sites-reads";
import { keepSites } from "#coordinator/tell/sites/sites-upkeep-store";
import { answerHost } from "#coordinator/tell/who/answer";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { gateName } from "#protocol/bot-gate";
import { decodePackedMessage } from "#protocol/codec";
import type { Lease } from "#protocol/lease";
import { FrameReader, FrameWriter, packResult } from "#protocol/packed/message-frames";
import type { FetchResult } from "#protocol/result";
import {
  challenges,
  type GatedSite,
  shell,
  startGatedSite,
} from "../migrating-crawler/support/gated-site.ts";
import { sliceRunner } from "../migrating-crawler/support/slices.ts";
import { everyRead } from "../support/every-read.ts";
import { type FlowWorld, newFlowWorld } from "../support/flow-world.ts";
import { longOr } from "../support/long.ts";
import { searchNow } from "../support/search-engine.ts";
import { noon, scope, spoolOf } from "../support/store-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { tinyResolver } from "../support/web-server.ts";

const host = "ferry.localhost";
const dayMs = 86_400_000;
const days = (count: number) => new Date(noon.getTime() + count * dayMs);

let world: FlowWorld;
let site: GatedSite;
let north: CrawlerId;
let exported: string;
let sequence = 0;
beforeAll(async () => {
  world = await newFlowWorld();
  site = await startGatedSite();
});
afterAll(async () => {
  await site.close();
  await world.close();
});
beforeEach(async () => {
  await world.reset();
  await world.pool.query("truncate page_change, page_change_inbox, site, site_touch");
  await world.pool.query("update change_feed set last_number = 0, removed_through = 0");
  site.gate = null;
  exported = join(temporaryFolder("nearcrawl-gated-"), "pages.ndjson");
  north = await world.delegatedHost("north", at("/p1"), at("/p2"), at("/p3"));
});

const at = (path: string) => `http://${host}:${site.port}${path}`;

function received(result: FetchResult, leaseId: string): FetchResult {
  const { numbers, text } = new FrameWriter().result(1, packResult(leaseId, result));
  const packed = decodePackedMessage({ numbers, text: Buffer.from(text) }, new FrameReader());
  if (packed.type !== "crawler:result") throw new Error("no result");
  return packed.result;
}

/** Leases what is due by then, crawls it with a new crawler and stores it; gives the leased paths. */
async function visit(now: Date): Promise<string[]> {
  await world.pool.query("update frontier_host set due_at = $1", [now]);
  await world.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [now]);
  const request = { crawlerId: north, hosts: 10, urlsPerHost: 10, leaseSeconds: 600, now };
  const leases = await world.frontier.leaseHosts(request);
  await world.pool.query(
    "update lease set granted_at = granted_at - interval '1 hour' where closed_at is null",
  );
  for (const lease of leases) await crawl(lease, now);
  await world.frontier.returnLeasesOf(north, now);
  await numberChanges(world.pool, now);
  return leases.flatMap(({ urls }) => urls.map(({ url }) => new URL(url).pathname));
}

async function crawl(lease: Lease, now: Date): Promise<void> {
  const crawler = sliceRunner();
  const { results } = await crawler.crawl(
    lease.urls.map(({ url }) => url),
    { ...lease, waitMs: 0 },
  );
  crawler.close();
  const wire = results.map((result) => ({
    ...{ sequence: ++sequence, leaseId: asLeaseId(lease.leaseId), wireBytes: 100 },
    result: received({ ...result, fetchedAt: now.toISOString() }, lease.leaseId),
  }));
  const settings = {
    scope: { ...scope, admitNewHosts: false, maxDepth: 0 },
    recrawl: defaultRecrawlSettings,
    plan: fixedPlan,
  };
  await takeResults(
    { crawlerId: north, spoolId: spoolOf(north), results: wire },
    world.results,
    settings,
    now,
  );
}

/** What is public of the site: index, links, changes and an export that follows them. */
async function outside() {
  const { pool } = world;
  const target = new NdjsonFile(exported, `${exported}.state`);
  await exportIndex({ reads: createExportReads(pool), target, nowMs: () => performance.now() }, {});
  await target.close();
  const { changes } = await createChangeFeed(pool).latest({ filter: everyChange, limit: 100 });
  const found = await searchNow(pool, "ferry", noon);
  return {
    pages: (
      await pool.query(
        "select url, title, digest, words, noindex, text from page join document using (host_hash, url_hash) order by url",
      )
    ).rows,
    links: (await pool.query("select url_hash, cardinality(urls) as links from out_link order by url_hash"))
      .rows,
    validators: (await pool.query("select url, etag, digest from frontier_url where visits > 0 order by url"))
      .rows,
    changes: changes.map(({ kind, url }) => `${kind} ${url}`),
    exported: readFileSync(exported, "utf8"),
    found: found.pages.map(({ url, title }) => `${url} ${title}`).sort(),
  };
}

const who = async (now: Date) => {
  const reads = everyRead(world.pool, () => performance.now());
  return await answerHost(host, { reads, resolver: tinyResolver, scope }, now);
};

async function listed(now: Date) {
  await keepSites(world.pool, now);
  const question = sitesQuestion(sitesInput.parse({ state: "blocked" }));
  const { sites } = await findSites(world.pool, question, now);
  return sites.map(({ host: name, reason }) => [name, reason]);
}

const isPage = (path: string) => path !== "/robots.txt";
const script = () => ({ status: 200, body: shell() });
const gates: readonly (readonly [name: string, provider: string, gate: GatedSite["gate"]])[] = [
  ["Cloudflare's 403", "cloudflare", () => challenges.cloudflare],
  ["an empty 202 of AWS WAF", "aws-waf", () => challenges["aws-waf"]],
  ["Anubis with 200 and noindex", "anubis", (path) => (isPage(path) ? challenges.anubis : null)],
  [
    "Cloudflare's 503 of old",
    "cloudflare",
    (path) => (isPage(path) ? challenges["cloudflare, as it was with 503"] : null),
  ],
  [
    "a 200 recognized by its text",
    "unknown",
    (path) => (isPage(path) ? challenges["unknown, with 200 and no other mark than its words"] : null),
  ],
  ["HTML only in place of robots.txt", "anubis", (path) => (isPage(path) ? null : challenges.anubis)],
  ["only a script for every URL", "unknown", (path) => (isPage(path) ? script() : null)],
];

/** test/migrating-crawler recognizes each kind of gate; here a page, a page with status 200, and robots.txt go through all stages. */
const goAllTheWay = longOr(gates, [gates[0]!, gates[2]!, gates[5]!]);

describe.each(goAllTheWay)("a site that moves behind %s", (_name, provider, gate) => {
  it("keeps its pages everywhere, pauses and is listed; when the gate opens, one URL ends the pause", async () => {
    await visit(noon);
    const before = await outside();
    expect(before.pages).toHaveLength(3);
    expect(before.exported.split("\n").filter((line) => line !== "").length).toBeGreaterThanOrEqual(3);

    site.gate = gate;
    await visit(days(8));

    expect(await outside()).toEqual(before);
    const { host: report, standing } = await who(days(8));
    expect(report!.botGate).toMatchObject({ provider, tries: 1, since: days(8).toISOString() });
    expect(report!.notBefore).toBe(days(9).toISOString());
    const line = standing.find(({ code }) => code === "bot-gate")!;
    expect(line).toMatchObject({ stops: true, words: expect.stringContaining("the next try is in 24 h") });
    expect(line.words).toContain(gateName(provider));
    expect(await listed(days(8))).toEqual([[host, expect.stringContaining(gateName(provider))]]);
    expect(await visit(days(8.9))).toEqual([]);

    expect(await visit(days(9))).toHaveLength(1);
    expect(await outside()).toEqual(before);
    expect((await who(days(9))).host!.botGate).toMatchObject({ tries: 2, since: days(8).toISOString() });

    site.gate = null;
    expect(await visit(days(11))).toHaveLength(1);
    expect((await who(days(11))).host!.botGate).toBeNull();
    expect(await visit(days(12))).toHaveLength(3);
    const after = await outside();
    expect(after).toEqual(before);
  });
});
