/** `nearcrawl estimate`: the text for people, what a database tells, and input that is refused. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { comparePeaks, estimateCrawl, thesisAssumptions } from "#coordinator/overview/estimate";
import { measureCrawl } from "#coordinator/overview/overview-reads";
import type { Database } from "#db/server-database";
import { estimateCommand, estimateText } from "#ops/cli/commands/estimate";
import { testDatabase } from "../../support/database.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => await database?.close());

const run = async (...args: readonly string[]) =>
  await estimateCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .parseAsync(["node", "estimate", ...args]);

describe("the text", () => {
  it("has the thesis' printed figures beside those of its assumptions, and says where they part", () => {
    const answer = { assumptions: thesisAssumptions, estimate: estimateCrawl(thesisAssumptions) };

    const text = estimateText({ ...answer, table53: comparePeaks(), measured: null });

    expect(text).toMatch(/crawlers without revisits +5,140 +5,140\n/);
    expect(text).toMatch(/sent, MB\/s +0\.183 +0\.183\n/);
    expect(text).toMatch(/ranking, % of the time +0\.2 +2\.57\n/);
    expect(text).toMatch(/2,000,000,000 +1,965,042,680 .* 400\.0000/);
    expect(text).toContain("S = 200 holds for the first row only");
  });
});

describe("what the crawl measures", () => {
  it("is nothing where nothing was fetched", async () => {
    const measures = await measureCrawl(database.pool);

    expect(measures).toMatchObject({
      pages: 0,
      crawlers: 0,
      pagesPerSecondPerCrawler: null,
      outDegree: null,
    });
  });

  it("is the rate of a crawler at work, bytes up, links and changes, failed fetches aside", async () => {
    await database.pool.query(`
      insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes,
        shipped_bytes, changed)
      select 1, n, 1 + n % 2, '2026-03-01T12:00:00Z'::timestamptz + make_interval(secs => n), 'fetched', 10, 900, 2000,
        300, case when n < 4 then n = 1 end
      from generate_series(0, 20) n;
      insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes,
        shipped_bytes)
      values (1, 99, 3, '2026-03-01T12:30:00Z', 'unreachable', 10, 0, 0, 50);
      insert into frontier_url (host_hash, url_hash, url, out_links)
      values (1, 1, 'http://a.example/1', 4), (1, 2, 'http://a.example/2', 8), (1, 3, 'http://a.example/3', null)`);

    const measures = await measureCrawl(database.pool);

    expect(measures).toMatchObject({
      pages: 21,
      crawlers: 2,
      pagesPerSecondPerCrawler: 0.5,
      bytesUpPerPage: 300,
      changedShare: 0.25,
      outDegree: 6,
      pagesWithLinks: 2,
      urlBytes: 18,
      storedBytesPerUrl: null,
    });
  });
});

describe("what a URL takes", () => {
  it("is told once there are enough of them to tell", async () => {
    await database.pool.query(`
      insert into frontier_url (host_hash, url_hash, url)
      select n % 50, 1000 + n, 'http://b.example/' || n from generate_series(1, 4000) n`);

    const { storedBytesPerUrl } = await measureCrawl(database.pool);

    expect(storedBytesPerUrl).toBeGreaterThan(100);
    expect(storedBytesPerUrl).toBeLessThan(1500);
  });
});

describe("bad input is refused with the reason", () => {
  it.each([
    [["--pages", "0"], /'--pages <n>' argument '0' is invalid. a number from/],
    [["--months", "-3"], /argument '-3' is invalid/],
    [["--pages", "many"], /argument 'many' is invalid/],
    [["--pages", "150"], /a page with 200 links would link to all of the web, which has 150 pages/],
    [["--alpha", "1.1"], /newShare: 1.1 is more than all fetches/],
  ])("%s", async (args, words) => {
    await expect(run(...args)).rejects.toThrow(words);
  });
});
