/**
 * PageRank of a seeded scale-free graph in the frontier's tables: the local engine (processor time of reading, of
 * ranking, of the database beside it, memory), the SQL engine, DuckDB where its package is at hand, and how far their
 * ranks are apart; with DuckDB also the picture results/rank.svg. Linux: the database's processor time is read from /proc.
 * Run: npm run bench -- rank [nodes] [links] [path of @duckdb/node-api's main file, or -] [folder that keeps the database]
 */
import { once } from "node:events";
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { readLinks, webGraph } from "#coordinator/web-graph/graph-reads";
import { linkGraph } from "#coordinator/web-graph/link-graph";
import { rankLocally } from "#coordinator/web-graph/local-rank-store";
import { defaultPageRankSettings, pageRank } from "#coordinator/web-graph/page-rank";
import { rankBySql } from "#coordinator/web-graph/sql-rank-store";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { drawRank } from "./rank/draw-rank.ts";
import { rankInDuck } from "./rank/duck-rank.ts";
import { loadGraph } from "./rank/load-graph.ts";
import { scaleFreeGraph } from "./rank/scale-free-graph.ts";
import { processorTime, serverPid, timeSince } from "./registry/processor-time.ts";
import { resultFile } from "./result-file.ts";

const nodes = Number(process.argv[2] ?? 1_000_000);
const links = Number(process.argv[3] ?? 10_000_000);
const duckPath = process.argv[4] ?? "-";
const kept = process.argv[5] ?? null;
const runs = 3;
const sqlIterations = 3;
const duckIterations = 5;

