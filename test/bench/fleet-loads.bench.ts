/**
 * What balancing reads of a large frontier: 1,000,000 delegated subnets with a host each, 200 crawlers. The sum
 * for every crawler (each pass) against reading every row as the pass before this one did (the baseline), and
 * against the subnets of a few overloaded crawlers. Wall time is the database's; CPU is the coordinator's.
 * Run: npm run bench -- fleet-loads [subnets]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDelegationStore } from "#coordinator/delegation/store";
import { asCrawlerId } from "#core/ids";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";

const subnets = Number(process.argv[2] ?? 1_000_000);
const crawlers = 200;
const rounds = 5;
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
});
try {
  await migrate(database);
  for (const statement of filling()) await database.pool.query(statement);
  const { crawlerLoads, loads } = createDelegationStore(database.pool);
  const everybody = Array.from({ length: crawlers }, (_, index) => asCrawlerId(index + 1));
  const few = everybody.slice(0, 3);
  console.log(`${subnets} subnets, ${crawlers} crawlers, ${rounds} rounds: median (least to most)`);
  const all = await measured("every row (baseline)", async () => (await loads(7, everybody)).length);
  const sums = await measured("the sum of each crawler", async () => (await crawlerLoads(7)).length);
  const some = await measured(
    "rows of 3 crawlers and those away from home",
    async () => (await loads(7, few, { displaced: true })).length,
  );
  console.log(
    `wall: sum ${(sums.wallMs / all.wallMs).toFixed(2)}, rows of a few ${(some.wallMs / all.wallMs).toFixed(2)} of the baseline`,
  );
} finally {
  await database.pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function measured(
  what: string,
  work: () => Promise<number>,
): Promise<{ readonly wallMs: number; readonly cpuMs: number }> {
  const walls: number[] = [];
  const cpus: number[] = [];
  let rows = 0;
  for (let round = 0; round < rounds; round += 1) {
    const [startMs, startCpu] = [performance.now(), process.cpuUsage()];
    rows = await work();
    const { user, system } = process.cpuUsage(startCpu);
    walls.push(performance.now() - startMs);
    cpus.push((user + system) / 1000);
  }
  console.log(`${what.padEnd(46)} ${rows} rows  wall ${line(walls)} ms  CPU ${line(cpus)} ms`);
  return { wallMs: median(walls), cpuMs: median(cpus) };
}

function line(values: readonly number[]): string {
  return `${median(values).toFixed(0)} (${Math.min(...values).toFixed(0)} to ${Math.max(...values).toFixed(0)})`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** One in 500 subnets is away from home. */
function filling(): string[] {
  return [
    "insert into registry_generation (state, applied_at) values ('applied', now())",
    `insert into crawler (name) select 'c' || i from generate_series(1, ${crawlers}) i`,
    `insert into subnet (first_address, last_address, registry, added_in)
     select '1.0.0.0'::inet + i::bigint * 256, '1.0.0.255'::inet + i::bigint * 256, 'ripencc',
       (select max(generation) from registry_generation)
     from generate_series(1, ${subnets}) i`,
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
     select subnet_id, 1 + subnet_id % ${crawlers},
       case when subnet_id % 500 = 0 then 'overload' else 'probe-round' end, true, 20, now()
     from subnet`,
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, url_count, due_at,
       fetched_urls, fetches, fetched_bytes)
     select subnet_id * 7919::bigint * 1000003, 'host' || subnet_id || '.example', 'resolved',
       array['10.0.0.1'::inet], subnet_id, 20, now(), 10, 30, 900000
     from subnet`,
    "vacuum analyze frontier_host",
    "vacuum analyze delegation",
  ];
}
