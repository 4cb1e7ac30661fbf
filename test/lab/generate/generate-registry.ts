/**
 * Writes a registry of any size in the formats that the five registries, and IANA, publish, and says exactly
 * what a correct import of it must find. The same settings give the same bytes (within one version of this
 * program and of zlib); memory does not grow with the size.
 */

import { createWriteStream } from "node:fs";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { UsageError } from "#core/errors";
import { fileDay } from "./dates.ts";
import { type FileAccount, FileTally } from "./file-tally.ts";
import { type RegistryFile, registryFiles } from "./registry-files.ts";
import {
  type GenerateSettings,
  maxGeneration,
  maxObjects,
  planRegistries,
  type RegistryPlan,
} from "./registry-plan.ts";
import { type ExpectedChanges, type ExpectedState, TreeTally } from "./tree-tally.ts";

export interface GenerateOptions {
  /** Network objects (inetnum, inet6num, net) in generation 0: 1 to 100 million. */
  readonly objects: number;
  /** 0 by default; a whole number of 32 bits. */
  readonly seed?: number;
  readonly folder: string;
  /** Writes every file uncompressed; by default the files that the registry publishes compressed are compressed. */
  readonly isPlain?: boolean;
  /** Quarters later, 0 by default, at most 100. */
  readonly generation?: number;
  /** Share of the objects that change from one generation to the next; 0.01 by default. */
  readonly changedShare?: number;
  /** One malformed record of every kind in each file. */
  readonly faults?: boolean;
}

/** What was written, and what an importer must find in it. */
export interface RegistryAccount {
  readonly objects: number;
  readonly seed: number;
  readonly generation: number;
  readonly changedShare: number;
  readonly files: readonly FileAccount[];
  readonly state: ExpectedState;
  /** Since the generation before; null in generation 0. */
  readonly changes: ExpectedChanges | null;
}

interface GenerateProgress {
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
  await prepareFolder(options.folder);
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
  // Hidden: imports pass over it.
  await writeFile(join(options.folder, accountFileName), `${JSON.stringify(account, null, 2)}\n`);
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

export const accountFileName = ".generated-registry.json";

/** Empty or not there: an import reads every file of a folder, and real downloads bear the same names. */
async function prepareFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new UsageError(`${folder} is not empty: name another folder`);
}

interface TextFileOptions {
  readonly path: string;
  readonly isGzip: boolean;
  readonly encoding: "latin1" | "utf8";
  readonly isCrLf: boolean;
}

/** A file of any size from short texts; `textBytes` are those before compression. */
async function writeTextFile(
  texts: Iterable<string>,
  { path, isGzip, encoding, isCrLf }: TextFileOptions,
  onText: () => void,
): Promise<{ readonly textBytes: number; readonly bytesOnDisk: number }> {
  let textBytes = 0;
  function* blocks(): Generator<Buffer> {
    let joined = "";
    const block = () => {
      const bytes = Buffer.from(isCrLf ? joined.replaceAll("\n", "\r\n") : joined, encoding);
      joined = "";
      textBytes += bytes.length;
      return bytes;
    };
    for (const text of texts) {
      joined += text;
      onText();
      // A write for each would cost more than the bytes.
      if (joined.length >= joinedLength) yield block();
    }
    if (joined !== "") yield block();
  }
  const target = createWriteStream(path);
  if (isGzip) await pipeline(blocks, createGzip({ level: 1, chunkSize: 262_144 }), target);
  else await pipeline(blocks, target);
  return { textBytes, bytesOnDisk: (await stat(path)).size };
}

const joinedLength = 262_144;
