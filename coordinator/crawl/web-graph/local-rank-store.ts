/** Ranks the whole graph in this process. Takes about 60 bytes of memory per node, and 20 per link while reading. */
import { randomInt } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { Pool } from "pg";
import type { Database } from "#db/server-database";
import { inTransaction } from "../../database/transaction.ts";
import { type ReadingProgress, readLinks, type WebGraph, webGraph } from "./graph-reads.ts";
import { type PageRank, type PageRankSettings, pageRank } from "./page-rank.ts";
import { hostsOf, mendBackLinks, summaryOf, writeRanks, writeSummary } from "./rank-store.ts";
import type { GraphSummary } from "./summary.ts";

interface RankOptions {
  readonly settings: PageRankSettings;
  /** Whether ranks, summary and corrected counts are stored. */
  readonly write: boolean;
  readonly at: Date;
}

export type RankProgress =
  | ReadingProgress
  | { readonly step: "sweeps"; readonly done: number; readonly residual: number }
  | { readonly step: "writing"; readonly done: number };

/** Processor time of each step in ms, without that of the database. */
interface RankTimes {
  readonly readMs: number;
  readonly rankMs: number;
  readonly hostsMs: number;
  readonly writeMs: number;
}

interface LocalRank {
  readonly summary: GraphSummary;
  /** How many URLs had their back-links corrected; null if nothing was to be stored. */
  readonly mended: number | null;
  readonly cpu: RankTimes;
}

export async function rankLocally(
  pool: Pool,
  { settings, write, at }: RankOptions,
  onProgress: (progress: RankProgress) => void = () => {},
): Promise<LocalRank> {
  const clock = stopwatch();
  const seed = randomInt(2 ** 31);
  const links = await readLinks(pool, seed, onProgress);
  const readMs = clock();
  const graph = webGraph(links);
  const ranking = pageRank(graph, settings, (done, residual) =>
    onProgress({ step: "sweeps", done, residual }),
  );
  const rankMs = clock();
  const hosts = hostsOf(graph, seed);
  const summary = await summaryOf(pool, { graph, hosts, ranking, settings });
  const hostsMs = clock();
  const mended = write ? await writeAll(pool, graph, { ranking, summary, at }, onProgress) : null;
  return { summary, mended, cpu: { readMs, rankMs, hostsMs, writeMs: clock() } };
}

async function writeAll(
  pool: Pool,
  graph: WebGraph,
  { ranking, summary, at }: { ranking: PageRank; summary: GraphSummary; at: Date },
  onProgress: (progress: RankProgress) => void,
): Promise<number> {
  onProgress({ step: "writing", done: graph.knownNodes });
  await inTransaction(pool, async (client) => {
    await writeRanks(client, graph, { ranks: ranking.ranks, at });
    await writeSummary(client, summary, at);
  });
  return await mendBackLinks(pool, graph);
}

/** Returns this process's processor time since the last call. */
function stopwatch(): () => number {
  let last = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    return (user + system) / 1000;
  };
}

// Runs the ranking in a thread of its own so that the process can respond meanwhile.

export interface WorkerTask {
  readonly database: { readonly databaseUrl: string; readonly home: string; readonly schema: string };
  readonly options: RankOptions;
}

export type WorkerAnswer =
  | { readonly type: "progress"; readonly progress: RankProgress }
  | { readonly type: "done"; readonly result: LocalRank };

/** Rejects with the thread's error. `signal` ends the thread. */
export async function rankInWorker(
  database: Pick<Database, "url" | "schema">,
  options: RankOptions,
  {
    onProgress = () => {},
    signal,
  }: { onProgress?: (progress: RankProgress) => void; signal?: AbortSignal } = {},
): Promise<LocalRank> {
  const { url: databaseUrl, schema } = database;
  const task: WorkerTask = { database: { databaseUrl, home: "", schema }, options };
  signal?.throwIfAborted();
  const worker = startWorker(task);
  const stop = () => void worker.terminate();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<LocalRank>((resolve, reject) => {
      worker.on("message", (answer: WorkerAnswer) => {
        if (answer.type === "done") resolve(answer.result);
        else onProgress(answer.progress);
      });
      worker.once("error", reject);
      worker.once("exit", () =>
        reject(signal?.reason ?? new Error("the ranking thread ended without an answer")),
      );
    });
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** A worker needs a loader for TypeScript sources, while built programs are JavaScript. */
function startWorker(task: WorkerTask): Worker {
  const isSource = import.meta.filename.endsWith(".ts");
  const entry = isSource ? "ranking-worker-from-source.mjs" : "ranking-worker.js";
  return new Worker(new URL(`./${entry}`, import.meta.url), {
    workerData: task,
    ...(isSource ? { execArgv: ["--conditions=nearcrawl-source"] } : {}),
  });
}
