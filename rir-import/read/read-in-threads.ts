/**
 * Reads the files into a store, on several processors where there is much to read: this thread takes the
 * first stretch of the list, workers the others, and their stores are absorbed in the order of the files.
 * What comes out is the same whatever the number of threads.
 */
import { stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { SourceFileError } from "#core/errors";
import { type RecordParts, RecordStore } from "../tree/record-store.ts";
import type { FileReport } from "./file-report.ts";
import { packingOf } from "./open-source.ts";
import { type ReadProgress, readSources } from "./read-sources.ts";
import { shareOut, textBytesOf, type WeighedFile } from "./share-out.ts";

/** Less text than this is read before a worker has started. */
const fewestTextBytes = 128 * 2 ** 20;
/** More would wait for the disk, and for this thread to absorb what they read. */
const mostThreads = 4;

export interface ReadFiles {
  readonly store: RecordStore;
  readonly reports: readonly FileReport[];
}

/** What a worker is told, and what it answers. */
export interface WorkerTask {
  readonly files: readonly string[];
}

export type WorkerAnswer =
  | { readonly type: "progress"; readonly progress: ReadProgress }
  | { readonly type: "done"; readonly parts: RecordParts; readonly reports: readonly FileReport[] }
  | {
      readonly type: "failed";
      readonly file: string;
      readonly line: number | null;
      readonly reason: string;
    };

/** `threads`: as many as the machine and the amount of text make sense of, unless told. */
export async function readInThreads(
  files: readonly string[],
  onProgress: (progress: ReadProgress) => void,
  threads?: number,
): Promise<ReadFiles> {
  const [first = [], ...others] = await stretchesOf(files, threads);
  const progress = new JoinedProgress(onProgress);
  const stop = new AbortController();
  const store = new RecordStore();
  const workers = others.map((stretch) => new ReadingWorker(stretch, progress.part()));
  try {
    const own = readSources(first, store, progress.part(), stop.signal);
    const [reports, ...read] = await Promise.all([own, ...workers.map((worker) => worker.done)]);
    for (const { parts } of read) store.absorb(parts);
    return { store, reports: [...reports, ...read.flatMap(({ reports }) => reports)] };
  } finally {
    stop.abort();
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

async function stretchesOf(
  files: readonly string[],
  threads: number | undefined,
): Promise<readonly (readonly string[])[]> {
  const weighed = await Promise.all(files.map(weigh));
  const textBytes = weighed.reduce((sum, file) => sum + textBytesOf(file), 0);
  const sensible = textBytes < fewestTextBytes ? 1 : Math.min(mostThreads, availableParallelism());
  return shareOut(weighed, threads ?? sensible);
}

/** What is no file, or cannot be read, weighs nothing: it is told of when it is opened. */
async function weigh(file: string): Promise<WeighedFile> {
  const facts = await stat(file).catch(() => null);
  if (!facts?.isFile()) return { file, bytesOnDisk: 0, isPacked: false };
  const packing = await packingOf(file).catch(() => "plain");
  return { file, bytesOnDisk: facts.size, isPacked: packing !== "plain" };
}

/** Sums over the threads. */
class JoinedProgress {
  readonly #report: (progress: ReadProgress) => void;
  readonly #latest: (ReadProgress | null)[] = [];

  constructor(report: (progress: ReadProgress) => void) {
    this.#report = report;
  }

  part(): (progress: ReadProgress) => void {
    const part = this.#latest.push(null) - 1;
    return (progress) => {
      this.#latest[part] = progress;
      const sum = (read: (progress: ReadProgress) => number) =>
        this.#latest.reduce((total, latest) => total + (latest === null ? 0 : read(latest)), 0);
      this.#report({
        file: progress.file,
        bytesDone: sum(({ bytesDone }) => bytesDone),
        bytesTotal: sum(({ bytesTotal }) => bytesTotal),
        records: sum(({ records }) => records),
      });
    };
  }
}

type WorkerResult = Extract<WorkerAnswer, { type: "done" }>;

class ReadingWorker {
  readonly done: Promise<WorkerResult>;
  readonly #worker: Worker;

  constructor(files: readonly string[], onProgress: (progress: ReadProgress) => void) {
    const task: WorkerTask = { files };
    // From TypeScript sources a worker needs a loader first; what is built is JavaScript.
    const entry = import.meta.filename.endsWith(".ts")
      ? "reading-worker-from-source.mjs"
      : "reading-worker.js";
    const worker = new Worker(new URL(`./${entry}`, import.meta.url), { workerData: task });
    this.#worker = worker;
    this.done = new Promise((resolve, reject) => {
      worker.on("message", (answer: WorkerAnswer) => {
        if (answer.type === "progress") onProgress(answer.progress);
        else if (answer.type === "done") resolve(answer);
        else reject(new SourceFileError(answer.file, answer.line, answer.reason));
      });
      worker.on("error", reject);
      worker.on("exit", () => reject(new Error("a reading thread ended without an answer")));
    });
    this.done.catch(() => {});
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
