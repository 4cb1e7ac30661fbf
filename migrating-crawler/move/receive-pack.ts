/**
 * Receives a pack at the new host: in order, part by part, no more than announced, and accepted only if it matches the
 * signature. Its content is still untrusted: only known file names are allowed, spool and paces are validated as their
 * owners would, and anything else fails the move before it changes anything.
 */
import { createHash, type Hash } from "node:crypto";
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ProtocolError } from "#core/errors";
import { maxMoveBytes, movePartBytes, partsOf } from "#protocol/move";
import { flushedWrite, writeFlushed } from "../core/flushed-write.ts";
import { jsonIn, jsonOf } from "../core/json.ts";
import { robotsFrom } from "../fetch/robots.ts";
import { keptPaces, pacesFrom } from "../limits/host-gate.ts";
import { lowerRate } from "../limits/tolerated-rate.ts";
import { Spool } from "../spool/spool.ts";
import { isSegment } from "../spool/spool-folder.ts";
import { keptFiles, movingFolder, type Pack, type PackedFile, packFile } from "./pack.ts";

/** Holds what arrived until the coordinator has decided. */
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

  /** Removes what an earlier move left. */
  constructor(home: string, pack: Pack) {
    this.#home = home;
    this.#pack = pack;
    rmSync(movingFolder(home), { recursive: true, force: true });
    mkdirSync(movingFolder(home), { mode: 0o700 });
    writeFileSync(packFile(home), "", { mode: 0o600 });
  }

  /** The next part to ask for; null when complete. */
  get next(): number | null {
    return this.#parts < partsOf(this.#pack.bytes) ? this.#parts : null;
  }

  /** `part` is base64. Throws a ProtocolError when it is not the expected part or has the wrong length. */
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

  /**
   * Writes everything to disk beside this host's own files. Throws a ProtocolError when it differs from the
   * announcement.
   */
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

/** Each write is flushed. */
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

/** Reads to the last record, as the crawler would. */
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

/** This host may know the same sites, so the longer wait and the lower rate of both paces count. */
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
  if (robotsFrom(readJson(path), Date.now()) === null) rmSync(path, { force: true });
}

const readJson = (path: string) => jsonIn(path, maxMoveBytes, z.unknown());
