/** The five reports over the tiny world, counted by hand: as pages, as JSON, as CSV and as commands. */

import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addOperations } from "#coordinator/ask/add-operations";
import { countCoverage, coverageOn, createReportReads } from "#coordinator/tell/reports/report-store";
import { reportOperations } from "#coordinator/tell/reports/reports-ask";
import { scheduleReports } from "#coordinator/tell/reports/start";
import { keepSites } from "#coordinator/tell/sites/sites-upkeep-store";
import { silentLog } from "#core/log";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedHost, seedPage, seedWorld, worldNow } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  await seedWorld(database.pool);
  await seedCrawl(database.pool);
  app = webServer(database, { parts: await everyPart(database) });
});
afterAll(async () => await app?.close());

/**
 * Thirty subnets of Greece that athens reaches in 12 ms, with a host with one page a day in each: seven pages,
 * fetched once a week. And 8.0.0.0/16 in India with 3,400 pages a day, athens' too: it measured 124 ms, and tokyo 180
 * ms.
 */
async function seedCrawl(pool: Pool): Promise<void> {
  await pool.query(`
    update frontier_host set url_count = 7, fetched_urls = 7, good_pages = 1, language = 'en' where host = 'www.example.org';
    insert into subnet (first_address, last_address, holder_id, country, registry, name, added_in)
    select host, host + 255, 2, 'GR', 'ripencc', 'GREEK-' || n, 1
    from (select n, '20.0.0.0'::inet + 256 * n as host from generate_series(1, 30) n) g;
    insert into subnet (first_address, last_address, holder_id, country, registry, name, added_in)
    values ('8.0.0.0', '8.0.255.255', 1, 'IN', 'apnic', 'INDIAN-NET', 1);
    insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
    select subnet_id, 1, 'probe-round', true, case when country = 'IN' then 124 else 12 end, '2026-03-01T11:00:00Z'
    from subnet where name like 'GREEK-%' or name = 'INDIAN-NET';
    insert into probe_round (subnet_id, cause, policy, target_url, target_address, started_at, decided_at, crawler_id, reason)
    select subnet_id, 'new-subnet', 'nearest', 'https://india.example/', '8.0.0.1', '2026-03-01T11:00:00Z',
      '2026-03-01T11:00:01Z', 1, '{"type": "nearest"}'
    from subnet where name = 'INDIAN-NET';
    insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms)
    select max(round_id), 1, 1, 'head', 'measured', 124 from probe_round;
    insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms)
    select max(round_id), 2, 3, 'head', 'measured', 180 from probe_round`);
  for (let n = 1; n <= 30; n++)
    await seedHost(pool, { host: `greek-${n}.example`, subnet: `20.0.${n}.0`, address: `20.0.${n}.1` });
  await seedHost(pool, { host: "india.example", subnet: "8.0.0.0", address: "8.0.0.1" });
  await pool.query(`
    update frontier_host set url_count = 7, fetched_urls = 7, good_pages = 2, language = 'el' where host like 'greek-%';
    update frontier_host set url_count = 23800, fetched_urls = 23800, good_pages = 340, language = 'hi', fetched_bytes = 5000000
    where host = 'india.example'`);
  for (let n = 0; n < 40; n++)
    await seedPage(pool, {
      url: `https://india.example/${n}`,
      title: "A page",
      text: "some text",
      language: "hi",
    });
  await pool.query(`
    update page set fetched_at = '2026-02-10T12:00:00Z' where url ~ '/[0-9]$' and host = 'india.example';
    update page set fetched_at = '2025-12-01T12:00:00Z' where url ~ '/1[0-4]$' and host = 'india.example'`);
  while (!(await keepSites(pool, worldNow)).rests);
}

async function json(path: string) {
  const { statusCode, body } = await app.inject({ url: `/api${path}` });
  expect(statusCode, body).toBe(200);
  return JSON.parse(body);
}

async function page(path: string): Promise<string> {
  const { statusCode, body } = await app.inject({ url: path, headers: { accept: "text/html" } });
  expect(statusCode, body).toBe(200);
  return body;
}

