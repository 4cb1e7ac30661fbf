/** A thread of read-in-threads.ts: reads each file it is told of into a store and hands that over whole. */
import { parentPort } from "node:worker_threads";
import { SourceFileError } from "#core/errors";
import { RecordStore } from "../tree/to-subnets.ts";
import type { WorkerAnswer } from "./read-in-threads.ts";
import { type ReadProgress, readSources } from "./read-sources.ts";

const progressEveryMs = 100;

async function read(file: string): Promise<WorkerAnswer> {
  const store = new RecordStore();
  try {
    const reports = await readSources([file], store, inTurn(progressEveryMs));
    return { type: "done", parts: store.parts(), reports };
  } catch (error) {
    if (!(error instanceof SourceFileError)) throw error;
    return { type: "failed", file: error.file, line: error.line, reason: error.reason };
  }
}

/** Progress now and then: a message costs more than the record it tells of. */
function inTurn(everyMs: number): (progress: ReadProgress) => void {
  let next = 0;
  return (progress) => {
    const now = performance.now();
    if (now < next && progress.bytesDone < progress.bytesTotal) return;
    next = now + everyMs;
    parentPort?.postMessage({ type: "progress", progress } satisfies WorkerAnswer);
  };
}

/** The memory of every array in the answer, to be handed over instead of copied. */
function memoryOf(value: unknown): readonly ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(memoryOf) : [];
}

parentPort?.on("message", async (file: string) => {
  const answer = await read(file);
  parentPort?.postMessage(answer, answer.type === "done" ? [...new Set(memoryOf(answer.parts))] : []);
});
