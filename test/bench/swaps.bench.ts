/**
 * What a release costs a fleet at work: 12 docks with a crawler each, in the emulated Internet, are given a new
 * signed release while they crawl. Prints what was lost (nothing should be) and how long it took. Results are kept
 * in results/swaps.md.
 *
 *   npm run bench -- swaps
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { swapUnderLoad } from "../end-to-end/swapping-fleet.ts";

const size = { crawlers: 12, hostsPerCrawler: 8, pagesPerHost: 20, floorMs: 200, requestsBefore: 200 };
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
  maxConnections: 25,
});

try {
  await migrate(database);
  console.log(JSON.stringify({ ...size, ...(await swapUnderLoad(size, database)) }, null, 2));
} finally {
  await database.pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  rmSync(home, { recursive: true, force: true });
}
process.exit();
