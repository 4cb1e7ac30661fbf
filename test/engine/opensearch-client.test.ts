/** What a coordinator does with OpenSearch over time: it fills it, follows the database, and waits while it is away. */
import type { Pool } from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OpenSearchClient } from "#coordinator/tell/search/engine/opensearch-store";
import { filterNames, type SearchFilters } from "#coordinator/tell/search/search-answer";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { until } from "../support/until.ts";
import { FaultyDoor } from "./faulty-door.ts";
import { askEngine, documentsOf, openSearchClasses, sharedOpenSearch } from "./open-search.ts";
import { storePage } from "./store-page.ts";

const classes = openSearchClasses();
const withinMs = 60_000;

describe.skipIf(classes === null)("a coordinator with OpenSearch", () => {
  let engine: string;
  let database: Database;
  let pool: Pool;
  let door: FaultyDoor;
  let origin: string;
  let index: string;
  let made = 0;
  let clients: OpenSearchClient[];
  beforeAll(async () => {
    engine = await sharedOpenSearch(classes!);
  });
  beforeEach(async () => {
    database = await testDatabase();
    pool = database.pool;
    await seedWorld(pool);
    index = `client-${process.pid}-${made++}`;
    door = new FaultyDoor(engine);
    origin = await door.listen();
    clients = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map(async (client) => await client.stop()));
    await door.close();
    await database.close();
  });

  function started(leads = true): OpenSearchClient {
    const client = new OpenSearchClient({
      ...{ pool, schema: database.schema, leads: () => leads, log: silentLog },
      place: { origin, index, authorization: null, authorities: null },
    });
    clients.push(client);
    client.start();
    return client;
  }

  const store = async (title: string) => await storePage(pool, title);

  const textsHere = async () =>
    (await pool.query<{ text: string }>("select text from document")).rows.map(({ text }) => text);
  const titles = async () =>
    [...(await documentsOf(`${engine}/${index}`)).values()].map(({ title }) => title).sort();
  const untilThere = async (...expected: readonly string[]) =>
    await until(async () => (await titles()).join() === expected.join(), withinMs);

  it("fills it, follows what changes, and finds it", async () => {
    await store("ferry");
    const client = started();
    await until(() => client.state().type === "ready", withinMs);
    await store("boat");
    await untilThere("boat", "ferry");
    await until(async () => (await client.waiting())?.changes === 0, withinMs);

    const filters = Object.fromEntries(filterNames.map((name) => [name, null])) as unknown as SearchFilters;
    const arm = { configurations: ["english"], all: [[["boat"]]], title: [], none: [] };
    expect(await client.search({ arms: [arm], filters, most: 10 })).toMatchObject({
      matches: [{ url: "https://www.example.org/boat" }],
    });
    expect(client.state()).toMatchObject({ type: "ready", secondsBehind: expect.any(Number) });
  });

  it("fills it again where it was deleted under way, as it was made", async () => {
    await store("ferry");
    const client = started();
    await untilThere("ferry");
    await askEngine(`${engine}/${index}`, { method: "DELETE" });
    // As if a batch had been under way: the engine makes an index by itself.
    const batch = { method: "PUT", body: { url: "x" } };
    // It may have been found and deleted by then.
    await askEngine(`${engine}/${index}/_doc/1`, batch).catch(() => {});

    // Its text is nowhere, until the page has been fetched again.
    await untilThere();
    await store("ferry");
    await untilThere("ferry");

    await until(() => client.state().type === "ready", withinMs);
    const made = await askEngine<Record<string, { mappings: unknown }>>(`${engine}/${index}`);
    expect(made[index]!.mappings).toMatchObject({ properties: { terms: { analyzer: "whitespace" } } });
  });

  it("leaves an index alone whose mapping is not its own, and says so", async () => {
    await store("ferry");
    const mappings = { properties: { title: { type: "text" } } };
    await askEngine(`${engine}/${index}`, { method: "PUT", body: { mappings } });
    const client = started();

    await until(() => door.requests.length > 5, withinMs);
    expect(client.state().type).toBe("building");
    expect(client.trouble).toContain("has another mapping than Nearcrawl's (field key)");
    expect(await titles()).toEqual([]);
  });

  it("refuses an engine that is another one", async () => {
    door.refuse = (method, path) =>
      method === "GET" && path === ""
        ? { status: 200, body: { version: { number: "8.11.1", build_flavor: "default" } } }
        : null;
    const client = started();

    await until(() => client.trouble !== null, withinMs);

    expect(client.trouble).toBe(`${origin} is another engine, version 8.11.1: not OpenSearch 2 or 3`);
  });

  it("waits while it is busy, and goes on when it is not", async () => {
    await store("ferry");
    const client = started();
    await untilThere("ferry");
    door.refuse = (_, path) => (path === "/_bulk" ? { status: 429 } : null);
    await store("boat");

    await until(() => client.trouble !== null, withinMs);
    expect(client.trouble).toMatch(/status 429.*it is tried again/);
    await until(async () => (await client.waiting())?.changes === 1, withinMs);

    door.refuse = () => null;
    await untilThere("boat", "ferry");
    await until(() => client.trouble === null, withinMs);
  });

  it("leaves out a document that is refused, and counts it", async () => {
    await store("ferry");
    await store("boat");
    // Longer than a term of the engine may be.
    await pool.query("update page set content_type = repeat('x', 40000) where title = 'boat'");
    const client = started();

    await untilThere("ferry");
    await until(async () => ((await client.waiting())?.refused ?? 0) > 0, withinMs);
    expect(await client.waiting()).toMatchObject({ changes: 0, refused: 1 });
    expect(await textsHere()).toEqual(["A page about boat."]);
  });

  it("has each page once where two coordinators would send, and where one only asks", async () => {
    for (let n = 0; n < 20; n += 1) await store(`page-${n}`);
    const all = [started(), started(), started(false)];

    await until(() => all.every((client) => client.state().type === "ready"), withinMs);

    expect(await titles()).toHaveLength(20);
    expect(all.map((client) => client.trouble)).toEqual([null, null, null]);
  });
});
