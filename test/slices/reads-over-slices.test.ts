/** What is told of all hosts is the same, whether they lie in one slice or in four on two servers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cursorValue, firstNumberOf, parseCursor } from "#coordinator/changes/change-cursor";
import { changeFeeds, type FeedFault, type FeedRead } from "#coordinator/changes/change-feeds-reads";
import { numberChanges } from "#coordinator/changes/change-writes";
import { everyChange } from "#coordinator/changes/page-change";
import { cursorWords } from "#coordinator/changes/read-changes";
import { type OpenSlice, oneSlice, type Slices } from "#coordinator/database/slices";
import { createFindReads } from "#coordinator/find/find-reads";
import { showOverview } from "#coordinator/overview/overview";
import { waitReasons } from "#coordinator/overview/overview-types";
import { pageFacts } from "#coordinator/search/page-facts";
import type { SearchOptions } from "#coordinator/search/query";
import { searchPages } from "#coordinator/search/search";
import {
  readSitesQuestion,
  type SitesAnswer,
  type SitesQuestion,
  siteSorts,
} from "#coordinator/sites/sites-list";
import { createSitesReads } from "#coordinator/sites/sites-reads";
import { sitesTurn } from "#coordinator/sites/start";
import { createReports } from "#coordinator/slices/reports-reads";
import { type ExportedLink, type ExportedNode, readGraphRows } from "#coordinator/web-graph/graph-reads";
import { rankLocally } from "#coordinator/web-graph/local-rank-store";
import type { GraphSummary } from "#coordinator/web-graph/summary";
import { answerWho } from "#coordinator/who/answer";
import type { Reports } from "#coordinator/who/reads";
import type { WhoAnswer } from "#coordinator/who/who-report";
import { hostHashOf } from "#core/url-key";
import { whoText } from "#ops/cli/who-text";
import { seedChange } from "../support/seed-changes.ts";
import { keepSearchOf, seedManySites, sites } from "../support/seed-many-sites.ts";
import { worldNow } from "../support/seed-world.ts";
import { SpreadServers } from "../support/spread-slices.ts";
import { tinyResolver } from "../support/web-server.ts";

/** What was asked, by its name: of the one before its rows were spread, and of all slices after. */
type Answers = Readonly<Record<string, unknown>>;

let world: SpreadServers;
let whole: Answers;
let spread: Answers;
beforeAll(async () => {
  world = await SpreadServers.begin(4);
  await seedManySites(world.shared.pool);
  await keepSearchOf(oneSlice(world.shared.pool));
  const one = oneSlice(world.shared.pool);
  const ranks = await ranksOf(one);
  await sitesTurn({ pool: one.shared, now: () => worldNow, nowMs: () => 0 });
  whole = {
    ...(await askAll(createReports(one, () => 0))),
    ...(await exported(one)),
    ...(await listed(one)),
    ranks,
  };
  await world.spread();
  await world.shared.pool.query("delete from search_word");
  await world.shared.pool.query("delete from search_upkeep");
  await world.shared.pool.query("insert into search_upkeep default values");
  await keepSearchOf(world.slices);
  spread = {
    ...(await askAll(overSlices())),
    ...(await exported(world.slices)),
    ...(await listed(world.slices)),
    ranks: await ranksOf(world.slices),
  };
}, 300_000);
afterAll(async () => await world?.close());

interface Ranked {
  readonly ranks: ReadonlyMap<string, number>;
  readonly summary: GraphSummary;
}

/** By the ranking thread's own work, as it is written; ranks in full, not as the table rounds them. */
async function ranksOf(slices: Slices): Promise<Ranked> {
  const settings = { damping: 0.85, tolerance: 1e-13, iterations: 500 };
  const { summary } = await rankLocally(slices, { settings, write: true, at: worldNow });
  const ranks = new Map<string, number>();
  for (const { pool } of slices.open) {
    const { rows } = await pool.query<{ url: string; rank: number }>(
      "select url, page_rank::float8 as rank from url_rank join frontier_url using (host_hash, url_hash)",
    );
    for (const { url, rank } of rows) ranks.set(url, rank);
  }
  return { ranks, summary };
}

/** Sums of floating-point numbers are of another order, and so are pages of one rank. */
const rounded = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, one) => {
      if (name === "url" || name === "host") return one === null ? null : "named";
      if (name === "iterations" || name === "residual") return null;
      return typeof one === "number" ? Number(one.toPrecision(9)) : one;
    }),
  );

