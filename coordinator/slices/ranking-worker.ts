/** The thread of web-graph/local-rank-store: opens the slices for itself, ranks, and tells how far it is. */
import { parentPort, workerData } from "node:worker_threads";
import { openDatabase } from "#db/connect";
import { rankLocally, type WorkerAnswer, type WorkerTask } from "../web-graph/local-rank-store.ts";
import { openSlices } from "./open-slices-store.ts";

const progressEveryMs = 100;

const task = workerData as WorkerTask;
const answer = (value: WorkerAnswer) => parentPort?.postMessage(value);
let nextMs = 0;

const database = await openDatabase({ ...task.database, maxConnections: 2 });
const slices = await openSlices(database);
try {
  const result = await rankLocally(slices, task.options, (progress) => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + progressEveryMs;
    answer({ type: "progress", progress });
  });
  answer({ type: "done", result });
} finally {
  await slices.close();
  await database.close();
}