const home = kept ?? mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: "bench_rank",
});
const { pool } = database;
try {
  const { applied } = await migrate(database);
  const graph = scaleFreeGraph({ nodes, links, hosts: Math.ceil(nodes / 50), seed: 1, unvisited: 0.3 });
  const given = linkGraph({ nodes, from: graph.from, to: graph.to });
  say(`${nodes} pages, ${graph.from.length} links, seed 1`);
  const server = await serverPid(pool);
  if (applied.length > 0) await loadGraph(pool, graph);

  const inMemory = range(runs).map(() => {
    const clock = stopwatch();
    const built = linkGraph({ nodes, from: graph.from, to: graph.to });
    const sortMs = clock();
    const ten = pageRank(built, { ...defaultPageRankSettings, tolerance: 0, iterations: 10 });
    return { sortMs, tenMs: clock(), residual: ten.residual };
  });
  say(`typed arrays, links sorted by target: ${spread(inMemory.map(({ sortMs }) => sortMs))} ms CPU`);
  say(
    `typed arrays, 10 sweeps: ${spread(inMemory.map(({ tenMs }) => tenMs))} ms CPU, residual ${inMemory[0]!.residual.toExponential(1)}`,
  );

  for (let run = 0; run < runs; run++) {
    const before = processorTime(server);
    const started = performance.now();
    const { summary, cpu } = await rankLocally(pool, {
      settings: defaultPageRankSettings,
      write: false,
      at: new Date(),
    });
    const { serverMs } = timeSince(before, server);
    const { iterations, residual } = summary.ranking;
    say(
      `local ${run + 1}: read ${ms(cpu.readMs)}, sort and rank ${ms(cpu.rankMs)} (${iterations} sweeps to ${residual.toExponential(1)}), hosts and summary ${ms(cpu.hostsMs)}; server ${ms(serverMs)}; ${ms(performance.now() - started)} by the clock; ${Math.round(process.memoryUsage().rss / 1e6)} MB resident`,
    );
  }

  const exact = pageRank(given, { damping: 0.85, tolerance: 1e-13, iterations: 500 });
  const client = await pool.connect();
  const read = await readLinks(client, 1);
  const fromTables = pageRank(webGraph(read), { damping: 0.85, tolerance: 1e-13, iterations: 500 });
  say(
    `local, exact to 1e-13: ${fromTables.iterations} sweeps; sums of ranks ${[exact, fromTables].map(({ ranks }) => ranks.reduce((sum, rank) => sum + rank, 0).toFixed(12)).join(", ")}`,
  );

  const beforeSql = processorTime(server);
  const marks: number[] = [];
  const sql = await rankBySql(client, {
    settings: { damping: 0.85, tolerance: 0, iterations: sqlIterations },
    onIteration: () => marks.push(timeSince(beforeSql, server).serverMs),
  });
  const each = (marks.at(-1)! - marks[0]!) / (marks.length - 1);
  say(`sql: nodes and first iteration ${ms(marks[0]!)} of the server, then ${ms(each)} an iteration`);
  const powered = power(sqlIterations);
  const { rows } = await client.query<{ worst: number }>(
    `select max(abs(r.page_rank - u.rank)) as worst
     from ${sql.table} r
     join (select unnest($1::bigint[]) as host_hash, unnest($2::bigint[]) as url_hash, unnest($3::float8[]) as rank) u
       using (host_hash, url_hash)`,
    [
      [...graph.hostHashes.subarray(0, 100_000)].map(String),
      [...graph.urlHashes.subarray(0, 100_000)].map(String),
      [...powered.subarray(0, 100_000)],
    ],
  );
  say(
    `sql against typed arrays after ${sqlIterations} iterations of the power method, over 100,000 pages: ${rows[0]!.worst?.toExponential(1)} apart at most`,
  );
  await sql.drop();
  client.release(true);

  if (duckPath === "-") say("DuckDB: left out; name the main file of @duckdb/node-api to have it");
  else {
    const csvFile = join(home, "links.csv");
    await writeLinks(csvFile);
    const duck = await rankInDuck(duckPath, graph, { damping: 0.85, iterations: duckIterations, csvFile });
    const expected = power(duckIterations);
    const worst = expected.reduce(
      (most, rank, node) => Math.max(most, Math.abs(rank - duck.ranks[node]!)),
      0,
    );
    say(
      `DuckDB ${duck.version}: load ${ms(duck.loadMs)}, ${ms(duck.eachIterationMs)} an iteration; ${worst.toExponential(1)} apart at most from typed arrays`,
    );
    rmSync(csvFile);
    const [array] = [...inMemory].sort((a, b) => a.tenMs - b.tenMs).slice(1);
    const picture = drawRank([
      { name: "typed arrays", beforeMs: array!.sortMs, tenMs: array!.tenMs },
      { name: "DuckDB", beforeMs: duck.loadMs, tenMs: 10 * duck.eachIterationMs },
      { name: "SQL", beforeMs: marks[0]! - each, tenMs: 10 * each },
    ]);
    writeFileSync(resultFile("rank.svg", nodes >= 1_000_000 && links >= 10_000_000), picture);
  }

  /** The power method as a loop, for comparing what others have after as many iterations. */
  function power(iterations: number): Float64Array {
    let ranks = new Float64Array(nodes).fill(1 / nodes);
    for (let iteration = 0; iteration < iterations; iteration++) {
      let dangling = 0;
      for (let node = 0; node < nodes; node++) if (given.outWeights[node] === 0) dangling += ranks[node]!;
      const next = new Float64Array(nodes).fill((0.15 + 0.85 * dangling) / nodes);
      for (let link = 0; link < graph.from.length; link++) {
        const source = graph.from[link]!;
        next[graph.to[link]!]! += (0.85 * ranks[source]!) / given.outWeights[source]!;
      }
      ranks = next;
    }
    return ranks;
  }

  async function writeLinks(file: string): Promise<void> {
    const out = createWriteStream(file);
    for (let first = 0; first < graph.from.length; first += 100_000) {
      const lines = Array.from(
        graph.from.subarray(first, first + 100_000),
        (source, at) => `${source},${graph.to[first + at]}\n`,
      );
      if (!out.write(lines.join(""))) await once(out, "drain");
    }
    await finished(out.end());
  }
} finally {
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  if (kept === null) rmSync(home, { recursive: true, force: true });
}

function say(line: string): void {
  console.log(line);
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Median, least and most. */
function spread(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${Math.round(sorted[Math.floor(sorted.length / 2)]!)} (${Math.round(sorted[0]!)} to ${Math.round(sorted.at(-1)!)})`;
}

function stopwatch(): () => number {
  let last = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    return (user + system) / 1000;
  };
}