/** The list of sites in every order, page by page, and as a file; hosts by how their name begins; the tables' rows. */
async function listed(slices: Slices): Promise<Answers> {
  const answers: Record<string, unknown> = {};
  const sites = createSitesReads(slices);
  for (const sort of siteSorts)
    for (const order of ["up", "down"]) {
      const pages: unknown[] = [];
      let after: string | null = "";
      while (after !== null && pages.length < 20) {
        const typed: Readonly<Record<string, string>> = { sort, order, after, limit: "7" };
        const question = readSitesQuestion((name) => typed[name] ?? "");
        if (typeof question === "string") throw new Error(question);
        const { next, progress: _, ...answer }: SitesAnswer = await sites.answer(question, worldNow);
        pages.push(answer);
        after = next;
      }
      answers[`sites by ${sort}, ${order}`] = pages;
    }
  const all = readSitesQuestion((name) => (name === "sort" ? "bytes" : ""));
  const file: unknown[] = [];
  for await (const some of sites.every(all as SitesQuestion, worldNow)) file.push(...some);
  answers["sites as a file"] = file;
  for (const text of ["site-1", "example.org", "www.example.org", "old"])
    answers[`find ${text}`] = await createFindReads(slices).hosts(text, 50);
  return answers;
}

/** As `nearcrawl graph export` writes it: nodes in their order, links in that of their sources. */
async function exported(slices: Slices): Promise<Answers> {
  const answers: Record<string, unknown> = {};
  for (const kind of ["pages", "hosts"] as const)
    await readGraphRows(slices, kind, async (rows) => {
      const nodes: ExportedNode[] = [];
      const links: ExportedLink[] = [];
      await rows.nodes(async (some) => void nodes.push(...some));
      await rows.links(true, async (some) => void links.push(...some));
      answers[`nodes of ${kind}`] = nodes;
      answers[`sources of ${kind}`] = links.map(({ from }) => from);
      answers[`links of ${kind}`] = links.toSorted((a, b) =>
        `${a.from} ${a.to}` < `${b.from} ${b.to}` ? -1 : 1,
      );
    });
  return answers;
}

const overSlices = () => createReports(world.slices, () => 0);

const searches: readonly (readonly [words: string, options?: SearchOptions])[] = [
  ["ferry harbour"],
  ["ferry", { limit: 100 }],
  ["ferry", { limit: 10, offset: 60 }],
  ["harbour", { sort: "date", limit: 50 }],
  ["island", { host: "site-3.example.org" }],
  ["morning -harbour"],
  ['"old harbour"', { language: "de" }],
  ["harbuor"],
  ["the"],
  ["ferry", { country: "GR", crawler: "athens", explain: true }],
];