async function csv(path: string): Promise<string[]> {
  const { body } = await app.inject({ url: `${path}?format=csv` });
  return body.trimEnd().split("\r\n");
}

describe("organisations", () => {
  it("have their hosts and pages, by pages, with their share", async () => {
    const report = await json("/reports/organisations");

    // India 340; 30 × 2 of Greece and www with 1 are Example Web Ltd's.
    expect(report).toMatchObject({ organisations: 3, subnets: 34, hosts: 34, pages: 401, bytes: 5_000_000 });
    expect(report.lines).toEqual([
      {
        ...{
          name: "Example Networks",
          handle: "ORG-EX1-AP",
          country: "IN",
          subnets: 2,
          hosts: 2,
          pages: 340,
        },
        ...{ bytes: 5_000_000, share: 0.8479 },
      },
      {
        ...{
          name: "Example Web Ltd",
          handle: "ORG-EX2-AP",
          country: "GR",
          subnets: 31,
          hosts: 31,
          pages: 61,
        },
        ...{ bytes: 0, share: 0.1521 },
      },
      {
        ...{ name: "Empty Org", handle: "ORG-EM1-RIPE", country: "DE", subnets: 1, hosts: 1, pages: 0 },
        ...{ bytes: 0, share: 0 },
      },
    ]);
    const text = await page("/reports/organisations");
    expect(text).toContain("Example Networks has most: 84.8 % of all pages.");
    expect(text).toContain('href="/sites?organisation=ORG-EX1-AP"');
    expect((await csv("/reports/organisations"))[1]).toBe(
      "Example Networks,ORG-EX1-AP,IN,2,2,340,0.8479,5000000",
    );
  });
});

describe("badly served subnets", () => {
  it("are listed with what would help, by the saving", async () => {
    const report = await json("/reports/subnets");

    expect(report.lines).toEqual([
      {
        ...{ subnet: "8.0.0.0/16", name: "INDIAN-NET", holder: "Example Networks", country: "IN" },
        ...{ crawler: "athens", crawlerCountry: "GR", rttMs: 124, pagesPerDay: 3400, savesMs: 112 },
        ...{ savedMsPages: 380_800, help: "new-crawler", decidedAt: "2026-03-01T11:00:00.000Z" },
        words: "a crawler in IN would save about 112 ms on 3,400 pages per day",
      },
    ]);
    // Besides India: 30 in Greece. Without a measurement: berlin's old one, and two that nobody has.
    expect(report.compared).toEqual({
      ...{ subnets: 31, pagesPerDay: 3430, ofSubnets: 31, ofPagesPerDay: 3430 },
      ...{ unmeasuredSubnets: 3, unmeasuredPagesPerDay: 3 },
    });
    expect(await page("/reports/subnets")).toContain(
      "1 subnet of 31 could be served from nearer, which would save 6 min of waiting per day.",
    );
  });
});

describe("crawlers that would be missed", () => {
  it("are listed with the loss without them and its certainty", async () => {
    const { lines } = await json("/reports/crawlers");

    expect(lines.map((line: { crawler: string }) => line.crawler)).toEqual(["athens", "tokyo"]);
    expect(lines[0]).toMatchObject({
      ...{ subnets: 31, pagesPerDay: 3430, measuredPages: 3400, predictedPages: 30, unknownPages: 0 },
      successor: "tokyo",
    });
    // The measurement: 3,400 × 56 ms. The prediction for thirty pages adds 200 ms each at most.
    expect(lines[0].lostMsPages).toBeGreaterThanOrEqual(190_400);
    expect(lines[0].lostMsPages).toBeLessThan(190_400 + 30 * 212);
    expect(lines[1]).toMatchObject({ subnets: 0, pagesPerDay: 0, lostMsPages: 0, meanLostMs: null });
    expect(await page("/reports/crawlers")).toContain("99 % measured, 1 % predicted");
  });

  it("are listed up to the first hundred of ten thousand", async () => {
    await database.pool.query(`
      insert into crawler (name, country, state)
      select 'many-' || n, 'US', 'online' from generate_series(1, 9997) n`);
    const many = webServer(database, { parts: await everyPart(database) });
    const { body } = await many.inject({ url: "/api/reports/crawlers" });
    await many.close();
    await database.pool.query("delete from crawler where name like 'many-%'");

    const report = JSON.parse(body);
    expect(report.crawlers).toBe(9999);
    expect(report.lines).toHaveLength(100);
    expect(report.lines[0].crawler).toBe("athens");
  });
});

