/** The only node of OpenSearch is killed and comes back while a coordinator sends pages. guide.test.ts has clusters of three. */
import { describe, expect, it } from "vitest";
import { OpenSearchClient } from "#coordinator/tell/search/engine/opensearch-store";
import { silentLog } from "#core/log";
import { atEnd } from "../support/at-end.ts";
import { testDatabase } from "../support/database.ts";
import { isLong } from "../support/long.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { until } from "../support/until.ts";
import { documentsOf, openSearchClasses, startOpenSearch } from "./open-search.ts";
import { storePage } from "./store-page.ts";

const classes = isLong ? openSearchClasses() : null;
const withinMs = 90_000;

describe.skipIf(classes === null)("a node of OpenSearch that is killed", () => {
  async function opened() {
    const engine = await startOpenSearch(classes!);
    const database = await testDatabase();
    await seedWorld(database.pool);
    const client = new OpenSearchClient({
      ...{ pool: database.pool, schema: database.schema, leads: () => true, log: silentLog },
      place: { origin: engine.url, index: "pages", authorization: null, authorities: null },
    });
    atEnd(
      async () => await client.stop(),
      async () => await Promise.all([engine.close(), database.close()]),
    );
    client.start();
    const titles = async () =>
      [...(await documentsOf(`${engine.url}/pages`)).values()].map(({ title }) => title).sort();
    const texts = async () => (await database.pool.query("select text from document")).rows;
    return {
      ...{ engine, client, texts, store: async (title: string) => await storePage(database.pool, title) },
      untilThere: async (...expected: readonly string[]) =>
        await until(async () => (await titles()).join() === expected.join(), withinMs),
    };
  }

  it("lets documents wait, which are sent when it is back with its data", async () => {
    const { engine, client, store, texts, untilThere } = await opened();
    await store("ferry");
    await untilThere("ferry");
    await until(() => client.state().type === "ready", withinMs);
    await until(async () => (await texts()).length === 0, withinMs);
    await engine.nodes[0]!.stop("SIGKILL");
    await store("boat");

    await until(() => client.state().type === "away", withinMs);
    await until(() => client.trouble !== null, withinMs);
    expect(await client.waiting()).toMatchObject({ changes: 1, since: worldNow });
    await until(
      () => client.fault()?.words.startsWith("1 change waits for the search engine: ") ?? false,
      withinMs,
    );
    expect(client.fault()?.since).toEqual(worldNow);
    expect(await texts()).toEqual([{ text: "A page about boat." }]);

    await engine.nodes[0]!.start();
    await untilThere("boat", "ferry");
    await until(async () => (await client.waiting())?.changes === 0, withinMs);
    expect(await client.waiting()).toMatchObject({ since: null });
    expect(client.trouble).toBeNull();
    await until(() => client.fault() === null, withinMs);
  });
});
