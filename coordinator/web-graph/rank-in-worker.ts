/** The local engine in a thread of its own, so that whoever asks goes on answering others meanwhile. */
import { Worker } from "node:worker_threads";
import type { Database } from "#db/connect";
import type { LocalRank, RankOptions, RankProgress } from "./local-rank-store.ts";

export interface WorkerTask {
  readonly database: { readonly databaseUrl: string; readonly home: string; readonly schema: string };
  readonly options: RankOptions;
}

export type WorkerAnswer =
  | { readonly type: "progress"; readonly progress: RankProgress }
  | { readonly type: "done"; readonly result: LocalRank };

/** Rejects with what the thread failed with; ends the thread when `signal` says so. */
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

/** From TypeScript sources a worker needs a loader first; what is built is JavaScript. */
function startWorker(task: WorkerTask): Worker {
  const isSource = import.meta.filename.endsWith(".ts");
  const entry = isSource ? "ranking-worker-from-source.mjs" : "ranking-worker.js";
  return new Worker(new URL(`./${entry}`, import.meta.url), {
    workerData: task,
    ...(isSource ? { execArgv: ["--conditions=nearcrawl-source"] } : {}),
  });
}
