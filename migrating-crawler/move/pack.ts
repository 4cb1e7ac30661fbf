/**
 * What a crawler keeps on its disk and takes to another host, as one file that is sent in parts:
 *
 *   length of the list u32, big-endian | the list, JSON: [{name, bytes}] | the files, one after the other
 *
 * The pack contains the spool (always its id, and its results if any are waiting), the hosts' paces and the rules of
 * robots.txt. What belongs to the machine and its host stays: settings, counts of the day and the month, releases, log, a
 * pause.
 */

import { createHash, type Hash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ProtocolError, UsageError } from "#core/errors";
import { crawlerName } from "#protocol/invitation";
import { maxMoveBytes, movePartBytes, partsOf } from "#protocol/move";
import { jsonIn, jsonOf } from "../core/json.ts";
import { flushedWrite, readPrivateJson, writeFlushed, writePrivateJson } from "../core/private-file.ts";
import { isRobotsFile } from "../fetch/robots.ts";
import { keptPaces, pacesFrom } from "../limits/host-gate.ts";
import { lowerRate } from "../limits/tolerated-rate.ts";
import { Spool } from "../spool/spool.ts";
import { isSegment } from "../spool/spool-folder.ts";

interface PackedFile {
  readonly name: string;
  readonly bytes: number;
}

export interface Pack {
  readonly bytes: number;
  readonly digest: string;
}

export const packFile = (home: string): string => join(movingFolder(home), "pack");

/** Files besides the spool, with the names that their owners use. */
export const keptFiles = ["host-paces.json", "robots-rules.json"] as const;

/** Nobody may write these files during the call. Throws a UsageError if they are too large together. */
export function writePack(home: string, { withResults }: { readonly withResults: boolean }): Pack {
  const files = filesOf(home, withResults);
  const list = Buffer.from(JSON.stringify(files));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 4 + list.length);
  if (bytes > maxMoveBytes) {
    const [waiting, most] = [bytes, maxMoveBytes].map((size) => Math.ceil(size / 1024 / 1024));
    throw new UsageError(
      `${waiting} MiB wait for the coordinator, and a move takes ${most} MiB at most: let the crawler ship its results first`,
    );
  }
  const length = Buffer.alloc(4);
  length.writeUInt32BE(list.length);
  rmSync(movingFolder(home), { recursive: true, force: true });
  mkdirSync(movingFolder(home), { mode: 0o700 });
  const path = packFile(home);
  writeFileSync(path, Buffer.concat([length, list]), { mode: 0o600 });
  const hash = createHash("sha256").update(length).update(list);
  for (const { name } of files) {
    const content = readFileSync(join(home, name));
    hash.update(content);
    appendFileSync(path, content);
  }
  if (statSync(path).size !== bytes)
    throw new UsageError("the crawler's files changed while they were packed");
  return { bytes, digest: hash.digest("hex") };
}

/** Returns base64, or an empty string after the end. */
export function readPart(home: string, index: number): string {
  const part = Buffer.alloc(movePartBytes);
  const file = openSync(packFile(home), "r");
  try {
    const length = readSync(file, part, 0, movePartBytes, index * movePartBytes);
    return part.toString("base64", 0, length);
  } finally {
    closeSync(file);
  }
}

/** A segment of the spool is read as a whole, since it has at most 8 MiB plus one result. */
function filesOf(home: string, withResults: boolean): PackedFile[] {
  const results = withResults ? readdirSync(join(home, "spool")).filter(isSegment).sort() : [];
  return ["spool/id", ...results.map((name) => `spool/${name}`), ...keptFiles]
    .filter((name) => existsSync(join(home, name)))
    .map((name) => ({ name, bytes: statSync(join(home, name)).size }));
}

// Records a move's progress on this machine in `moving/journal.json`. It is written before the coordinator may learn of the
// step, so that a killed crawler knows what a refusal with `moved` means.
//
//   none → waiting (the coordinator decides) → settling (decided, the folder is being changed) → none
//   waiting → none (the coordinator welcomes the old identity)