describe("placement", () => {
  it("says where one more crawler saves most, and what it bases that on", async () => {
    const report = await json("/reports/placement");

    expect(report.lines).toEqual([
      {
        ...{ kind: "country", place: "IN", country: "IN", pagesPerDay: 3400, nowMs: 124 },
        ...{ thenMs: 12, spreadMs: 0, savedMsPages: 380_800, placeSubnets: 1 },
        ...{ measuredSubnets: 30, isOwnMeasure: false },
        subnets: [{ subnet: "8.0.0.0/16", holder: "Example Networks", savedMsPages: 380_800 }],
      },
    ]);
    // (3400 × 124 + 30 × 12) / 3430, and 12 for all with a crawler in India.
    expect(report).toMatchObject({ meanRttMs: 123, thenMeanRttMs: 12, isEstimated: true });
    expect(await page("/reports/placement")).toContain(
      "Next: India. A crawler there would save about 6 min of waiting per day.",
    );
  });

  it("expects nothing from too few measurements", async () => {
    await database.pool.query(
      "update delegation set rtt_ms = null where subnet_id = (select subnet_id from subnet where name = 'GREEK-1')",
    );
    const few = webServer(database, { parts: await everyPart(database) });
    const { body } = await few.inject({ url: "/reports/placement", headers: { accept: "text/html" } });
    await few.close();
    await database.pool.query(
      "update delegation set rtt_ms = 12 where subnet_id = (select subnet_id from subnet where name = 'GREEK-1')",
    );

    expect(body).toContain("too few for an estimate. Most waiting is here: India.");
  });
});

it("commands end with 3 where there is nothing to report, and with 2 on wrong usage", async () => {
  const report = (...args: string[]) =>
    inProcess(commandNamed("report"), [...args, "--database-url", database.url, "--schema", database.schema]);

  expect((await report("coverage")).code).toBe(3);
  expect((await report("coverage", "--country", "Germany")).code).toBe(2);
});

