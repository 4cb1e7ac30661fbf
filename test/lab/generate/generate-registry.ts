/**
 * Writes a registry of any size in the formats that the five registries, and IANA, publish, and says exactly
 * what a correct import of it must find. The same settings give the same bytes (within one version of this
 * program and of zlib); memory does not grow with the size.
 */

import { createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { UsageError } from "#core/errors";
import { fileDay } from "./dates.ts";
import { type FileAccount, FileTally } from "./file-tally.ts";
import { isRegistryFileName, type RegistryFile, registryFiles } from "./registry-files.ts";
import {
  type GenerateSettings,
  maxGeneration,
  maxObjects,
  planRegistries,
  type RegistryPlan,
} from "./registry-plan.ts";
import { type ExpectedChanges, type ExpectedState, type MakeUp, TreeTally } from "./tree-tally.ts";

export interface GenerateOptions {
  /** Network objects (inetnum, inet6num, net) in generation 0: 1 to 100 million. */
  readonly objects: number;
  /** 0 by default; a whole number of 32 bits. */
  readonly seed?: number;
  readonly folder: string;
  /** No file compressed; otherwise those that the registry publishes compressed. */
  readonly isPlain?: boolean;
  /** Quarters later, 0 by default, at most 100. */
  readonly generation?: number;
  /** Share of the objects that change from one generation to the next; 0.01 by default. */
  readonly changedShare?: number;
  /** One malformed record of every kind in each file. */
  readonly faults?: boolean;
  /** Replace a set that was generated into this folder before. */
  readonly mayReplace?: boolean;
}

/** What was written, and what an importer must find in it. */
export interface RegistryAccount {
  readonly objects: number;
  readonly seed: number;
  readonly generation: number;
  readonly changedShare: number;
  readonly files: readonly FileAccount[];
  readonly state: ExpectedState;
  readonly makeUp: MakeUp;
  /** Since the generation before; null in generation 0. */
  readonly changes: ExpectedChanges | null;
}

export interface GenerateProgress {
  readonly file: string;
  /** Records written so far, and about how many there will be. */
  readonly records: number;
  readonly recordsTotal: number;
}

const progressEvery = 4096;

/** Throws UsageError for settings out of range and for a folder that is not empty. */
export async function generateRegistry(
  options: GenerateOptions,
  onProgress: (progress: GenerateProgress) => void = () => {},
): Promise<RegistryAccount> {
  const settings = checkedSettings(options);
  await prepareFolder(options.folder, options.mayReplace ?? false);
  const plans = planRegistries(settings);
  const tree = new TreeTally();
  const progress = { records: 0, recordsTotal: recordsOf(plans) };
  const files: FileAccount[] = [];
  for (const file of registryFiles(settings, plans)) {
    const onText = () => {
      if (++progress.records % progressEvery === 0) onProgress({ file: file.name, ...progress });
    };
    files.push(await writeRegistryFile({ file, options, settings, tree, onText }));
  }
  const account = accountOf(settings, files, tree);
  await writeAccount(options.folder, account);
  return account;
}

async function writeRegistryFile(work: {
  readonly file: RegistryFile;
  readonly options: GenerateOptions;
  readonly settings: GenerateSettings;
  readonly tree: TreeTally;
  readonly onText: () => void;
}): Promise<FileAccount> {
  const { file, options, settings, tree, onText } = work;
  const { format, registry, encoding, isCrLf } = file;
  const isGzip = file.isPacked && !options.isPlain;
  const name = isGzip ? `${file.name}.gz` : file.name;
  const tally = new FileTally();
  const path = join(options.folder, name);
  const sizes = await writeTextFile(file.texts(tree, tally), { path, isGzip, encoding, isCrLf }, onText);
  const fileDate = file.statesDate ? fileDay(settings.generation) : null;
  return tally.account({ file: name, format, registry, fileDate, ...sizes });
}

function accountOf(
  settings: GenerateSettings,
  files: readonly FileAccount[],
  tree: TreeTally,
): RegistryAccount {
  const { seed, generation, changedShare } = settings;
  const networks = ["inetnum", "inet6num", "net"];
  const objects = files.reduce(
    (sum, { written }) => sum + networks.reduce((all, kind) => all + (written[kind] ?? 0), 0),
    0,
  );
  const changes = generation === 0 ? null : tree.changes();
  return {
    objects,
    seed,
    generation,
    changedShare,
    files,
    state: tree.state(),
    makeUp: tree.makeUp(),
    changes,
  };
}

/** Networks, organisations and customers: all but a few in a hundred. */
function recordsOf(plans: readonly RegistryPlan[]): number {
  return plans.reduce((sum, { registry, settings, organisations, customers }) => {
    const objects = registry === "ripencc" ? settings.objects : 0;
    return sum + objects + customers + (registry === "lacnic" ? 0 : organisations);
  }, 0);
}

function checkedSettings(options: GenerateOptions): GenerateSettings {
  const { objects, seed = 0, generation = 0, changedShare = 0.01, faults = false } = options;
  requireWhole("objects", objects, 1, maxObjects);
  requireWhole("seed", seed, 0, 0xffffffff);
  requireWhole("generation", generation, 0, maxGeneration);
  if (!(changedShare >= 0 && changedShare <= 1)) {
    throw new UsageError(`the changed share is ${changedShare}: a number from 0 to 1 is expected`);
  }
  return { objects, seed, generation, changedShare, faults };
}

function requireWhole(name: string, value: number, from: number, to: number): void {
  if (Number.isInteger(value) && value >= from && value <= to) return;
  throw new UsageError(`${name} is ${value}: a whole number from ${from} to ${to} is expected`);
}

// The folder that a generated registry is written to. It has to be empty or not there: an import reads every
// file of a folder, and real downloads bear the same names. A hidden file, which imports pass over, says that
// the folder was generated and what is in it; with its word, and only then, an earlier set is replaced.

export const accountFileName = ".generated-registry.json";

/** Makes the folder ready. Throws UsageError when something is in it that this may not remove. */
async function prepareFolder(folder: string, mayReplace: boolean): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = await readdir(folder);
  if (names.length > 0) {
    if (!mayReplace) {
      throw new UsageError(
        `${folder} is not empty: name another folder, or replace an earlier set with --force`,
      );
    }
    await removeGenerated(folder, names);
  }
  await writeFile(join(folder, accountFileName), `${JSON.stringify({ complete: false })}\n`);
}

async function writeAccount(folder: string, account: unknown): Promise<void> {
  await writeFile(join(folder, accountFileName), `${JSON.stringify({ complete: true, account }, null, 2)}\n`);
}

async function removeGenerated(folder: string, names: readonly string[]): Promise<void> {
  const marker = await readFile(join(folder, accountFileName), "utf8").catch(() => "");
  if (!marker.startsWith('{"complete":') && !marker.startsWith('{\n  "complete":')) {
    throw new UsageError(`${folder} was not made by this command: --force replaces generated files only`);
  }
  const others = names.filter(
    (name) => name !== accountFileName && !isRegistryFileName(name.replace(/\.part$/, "")),
  );
  if (others.length > 0) {
    const shown = others.slice(0, 3).join(", ");
    throw new UsageError(`${folder} holds more than a generated registry (${shown}): nothing is removed`);
  }
  for (const name of names) await rm(join(folder, name));
}

// Writes a file of any size from short texts: into blocks of a megabyte, compressed on the way where asked
// for, with the writer of texts made to wait when the disk is behind. The file bears its name only when it
// is whole; until then it ends in `.part`, which imports pass over.

const blockBytes = 1_048_576;

interface TextFileOptions {
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
