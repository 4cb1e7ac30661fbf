/** The ranking thread of web-graph/local-rank-store. It has its own database connection. */
import { parentPort, workerData } from "node:worker_threads";
import { openDatabase } from "#db/connect";
import { rankLocally, type WorkerAnswer, type WorkerTask } from "./local-rank-store.ts";

const progressEveryMs = 100;

const task = workerData as WorkerTask;
const answer = (value: WorkerAnswer) => parentPort?.postMessage(value);
let nextMs = 0;

const database = await openDatabase({ ...task.database, maxConnections: 2 });
try {
  const result = await rankLocally(database.pool, task.options, (progress) => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + progressEveryMs;
    answer({ type: "progress", progress });
  });
  answer({ type: "done", result });
} finally {
  await database.close();
}
