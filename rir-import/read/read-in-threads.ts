/**
 * Reads the files into a store, on several processors where there is much to read: this thread and the
 * workers each take the largest file that is left, into a store of its own. The stores are absorbed in the
 * order of the files, so that what comes out is the same whatever the number of threads.
 */
import { stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { SourceFileError } from "#core/errors";
import { type RecordParts, RecordStore } from "../tree/to-subnets.ts";
import type { FileReport } from "./file-report.ts";
import { packingOf } from "./open-source.ts";
import { type ReadProgress, readSources } from "./read-sources.ts";

/** About how much a compressed dump unpacks to. Measured on generated RIPE and ARIN files: 5.6 and 9.2. */
const unpackedTimes = 8;
/** Less text than this is read before a worker has started. */
const fewestTextBytes = 128 * 2 ** 20;
/** More would wait for the disk, and for this thread to absorb what they read. */
const mostThreads = 4;

export interface ReadFiles {
  readonly store: RecordStore;
  readonly reports: readonly FileReport[];
}

/** What a worker answers to the name of a file. */
export type WorkerAnswer =
  | { readonly type: "progress"; readonly progress: ReadProgress }
  | ({ readonly type: "done" } & ReadFile)
  | {
      readonly type: "failed";
      readonly file: string;
      readonly line: number | null;
      readonly reason: string;
    };

interface ReadFile {
  readonly parts: RecordParts;
  readonly reports: readonly FileReport[];
}

/** `threads`: as many as the machine and the amount of text make sense of, unless told. */
export async function readInThreads(
  files: readonly string[],
  onProgress: (progress: ReadProgress) => void,
  threads?: number,
): Promise<ReadFiles> {
  const weighed = await Promise.all(files.map(weigh));
  const count = Math.min(threads ?? sensibleThreads(weighed), files.length);
  if (count > 1) return await readShared(weighed, onProgress, count);
  const store = new RecordStore();
  return { store, reports: await readSources(files, store, onProgress) };
}

interface WeighedFile {
  readonly file: string;
  readonly bytesOnDisk: number;
  readonly textBytes: number;
}

/** What is no file, or cannot be read, weighs nothing: it is told of when it is opened. */
async function weigh(file: string): Promise<WeighedFile> {
  const facts = await stat(file).catch(() => null);
  if (!facts?.isFile()) return { file, bytesOnDisk: 0, textBytes: 0 };
  const packing = await packingOf(file).catch(() => "plain");
  const bytesOnDisk = facts.size;
  return { file, bytesOnDisk, textBytes: packing === "plain" ? bytesOnDisk : unpackedTimes * bytesOnDisk };
}

function sensibleThreads(files: readonly WeighedFile[]): number {
  const textBytes = files.reduce((sum, file) => sum + file.textBytes, 0);
  return textBytes < fewestTextBytes ? 1 : Math.min(mostThreads, availableParallelism());
}

async function readShared(
  files: readonly WeighedFile[],
  onProgress: (progress: ReadProgress) => void,
  threads: number,
): Promise<ReadFiles> {
  const progress = new JoinedProgress(files, onProgress);
  const stop = new AbortController();
  const workers = Array.from({ length: threads - 1 }, () => new ReadingWorker());
  const left = files.map((_, index) => index).sort((a, b) => files[b]!.textBytes - files[a]!.textBytes);
  const read: ReadFile[] = [];
  const takeAll = async (
    readOne: (file: string, onProgress: (progress: ReadProgress) => void) => Promise<ReadFile>,
  ) => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) {
      read[index] = await readOne(files[index]!.file, progress.of(index));
    }
  };
  try {
    const here = takeAll((file, onFile) => readHere(file, onFile, stop.signal));
    const there = workers.map((worker) => takeAll((file, onFile) => worker.read(file, onFile)));
    await Promise.all([here, ...there]);
  } finally {
    left.length = 0;
    stop.abort();
    await Promise.all(workers.map((worker) => worker.stop()));
  }
  return absorbed(read);
}

async function readHere(
  file: string,
  onProgress: (progress: ReadProgress) => void,
  signal: AbortSignal,
): Promise<ReadFile> {
  const store = new RecordStore();
  const reports = await readSources([file], store, onProgress, signal);
  return { parts: store.parts(), reports };
}

/** Each store is let go of as soon as it is absorbed. */
function absorbed(read: ReadFile[]): ReadFiles {
  const store = new RecordStore();
  const reports: FileReport[] = [];
  for (let next = read.shift(); next !== undefined; next = read.shift()) {
    store.absorb(next.parts);
    reports.push(...next.reports);
  }
  return { store, reports };
}

/** Sums over the files. */
class JoinedProgress {
  readonly #report: (progress: ReadProgress) => void;
  readonly #bytesTotal: number;
  readonly #bytesDone: Float64Array;
  readonly #records: Float64Array;

  constructor(files: readonly WeighedFile[], report: (progress: ReadProgress) => void) {
    this.#report = report;
    this.#bytesTotal = files.reduce((sum, { bytesOnDisk }) => sum + bytesOnDisk, 0);
    this.#bytesDone = new Float64Array(files.length);
    this.#records = new Float64Array(files.length);
  }

  of(index: number): (progress: ReadProgress) => void {
    return ({ file, bytesDone, records }) => {
      this.#bytesDone[index] = bytesDone;
      this.#records[index] = records;
      this.#report({
        file,
        bytesDone: this.#bytesDone.reduce((sum, bytes) => sum + bytes, 0),
        bytesTotal: this.#bytesTotal,
        records: this.#records.reduce((sum, count) => sum + count, 0),
      });
    };
  }
}

/** A thread that reads one file after the other. */
class ReadingWorker {
  readonly #worker: Worker;
  #onProgress: (progress: ReadProgress) => void = () => {};
  #resolve: (read: ReadFile) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor() {
    // From TypeScript sources a worker needs a loader first; what is built is JavaScript.
    const entry = import.meta.filename.endsWith(".ts")
      ? "reading-worker-from-source.mjs"
      : "reading-worker.js";
    this.#worker = new Worker(new URL(`./${entry}`, import.meta.url));
    this.#worker.on("message", (answer: WorkerAnswer) => this.#answered(answer));
    this.#worker.on("error", (error) => this.#reject(error));
    this.#worker.on("exit", () => this.#reject(new Error("a reading thread ended without an answer")));
  }

  read(file: string, onProgress: (progress: ReadProgress) => void): Promise<ReadFile> {
    this.#onProgress = onProgress;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#worker.postMessage(file);
    });
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  #answered(answer: WorkerAnswer): void {
    if (answer.type === "progress") this.#onProgress(answer.progress);
    else if (answer.type === "done") this.#resolve(answer);
    else this.#reject(new SourceFileError(answer.file, answer.line, answer.reason));
  }
}
