/**
 * Reads the files into a store, on several processors where there is much to read: this thread and the
 * workers each take the largest file that is left, into a store of their own; a worker that finds none left takes
 * pieces of the one that is read here. At the end this thread's store takes
 * over the others'; of what two threads read, the one in the earlier file counts, so that what comes out is the same
 * whatever the number of threads.
 */
import { stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { SourceFileError } from "#core/errors";
import { type RecordParts, RecordStore } from "../tree/to-subnets.ts";
import type { FileReport } from "./file-report.ts";
import { packingOf } from "./open-source.ts";
import type { Piece, PieceAnswer } from "./read-in-pieces.ts";
import { type ReadProgress, readByPieces, readSources } from "./read-sources.ts";

/** About how much a compressed dump unpacks to. Measured on generated RIPE and ARIN files: 5.6 and 9.2. */
const unpackedTimes = 8;
/** Less text than this is read before a worker has started. */
const fewestTextBytes = 128 * 2 ** 20;
/** More would wait for the disk, and for this thread to absorb what they read. */
const mostThreads = 4;
/** Thousands of objects: fewer would be more messages, more would be longer waits at the end. */
const usualPieceBytes = 4 * 2 ** 20;
/** A file has fewer: its pieces are numbered behind those of the files before it. */
const mostPieces = 2 ** 24;
/** So many pieces wait for a worker, that it has none to wait for. */
const mostPiecesWaiting = 2;

export interface ReadFiles {
  readonly store: RecordStore;
  readonly reports: readonly FileReport[];
}

type FileReports = readonly FileReport[];

/** Files are numbered in the order in which they count as read. */
export interface NumberedFile {
  readonly file: string;
  readonly piece: number;
}

/** What a worker is told: to read a file or a piece of one, and at the end to hand over all that it read. */
export type WorkerRequest =
  | ({ readonly type: "read" } & NumberedFile)
  | { readonly type: "read piece"; readonly piece: Piece }
  | { readonly type: "hand over" };

export type WorkerAnswer =
  | { readonly type: "progress"; readonly progress: ReadProgress }
  | { readonly type: "read"; readonly reports: FileReports }
  | { readonly type: "piece"; readonly answer: PieceAnswer }
  | { readonly type: "parts"; readonly parts: RecordParts }
  | {
      readonly type: "failed";
      readonly file: string;
      readonly line: number | null;
      readonly reason: string;
    };

/** As many threads as the machine and the amount of text make sense of, unless told. */
export async function readInThreads(
  files: readonly string[],
  onProgress: (progress: ReadProgress) => void,
  told: { readonly threads?: number; readonly pieceBytes?: number } = {},
): Promise<ReadFiles> {
  const weighed = await Promise.all(files.map(weigh));
  const threads = told.threads ?? sensibleThreads(weighed);
  if (threads > 1)
    return await readShared(weighed, onProgress, { threads, pieceBytes: told.pieceBytes ?? usualPieceBytes });
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
  { threads, pieceBytes }: { readonly threads: number; readonly pieceBytes: number },
): Promise<ReadFiles> {
  const progress = new JoinedProgress(files, onProgress);
  const stop = new AbortController();
  const workers = Array.from({ length: threads - 1 }, () => new ReadingWorker());
  const left = files.map((_, index) => index).sort((a, b) => files[b]!.textBytes - files[a]!.textBytes);
  const store = new RecordStore();
  const reports: FileReports[] = [];
  const takeAll = async (
    readOne: (file: NumberedFile, onProgress: (progress: ReadProgress) => void) => Promise<FileReports>,
  ) => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) {
      const numbered = { file: files[index]!.file, piece: index * mostPieces };
      reports[index] = await readOne(numbered, progress.of(index));
    }
  };
  const hand = (piece: Piece) => workers.find((worker) => worker.takesPieces)?.readPiece(piece) ?? null;
  try {
    const here = takeAll(({ file, piece }, onFile) =>
      readByPieces(file, { receiver: store, firstNumber: piece, pieceBytes, hand }, onFile, stop.signal),
    );
    const there = workers.map(async (worker) => {
      await takeAll((file, onFile) => worker.read(file, onFile));
      worker.hasNoMoreFiles();
    });
    await Promise.all([here, ...there]);
    const parts = await Promise.all(workers.map((worker) => worker.parts()));
    store.absorb(parts.filter((part) => part !== null));
  } finally {
    left.length = 0;
    stop.abort();
    await Promise.all(workers.map((worker) => worker.stop()));
  }
  return { store, reports: reports.flat() };
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

interface Asked {
  resolve(answer: WorkerAnswer): void;
  reject(error: unknown): void;
}

/** A thread that reads files and pieces, one after the other, into a store of its own. It begins with the first of them. */
class ReadingWorker {
  #worker: Worker | null = null;
  #onProgress: (progress: ReadProgress) => void = () => {};
  /** What was asked and is not answered, in that order. */
  readonly #asked: Asked[] = [];
  #hasFiles = true;

  async read(file: NumberedFile, onProgress: (progress: ReadProgress) => void): Promise<FileReports> {
    this.#onProgress = onProgress;
    const answer = await this.#ask({ type: "read", ...file });
    return answer.type === "read" ? answer.reports : [];
  }

  hasNoMoreFiles(): void {
    this.#hasFiles = false;
  }

  /** True when it would have to wait otherwise. */
  get takesPieces(): boolean {
    return !this.#hasFiles && this.#asked.length < mostPiecesWaiting;
  }

  async readPiece(piece: Piece): Promise<PieceAnswer> {
    const answer = await this.#ask({ type: "read piece", piece }, [piece.bytes.buffer as ArrayBuffer]);
    if (answer.type !== "piece") throw new Error("a reading thread did not read its piece");
    return answer.answer;
  }

  /** All that it read; null where that is nothing. To be asked once, at the end. */
  async parts(): Promise<RecordParts | null> {
    if (this.#worker === null) return null;
    const answer = await this.#ask({ type: "hand over" });
    return answer.type === "parts" ? answer.parts : null;
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate();
  }

  #ask(request: WorkerRequest, memory: readonly ArrayBuffer[] = []): Promise<WorkerAnswer> {
    this.#worker ??= this.#start();
    this.#worker.postMessage(request, memory);
    return new Promise((resolve, reject) => this.#asked.push({ resolve, reject }));
  }

  #start(): Worker {
    // From TypeScript sources a worker needs a loader first; what is built is JavaScript.
    const entry = import.meta.filename.endsWith(".ts")
      ? "reading-worker-from-source.mjs"
      : "reading-worker.js";
    const worker = new Worker(new URL(`./${entry}`, import.meta.url));
    worker.on("message", (answer: WorkerAnswer) => this.#answered(answer));
    worker.on("error", (error) => this.#failed(error));
    worker.on("exit", () => this.#failed(new Error("a reading thread ended without an answer")));
    return worker;
  }

  #answered(answer: WorkerAnswer): void {
    if (answer.type === "progress") this.#onProgress(answer.progress);
    else if (answer.type === "failed")
      this.#asked.shift()?.reject(new SourceFileError(answer.file, answer.line, answer.reason));
    else this.#asked.shift()?.resolve(answer);
  }

  #failed(error: unknown): void {
    for (const { reject } of this.#asked.splice(0)) reject(error);
  }
}
