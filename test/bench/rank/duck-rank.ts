/**
 * The same PageRank in DuckDB (the package @duckdb/node-api, which is not among ours): power iteration as SQL on two
 * tables in memory, on one thread, so that its processor time compares.
 */
import { pathToFileURL } from "node:url";
import type { ScaleFreeGraph } from "./scale-free-graph.ts";

/** What is used of the package. */
interface DuckModule {
  readonly DuckDBInstance: {
    create(path: string, options: Record<string, string>): Promise<{ connect(): Promise<DuckConnection> }>;
  };
}

interface DuckConnection {
  run(sql: string): Promise<unknown>;
  runAndReadAll(sql: string): Promise<{ getRows(): unknown[][] }>;
}

export interface DuckRank {
  readonly version: string;
  /** Processor time in ms. */
  readonly loadMs: number;
  readonly eachIterationMs: number;
  /** Of the node with each number. */
  readonly ranks: Float64Array;
}

export async function rankInDuck(
  modulePath: string,
  { urls }: ScaleFreeGraph,
  { damping, iterations, csvFile }: { damping: number; iterations: number; csvFile: string },
): Promise<DuckRank> {
  const { DuckDBInstance } = (await import(pathToFileURL(modulePath).href)) as DuckModule;
  const duck = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  const version = String((await duck.runAndReadAll("select version()")).getRows()[0]?.[0]);
  const clock = stopwatch();
  await duck.run(`create table link as select * from read_csv('${csvFile}', header = false,
    columns = {'source': 'integer', 'target': 'integer'})`);
  const nodes = urls.length;
  await duck.run(`create table node as
    select n.id, coalesce(d.links, 0) as links, 1.0::double / ${nodes} as page_rank
    from range(${nodes}) n(id)
    left join (select source, count(*) as links from link group by source) d on d.source = n.id`);
  const loadMs = clock();
  for (let iteration = 0; iteration < iterations; iteration++) {
    await duck.run(`create or replace table node as
      with share as (
        select l.target, sum(n.page_rank / n.links) as share
        from link l join node n on n.id = l.source
        group by l.target
      ), dangling as (select coalesce(sum(page_rank), 0) as mass from node where links = 0)
      select n.id, n.links,
        (1 - ${damping} + ${damping} * dangling.mass) / ${nodes} + ${damping} * coalesce(s.share, 0) as page_rank
      from node n cross join dangling left join share s on s.target = n.id`);
  }
  const eachIterationMs = clock() / iterations;
  const rows = (await duck.runAndReadAll("select page_rank from node order by id")).getRows();
  return { version, loadMs, eachIterationMs, ranks: Float64Array.from(rows, ([rank]) => Number(rank)) };
}

function stopwatch(): () => number {
  let last = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    return (user + system) / 1000;
  };
}
