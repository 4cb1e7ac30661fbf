/**
 * The receiving half of the wire compression on the optional native package zlib-sync, with the pool of its instances. The
 * package accepts only Buffers. Its output is unbounded, so input is given in small slices. It silently ignores input after
 * the stream's end, so `err` is checked after each. Instances must never be garbage collected (47 KB leak each; Node 24.19
 * aborts), so they are created up to a limit and reused. Beyond that limit, node:zlib does the work.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { ProtocolError } from "#core/errors";
import { corrupt, flushTail, type MessageInflater, tooLong, windowBytes } from "./deflate.ts";

/** Hands out inflaters. Untrusted peers get a `NodeInflater`, so that they cannot use up the instances. */
export class InflaterPool {
  readonly #zlibSync: ZlibSync | null;
  readonly #maxInstances: number;
  readonly #idle: NativeInflate[] = [];
  #made = 0;
  #broken = 0;

  /** 1000 instances hold about 64 MB. */
  constructor(zlibSync: ZlibSync | null, maxInstances = 1000) {
    this.#zlibSync = zlibSync;
    this.#maxInstances = maxInstances;
  }

  /** Returns an inflater that continues where `from` stopped. */
  take(from: MessageInflater): MessageInflater {
    const instance = this.#zlibSync && (this.#idle.pop() ?? this.#make(this.#zlibSync));
    if (!instance || !this.#zlibSync) return from;
    const inflater = new ZlibSyncInflater(instance, this.#zlibSync, (used) => this.#putBack(used));
    inflater.prime(from.history());
    from.release();
    return inflater;
  }

  counts(): { readonly made: number; readonly idle: number; readonly broken: number } {
    return { made: this.#made, idle: this.#idle.length, broken: this.#broken };
  }

  #make(zlibSync: ZlibSync): NativeInflate | null {
    if (this.#made >= this.#maxInstances) return null;
    this.#made += 1;
    const instance = new zlibSync.Inflate({ windowBits: -15, chunkSize: 16_384 });
    neverCollected.push(instance);
    return instance;
  }

  #putBack(instance: NativeInflate): void {
    if (this.#zlibSync && overwriteWindow(instance, this.#zlibSync)) this.#idle.push(instance);
    else this.#broken += 1;
  }
}

/** This is a variable, because the compiler would resolve a literal, and the package may not be installed. */
const optionalPackage: string = "zlib-sync";

/** From this major version of Node on, the package is tested first: some releases of Node 24 abort when its instances end. */
const triedFromMajor = 24;

/**
 * Returns the package, or null if it is not installed, does not load (no compiler) or would end the process. node:zlib is
 * used then. `majorVersion` is Node's.
 */
export async function loadZlibSync(
  packageName = optionalPackage,
  majorVersion = Number(process.versions.node.split(".")[0]),
): Promise<ZlibSync | null> {
  try {
    if (majorVersion >= triedFromMajor && !(await survives(packageName))) return null;
    const loaded = (await import(packageName)) as { default: ZlibSync };
    return loaded.default;
  } catch {
    return null;
  }
}

const trialMs = 10_000;

/** Tests whether a process that inflates with the package and lets instances be collected exits cleanly. */
async function survives(packageName: string): Promise<boolean> {
  const path = createRequire(import.meta.url).resolve(packageName);
  const trial = `
    const zlibSync = require(${JSON.stringify(path)});
    const inflate = () => new zlibSync.Inflate({ windowBits: -15, chunkSize: 16384 });
    const [kept, data] = [[], require("node:zlib").deflateRawSync("trial")];
    for (let round = 0; round < 20; round += 1) {
      const one = inflate();
      one.push(data, zlibSync.Z_SYNC_FLUSH);
      if (round % 2 === 0) kept.push(one);
    }
    globalThis.gc();
    setImmediate(() => globalThis.gc());`;
  return await new Promise((resolve) => {
    execFile(process.execPath, ["--expose-gc", "-e", trial], { timeout: trialMs }, (error) =>
      resolve(error === null),
    );
  });
}

/** The part of the package that is used. */
export interface ZlibSync {
  readonly Z_SYNC_FLUSH: number;
  readonly Z_STREAM_END: number;
  readonly Inflate: new (options: { windowBits: number; chunkSize: number }) => NativeInflate;
}
interface NativeInflate {
  readonly err: number;
  readonly msg: string | null;
  readonly result: Buffer | string | null;
  push(input: Buffer, flush: number): void;
}

/** Holds every instance of the process, even those whose pool no longer exists. */
const neverCollected: NativeInflate[] = [];

/** Maximum input at once, which bounds the output: 1 KiB inflates to at most about 1 MiB (deflate's maximum ratio is 1032). */
const sliceBytes = 1024;

class ZlibSyncInflater implements MessageInflater {
  readonly #zlibSync: ZlibSync;
  readonly #release: (instance: NativeInflate) => void;
  #instance: NativeInflate | null;

  constructor(instance: NativeInflate, zlibSync: ZlibSync, release: (instance: NativeInflate) => void) {
    this.#instance = instance;
    this.#zlibSync = zlibSync;
    this.#release = release;
  }

  inflate(message: Buffer, maxBytes: number): Buffer {
    const outputs: Buffer[] = [];
    let left = maxBytes;
    for (let start = 0; start < message.length; start += sliceBytes) {
      const output = this.#push(message.subarray(start, start + sliceBytes));
      left -= output.length;
      if (left < 0) throw tooLong(maxBytes);
      outputs.push(output);
    }
    const last = this.#push(flushTail);
    if (last.length > left) throw tooLong(maxBytes);
    outputs.push(last);
    return Buffer.concat(outputs);
  }

  /** Writes another inflater's history into the window as a stored block (RFC 1951 section 3.2.4). */
  prime(history: Buffer): void {
    if (history.length > 0) this.#push(storedBlock(history));
  }

  history(): Buffer {
    throw new Error("a zlib-sync inflater cannot be followed by another one");
  }

  release(): void {
    if (this.#instance) this.#release(this.#instance);
    this.#instance = null;
  }

  #push(input: Buffer): Buffer {
    if (!this.#instance) throw new ProtocolError("the inflate stream is closed");
    return pushSlice(this.#instance, input, this.#zlibSync);
  }
}

function pushSlice(instance: NativeInflate, input: Buffer, zlibSync: ZlibSync): Buffer {
  instance.push(input, zlibSync.Z_SYNC_FLUSH);
  if (instance.err < 0) throw corrupt(instance.msg ?? `error ${instance.err}`);
  if (instance.err === zlibSync.Z_STREAM_END) throw new ProtocolError("the deflate stream has ended");
  return instance.result as Buffer;
}

function storedBlock(content: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.writeUInt16LE(content.length, 1);
  header.writeUInt16LE(content.length ^ 0xffff, 3);
  return Buffer.concat([header, content]);
}

/**
 * Fills the window with noise, so that the next crawler cannot refer to this one's data. The noise comes out unchanged if and
 * only if the instance is between two blocks; otherwise it is unusable.
 */
function overwriteWindow(instance: NativeInflate, zlibSync: ZlibSync): boolean {
  const noise = randomBytes(windowBytes);
  try {
    return pushSlice(instance, storedBlock(noise), zlibSync).equals(noise);
  } catch {
    return false;
  }
}