const journalSchema = z.object({
  /** `out`: this crawler moves away. `in`: this host will run another one. */
  way: z.enum(["out", "in"]),
  moveId: z.int().min(1),
  name: crawlerName,
  step: z.enum(["waiting", "settling"]),
});

export type MoveJournal = Readonly<z.infer<typeof journalSchema>>;

/** The folder for everything that belongs to an undecided move. */
const movingFolder = (home: string): string => join(home, "moving");

const journalFile = (home: string) => join(movingFolder(home), "journal.json");

export function readJournal(home: string): MoveJournal | null {
  return readPrivateJson(
    journalFile(home),
    journalSchema,
    "Ask the operator where this crawler runs now (nearcrawl fleet list); if it is to go on here, remove the folder moving.",
  );
}

export function writeJournal(home: string, journal: MoveJournal): void {
  writePrivateJson(journalFile(home), journal);
}

export function forgetMove(home: string): void {
  rmSync(movingFolder(home), { recursive: true, force: true });
}

// Receives a pack at the new host: in order, part by part, no more than announced, and accepted only if it matches the
// signature. Its content is still untrusted. Only known file names are allowed, and spool and paces are validated as their
// owners would. Anything else fails the move before it changes anything.

/** The folder for what has arrived, until the coordinator has decided. */
export const arrivedFolder = (home: string): string => join(movingFolder(home), "new");

const maxListBytes = 64 * 1024;
const maxFiles = 200;
const copyBytes = 1024 * 1024;

const listSchema = z
  .array(
    z.object({
      name: z.string().refine((name) => isPacked(name)),
      bytes: z.int().min(0).max(maxMoveBytes),
    }),
  )
  .max(maxFiles)
  .refine((files) => new Set(files.map(({ name }) => name)).size === files.length);

export class PackReceiver {
  readonly #home: string;
  readonly #pack: Pack;
  readonly #hash: Hash = createHash("sha256");
  #parts = 0;
  #bytes = 0;

  constructor(home: string, pack: Pack) {
    this.#home = home;
    this.#pack = pack;
    rmSync(movingFolder(home), { recursive: true, force: true });
    mkdirSync(movingFolder(home), { mode: 0o700 });
    writeFileSync(packFile(home), "", { mode: 0o600 });
  }

  get next(): number | null {
    return this.#parts < partsOf(this.#pack.bytes) ? this.#parts : null;
  }

