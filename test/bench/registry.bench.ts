/**
 * The registry of URLs as it grows: URLs admitted and host slices leased a second through the real store, and bytes a
 * URL on disk, with 1, 5 and 20 million URLs in it, in an embedded Postgres with its settings as they are. Linux:
 * processor time is read from /proc.
 * Run: npm run bench -- registry [--sizes 1,5,20] [--home FOLDER] [--picture FILE.svg]
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { measureAdmissions, urlsPerBatch } from "./registry/admissions.ts";
import { diskUse } from "./registry/disk-use.ts";
import type { Rates, Spread } from "./registry/measured-rounds.ts";
import { serverPid, workInflation } from "./registry/processor-time.ts";
import { ratesPicture, type SizeRates } from "./registry/rates-picture.ts";
import { seedFleet, seedMillions } from "./registry/seed-frontier.ts";
import { measureSlices } from "./registry/slices.ts";

const { values } = parseArgs({
  options: {
    picture: { type: "string" },
    sizes: { type: "string", default: "1,5,20" },
    home: { type: "string" },
  },
});
const sizes = values.sizes.split(",").map(Number);
const home = values.home ?? mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({ databaseUrl: null, home, schema: `bench_${process.pid}` });
const { pool } = database;

try {
  await migrate(database);
  await seedFleet(pool);
  const server = await serverPid(pool);
  const { rows } = await pool.query<{ fsync: string; buffers: string }>(
    "select current_setting('fsync') as fsync, current_setting('shared_buffers') as buffers",
  );
  console.log(
    `${availableParallelism()} x ${cpus()[0]?.model ?? "?"}, Node ${process.version}, fsync ${rows[0]!.fsync}, shared buffers ${rows[0]!.buffers}; batches of ${urlsPerBatch} URLs, two at a time; slices of 20 URLs, 20 an ask`,
  );
  let millions = 0;
  const drawn: SizeRates[] = [];
  for (const size of sizes) {
    const startMs = performance.now();
    await seedMillions(pool, millions, size);
    millions = size;
    await pool.query("vacuum analyze frontier_host");
    await pool.query("vacuum analyze frontier_url");
    const seededMs = performance.now() - startMs;
    const disk = await diskUse(pool);
    console.log(
      `\n${(disk.urls / 1e6).toFixed(2)} million URLs of ${disk.hosts} hosts, seeded in ${(seededMs / 1000).toFixed(0)} s; load ${loadavg()[0]!.toFixed(1)}`,
    );
    console.log(
      `a fixed piece of work takes ${workInflation().toFixed(2)} times its least processor time of this run`,
    );
    const frontier = createFrontierStore(pool);
    const admitted = await measureAdmissions(pool, frontier, server);
    show("URLs admitted", admitted);
    const { slices, urlsPerSlice } = await measureSlices(pool, frontier, server);
    show(`slices leased (${urlsPerSlice.toFixed(1)} URLs each)`, slices);
    drawn.push({ millionUrls: disk.urls / 1e6, admitted: admitted.onTwoCores, leased: slices.onTwoCores });
    console.log(
      `bytes a URL: ${(disk.urlTable + disk.urlIndexes + disk.hostTables).toFixed(0)} (table ${disk.urlTable.toFixed(0)}, its indexes ${disk.urlIndexes.toFixed(0)}, hosts ${disk.hostTables.toFixed(0)}): ${disk.indexes.map(({ name, bytes }) => `${name} ${bytes.toFixed(1)}`).join(", ")}`,
    );
  }
  if (values.picture !== undefined) writeFileSync(values.picture, ratesPicture(drawn));
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (values.home === undefined) {
    await stopEmbeddedPostgres(home);
    rmSync(home, { recursive: true, force: true });
  }
}

function show(what: string, { byClock, onTwoCores, serverUs, ownUs }: Rates): void {
  const line = ({ median, least, most }: Spread) =>
    `${median.toFixed(0)} (${least.toFixed(0)} to ${most.toFixed(0)})`;
  console.log(
    `${what} a second: ${line(byClock)} by the clock; ${line(onTwoCores)} on two free cores, computed from ${serverUs.toFixed(1)} µs of Postgres and ${ownUs.toFixed(1)} µs of Node for each`,
  );
}
