/**
 * The export as lines of JSON, one operation a line, to be done in this order:
 *
 *   {"op":"begin-full","version":9}                          what follows is the whole index
 *   {"op":"index","_id":"…","version":9,"document":{…}}      replaces what has that id and a lower version
 *   {"op":"delete","_id":"…","version":11}                   removes what has that id and a lower version
 *   {"op":"end-full","version":9}                            what has a lower version is no longer in the index
 *
 * A file grows at its end, and the state next to it says up to where it is complete: the next export cuts off what a killed one
 * wrote after that. If the file was moved away, a new one begins with what has come since.
 */
import { type FileHandle, open, readFile, rename, stat, writeFile } from "node:fs/promises";
import { z } from "zod";
import { ExportError, UsageError } from "#core/errors";
import { type ExportState, type ExportTarget, exportStateSchema, type Written } from "./export-index.ts";
import type { Operation } from "./export-operation.ts";

const keptSchema = exportStateSchema.extend({ bytes: z.number().int().nonnegative() });

/** The size of a state with ten thousand opt-outs. */
const mostStateBytes = 16 * 1024 * 1024;

const linesAtOnce = 1000;

export class NdjsonFile implements ExportTarget {
  readonly #file: string;
  readonly #stateFile: string;
  #handle: FileHandle | null = null;
  #bytes = 0;

  constructor(file: string, stateFile: string) {
    this.#file = file;
    this.#stateFile = stateFile;
  }

  async state(): Promise<ExportState | null> {
    const kept = await readState(this.#stateFile, keptSchema);
    const bytes = await bytesOf(this.#file);
    if (kept === null) {
      if (bytes !== null && bytes > 0)
        throw new UsageError(
          `${this.#file} is there, and ${this.#stateFile} is not, which says how far it is an export: move it away, or name another file`,
        );
      await this.#open(0);
      return null;
    }
    const { bytes: whole, ...state } = kept;
    if (bytes !== null && bytes > 0 && bytes < whole)
      throw new UsageError(
        `${this.#file} has ${bytes} bytes, and by ${this.#stateFile} it had ${whole}: it is another file, or was cut; move both away`,
      );
    // Moved away or emptied by a reader.
    await this.#open(bytes === null || bytes === 0 ? 0 : whole);
    return state;
  }

  async write(operations: readonly Operation[]): Promise<Written> {
    return await writeLines(operations, async (lines) => await this.#append(lines));
  }

  async keep(state: ExportState): Promise<void> {
    await told(this.#file, async () => await this.#handle!.datasync());
    await keepState(this.#stateFile, { ...state, bytes: this.#bytes });
  }

  async beginFull(change: number): Promise<void> {
    await this.#append(markLine("begin-full", change));
  }

  async endFull(change: number): Promise<null> {
    await this.#append(markLine("end-full", change));
    return null;
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }

  async #open(bytes: number): Promise<void> {
    await told(this.#file, async () => {
      this.#handle = await open(this.#file, "a");
      await this.#handle.truncate(bytes);
    });
    this.#bytes = bytes;
  }

  async #append(text: string): Promise<void> {
    await told(this.#file, async () => await this.#handle!.appendFile(text));
    this.#bytes += Buffer.byteLength(text);
  }
}

/**
 * Standard output: nobody knows what its reader has stored, so the state, if one is kept, advances when the reader
 * has taken the lines.
 */
export class NdjsonPipe implements ExportTarget {
  /** Resolves to false if the reader is gone. */
  readonly #write: (text: string) => Promise<boolean>;
  readonly #stateFile: string | null;

  constructor(write: (text: string) => Promise<boolean>, stateFile: string | null) {
    this.#write = write;
    this.#stateFile = stateFile;
  }

  async state(): Promise<ExportState | null> {
    return this.#stateFile === null ? null : await readState(this.#stateFile, exportStateSchema);
  }

  async write(operations: readonly Operation[]): Promise<Written> {
    return await writeLines(operations, async (lines) => await this.#out(lines));
  }

  async keep(state: ExportState): Promise<void> {
    if (this.#stateFile !== null) await keepState(this.#stateFile, state);
  }

  async beginFull(change: number): Promise<void> {
    await this.#out(markLine("begin-full", change));
  }

  async endFull(change: number): Promise<null> {
    await this.#out(markLine("end-full", change));
    return null;
  }

  async #out(text: string): Promise<void> {
    if (!(await this.#write(text))) throw new NobodyReads();
  }
}

/** The pipe was closed (`… | head`): the rest need not be exported. */
export class NobodyReads extends Error {}

async function writeLines(
  operations: readonly Operation[],
  out: (lines: string) => Promise<void>,
): Promise<Written> {
  for (let at = 0; at < operations.length; at += linesAtOnce) {
    const lines = operations.slice(at, at + linesAtOnce).map(lineOf);
    await out(lines.join(""));
  }
  return countOf(operations);
}

function lineOf(operation: Operation): string {
  const { op, id, ...rest } = operation;
  return `${JSON.stringify({ op, _id: id, ...rest })}\n`;
}

/** A document's version is 2n + 1 for its change n, that of a deletion after it 2n + 2: older versions are lower. */
const markLine = (op: "begin-full" | "end-full", change: number) =>
  `${JSON.stringify({ op, version: 2 * change + 1 })}\n`;

function countOf(operations: readonly Operation[]): Written {
  const indexed = operations.filter(({ op }) => op === "index").length;
  return { indexed, deleted: operations.length - indexed, alreadyThere: 0, rejected: 0 };
}

async function bytesOf(file: string): Promise<number | null> {
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new UsageError(`${file} is no file: name one, or write to standard output`);
    return found.size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function readState<State>(file: string, schema: z.ZodType<State>): Promise<State | null> {
  const bytes = await bytesOf(file);
  if (bytes === null) return null;
  if (bytes > mostStateBytes) throw new UsageError(`${file} has ${bytes} bytes: it is no state of an export`);
  try {
    return schema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    const words =
      error instanceof z.ZodError
        ? `${error.issues[0]?.path.join(".")}: ${error.issues[0]?.message}`
        : String(error);
    throw new UsageError(
      `${file} is no state of an export (${words}): move it away, and the file beside it, to begin again`,
    );
  }
}

async function keepState(file: string, state: object): Promise<void> {
  await told(file, async () => {
    const handle = await open(`${file}.new`, "w");
    try {
      await writeFile(handle, `${JSON.stringify(state)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(`${file}.new`, file);
  });
}

/** A full disk or a missing folder: the export can resume once that is fixed. */
async function told<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new ExportError(`${file} cannot be written: ${(error as Error).message}`, { cause: error });
  }
}
