/**
 * What a coordinator's start takes for the delegations: a million rows in Postgres, read into columns row by row,
 * beside the same rows fetched as a list into a map. Each reading is a process of its own, so that its memory is
 * its own; what an empty one takes is given too. Run: npm run bench -- delegation-start
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { DelegationTable } from "#coordinator/delegation/delegation-table";
import { createDelegationStore } from "#coordinator/delegation/store";
import { openDatabase } from "#db/connect";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";

const delegations = 1_000_000;
const rounds = 3;

type Reading = (database: Database) => Promise<number>;

const readings: Readonly<Record<string, Reading>> = {
  "nothing read": async () => 0,
  "into columns": async (database) => {
    const table = new DelegationTable();
    await createDelegationStore(database.pool).readEach((delegation) => table.set(delegation));
    return table.size;
  },
  "as a list, into a map": async (database) => {
    const { rows } = await database.pool.query<{ subnet_id: number }>(
      `select subnet_id, crawler_id, measured, rtt_ms, runner_up_id, runner_up_rtt_ms
       from delegation
       order by subnet_id`,
    );
    return new Map(rows.map((row) => [row.subnet_id, row])).size;
  },
};

interface Measured {
  readonly rows: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

async function read([name = "", databaseUrl = "", schema = ""]: readonly string[]): Promise<void> {
  const database = await openDatabase({ databaseUrl, schema, home: "/nonexistent" });
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const rows = await readings[name]!(database);
  const { user, system } = process.cpuUsage(cpuBefore);
  const measured: Measured = {
    rows,
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: (user + system) / 1e6,
    peakMb: process.resourceUsage().maxRSS / 1024,
  };
  await database.close();
  process.stdout.write(JSON.stringify(measured));
}

async function measure(name: string, database: Database): Promise<Measured> {
  const script = [...process.execArgv, import.meta.filename, "read", name, database.url, database.schema];
  const { stdout } = await promisify(execFile)(process.execPath, script);
  return JSON.parse(stdout) as Measured;
}

/** The delegations alone: the subnets that they name are not needed for reading them. */
async function fill(database: Database): Promise<void> {
  await database.pool.query("alter table delegation drop constraint delegation_subnet_id_fkey");
  await database.pool.query(`insert into crawler (name) select 'bench ' || n from generate_series(1, 200) n`);
  await database.pool.query(
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, runner_up_id, runner_up_rtt_ms,
       delegated_at)
     select 3 * n, 1 + n % 200, 'operator', true, n % 300, 1 + (n + 7) % 200, n % 290, now()
     from generate_series(1, $1::integer) n`,
    [delegations],
  );
  await database.pool.query("analyze delegation");
}

async function main(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "nearcrawl-start-bench-"));
  chmodSync(home, 0o711);
  try {
    const { url } = await startEmbeddedPostgres(join(home, "home"));
    const database = await openDatabase({ databaseUrl: url, home, schema: "bench" });
    await migrate(database);
    await fill(database);
    console.log(`${delegations} delegations, ${rounds} readings, median (lowest to highest)`);
    for (const name of Object.keys(readings)) {
      const all: Measured[] = [];
      for (let round = 0; round < rounds; round += 1) all.push(await measure(name, database));
      const figures = (pick: (one: Measured) => number, digits: number) => spread(all.map(pick), digits);
      console.log(
        `${name}: ${all[0]!.rows} rows, ${figures((one) => one.seconds, 2)} s, ${figures((one) => one.cpuSeconds, 2)} s of CPU time, at most ${figures((one) => one.peakMb, 0)} MB`,
      );
    }
    await database.close();
  } finally {
    await stopEmbeddedPostgres(join(home, "home")).catch(() => {});
    rmSync(home, { recursive: true, force: true });
  }
}

function spread(values: readonly number[], digits: number): string {
  const sorted = values.toSorted((a, b) => a - b).map((value) => value.toFixed(digits));
  return `${sorted[sorted.length >> 1]} (${sorted[0]} to ${sorted.at(-1)})`;
}

if (process.argv[2] === "read") await read(process.argv.slice(3));
else await main();
