/**
 * Texts that are only in OpenSearch: a text leaves the database once the engine has confirmed it, and whoever reads it gets
 * it as before. None is lost without being fetched again.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createChangeFeed } from "#coordinator/crawl/changes/change-feed-reads";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { everyChange } from "#coordinator/crawl/changes/page-change";
import type { TextsElsewhere } from "#coordinator/crawl/changes/page-text-reads";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { openFts5 } from "#coordinator/tell/search/engine/fts5-engine-store";
import { OpenSearchEngine } from "#coordinator/tell/search/engine/opensearch-engine";
import type { SearchEngine } from "#coordinator/tell/search/engine/search-engine";
import { exportIndex, type TextPorts } from "#coordinator/tell/search/export/export-index";
import { createExportReads } from "#coordinator/tell/search/export/export-reads";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { dropTexts, refetching } from "#coordinator/tell/search/export/text-upkeep-store";
import { pageReport } from "#coordinator/tell/search/page-reads";
import { searchPages } from "#coordinator/tell/search/search";
import { createSearchReads } from "#coordinator/tell/search/search-reads";
import type { PageExtract } from "#protocol/result";
import { newShippingWorld, type ShippingWorld } from "../results/shipping-world.ts";
import { keyOf, noon, secondsAfterNoon, worldOfFile } from "../support/store-world.ts";
import { FaultyDoor } from "./faulty-door.ts";
import { askEngine, openSearchClasses, sharedOpenSearch } from "./open-search.ts";

const classes = openSearchClasses();

const [ferry, boat] = ["http://s1.example/ferry", "http://s1.example/boat"];
const days = (count: number) => secondsAfterNoon(count * 86_400);

const timetable = (hour: string): Partial<PageExtract> => ({
  ...{ title: "Ferry", description: "When boats leave", text: `The ferry leaves at ${hour} every morning.` },
  headings: [
    { level: 1, text: "Timetable" },
    { level: 3, text: "In winter" },
  ],
  structured: { type: "Article", name: "Timetable", description: "of the ferry" },
  ...{ unquoted: "A quay", snippetCharacters: 30, words: 7, digest: hour.padEnd(64, "0") },
});
const boats = { title: "Boats", text: "Boats at the harbour.", digest: "b".repeat(64) };

describe.skipIf(classes === null)("texts that are only in OpenSearch", () => {
  const world = worldOfFile(newShippingWorld);
  const beside = worldOfFile(newShippingWorld);
  let url: string;
  let door: FaultyDoor;
  let origin: string;
  let index: string;
  let target: OpenSearchIndex;
  let engine: OpenSearchEngine;
  let elsewhere: TextsElsewhere;
  let lost: number;
  let made = 0;
  beforeAll(async () => {
    url = await sharedOpenSearch(classes!);
    door = new FaultyDoor(url);
    origin = await door.listen();
  });
  afterAll(async () => await door.close());
  beforeEach(async () => {
    index = `texts-${process.pid}-${made++}`;
    door.refuse = () => null;
    const place = { origin, index, authorization: null, authorities: null };
    const ports = { pause: async () => {}, random: () => 1, onTrouble: () => {}, onRefused: () => {} };
    target = new OpenSearchIndex({ ...place, ...ports });
    engine = new OpenSearchEngine(place);
    elsewhere = engine.texts;
    Object.assign(
      world.results,
      createResultStore(world.pool, null, async (pages) => await elsewhere(pages)),
    );
    lost = 0;
    await crawl(world, 0, { [ferry]: { page: timetable("7") }, [boat]: { page: boats } });
    return async () => {
      await Promise.all([target.close(), engine.close()]);
      await askEngine(`${url}/${index}?ignore_unavailable=true`, { method: "DELETE" });
    };
  });

  async function crawl(on: ShippingWorld, day: number, given: Parameters<ShippingWorld["ship"]>[1]) {
    if (day === 0) {
      const subnetId = await on.site(1, "ferry", "boat");
      await on.delegations.delegateOwnSubnet(subnetId, await on.arrived("north"), noon);
      await on.pool.query("delete from page_change");
    }
    const { rows } = await on.pool.query("select crawler_id from crawler");
    await on.ship(rows[0].crawler_id, given, days(day));
    await numberChanges(on.pool, days(day));
  }

  /** As a coordinator sends. */
  async function send({
    full = false,
    texts = {},
  }: {
    readonly full?: boolean;
    readonly texts?: TextPorts;
  } = {}) {
    const { pool } = world;
    const ports = { reads: createExportReads(pool), target, nowMs: () => performance.now() };
    const drop: TextPorts["drop"] = async (pages) => await dropTexts(pool, pages);
    const onLost = (pages: number) => {
      lost += pages;
    };
    return await refetching({ pool, onLost }, async (fetchAgain) => {
      const own = { elsewhere: target.documents, drop, onLost: fetchAgain, ...texts };
      return await exportIndex({ ...ports, texts: own }, { full });
    });
  }

  const ready = { type: "ready", pages: 2, bytes: 1, secondsBehind: 0 } as const;
  const asked = (): SearchEngine => Object.assign(engine, { state: () => ready });

  const stored = async () =>
    (await world.pool.query("select text from document order by text")).rows.map(({ text }) => text);
  const inEngine = async (page: string, from = world) => {
    const { pool } = from;
    const { rows } = await pool.query("select fetched_at from page where url = $1", [page]);
    const [text] = await engine.texts([{ ...keyOf(page), fetchedAt: rows[0].fetched_at }]);
    return text?.text ?? null;
  };

  /** All that people read of these pages. */
  async function read(on: ShippingWorld, from: SearchEngine) {
    const reads = createSearchReads(on.pool, () => performance.now(), from);
    const search = async (words: string) => {
      const { pages } = await searchPages(reads, words, { limit: 10 }, days(2));
      return pages.map((one) => ({ url: one.url, title: one.title, snippet: one.snippet }));
    };
    const { changes } = await createChangeFeed(on.pool).latest({ filter: everyChange, limit: 100 });
    return {
      searches: [
        await search("ferry"),
        await search("boats"),
        await search("quay timetable"),
        await search("of"),
      ],
      page: await reads.page(keyOf(ferry), { fetches: 0, inLinks: 0, outLinks: 0 }),
      report: await pageReport(on.pool, keyOf(ferry), from.texts),
      changes: changes.map(({ url, kind, difference }) => ({ url, kind, difference })),
    };
  }

  it("are found, shown and compared as beside an index in a file", async () => {
    await crawl(beside, 0, { [ferry]: { page: timetable("7") }, [boat]: { page: boats } });
    await send();
    const sent = await stored();
    await crawl(world, 8, { [ferry]: { page: timetable("8") } });
    await crawl(beside, 8, { [ferry]: { page: timetable("8") } });
    const waiting = await stored();
    await send();
    await askEngine(`${url}/${index}/_refresh`, { method: "POST" });
    const file = await openFts5(beside.pool, ":memory:");
    await file.catchUp();

    const [one, other] = [await read(world, asked()), await read(beside, file)];

    expect([sent, waiting, await stored()]).toEqual([[], ["The ferry leaves at 8 every morning."], []]);
    expect(one).toEqual(other);
    expect(one.page).toMatchObject({
      excerpt: "The ferry leaves at 8 every mo",
      description: "When boats leave",
    });
    expect(one.searches.map((found) => found.length)).toEqual([1, 2, 1, 0]);
    expect(one.changes.filter(({ kind }) => kind === "changed")).toMatchObject([
      { difference: { places: [{ part: "text", removed: "7", added: "8" }] } },
    ]);
    file.close();
  });

  it("stay in a full round, with new facts", async () => {
    await send();
    await world.pool.query(
      "insert into url_rank (host_hash, url_hash, page_rank, ranked_at) select host_hash, url_hash, 0.5, now() from page where url = $1",
      [ferry],
    );

    await send({ full: true });

    expect([await inEngine(ferry), lost]).toEqual(["The ferry leaves at 7 every morning.", 0]);
    const { hits } = await askEngine<{ hits: { hits: unknown[] } }>(
      `${url}/${index}/_search?q=page_rank:0.5`,
    );
    expect(hits.hits).toHaveLength(1);
  });

  it("are kept in the database if the page is fetched again while they are sent", async () => {
    const write = target.write.bind(target);
    target.write = async (...batch) => {
      target.write = write;
      const written = await write(...batch);
      await crawl(world, 8, { [ferry]: { page: timetable("8") } });
      return written;
    };
    const left: string[][] = [];
    const drop: TextPorts["drop"] = async (pages) => {
      await dropTexts(world.pool, pages);
      left.push(await stored());
    };

    await send({ texts: { drop } });

    expect(left).toEqual([["The ferry leaves at 8 every morning."], []]);
    expect(await inEngine(ferry)).toBe("The ferry leaves at 8 every morning.");
  });

  it("are kept while the page is being written", async () => {
    const { rows } = await world.pool.query("select fetched_at from page where url = $1", [ferry]);
    const client = await world.pool.connect();
    await client.query("begin");
    await client.query("update page set title = title where url = $1", [ferry]);

    await dropTexts(world.pool, [{ ...keyOf(ferry), fetchedAt: rows[0].fetched_at }]);

    await client.query("rollback");
    client.release();
    expect(await stored()).toHaveLength(2);
  });

  it("leave the database in the next round if the coordinator is killed before", async () => {
    const drop = async () => await Promise.reject(new Error("killed"));
    await expect(send({ texts: { drop } })).rejects.toThrow("killed");
    const left = await stored();
    await send({ full: true });

    expect([left.length, await stored(), await inEngine(boat)]).toEqual([2, [], "Boats at the harbour."]);
  });

  it("are missing in what is shown while the engine does not give them; results are taken without a difference", async () => {
    await send();
    door.refuse = (_, path) => (path === "/_mget" ? { status: 503 } : null);
    const away = await read(world, asked());
    // Longer than results wait.
    elsewhere = async () => await new Promise(() => {});
    await crawl(world, 8, { [ferry]: { page: timetable("8") } });

    expect(away.page).toMatchObject({ title: "Ferry", excerpt: "" });
    expect((await read(world, asked())).changes.filter(({ kind }) => kind === "changed")).toMatchObject([
      { url: ferry, difference: null },
    ]);
    expect(await stored()).toEqual(["The ferry leaves at 8 every morning."]);
  });

  it("are fetched again, once and in full, if the index is deleted or went back", async () => {
    await send();
    await askEngine(`${url}/${index}`, { method: "DELETE" });
    const validators = { etag: null, last_modified: null, digest: null };

    await send();
    expect(await world.urlRow(ferry)).toMatchObject({ ...validators, next_fetch_at: expect.any(Date) });
    await world.pool.query("update frontier_url set next_fetch_at = $1", [days(8)]);
    await send({ full: true });
    expect([lost, (await world.urlRow(ferry))!.next_fetch_at]).toEqual([2, days(8)]);

    await crawl(world, 8, { [ferry]: { page: timetable("7") }, [boat]: { page: boats } });
    await send({ full: true });
    expect([await inEngine(ferry), await stored()]).toEqual(["The ferry leaves at 7 every morning.", []]);

    // As if a snapshot had been restored: it has the text of another fetch.
    await world.pool.query("update page set fetched_at = $1 where url = $2", [days(9), ferry]);
    await send({ full: true });
    expect([lost, await inEngine(ferry), await inEngine(boat)]).toEqual([3, null, "Boats at the harbour."]);
  });

  it("are not taken for lost while the engine does not say so", async () => {
    await send();
    door.refuse = (_, path) =>
      path === "/_mget" ? { status: 200, body: { docs: [{ error: { type: "no_shard" } }, {}] } } : null;

    await expect(send({ full: true })).rejects.toThrow("texts cannot be read: no_shard");
    expect(lost).toBe(0);
  });

  it("are fetched again by a coordinator that goes back to an index in a file", async () => {
    await send();
    const file = await openFts5(world.pool, ":memory:");
    const pages: number[] = [];
    const catchUp = async () => await file.catchUp({ full: true, onLost: (count) => void pages.push(count) });
    await catchUp();
    await catchUp();
    await world.pool.query("update frontier_url set next_fetch_at = $1", [days(8)]);
    const before = (await read(world, file)).searches[0];
    await crawl(world, 8, { [ferry]: { page: timetable("7") } });
    await catchUp();

    expect([pages, before]).toEqual([[2], []]);
    expect((await read(world, file)).searches[0]).toMatchObject([{ url: ferry }]);
  });
});
