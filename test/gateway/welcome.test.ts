/** What a crawler is told when it comes, by a whole coordinator over a real database. */
import { expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { startCoordinator } from "#coordinator/main";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import { testDatabase } from "../support/database.ts";
import { helloOf, keyOf } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

it("a welcome states the version of the database's Postgres", async () => {
  const database = await testDatabase();
  const config = readCoordinatorConfig({ listen: { host: "127.0.0.1", port: 0 } });
  const coordinator = await startCoordinator({ config, database, log: silentLog, version: "test" });
  await createCrawlerStore(database.pool).register({
    name: "amber",
    keyHash: hashCrawlerKey(keyOf("amber")),
  });

  const crawler = await RawCrawler.connect(`${coordinator.webUrl.replace("http", "ws")}/crawler`);
  await crawler.send(helloOf("amber"));
  const welcome = await crawler.next("coordinator:welcome");

  const { rows } = await database.pool.query("select version() as words");
  expect(rows[0].words).toMatch(new RegExp(`^PostgreSQL ${welcome.postgresVersion}\\b`));
  crawler.disconnect();
  await coordinator.stop();
  await database.close();
});
