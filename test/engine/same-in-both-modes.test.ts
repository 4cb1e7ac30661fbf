/**
 * One crawl, whose results are taken into two databases: beside an index in a file, and beside OpenSearch, which keeps the
 * texts and whose node is killed and comes back. All that people and programs read is the same in both.
 */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings as settings } from "#coordinator/crawl/web-graph/page-rank";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import { createOptOutStore } from "#coordinator/run/opt-outs/store";
import { openFts5 } from "#coordinator/tell/search/engine/fts5-engine-store";
import { cursorId } from "#coordinator/tell/search/engine/opensearch-mapping";
import { OpenSearchClient } from "#coordinator/tell/search/engine/opensearch-store";
import { createExportReads } from "#coordinator/tell/search/export/export-reads";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import { silentLog } from "#core/log";
import { seededRandom } from "#core/random";
import * as shipping from "../results/shipping-world.ts";
import { atEnd } from "../support/at-end.ts";
import { isLong, longOr } from "../support/long.ts";
import { keyOf, noon, secondsAfterNoon } from "../support/store-world.ts";
import { until } from "../support/until.ts";
import * as openSearch from "./open-search.ts";

const classes = openSearch.openSearchClasses();
const [rounds, batches, seeds] = [longOr(5, 2), 3, longOr([...Array(20).keys()], [0])];
const [sites, paths] = [[1, 2, 3, 4, 5, 6], [..."abcdefghi"]];
const everyUrl = sites.flatMap((site) => ["", ...paths].map((path) => `http://s${site}.example/${path}`));
const languages = [
  ["en", "english", "ferry harbour boats leaving winter timetable island of the quay storms bsky.social"],
  ["de", "german", "Fähre Hafen Boote Winter Fahrplan Insel der Kai Stürme abfahrend Häuser"],
  ["ja", "simple", "日本 新竹 港 フェリー 日本語 時刻表 島 冬"],
] as const;
const questions = [
  ...["ferry", "boats leave", '"winter timetable"', "harbour -storm", "ferry or Fähre", "of", "Insel"],
  ...["日本", "日", "bsky.social", "site:s2.example island", "quay", "Boote -ferry", "Häuser Boote"],
];

/** What a visit finds, by chance: another text, one near that of other pages, a request not to be indexed, or no page. */
function visitBy(random: () => number, number: number, isLast: boolean): shipping.Shipped {
  const chance = random();
  if (chance < 0.1) return { outcome: { type: "http-error", status: 410, retryAfterSeconds: null } };
  if (chance < 0.2 && !isLast) return { outcome: { type: "unchanged", status: 304 } };
  const one = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]!;
  const [language, textSearchConfig, vocabulary] = one(languages);
  const words = Array.from({ length: 12 }, () => one(vocabulary.split(" ")));
  const isCopy = chance < 0.35;
  const main = isCopy ? `A ferry on the island, copy ${number}.` : `${words.join(" ")}.\nVisit ${number}.`;
  return {
    links: Array.from({ length: 4 }, () => one(everyUrl)),
    page: {
      ...{ language, textSearchConfig, words: 300, description: one(words), title: `Page ${one(words)}` },
      simhash: shipping.turned(shipping.text(isCopy ? 0 : number).simhash, number % 3),
      digest: createHash("sha256").update(main).digest("hex"),
      headings: [{ level: 2, text: one(words) }],
      ...(chance < 0.4 ? { structured: { type: "Article", name: one(words), description: "" } } : {}),
      ...(chance < 0.6 ? { unquoted: one(words), snippetCharacters: 20 } : {}),
      // A crawler sends no text of a page that is not to be indexed.
      ...(chance > 0.9 ? { robots: { noindex: true, nofollow: false }, text: "" } : { text: main }),
    },
  };
}

/** Its crawler has all sites. */
async function crawledWorld() {
  const world = await shipping.newShippingWorld();
  const north = await world.arrived("north");
  for (const site of sites)
    await world.delegations.delegateOwnSubnet(await world.site(site, ...paths), north, noon);
  return { ...world, north };
}

/** All that is read of a crawl, as sets; differences apart. */
async function contentOf({ pool }: shipping.ShippingWorld, engine: Parameters<typeof createSearchReads>[2]) {
  await rankLocally(pool, { settings: { ...settings, tolerance: 1e-12 }, write: true, at: noon });
  const rows = async (sql: string) => (await pool.query<string[]>({ text: sql, rowMode: "array" })).rows;
  const reads = createSearchReads(pool, () => performance.now(), engine);
  const differences = new Map<string, unknown>();
  const { changes } = await createChangeFeed(pool).latest({ filter: everyChange, limit: 1000 });
  for (const { url, kind, seenAt, difference } of changes)
    if (difference !== null) differences.set(`${url} ${kind} ${seenAt.toISOString()}`, difference);
  const copies = "select url, min(url) over (partition by coalesce(text_group::text, url)) from page";
  const firsts = new Map((await rows(copies)).map(([url, first]) => [url, first]));
  const search = async (words: string) => {
    const { pages, total } = await searchPages(reads, words, { limit: 100 }, noon);
    // Of copies, one is shown. Which one depends on scores, and these are each engine's own.
    return { words, total, found: pages.map(({ url }) => firsts.get(url)).sort() };
  };
  const page = async (url: string) => {
    const facts = await reads.page(keyOf(url), { fetches: 0, inLinks: 0, outLinks: 0 });
    return "changes" in facts ? { ...facts, changes: facts.changes.map(({ words }) => words) } : facts;
  };
  const content = {
    pages: await Promise.all(everyUrl.map(page)),
    urls: await rows("select url, state, back_links, out_links, visits, digest from frontier_url order by 1"),
    links: await rows("select host_hash, url_hash, to_host_hash, to_url_hash from link order by 1, 2, 3, 4"),
    ranks: await rows("select host_hash, url_hash, round(page_rank::numeric, 9) from url_rank order by 1, 2"),
    changes: changes.map(({ number: _, difference: __, ...change }) => JSON.stringify(change)).sort(),
    searches: await Promise.all(questions.map(search)),
  };
  return { content, differences };
}

