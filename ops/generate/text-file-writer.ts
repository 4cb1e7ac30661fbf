/**
 * Writes a file of any size from short texts: into blocks of a megabyte, compressed on the way where asked
 * for, with the writer of texts made to wait when the disk is behind. The file bears its name only when it
 * is whole; until then it ends in `.part`, which imports pass over.
 */
import { createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGzip } from "node:zlib";

const blockBytes = 1_048_576;

export interface TextFileOptions {
  readonly path: string;
  readonly isGzip: boolean;
  readonly encoding: "latin1" | "utf8";
  readonly isCrLf: boolean;
}

/** Writes and counts; `textBytes` are those before compression. */
export async function writeTextFile(
  texts: Iterable<string>,
  options: TextFileOptions,
  onText: () => void,
): Promise<{ readonly textBytes: number; readonly bytesOnDisk: number }> {
  const partPath = `${options.path}.part`;
  try {
    const textBytes = await writePart(texts, { ...options, path: partPath }, onText);
    await rename(partPath, options.path);
    return { textBytes, bytesOnDisk: (await stat(options.path)).size };
  } catch (error) {
    await rm(partPath, { force: true });
    throw error;
  }
}

async function writePart(
  texts: Iterable<string>,
  options: TextFileOptions,
  onText: () => void,
): Promise<number> {
  const file = createWriteStream(options.path, { highWaterMark: 4 * blockBytes });
  const target = options.isGzip ? createGzip({ level: 1, chunkSize: 262_144 }) : file;
  if (target !== file) target.on("error", (error: Error) => file.destroy(error)).pipe(file);
  const done = finished(file);
  done.catch(() => {});
  try {
    const textBytes = await writeBlocks(blocksOf(texts, options, onText), target, done);
    target.end();
    await done;
    return textBytes;
  } catch (error) {
    target.destroy();
    file.destroy();
    throw error;
  }
}

async function writeBlocks(blocks: Iterable<Buffer>, target: Writable, done: Promise<void>): Promise<number> {
  let bytes = 0;
  for (const block of blocks) {
    bytes += block.length;
    const isFull = !target.write(block);
    // `done` settles early only when the disk fails: then it throws here.
    if (isFull) await Promise.race([new Promise((resolve) => target.once("drain", resolve)), done]);
  }
  return bytes;
}

/** Short texts are joined before they become bytes: a call for each costs more than the bytes. */
const joinedLength = 16_384;

function* blocksOf(
  texts: Iterable<string>,
  { encoding, isCrLf }: TextFileOptions,
  onText: () => void,
): Generator<Buffer> {
  const block = new Block(encoding, isCrLf);
  let joined = "";
  for (const text of texts) {
    joined += text;
    onText();
    if (joined.length < joinedLength) continue;
    yield* block.add(joined);
    joined = "";
  }
  yield* block.add(joined);
  yield* block.rest();
}

/** The block that is being filled. */
class Block {
  readonly #encoding: "latin1" | "utf8";
  readonly #isCrLf: boolean;
  #bytes = Buffer.allocUnsafe(blockBytes);
  #used = 0;

  constructor(encoding: "latin1" | "utf8", isCrLf: boolean) {
    this.#encoding = encoding;
    this.#isCrLf = isCrLf;
  }

  /** Takes the text; first gives the bytes so far when it does not fit behind them. */
  *add(text: string): Generator<Buffer> {
    const written = this.#isCrLf ? text.replaceAll("\n", "\r\n") : text;
    const mostBytes = written.length * (this.#encoding === "latin1" ? 1 : 3);
    if (this.#used + mostBytes > this.#bytes.length) {
      yield* this.rest();
      this.#bytes = Buffer.allocUnsafe(Math.max(blockBytes, mostBytes));
    }
    this.#used += this.#bytes.write(written, this.#used, this.#encoding);
  }

  *rest(): Generator<Buffer> {
    if (this.#used > 0) yield this.#bytes.subarray(0, this.#used);
    this.#used = 0;
  }
}