async function askAll(reads: Reports): Promise<Answers> {
  const asked: Record<string, () => Promise<unknown>> = {
    totals: async () => await reads.crawlTotals(),
    fleet: async () => await reads.fleet(),
    overview: async () => await showOverview(reads, null, { rates: null, range: "1h", now: worldNow }),
    queue: async () => await reads.queueAges(worldNow),
    leftOut: async () => await reads.leftOutUrls(5),
    waiting: async () => await reads.longestWaiting({ reason: null, most: 100 }, worldNow),
    gauges: async () => await reads.crawlerGauges(100),
    alerts: async () => ({ ...(await reads.alertFacts(worldNow)), databaseMs: 0, disk: null }),
    trust: async () => await reads.charts("trust", range),
    ...Object.fromEntries(
      waitReasons.map((reason) => [
        `waiting for ${reason}`,
        async () => await reads.longestWaiting({ reason, most: 7 }, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      (["rate", "open", "since", "host"] as const).map((sort) => [
        `in hand by ${sort}`,
        async () => await reads.hostsInHand({ sort, most: 4 }, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      [1, 2, 3].map((id) => [`crawler ${id}`, async () => await reads.crawlerDetail(id)]),
    ),
    ...Object.fromEntries(
      searches.map(([words, options]) => [
        `search ${words} ${JSON.stringify(options)}`,
        async () => await searchPages(reads, words, options ?? {}, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      [
        ...["https://site-0.example.org/harbour", "https://site-3.example.org/", "site-7.example.org"],
        ...[
          "www.example.org",
          "nowhere.example.org",
          "https://beyond-1.example.net/",
          "1.2.3.4",
          "1.2.0.0/16",
        ],
        ...["GR", "Example Networks", "athens", "https://unknown.example.com/"],
      ].map((question) => [`who ${question}`, async () => await who(reads, question)]),
    ),
    ...Object.fromEntries(
      [...sites.slice(0, 6).map((host) => `https://${host}/`), "https://site-0.example.org/harbour"].flatMap(
        (url) =>
          [0, 10].map((offset) => [
            `page ${url} from ${offset}`,
            async () =>
              await pageFacts(
                reads,
                { url, hostHash: "", urlHash: "" },
                { fetches: 0, outLinks: 0, inLinks: offset },
              ),
          ]),
      ),
    ),
  };
  const answers: Record<string, unknown> = {};
  for (const [name, ask] of Object.entries(asked)) answers[name] = await ask();
  return answers;
}

const range = {
  since: new Date("2026-03-01T06:00:00Z"),
  until: worldNow,
  now: worldNow,
  name: "6h",
  said: null,
};

const who = async (reads: Reports, question: string): Promise<unknown> =>
  await answerWho(
    question,
    { reads, resolver: tinyResolver, scope: null, order: { name: "anansi", newShare: 0.9 } },
    worldNow,
  );

describe("four slices on two servers", () => {
  it("have hosts each", async () => {
    const counts = await Promise.all(
      world.databases.map(
        async ({ pool }) =>
          (await pool.query("select count(*)::int as hosts from frontier_host")).rows[0].hosts,
      ),
    );
    expect(Math.min(...counts)).toBeGreaterThan(2);
  });

  it("answer as the one did", () => {
    expect(Object.keys(spread)).toEqual(Object.keys(whole));
    expect(whole.totals).toMatchObject({ pages: 3 * sites.length, urlsLeased: expect.any(Number) });
    expect(whole["nodes of pages"]).toHaveLength(3 * sites.length + 5 + sites.length);
    const differing = Object.keys(whole).filter(
      (name) => name !== "ranks" && JSON.stringify(spread[name]) !== JSON.stringify(whole[name]),
    );
    const those = (answers: Answers) => Object.fromEntries(differing.map((name) => [name, answers[name]]));
    expect(those(spread)).toEqual(those(whole));
    expect(differing).toEqual([]);
  });
});

describe("the change feed over slices", () => {
  const everything = { filter: everyChange, limit: 7 };

  it("gives every change once, by their times, to whoever goes on from its cursors, and none after the last", async () => {
    await noteChanges("first");
    const feeds = changeFeeds(world.slices);
    const read: string[] = [];
    let cursor = parseCursor(String(cursorValue(await feeds.start("earliest"))))!;
    for (let more = true; more; ) {
      const found = await feeds.after(cursor, everything);
      if (found.type !== "read") throw new Error(found.type);
      read.push(...found.changes.map(({ url }) => url));
      // What a reader keeps is a text.
      cursor = parseCursor(String(cursorValue(found.next)))!;
      more = found.more;
    }

    expect(read).toEqual(urlsOf("first"));
    await noteChanges("second");
    const onwards = await feeds.after(cursor, { ...everything, limit: 100 });
    expect(onwards).toMatchObject({ type: "read", more: false });
    expect((onwards as FeedRead).changes.map(({ url }) => url)).toEqual(urlsOf("second"));
    expect((await feeds.latest({ ...everything, limit: 3 })).changes.map(({ url }) => url)).toEqual(
      urlsOf("second").slice(-3),
    );
  });

  it("goes on from a cursor of the time when there was one slice, and from each change's own", async () => {
    const feeds = changeFeeds(world.slices);
    const ofOne = await changeFeeds(oneSlice(world.shared.pool)).start("now");
    expect(cursorValue(ofOne)).toBeTypeOf("number");

    const found = (await feeds.after(parseCursor(String(cursorValue(ofOne)))!, {
      ...everything,
      limit: 1000,
    })) as FeedRead;
    const own = new Set((await rowsOf(world.slices.open[0]!)).map(({ url }) => url));
    expect(found.changes.map(({ url }) => url)).toEqual(
      [...urlsOf("first"), ...urlsOf("second")].filter((url) => !own.has(url)),
    );
    const middle = found.changes[10]!;
    const rest = (await feeds.after(middle.cursor!, { ...everything, limit: 1000 })) as FeedRead;
    expect(rest.changes.map(({ url }) => url)).toEqual(found.changes.slice(11).map(({ url }) => url));
  });

  it("says of which slice a cursor is unknown, and refuses what is none", async () => {
    const feeds = changeFeeds(world.slices);

    const found = await feeds.after({ 1: firstNumberOf(1) + 9999 }, everything);
    expect(found).toMatchObject({ type: "fault", slice: 1, fault: { type: "unknown" } });
    expect(cursorWords(found as FeedFault).words).toContain("no change of slice 1");
    for (const text of ["0:1,0:2", "0:x", "1:", "5000000:1", "0:99999999999999999"])
      expect(parseCursor(text), text).toBeNull();
  });
});

/** One change of each site, a second after that of the one before. */
async function noteChanges(name: string): Promise<void> {
  const beganMs = name === "first" ? 0 : 3_600_000;
  for (const [n, host] of sites.entries()) {
    const url = `https://${host}/${name}`;
    const { pool } = world.slices.ofHost(hostHashOf(host));
    await seedChange(pool, { url });
    await numberChanges(pool, new Date(worldNow.getTime() + beganMs + 1000 * n));
  }
}

const urlsOf = (name: string) => sites.map((host) => `https://${host}/${name}`);

const rowsOf = async ({ pool }: OpenSlice) =>
  (await pool.query<{ url: string }>("select url from page_change")).rows;

describe("ranks over slices", () => {
  const settings = { damping: 0.85, tolerance: 1e-13, iterations: 500 };

  it("are those of one database, written to each slice for its URLs, with the same summary", () => {
    const [one, all] = [whole.ranks, spread.ranks] as readonly Ranked[];
    expect(all!.ranks.size).toBe(one!.ranks.size);
    for (const [url, rank] of one!.ranks) expect(Math.abs(all!.ranks.get(url)! - rank)).toBeLessThan(1e-9);
    expect(all!.summary.nodes).toBe(one!.summary.nodes);
    expect(rounded(all!.summary)).toEqual(rounded(one!.summary));
    for (const { url, pageRank } of all!.summary.topPages)
      if (url !== null) expect(all!.ranks.get(url)).toBeCloseTo(pageRank, 7);
  });

  it("are refused while a slice does not answer", async () => {
    world.slices.down = [2];
    await expect(rankLocally(world.slices, { settings, write: false, at: worldNow })).rejects.toThrow(
      "slice 2 of the web does not answer",
    );
    world.slices.down = [];
  });
});

describe("a slice whose server is gone", () => {
  it("is missing from answers about all hosts, which say so, and its own hosts are not known", async () => {
    await world.servers.kill(1);
    const reads = overSlices();
    const host = sites.find((one) => world.slices.ofHost(hostHashOf(one)).number === 1)!;
    const other = sites.find((one) => world.slices.ofHost(hostHashOf(one)).number === 2)!;

    const found = await searchPages(reads, "ferry", { limit: 100 }, worldNow);
    expect(found.partial).toEqual([1, 3]);
    expect(found.note).toContain("slices 1, 3 of the web do not answer");
    expect(found.pages.length).toBeGreaterThan(0);
    expect(
      found.pages.every((page) => ![1, 3].includes(world.slices.ofHost(hostHashOf(page.host)).number)),
    ).toBe(true);
    const overview = await showOverview(reads, null, { rates: null, range: "1h", now: worldNow });
    expect(overview.partial).toEqual([1, 3]);
    const answer = (await who(reads, host)) as WhoAnswer;
    expect(answer).toMatchObject({ partial: [1, 3], host: null });
    expect(whoText(answer)).toContain("slices 1, 3 of the web do not answer");
    expect(((await who(reads, other)) as WhoAnswer).host).not.toBeNull();
    expect(
      await pageFacts(reads, { url: `https://${host}/`, hostHash: "", urlHash: "" }, noOffsets),
    ).toMatchObject({ found: false, words: expect.stringContaining("does not answer") });
  });

  it("is read on where it was left when it comes back, and nothing is partial any more", async () => {
    const feeds = changeFeeds(world.slices);
    const query = { filter: everyChange, limit: 1000 };
    const before = (await feeds.after(0, query)) as FeedRead;
    expect(before.partial).toEqual([1, 3]);

    await world.servers.start(1);
    const after = (await feeds.after(before.next, query)) as FeedRead;
    expect(after.partial).toBeUndefined();
    const urls = [...before.changes, ...after.changes].map(({ url }) => url);
    expect(urls.toSorted()).toEqual([...urlsOf("first"), ...urlsOf("second")].toSorted());
    expect((await searchPages(overSlices(), "ferry", { limit: 100 }, worldNow)).partial).toBeUndefined();
  });
});

const noOffsets = { fetches: 0, outLinks: 0, inLinks: 0 };