describe.skipIf(classes === null)("a crawl beside OpenSearch and beside an index in a file", () => {
  let origin: string;
  /** Undefined if it is also others': then it lives. */
  let node: openSearch.EngineNode | undefined;
  beforeAll(async () => {
    [node] = isLong ? (await openSearch.startOpenSearch(classes!)).nodes : [];
    origin = node?.url ?? (await openSearch.sharedOpenSearch(classes!));
  });
  afterAll(async () => await node?.stop("SIGKILL"));

  it.each(seeds)("is the same in all that is read of it (seed %i)", async (seed) => {
    const [chance, time] = [seededRandom(seed), seededRandom(seed + 1000)];
    const [beside, world] = [await crawledWorld(), await crawledWorld()];
    const { pool, schema } = world.database;
    const place = { origin, index: `modes-${process.pid}-${seed}`, authorization: null, authorities: null };
    const index = `${origin}/${place.index}`;
    const client = new OpenSearchClient({ pool, schema, place, leads: () => true, log: silentLog });
    Object.assign(world.results, createResultStore(pool, null, client.texts));
    const file = await openFts5(beside.pool, ":memory:");
    client.start();
    const killing = (async () => {
      await delay(time() * longOr(4000, 0));
      await node?.stop("SIGKILL");
      await delay(time() * longOr(2000, 0));
      await node?.start();
    })();
    atEnd(async () => {
      await Promise.all([client.stop(), killing]);
      file.close();
      await openSearch.askEngine(`${index}?ignore_unavailable=true`, { method: "DELETE" });
      await Promise.all([beside.close(), world.close()]);
    });

    type Kept = { readonly _source: { readonly nearcrawl_cursor: { readonly optOuts: object } } };
    /** Until OpenSearch has all changes and opt-outs, and the database no text that could be there. */
    const level = async () =>
      await until(async () => {
        if ((await client.waiting())?.changes !== 0 || client.state().type !== "ready") return false;
        const { rowCount } = await pool.query(
          `select from document join page p using (host_hash, url_hash) join frontier_host h using (host_hash)
           where not p.noindex and h.opt_out_id is null limit 1`,
        );
        const kept = await openSearch.askEngine<Kept>(`${index}/_doc/${cursorId}`).catch(() => null);
        const applied = Object.keys(kept?._source.nearcrawl_cursor.optOuts ?? {}).length;
        return rowCount === 0 && applied === (await createExportReads(pool).optOuts()).size;
      }, 60_000);
    for (let round = 0, number = 1; round < rounds; round += 1) {
      const [at, isLast] = [secondsAfterNoon(round * 8 * 86_400), round === rounds - 1];
      if (isLast) await killing;
      if (round > 0 && round >= rounds - 2) await level();
      const { rows } = await beside.pool.query<{ url: string }>(
        `select u.url from frontier_url u join frontier_host h using (host_hash)
         where u.state = 'due' and h.opt_out_id is null order by u.url`,
      );
      // Texts at the engine went with the opt-out that is lifted, so these pages come again in full.
      const visited = rows.filter(
        ({ url }) => round === 0 || (isLast && url.includes("s6")) || chance() < 0.6,
      );
      for (let batch = 0; batch < batches; batch += 1) {
        const urls = visited.filter((_, n) => n % batches === batch);
        const given = Object.fromEntries(urls.map(({ url }) => [url, visitBy(chance, number++, isLast)]));
        for (const one of [beside, world]) {
          await one.pool.query("update frontier_url set next_fetch_at = $1 where state = 'due'", [at]);
          await one.ship(one.north, given, at);
          await numberChanges(one.pool, at);
        }
        await Promise.all([file.catchUp(), delay(time() * longOr(800, 0))]);
      }
      for (const { pool: on } of [beside, world]) {
        const optOuts = createOptOutStore(on);
        const asked = { source: "operator", words: "", replyTo: null, requester: null } as const;
        // The first one's pages are deleted. The other one's are hidden, and come back.
        for (const site of round === 0 ? ["s5.example", "s6.example"] : []) {
          const target = { site, network: null };
          await optOuts.request({ ...asked, target, confirmed: site === "s5.example" }, at);
        }
        const [latest] = await optOuts.list({ open: true, most: 1 });
        if (round === rounds - 2) await optOuts.lift(latest!.optOutId, "", at);
        await createOptOutMarks(on).apply(at);
      }
    }
    await Promise.all([level(), file.catchUp()]);
    await openSearch.askEngine(`${index}/_refresh`, { method: "POST" });
    const [one, other] = [await contentOf(beside, file), await contentOf(world, client)];
    expect(other.content).toEqual(one.content);
    // Results wait a second at most for a text that they replace: a change while the engine is away may have no difference.
    const both = [...other.differences].map(([name]) => [name, one.differences.get(name)] as const);
    expect([...other.differences]).toEqual(both);
    expect(both.length).toBeGreaterThan(0);
  });
});
