/**
 * The index at a search engine, and in a file, equals what the search shows: after changes, opt-outs, restores, kills
 * and refusals.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Pool } from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { numberChanges, removeOldChanges } from "#coordinator/crawl/changes/change-writes";
import type { ChangeKind } from "#coordinator/crawl/changes/page-change";
import { beginEpoch, currentEpoch, serverState } from "#coordinator/run/journal/epoch-store";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import { Fts5Index } from "#coordinator/tell/search/engine/fts5-index-store";
import { type ExportTarget, exportIndex } from "#coordinator/tell/search/export/export-index";
import { documentId } from "#coordinator/tell/search/export/export-operation";
import { createExportReads } from "#coordinator/tell/search/export/export-reads";
import { NdjsonFile } from "#coordinator/tell/search/export/ndjson-store";
import { OpenSearchIndex } from "#coordinator/tell/search/export/opensearch-target";
import { seededRandom } from "#core/random";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { FaultyDoor } from "../../engine/faulty-door.ts";
import { askEngine, documentsOf, openSearchClasses, sharedOpenSearch } from "../../engine/open-search.ts";
import { testDatabase } from "../../support/database.ts";
import { addLinks } from "../../support/links.ts";
import { seedChange } from "../../support/seed-changes.ts";
import { seedPage, seedWorld, worldNow } from "../../support/seed-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let database: Database;
let pool: Pool;
let folder: string;
beforeAll(async () => {
  folder = temporaryFolder("nearcrawl-export-");
});
beforeEach(async () => {
  database = await testDatabase();
  pool = database.pool;
  await seedWorld(pool);
});
afterEach(async () => {
  await database.close();
});

const www = (path: string) => `https://www.example.org/${path}`;

/** A page as stored by a result: the row, and its change. */
async function store(url: string, title = "A page", kind: ChangeKind = "first-seen"): Promise<void> {
  const { hostHash, urlHash } = keyOf(url);
  await pool.query("delete from page where host_hash = $1 and url_hash = $2", [hostHash, urlHash]);
  await seedPage(pool, { url, title, text: `The text of ${title}.` });
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url) values ($1, $2, $3) on conflict do nothing`,
    [hostHash, urlHash, url],
  );
  await tellChange(url, kind);
}

/** What happens while the first batch is written. */
function withFirstWrite(target: ExportTarget, happens: () => Promise<void>): ExportTarget {
  let isFirst = true;
  return {
    state: async () => await target.state(),
    async write(operations) {
      if (isFirst) await happens();
      isFirst = false;
      return await target.write(operations);
    },
    keep: async (state) => await target.keep(state),
    beginFull: async (change) => await target.beginFull(change),
    endFull: async (change) => await target.endFull(change),
  };
}

async function remove(url: string): Promise<void> {
  const { hostHash, urlHash } = keyOf(url);
  await pool.query("delete from page where host_hash = $1 and url_hash = $2", [hostHash, urlHash]);
  await tellChange(url, "gone");
}

async function tellChange(url: string, kind: ChangeKind): Promise<void> {
  await seedChange(pool, { url, kind });
  await numberChanges(pool, worldNow);
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(key);
  return key;
}

async function run(target: ExportTarget, options: { readonly full?: boolean } = {}, signal?: AbortSignal) {
  return await exportIndex(
    { reads: createExportReads(pool), target, nowMs: () => performance.now(), ...(signal && { signal }) },
    options,
  );
}

/** What the search would show, from its own tables. */
async function shown(): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ url: string; title: string }>(
    `select p.url, p.title from page p left join frontier_host h using (host_hash)
     left join preference_set s on s.set_id = p.preference_set
     where not p.noindex and h.opt_out_id is null and coalesce(s.answers ->> 'search', 'allowed') = 'allowed'`,
  );
  return Object.fromEntries(rows.map(({ url, title }) => [url, title]));
}

const classes = openSearchClasses();

describe.skipIf(classes === null)("an index of OpenSearch", () => {
  let url: string;
  let engine: FaultyDoor;
  let origin: string;
  let index: string;
  let made = 0;
  beforeAll(async () => {
    url = await sharedOpenSearch(classes!);
  });
  beforeEach(async () => {
    index = `pages-${process.pid}-${made++}`;
    engine = new FaultyDoor(url);
    origin = await engine.listen();
  });
  afterEach(async () => {
    await engine.close();
    await askEngine(`${url}/${index}?ignore_unavailable=true`, { method: "DELETE" });
  });

  const documents = async () => await documentsOf(`${url}/${index}`);
  const titles = async () =>
    Object.fromEntries([...(await documents()).values()].map(({ url, title }) => [String(url), title]));

  const troubles: string[] = [];
  const pauses: number[] = [];

  function openSearch(parts: { readonly pause?: () => Promise<void> } = {}): OpenSearchIndex {
    return new OpenSearchIndex({
      ...{ origin, index, authorization: "Basic eDp5", authorities: null },
      pause: async (ms) => {
        pauses.push(ms);
        await parts.pause?.();
      },
      random: () => 1,
      onTrouble: (words) => troubles.push(words),
      onRefused: (words) => troubles.push(words),
      timeoutMs: 5000,
    });
  }

  async function toEngine(options: { readonly full?: boolean } = {}, signal?: AbortSignal) {
    const target = openSearch();
    try {
      return await run(target, options, signal);
    } finally {
      await target.close();
    }
  }

  it("has every page that the search shows, and follows changes", async () => {
    await store(www("a"), "First");
    await store(www("b"), "Second");
    await seedPage(pool, { url: www("secret"), title: "Hidden", text: "x", noindex: true });

    const first = await toEngine();
    await store(www("b"), "Second, changed", "changed");
    await store(www("c"), "Third");
    await remove(www("a"));
    const second = await toEngine();

    expect(first).toMatchObject({
      full: "the index was not there",
      indexed: 2,
      deleted: 1,
      rejected: 0,
      cursor: 2,
    });
    expect(second).toMatchObject({ full: null, indexed: 2, deleted: 1, cursor: 5 });
    expect(await titles()).toEqual({ [www("b")]: "Second, changed", [www("c")]: "Third" });
    expect((await askEngine<Record<string, unknown>>(`${url}/${index}`))[index]).toMatchObject({
      mappings: { dynamic: "false", properties: { terms: { analyzer: "whitespace" } } },
    });
    expect(engine.requests.every(({ authorization }) => authorization === "Basic eDp5")).toBe(true);
  });

  it("gets documents with everything that the index knows about a page", async () => {
    await store(www("walk"), "Walks at the harbour");
    const { hostHash, urlHash } = keyOf(www("walk"));
    const calls = (from: string, anchor: string, nofollow = false) => ({
      ...{ from: keyOf(from), to: keyOf(www("walk")), anchor, nofollow },
    });
    await addLinks(pool, [
      calls("https://one.example/a", "Harbour walks"),
      calls("https://one.example/b", ""),
      calls("https://two.example/", "A walk".padEnd(300, "!")),
      calls("https://three.example/", "Harbour walks"),
      calls("https://four.example/", ""),
      calls("https://five.example/", "An advertisement", true),
      calls(www("own"), "Home"),
    ]);
    await pool.query(
      `with made as (
         insert into preference_set (digest, stated, answers, used_at)
         values ('x', '[]', '{"ai-train": "denied"}', now()) returning set_id
       )
       update page set preference_set = made.set_id from made where url = $1`,
      [www("walk")],
    );
    await pool.query(
      `update document set headings = '[{"level": 1, "text": "Harbour"}]', description = 'By boat', unquoted = 'A quay',
         snippet_characters = 50
       where url_hash = $1`,
      [urlHash],
    );
    await pool.query("insert into url_rank values ($1, $2, 0.25, now())", [hostHash, urlHash]);

    await toEngine();

    expect((await documents()).get(documentId({ hostHash, urlHash }))).toEqual({
      ...{ url: www("walk"), host: "www.example.org", title: "Walks at the harbour", description: "By boat" },
      ...{
        ...{ headings: ["Harbour"], heading_levels: [1], structured: null },
        text: "The text of Walks at the harbour.",
        unquoted: "A quay",
        snippet_characters: 50,
      },
      ...{
        text_search_config: "english",
        language: "en",
        country: "GR",
        content_type: "text/html",
        canonical_url: null,
      },
      ...{
        published_at: null,
        modified_at: null,
        fetched_at: worldNow.toISOString(),
        crawler: "athens",
        words: 100,
      },
      ...{
        linking_hosts: 4,
        page_rank: 0.25,
        anchors: ["Harbour walks", "A walk".padEnd(200, "!")],
        text_group: null,
        is_copy: false,
        uses: ["ai-train=denied"],
        change: 1,
      },
    });
  });

  it("loses pages at an opt-out, without a change of theirs, and gets them back when it is lifted", async () => {
    await store(www("a"));
    await store("https://de.example.org/", "Other host");
    await pool.query("insert into frontier_host (host_hash, host) values ($1, 'de.example.org')", [
      keyOf("https://de.example.org/").hostHash,
    ]);
    await toEngine();

    await pool.query(
      `insert into opt_out (site, source, token, created_at, in_force_at) values ('www.example.org', 'form', 't', $1, $1)`,
      [worldNow],
    );
    await createOptOutMarks(pool).apply(worldNow);
    await toEngine();
    const hidden = await titles();
    await pool.query("update opt_out set ended_at = $1, ending = 'lifted'", [worldNow]);
    await createOptOutMarks(pool).apply(worldNow);
    await toEngine();
    await store(www("b"), "Later");
    await toEngine();

    expect(hidden).toEqual({ "https://de.example.org/": "Other host" });
    expect(await titles()).toEqual(await shown());
    expect(Object.keys(await titles())).toHaveLength(3);
  });

  it("loses the pages of a confirmed opt-out, which are deleted in the database", async () => {
    await store(www("a"));
    await toEngine();

    await pool.query(
      `insert into opt_out (site, source, token, created_at, in_force_at, confirmed_at, confirmed_by)
       values ('www.example.org', 'operator', 't', $1, $1, $1, 'operator')`,
      [worldNow],
    );
    await createOptOutMarks(pool).apply(worldNow);
    const summary = await toEngine();

    expect(summary.full).toBeNull();
    expect(await titles()).toEqual({});
  });

  it("loses a page whose site forbids search", async () => {
    await store(www("a"));
    await toEngine();

    await pool.query(
      `with made as (
         insert into preference_set (digest, stated, answers, used_at)
         values ('x', '[]', '{"search": "denied"}', now()) returning set_id
       )
       update page set preference_set = made.set_id from made`,
    );
    await tellChange(www("a"), "preferences-changed");
    await toEngine();

    expect(await titles()).toEqual({});
  });

  it("does not change when a batch is sent twice", async () => {
    await store(www("a"));
    await toEngine();
    await store(www("b"));
    let isFirst = true;
    engine.refuse = (_, path) => {
      const cut = path === "/_bulk" && isFirst;
      if (cut) isFirst = false;
      return cut ? { status: 0, cut: true } : null;
    };
    const summary = await toEngine();

    expect(summary).toMatchObject({ indexed: 1, alreadyThere: 0 });
    expect(engine.requests.filter(({ path }) => path === "/_bulk")).toHaveLength(3);
    expect(await titles()).toEqual(await shown());
  });

  it("is exported in full again when the feed no longer reaches its cursor, without pages gone since", async () => {
    await store(www("a"));
    await store(www("b"));
    await toEngine();
    await remove(www("a"));
    await store(www("c"));
    await removeOldChanges(pool, new Date(worldNow.getTime() + 1));

    const summary = await toEngine();

    expect(summary).toMatchObject({
      full: "changes through number 4 are no longer kept (policy changes.keepDays)",
      removed: 1,
    });
    expect(await titles()).toEqual(await shown());
    expect(Object.keys(await titles())).toEqual([www("b"), www("c")]);
  });

  it("is exported in full again after a restore of the database, with the restored pages", async () => {
    await store(www("a"), "Before");
    await toEngine();
    await store(www("b"), "Lost by the restore");
    await toEngine();
    await pool.query("delete from page where url = $1", [www("b")]);
    await pool.query(
      "delete from page_change where change_number > 1; update change_feed set last_number = 1",
    );

    await expect(toEngine()).rejects.toThrow("which no coordinator has noticed yet");
    await expect(toEngine({ full: true })).rejects.toThrow("which no coordinator has noticed yet");
    await newEpoch();
    const summary = await toEngine();

    expect(summary).toMatchObject({
      full: "the database went back: it is in epoch 2, and was in 1",
      removed: 1,
    });
    expect(await titles()).toEqual({ [www("a")]: "Before" });
  });

  it("continues from the cursor that it was restored with", async () => {
    await store(www("a"), "Old");
    await toEngine();
    const repository = `${url}/_snapshot/kept`;
    const settings = { location: `kept-${process.pid}` };
    await askEngine(repository, { method: "PUT", body: { type: "fs", settings } });
    const snapshot = `${repository}/${index}`;
    await askEngine(`${snapshot}?wait_for_completion=true`, { method: "PUT", body: { indices: index } });
    await store(www("a"), "New", "changed");
    await toEngine();
    await askEngine(`${url}/${index}`, { method: "DELETE" });
    await askEngine(`${snapshot}/_restore?wait_for_completion=true`, { method: "POST" });

    const summary = await toEngine();

    expect(summary).toMatchObject({ full: null, indexed: 1 });
    expect(await titles()).toEqual({ [www("a")]: "New" });
  });

  it("is the same after two full exports", async () => {
    await store(www("a"));
    await toEngine();
    const before = await documents();

    expect(await toEngine({ full: true })).toMatchObject({ full: "asked for", indexed: 1, removed: 0 });

    expect(await documents()).toEqual(before);
  });

  it("waits as long as a busy target says", async () => {
    await store(www("a"));
    pauses.length = 0;
    let left = 3;
    engine.refuse = (_, path) =>
      path === "/_bulk" && left-- > 0 ? { status: 429, headers: { "retry-after": "7" } } : null;

    await toEngine();

    expect(pauses).toEqual([7000, 7000, 7000]);
    expect(Object.keys(await titles())).toEqual([www("a")]);
  });

  it("resends only the documents of a batch that the target had no room for", async () => {
    for (const name of ["a", "b", "c"]) await store(www(name));
    const busy = documentId(keyOf(www("b")));
    let left = 2;
    troubles.length = 0;
    engine.hasNoRoomFor = (id) => id === busy && left-- > 0;

    const summary = await toEngine();

    const bulks = engine.requests.filter(({ path }) => path === "/_bulk").map(({ bytes }) => bytes);
    expect(summary).toMatchObject({ indexed: 3, alreadyThere: 0 });
    expect(bulks[1]).toBeLessThan(bulks[0]! / 2);
    expect(troubles[0]).toMatch(/status 429 for 1 of 3 documents: .*the queue is full; it is tried again$/);
  });

  /** Than a term of the engine may be. */
  const tooLong = "update page set content_type = repeat('x', 40000)";

  it("reports a refused document and exports the others", async () => {
    troubles.length = 0;
    await store(www("a"));
    await store(www("odd"));
    const odd = documentId(keyOf(www("odd")));
    await pool.query(`${tooLong} where url = $1`, [www("odd")]);

    const summary = await toEngine();

    expect(summary).toMatchObject({ indexed: 1, rejected: 1 });
    expect(troubles[0]).toContain(
      `document ${odd} (${www("odd")}) is left out: illegal_argument_exception: Document contains`,
    );
  });

  it("ends when most are refused, with the cursor unchanged", async () => {
    for (let n = 0; n < 12; n += 1) await store(www(`page-${n}`));
    await pool.query(tooLong);

    await expect(toEngine()).rejects.toThrow(/refuses 12 of 12 documents, so it is not theirs/);

    await pool.query("update page set content_type = 'text/html'");
    expect(await toEngine()).toMatchObject({
      full: "an export of all pages was broken off, and goes on",
      indexed: 12,
    });
  });

  it("sends a batch that is too large in halves", async () => {
    for (let n = 0; n < 20; n += 1) await store(www(`page-${n}`));
    engine.mostBytes = 3000;

    expect(await toEngine()).toMatchObject({ indexed: 20, rejected: 0 });
  });

  it.each([
    [401, "status 401"],
    [302, "status 302"],
  ])("ends at status %s with its words, and tries no more", async (status, words) => {
    engine.refuse = () => ({ status, headers: { location: "http://127.0.0.1:1/" } });

    await expect(toEngine()).rejects.toThrow(words);

    expect(engine.requests).toHaveLength(1);
  });

  it("gives up on a target that stays away", async () => {
    pauses.length = 0;
    engine.refuse = () => ({ status: 503 });

    await expect(toEngine()).rejects.toThrow(/status 503, after 12 tries/);

    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(120_000);
  });

  it("has nothing missing or doubled, wherever exports are interrupted, while pages come and go", {
    timeout: 60_000,
  }, async () => {
    const random = seededRandom(25);
    const someUrl = () => www(`page-${Math.floor(random() * 300)}`);
    for (let n = 0; n < 700; n += 1)
      await seedPage(pool, { url: www(`still-${n}`), title: `Still ${n}`, text: "x" });
    let broken = 0;
    for (let round = 0; round < 40; round += 1) {
      for (let n = 0; n < 5; n += 1) {
        if (random() < 0.3) await remove(someUrl());
        else await store(someUrl(), `Round ${round}`, "changed");
      }
      const dies = Math.floor(random() * 8);
      let asked = 0;
      engine.refuse = (_, path) => {
        asked += 1;
        if (asked !== dies) return null;
        // Like a kill before the answer: after the work is done, or before.
        return random() < 0.5 ? { status: 418 } : { status: 418, cut: path === "" };
      };
      await toEngine({ full: round === 5 || round === 15 }).catch(() => {
        broken += 1;
      });
    }
    engine.refuse = () => null;
    await toEngine();

    expect(broken).toBeGreaterThan(10);
    expect(await titles()).toEqual(await shown());
  });
});

async function newEpoch(): Promise<void> {
  const client = await pool.connect();
  try {
    const before = await currentEpoch(client);
    await client.query("begin");
    await beginEpoch(client, {
      ...{ before, newest: before.epoch, cause: "operator", words: "restored" },
      server: await serverState(pool),
      now: worldNow,
    });
    await client.query("commit");
  } finally {
    client.release();
  }
}

describe("a file of lines", () => {
  let count = 0;
  const fileOf = () => join(folder, `pages-${count++}.ndjson`);

  async function toFile(file: string, options: { readonly full?: boolean } = {}) {
    const target = new NdjsonFile(file, `${file}.state.json`);
    try {
      return await run(target, options);
    } finally {
      await target.close();
    }
  }

  /** Loads like a loader: by id and version, dropping at its end what a full export did not name. */
  function loaded(...files: readonly string[]): Record<string, unknown> {
    const held = new Map<string, { version: number; document: { url: string; title: string } | null }>();
    for (const line of files.flatMap((file) => readFileSync(file, "utf8").split("\n").slice(0, -1))) {
      const { op, _id: id, version, document = null } = JSON.parse(line);
      if (op === "end-full") for (const [one, { version: old }] of held) if (old < version) held.delete(one);
      if (id !== undefined && version > (held.get(id)?.version ?? 0)) held.set(id, { version, document });
    }
    return Object.fromEntries(
      [...held.values()].flatMap(({ document }) => (document ? [[document.url, document.title]] : [])),
    );
  }

  it("has all pages between its marks, and grows with changes", async () => {
    const file = fileOf();
    await store(www("a"), "First");
    await store(www("b"), "Second");

    await toFile(file);
    const whole = readFileSync(file, "utf8");
    await store(www("a"), "First, changed", "changed");
    await remove(www("b"));
    await toFile(file);

    const lines = whole
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    expect(lines.map(({ op }) => op)).toEqual(["begin-full", "index", "index", "end-full"]);
    expect(lines[0]).toEqual({ op: "begin-full", version: 5 });
    expect(readFileSync(file, "utf8").startsWith(whole)).toBe(true);
    expect(loaded(file)).toEqual({ [www("a")]: "First, changed" });
  });

  it("is cut to where it was complete, so that half-written lines of a kill are there once", async () => {
    const file = fileOf();
    await store(www("a"));
    await toFile(file);
    await store(www("b"));
    const target = new NdjsonFile(file, `${file}.state.json`);
    const dying: ExportTarget = {
      state: async () => await target.state(),
      write: async (operations) => await target.write(operations),
      keep: async () => {
        throw new Error("killed");
      },
      beginFull: async (change) => await target.beginFull(change),
      endFull: async (change) => await target.endFull(change),
    };
    await expect(run(dying)).rejects.toThrow("killed");
    await target.close();

    await toFile(file);

    const ids = readFileSync(file, "utf8").match(/"_id":"[^"]+"/g)!;
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(2);
  });

  it("gets what changes while all pages are exported before it has all of them", async () => {
    const file = fileOf();
    for (let n = 0; n < 220; n += 1)
      await seedPage(pool, { url: www(`page-${n}`), title: "A page", text: "x" });
    await store(www("a"), "Before");
    const target = new NdjsonFile(file, `${file}.state.json`);
    const slow = withFirstWrite(target, () => store(www("a"), "Changed meanwhile", "changed"));
    let ms = 0;
    const levels: number[] = [];

    await exportIndex({
      ...{ reads: createExportReads(pool), target: slow, nowMs: () => (ms += 5000) },
      onLevel: (atMs) => levels.push(atMs),
    });
    await target.close();

    const lines = readFileSync(file, "utf8");
    expect(levels.length).toBeGreaterThan(1);
    expect(lines.indexOf("Changed meanwhile")).toBeGreaterThan(0);
    expect(lines.indexOf("Changed meanwhile")).toBeLessThan(lines.indexOf('"end-full"'));
    expect(loaded(file)).toEqual(await shown());
  });

  it("that remembers no deletions has no page that is deleted while all pages are exported", async () => {
    for (let n = 0; n < 220; n += 1)
      await seedPage(pool, { url: www(`page-${n}`), title: "A page", text: "x" });
    const last = await pool.query<{ url: string }>(
      "select url from page order by host_hash desc, url_hash desc limit 1",
    );
    const index = await Fts5Index.open(":memory:");
    let ms = 0;

    await exportIndex({
      reads: createExportReads(pool),
      target: withFirstWrite(index, () => remove(last.rows[0]!.url)),
      nowMs: () => (ms += 5000),
    });

    expect(index.pages).toBe(219);
    index.close();
  });

  it("begins again with what came since it was moved away", async () => {
    const file = fileOf();
    await store(www("a"));
    await toFile(file);
    renameSync(file, `${file}.1`);
    await store(www("b"));

    await toFile(file);

    expect(readFileSync(file, "utf8").match(/"op":"index"/g)).toHaveLength(1);
    expect(loaded(`${file}.1`, file)).toEqual(await shown());
  });

  it("shows by its marks what is gone after another full export", async () => {
    const file = fileOf();
    await store(www("a"));
    await store(www("b"));
    await toFile(file);
    await remove(www("a"));
    await removeOldChanges(pool, new Date(worldNow.getTime() + 1));

    await toFile(file);

    expect(loaded(file)).toEqual(await shown());
  });

  function writeState(file: string, text: string | null): void {
    if (text === null) writeFileSync(file, "x\n");
    else writeFileSync(`${file}.state.json`, text);
  }

  it.each([
    ["a state that is none", (file: string) => writeState(file, "{}"), /is no state of an export \(format/],
    [
      "a file that is shorter than it was",
      (file: string) => writeState(file, null),
      /it is another file, or was cut/,
    ],
  ])("refuses %s", async (_, spoil, words) => {
    const file = fileOf();
    await store(www("a"));
    await toFile(file);
    spoil(file);

    await expect(toFile(file)).rejects.toThrow(words);
  });

  it("refuses a file that is not its export", async () => {
    const file = fileOf();
    writeFileSync(file, "somebody's notes\n");

    await expect(toFile(file)).rejects.toThrow(/is there, and .* is not/);

    expect(readFileSync(file, "utf8")).toBe("somebody's notes\n");
  });
});
