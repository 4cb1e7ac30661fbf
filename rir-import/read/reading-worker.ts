/** A thread of read-in-threads.ts: reads the files and pieces that it is told of into a store, and hands that over at the end. */
import { parentPort } from "node:worker_threads";
import { SourceFileError } from "#core/errors";
import { RecordStore } from "../tree/to-subnets.ts";
import { readPiece } from "./read-in-pieces.ts";
import type { NumberedFile, WorkerAnswer, WorkerRequest } from "./read-in-threads.ts";
import { type ReadProgress, readSources } from "./read-sources.ts";

const progressEveryMs = 100;

const store = new RecordStore();

async function read({ file, piece }: NumberedFile): Promise<WorkerAnswer> {
  store.begin(piece);
  try {
    return { type: "read", reports: await readSources([file], store, inTurn(progressEveryMs)) };
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

async function answer(request: WorkerRequest): Promise<void> {
  if (request.type === "read") parentPort?.postMessage(await read(request));
  else if (request.type === "read piece") {
    const piece: WorkerAnswer = { type: "piece", answer: readPiece(request.piece, store) };
    parentPort?.postMessage(piece);
  } else {
    const parts = store.parts();
    parentPort?.postMessage({ type: "parts", parts } satisfies WorkerAnswer, [...new Set(memoryOf(parts))]);
  }
}

/** One after the other, as they were asked. */
let turn = Promise.resolve();
parentPort?.on("message", (request: WorkerRequest) => {
  turn = turn.then(() => answer(request));
});
