/** What ops/runbook/scaling.md says of OpenSearch, by its own commands, while a coordinator's side of the search sends and asks. */
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { atEnd } from "../support/at-end.ts";
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

  const guided = (heading: string) => linesBelow(heading, crawl, engine.url);

  it("a snapshot in a folder brings back what it has, but what was hidden since, and what came since is sent again", async () => {
    await crawl.store("ferry");
    await crawl.store("pier");
    await crawl.untilThere("ferry", "pier");
    const [take] = guided("Snapshots");
    const told = await take!();
    expect(told).toContain('"state":"SUCCESS"');
    await crawl.store("boat");
    await crawl.hide("pier");
    await crawl.untilThere("boat", "ferry");
    // The cursor stays, as it would if a node had lost the documents.
    const query = { exists: { field: "url" } };
    const lose = { method: "POST", body: { query } };
    await askEngine(`${engine.url}/pages/_delete_by_query?refresh=true`, lose);

    const [restore] = guided("Restoring");
    await restore!({ NAME: new Date().toISOString().slice(0, 10) });

    // The text of what came since is nowhere, until the page has been fetched again.
    await crawl.untilThere("ferry");
    await crawl.store("boat");
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

describe.skipIf(classes === null || !isLong)("three nodes by the guide", () => {
  it("answer searches and lose nothing, restarted one by one and with one killed", {
    timeout: 600_000,
  }, async () => {
    const engine = await startOpenSearch(classes!, 3);
    const proxy = await NodesProxy.open(engine.nodes.map(({ url }) => Number(new URL(url).port)));
    const url = `http://127.0.0.1:${proxy.port}`;
    const crawl = await CrawlBeside.start(url, "pages");
    atEnd(
      async () => await crawl.close(),
      async () => await Promise.all([proxy.close(), engine.close()]),
    );
    await crawl.store("ferry");
    await crawl.untilThere("ferry");
    const [hold, letGo] = linesBelow("Nodes, one by one", crawl, url);
    await letGo!();
    const searching = keepsSearching(crawl, "ferry");

    const names = ["ferry"];
    for (const [at, node] of engine.nodes.entries()) {
      await hold!();
      await node.stop();
      await crawl.store(`page-${at}`);
      await node.start();
      expect(await letGo!()).toContain('"status":"green"');
      names.push(`page-${at}`);
      await crawl.untilThere(...names);
    }
    await engine.nodes[0]!.stop("SIGKILL");
    await crawl.store("killed");
    await crawl.untilThere(...names, "killed");
    await engine.nodes[0]!.start();
    expect(await letGo!()).toContain('"status":"green"');

    await crawl.untilThere(...names, "killed");
    expect(await crawl.client.waiting()).toMatchObject({ refused: 0 });
    const { answered, failed, longestMs } = await searching.end();
    process.stderr.write(`searches: ${answered} answered, ${failed} failed, none for ${longestMs} ms\n`);
    // Each node that goes breaks the searches that it was answering; a cluster without its manager elects another one.
    expect(answered).toBeGreaterThan(20 * failed);
    expect(longestMs).toBeLessThan(15_000);
  });
});

/** The blocks below a heading of the guide, as functions that run them. */
function linesBelow(heading: string, { database }: CrawlBeside, url: string) {
  const folder = temporaryFolder("nearcrawl-guide-");
  writeFileSync(join(folder, ".curlrc"), curlSettings());
  writeFileSync(join(folder, "coordinator.toml"), `[search]\nengine = "opensearch"\nurl = "${url}/pages"\n`);
  return blocksBelow(heading).map(
    (lines) =>
      async (env: NodeJS.ProcessEnv = {}) =>
        await runLines(lines, { folder, database, withinMs, env: { HOME: folder, SEARCH: url, ...env } }),
  );
}

/** Searches all the while. An answer without the page is none. */
function keepsSearching(crawl: CrawlBeside, name: string) {
  const searched = { answered: 0, failed: 0, longestMs: 0 };
  let isOver = false;
  const running = (async () => {
    for (let lastMs = performance.now(); !isOver; await delay(50)) {
      const found = await crawl.found(name).catch(() => []);
      const atMs = performance.now();
      if (found.join() === name) {
        searched.answered += 1;
        searched.longestMs = Math.max(searched.longestMs, Math.round(atMs - lastMs));
        lastMs = atMs;
      } else searched.failed += 1;
    }
  })();
  return {
    end: async () => {
      isOver = true;
      await running;
      return searched;
    },
  };
}

/** Forwards each connection to the next node that accepts it. */
class NodesProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(ports: readonly number[]) {
    let turn = 0;
    this.#server = createServer((client) => {
      turn += 1;
      this.#lead(
        client,
        ports.map((_, at) => ports[(turn + at) % ports.length]!),
      );
    });
  }

  static async open(ports: readonly number[]): Promise<NodesProxy> {
    const proxy = new NodesProxy(ports);
    await new Promise<void>((done) => proxy.#server.listen(0, "127.0.0.1", done));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  #lead(client: Socket, [port, ...others]: readonly number[]): void {
    if (port === undefined) return void client.destroy();
    const node = connect(port, "127.0.0.1");
    node.once("error", () => this.#lead(client, others));
    node.once("connect", () => {
      node.removeAllListeners("error");
      for (const [one, other] of [
        [client, node],
        [node, client],
      ] as const) {
        this.#sockets.add(one);
        one
          .on("error", () => {})
          .on("close", () => {
            this.#sockets.delete(one);
            other.destroy();
          });
        one.pipe(other);
      }
    });
  }
}