describe("coverage", () => {
  it("says what to do before the first count", async () => {
    expect(await page("/reports/coverage")).toContain("Nothing was counted yet.");
  });

  it("is counted by country and language, with the share that is fresh", async () => {
    await countCoverage(database.pool, worldNow);
    const report = await json("/reports/coverage");

    // 40 pages of India are in the index: 25 of the last days, 10 of 19 days ago, 5 of December.
    expect(report.countries.slice(0, 2)).toEqual([
      {
        ...{ key: "IN", hosts: 1, pages: 340, bytes: 5_000_000, sampledPages: 40 },
        ...{ fresh7: 0.625, fresh30: 0.875 },
      },
      // No page of Greece is in the index, so its age is unknown.
      { key: "GR", hosts: 32, pages: 61, bytes: 0, sampledPages: 0, fresh7: null, fresh30: null },
    ]);
    expect(report.languages.map(({ key, pages }: { key: string; pages: number }) => [key, pages])).toEqual([
      ...[
        ["hi", 340],
        ["el", 60],
        ["en", 1],
        ["", 0],
      ],
    ]);
    expect(report.all).toMatchObject({ hosts: 36, pages: 401 });
    const text = await page("/reports/coverage");
    expect(text).toContain("under 30 samples");
    expect(text).toContain('href="/sites?country=IN"');
    expect((await csv("/reports/coverage"))[1]).toBe("IN,1,340,0.625,0.875,5000000,40");
  });

  it("of an earlier day stays as it was, and a second count replaces the first", async () => {
    const tomorrow = new Date(worldNow.getTime() + 86_400_000);
    await database.pool.query("update frontier_host set language = 'fr' where host = 'india.example'");
    await database.pool.query("update site_upkeep set finished_at = '2026-01-01T00:00:00Z'");
    while (!(await keepSites(database.pool, worldNow)).rests);
    await countCoverage(database.pool, tomorrow);
    await countCoverage(database.pool, tomorrow);

    const [first, second] = [
      await coverageOn(database.pool, "2026-03-01"),
      await coverageOn(database.pool, "2026-03-05"),
    ];
    expect(first?.rows.find(({ country }) => country === "IN")).toMatchObject({ language: "hi", hosts: 1 });
    expect(second).toMatchObject({ day: "2026-03-02" });
    expect(second?.rows.filter(({ country }) => country === "IN")).toMatchObject([
      { language: "fr", hosts: 1 },
    ]);
    const { days, countries } = await json("/reports/coverage?country=IN&day=2026-03-01");
    expect(days.map(({ day, pages }: { day: string; pages: number }) => [day, pages])).toEqual([
      ["2026-03-01", 340],
    ]);
    expect(countries.map(({ key }: { key: string }) => key)).toEqual(["IN"]);
  });

  it("refuses invalid days and countries", async () => {
    const { statusCode, body } = await app.inject({ url: "/api/reports/coverage?day=2026-02-31" });
    expect([statusCode, body]).toEqual([400, expect.stringContaining("2026-02-31: not a day")]);
    expect((await app.inject({ url: "/api/reports/coverage?country=%3Cb%3E" })).statusCode).toBe(400);
  });
});

it("foreign names are escaped, and long ones wrap", async () => {
  const hostile = `<img src=x onerror=alert(1)> ‮ ${"ש".repeat(2000)}`;
  await database.pool.query("update holder set name = $1 where handle = 'ORG-EX1-AP'", [hostile]);
  const fresh = webServer(database, { parts: await everyPart(database) });
  for (const path of ["organisations", "subnets", "placement"]) {
    const { body } = await fresh.inject({ url: `/reports/${path}`, headers: { accept: "text/html" } });
    expect(body).not.toContain("<img");
    expect(body).toContain("ש".repeat(100));
  }
  await fresh.close();
  await database.pool.query("update holder set name = 'Example Networks' where handle = 'ORG-EX1-AP'");
});

it("a browser learns at once that a large crawl is being counted", async () => {
  const never = () => new Promise<never>(() => {});
  const reads = createReportReads(database.pool, () => 7);
  const routes = addOperations(reportOperations, { reads, crawl: never, organisations: never });
  const slow = webServer(database, { parts: [routes] });
  const pages = ["organisations", "subnets", "crawlers", "placement"].map((name) => `/reports/${name}`);
  const answers = await Promise.all(pages.map(async (url) => await slow.inject(url)));
  await slow.close();

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([202, 202, 202, 202]);
  for (const { body } of answers) expect(body).toContain("This is being counted.");
});

// Issue 41: counted ten seconds after the start over an empty list, and not again for an hour.
it("coverage is counted soon while there is little, and hourly later", async () => {
  const empty = await testDatabase();
  const duties: { everyMs: () => number; work: () => Promise<void> }[] = [];
  const timekeeper = {
    every: (_name: string, every: number | (() => number), work: () => Promise<void>) =>
      void duties.push({ everyMs: () => (typeof every === "number" ? every : every()), work }),
  };
  const given = { timekeeper, log: silentLog, now: () => worldNow };
  scheduleReports({ pool: empty.pool, ...given });
  scheduleReports({ pool: database.pool, ...given });
  const [ofNothing, ofWorld] = duties;

  await ofNothing!.work();
  await ofWorld!.work();
  const first = ofWorld!.everyMs();
  for (let hour = 0; hour < 20; hour++) await ofWorld!.work();
  await empty.close();

  expect([ofNothing!.everyMs(), first, ofWorld!.everyMs()]).toEqual([10_000, 20_000, 3_600_000]);
});
