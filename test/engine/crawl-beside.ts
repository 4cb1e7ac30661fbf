/** A database whose pages change, and a coordinator's side of OpenSearch that sends and asks. */
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { OpenSearchClient } from "#coordinator/tell/search/engine/opensearch-store";
import { filterNames, type SearchFilters } from "#coordinator/tell/search/search-answer";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { seedChange } from "../support/seed-changes.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { until } from "../support/until.ts";
import { documentsOf } from "./open-search.ts";
import { storePage } from "./store-page.ts";

const withinMs = 60_000;
const filters = Object.fromEntries(filterNames.map((name) => [name, null])) as unknown as SearchFilters;

export class CrawlBeside {
  readonly database: Database;
  readonly #origin: string;
  #index: string;
  client: OpenSearchClient;

  private constructor(database: Database, origin: string, index: string) {
    [this.database, this.#origin, this.#index] = [database, origin, index];
    this.client = this.#started();
  }

  static async start(origin: string, index: string): Promise<CrawlBeside> {
    const database = await testDatabase();
    await seedWorld(database.pool);
    return new CrawlBeside(database, origin, index);
  }

  async close(): Promise<void> {
    await this.client.stop();
    await this.database.close();
  }

  /** As a coordinator that is started again with another `search.url`. */
  async moveTo(index: string): Promise<void> {
    await this.client.stop();
    this.#index = index;
    this.client = this.#started();
  }

  #started(): OpenSearchClient {
    const { pool, schema } = this.database;
    const place = { origin: this.#origin, index: this.#index, authorization: null, authorities: null };
    const client = new OpenSearchClient({ pool, schema, place, leads: () => true, log: silentLog });
    client.start();
    return client;
  }

  /** A page that is found by its name. */
  async store(name: string): Promise<void> {
    await storePage(this.database.pool, name);
  }

  /** As a result that says noindex. */
  async hide(name: string): Promise<void> {
    const { pool } = this.database;
    await pool.query("update page set noindex = true where title = $1", [name]);
    await seedChange(pool, { url: `https://www.example.org/${name}`, kind: "changed" });
    await numberChanges(pool, worldNow);
  }

  /** Until the index has these pages and no others. */
  async untilThere(...names: readonly string[]): Promise<void> {
    const index = `${this.#origin}/${this.#index}`;
    const expected = [...names].sort().join();
    await until(async () => {
      const documents = await documentsOf(index).catch(() => null);
      return (
        documents !== null &&
        [...documents.values()]
          .map(({ title }) => title)
          .sort()
          .join() === expected
      );
    }, withinMs);
  }

  /** The names of the pages that a search for this name finds, for which the engine is asked once. */
  async found(name: string): Promise<string[]> {
    const arm = { configurations: ["english"], all: [[[termOf(name)]]], title: [], none: [] };
    const { matches } = await this.client.search({ arms: [arm], filters, most: 1000 });
    return matches.map(({ url }) => url.split("/").at(-1)!).sort();
  }
}

/** Snowball's English stem of the names that tests use. */
const termOf = (name: string) => name.replace(/y$/, "i");
