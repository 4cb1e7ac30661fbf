/** What ops/runbook/scaling.md says of OpenSearch, by its own commands, while a coordinator's side of the search sends and asks. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isLong } from "../support/long.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { CrawlBeside } from "./crawl-beside.ts";
import { blocksBelow, curlSettings, runLines } from "./guide-lines.ts";
import { askEngine, documentsOf, openSearchClasses, startOpenSearch } from "./open-search.ts";

const classes = openSearchClasses();
const withinMs = 60_000;

describe.skipIf(classes === null)("the guide's commands for OpenSearch", () => {
  let engine: Awaited<ReturnType<typeof startOpenSearch>>;
  let crawl: CrawlBeside;
  beforeAll(async () => {
    engine = await startOpenSearch(classes!);
  });
  afterAll(async () => await engine.close());
  beforeEach(async () => {
    crawl = await CrawlBeside.start(engine.url, "pages");
  });
  afterEach(async () => {
    await crawl.close();
    await askEngine(`${engine.url}/pages,pages-2?ignore_unavailable=true`, { method: "DELETE" });
  });

  /** The blocks below a heading, as functions that run them. */
  function guided(heading: string): ((env?: NodeJS.ProcessEnv) => Promise<string>)[] {
    const folder = temporaryFolder("nearcrawl-guide-");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, ".curlrc"), curlSettings());
    return blocksBelow(heading).map((lines) => async (env = {}) => {
      const shell = { folder, database: crawl.database, withinMs };
      return await runLines(lines, { ...shell, env: { HOME: folder, SEARCH: engine.url, ...env } });
    });
  }

  it("a snapshot in a folder brings back what it has, and what came since is sent again", async () => {
    await crawl.store("ferry");
    await crawl.untilThere("ferry");
    const [take] = guided("Snapshots");
    const told = await take!();
    expect(told).toContain('"state":"SUCCESS"');
    await crawl.store("boat");
    await crawl.untilThere("boat", "ferry");
    // The cursor stays, as it would if a node had lost the documents.
    const query = { exists: { field: "url" } };
    const lose = { method: "POST", body: { query } };
    await askEngine(`${engine.url}/pages/_delete_by_query?refresh=true`, lose);

    const [restore] = guided("Restoring");
    await restore!({ NAME: new Date().toISOString().slice(0, 10) });

    await crawl.untilThere("boat", "ferry");
    expect(await crawl.found("ferry")).toEqual(["ferry"]);
  });

  it("an index with another analyser is filled while documents arrive, and nothing is missing in it", async () => {
    await crawl.store("ferry");
    await crawl.untilThere("ferry");
    const [fill, change] = guided("Other shards, another analyser");
    await fill!();
    await crawl.store("boat");
    await crawl.untilThere("boat", "ferry");
    await change!();
    await crawl.store("harbour");
    const filled = await documentsOf(`${engine.url}/pages-2`);
    expect([...filled.values()].map(({ title }) => title).sort()).toEqual(["boat", "ferry"]);
    expect(await crawl.found("ferry")).toEqual(["ferry"]);

    await crawl.moveTo("pages-2");

    await crawl.untilThere("boat", "ferry", "harbour");
    for (const name of ["boat", "ferry", "harbour"]) expect(await crawl.found(name)).toEqual([name]);
    const { hits } = await askEngine<{ hits: { hits: { _source: { title: string } }[] } }>(
      `${engine.url}/pages-2/_search`,
      { method: "POST", body: { query: { match: { text: "About" } } } },
    );
    expect(hits.hits).toHaveLength(3);
    const made = await askEngine<Record<string, { settings: { index: { number_of_shards: string } } }>>(
      `${engine.url}/pages-2/_settings`,
    );
    expect(made["pages-2"]!.settings.index.number_of_shards).toBe("3");
  });

  it.runIf(isLong)(
    "on a full disk searches go on and documents wait; the block goes by the guide's line",
    async () => {
      await crawl.store("ferry");
      await crawl.untilThere("ferry");
      const [look, release] = guided("A full disk");
      // More than any disk has.
      await wantFree("1000tb");
      try {
        await until(async () => (await look!()).includes("read_only_allow_delete"), withinMs);
        await crawl.store("boat");
        await until(() => /flood-stage watermark/.test(crawl.client.trouble ?? ""), withinMs);
        expect(await crawl.client.waiting()).toMatchObject({ changes: 1 });
        expect(await crawl.found("ferry")).toEqual(["ferry"]);
      } finally {
        await wantFree(null);
      }
      await release!();

      await crawl.untilThere("boat", "ferry");
    },
  );

  /** Null: nothing is looked at, as the node was started. */
  async function wantFree(bytes: string | null): Promise<void> {
    const disk = "cluster.routing.allocation.disk";
    const marks = ["low", "high", "flood_stage"].map((name) => [`${disk}.watermark.${name}`, bytes]);
    const persistent = {
      ...Object.fromEntries(marks),
      [`${disk}.threshold_enabled`]: bytes && true,
      // The shortest that there is.
      "cluster.info.update.interval": bytes && "10s",
    };
    await askEngine(`${engine.url}/_cluster/settings`, { method: "PUT", body: { persistent } });
  }
});