  /** `part` is base64. Throws a ProtocolError if it is not the expected part or has the wrong length. */
  add(index: number, part: string): void {
    if (index !== this.next) throw new ProtocolError(`part ${index} came, ${this.next ?? "none"} was due`);
    const content = Buffer.from(part, "base64");
    const due = Math.min(movePartBytes, this.#pack.bytes - this.#bytes);
    if (content.length !== due)
      throw new ProtocolError(`part ${index} has ${content.length} bytes, ${due} were due`);
    writeFileSync(packFile(this.#home), content, { flag: "a" });
    this.#hash.update(content);
    this.#parts += 1;
    this.#bytes += content.length;
  }

  /** Writes everything to disk beside this host's own files. Throws a ProtocolError if it differs from the announcement. */
  finish(): void {
    if (this.next !== null) throw new ProtocolError(`part ${this.next} has not come`);
    if (this.#hash.digest("hex") !== this.#pack.digest)
      throw new ProtocolError("what arrived is not what was signed");
    unpack(this.#home, this.#pack.bytes);
    checkSpool(this.#home);
    joinPaces(this.#home);
    checkRobots(this.#home);
    rmSync(packFile(this.#home));
  }
}

function isPacked(name: string): boolean {
  if (name === "spool/id" || (keptFiles as readonly string[]).includes(name)) return true;
  return name.startsWith("spool/") && isSegment(name.slice("spool/".length));
}

function unpack(home: string, packBytes: number): void {
  mkdirSync(join(arrivedFolder(home), "spool"), { recursive: true, mode: 0o700 });
  const pack = openSync(packFile(home), "r");
  try {
    let at = 0;
    for (const { name, bytes, from } of placesIn(pack, packBytes)) {
      copy({ pack, from, bytes, to: join(arrivedFolder(home), name) });
      at = from + bytes;
    }
    if (at !== packBytes) throw new ProtocolError("the files in the pack are not as long as it is");
  } finally {
    closeSync(pack);
  }
}

function placesIn(pack: number, packBytes: number): (PackedFile & { readonly from: number })[] {
  const length = Math.min(packBytes < 4 ? 0 : readAt(pack, 0, 4).readUInt32BE(), maxListBytes);
  const { data: files } = listSchema.safeParse(jsonOf(readAt(pack, 4, length).toString("utf8")));
  if (files === undefined || !files.some(({ name }) => name === "spool/id"))
    throw new ProtocolError("the pack does not begin with a list of a crawler's files");
  let at = 4 + length;
  return files.map((file) => {
    const from = at;
    at += file.bytes;
    if (at > packBytes) throw new ProtocolError(`${file.name} goes on beyond the end of the pack`);
    return { ...file, from };
  });
}

function copy(copied: { pack: number; from: number; bytes: number; to: string }): void {
  const file = openSync(copied.to, flushedWrite, 0o600);
  try {
    for (let at = 0; at < copied.bytes; at += copyBytes)
      writeSync(file, readAt(copied.pack, copied.from + at, Math.min(copyBytes, copied.bytes - at)));
  } finally {
    closeSync(file);
  }
}

function readAt(file: number, from: number, bytes: number): Buffer {
  const content = Buffer.alloc(bytes);
  return content.subarray(0, readSync(file, content, 0, bytes, from));
}

function checkSpool(home: string): void {
  try {
    const spool = new Spool({ home: arrivedFolder(home), maxBytes: maxMoveBytes });
    const { first, last, lostBytes } = spool;
    for (let sequence = first ?? 1; sequence <= (last ?? 0); sequence++) {
      if (spool.read(sequence) === null) throw new ProtocolError(`result ${sequence} cannot be read`);
    }
    spool.close();
    if (lostBytes > 0) throw new ProtocolError(`${lostBytes} bytes of it are no results`);
  } catch (error) {
    throw new ProtocolError(`the spool that arrived: ${error instanceof Error ? error.message : error}`);
  }
}

/** This host may know the same sites, so the longer wait and the lower rate of the two paces count. */
function joinPaces(home: string): void {
  const name = keptFiles[0];
  const nowMs = Date.now();
  const none = { hosts: [], addresses: [] };
  const own = pacesFrom(readJson(join(home, name)), nowMs) ?? none;
  const arrived = pacesFrom(readJson(join(arrivedFolder(home), name)), nowMs) ?? none;
  const paces = new Map(own.hosts);
  for (const [host, pace] of arrived.hosts) {
    const known = paces.get(host) ?? pace;
    paces.delete(host);
    const notBeforeMs = Math.max(pace.notBeforeMs, known.notBeforeMs);
    paces.set(host, { ...pace, notBeforeMs, rate: lowerRate(pace.rate, known.rate) });
  }
  const addresses = new Map([...own.addresses, ...arrived.addresses]);
  const text = JSON.stringify(keptPaces([...paces].reverse(), [...addresses].reverse()));
  writeFlushed(join(arrivedFolder(home), name), text);
}

/** Invalid rules are dropped and will be fetched again. */
function checkRobots(home: string): void {
  const path = join(arrivedFolder(home), keptFiles[1]);
  if (!isRobotsFile(readJson(path))) rmSync(path, { force: true });
}

const readJson = (path: string) => jsonIn(path, maxMoveBytes, z.unknown());
