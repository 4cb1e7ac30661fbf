/**
 * Compares the process's memory with its limit. From four fifths of it, fewer hosts are crawled at a time. From nineteen
 * twentieths, requests are sent one by one, each reserving its maximum size, and garbage is collected earlier. The heap has no
 * hard limit, because reaching one would end the process.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, stat, statfs } from "node:fs/promises";
import { availableParallelism, loadavg, platform } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { CrawlerLimits, IdleLimits } from "../settings/limits-config.ts";
import { bytesInWords, type LimitUsage, limitUsage } from "./limit-usage.ts";

const fewerFrom = 0.8;
const oneByOneFrom = 0.95;
const collectFrom = 0.85;
/** A request takes at most the limit of its body on the wire (5 MiB), and the same again decoded. */
const mostRequestBytes = 10 * 1024 * 1024;
const lookEveryMs = 1000;
const collectEveryMs = 15_000;

export interface MemorySigns {
  readonly residentBytes: () => number;
  readonly collect: () => void;
  readonly nowMs: () => number;
}

const processMemory: MemorySigns = {
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => collector()(),
  nowMs: () => performance.now(),
};

export class MemoryWatch {
  #capBytes: number | null;
  readonly #signs: MemorySigns;
  #bytes = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #collectedAtMs = Number.NEGATIVE_INFINITY;

  constructor(capBytes: number | null, signs: MemorySigns = processMemory) {
    this.#capBytes = capBytes;
    this.#signs = signs;
  }

  apply(capBytes: number | null): void {
    this.#capBytes = capBytes;
  }

  hosts(concurrentHosts: number): number {
    const room = (oneByOneFrom - this.#part()) / (oneByOneFrom - fewerFrom);
    return Math.max(1, Math.floor(concurrentHosts * Math.min(1, room)));
  }

  /**
   * True if requests must be sent one by one, or if no room is left besides those in progress or not yet extracted. Each
   * reserves twice the body's limit. Memory already used is measured again.
   */
  isShort(taken = 0): boolean {
    if (this.#capBytes === null) return false;
    if (this.#part() >= oneByOneFrom) return true;
    const soonBytes = (taken + 1) * mostRequestBytes;
    return taken > 0 && this.#signs.residentBytes() + soonBytes > oneByOneFrom * this.#capBytes;
  }

  usage(): LimitUsage {
    const part = this.#part();
    const cap = this.#capBytes;
    const words = `${bytesInWords(this.#bytes)} of ${bytesInWords(cap ?? 0)} of memory are used`;
    const effect =
      part >= oneByOneFrom ? "pages are fetched one by one" : "fewer hosts are crawled at a time";
    const holdingBack = part > fewerFrom ? `${words}: ${effect}` : "";
    return limitUsage("memoryBytes", holdingBack, { unit: "bytes", used: this.#signs.residentBytes(), cap });
  }

  #part(): number {
    if (this.#capBytes === null) return 0;
    const nowMs = this.#signs.nowMs();
    if (nowMs - this.#lookedAtMs >= lookEveryMs) this.#look(nowMs);
    return this.#bytes / this.#capBytes;
  }

  #look(nowMs: number): void {
    this.#lookedAtMs = nowMs;
    this.#bytes = this.#signs.residentBytes();
    const isFull = this.#bytes >= collectFrom * (this.#capBytes ?? Number.POSITIVE_INFINITY);
    if (!isFull || nowMs - this.#collectedAtMs < collectEveryMs) return;
    this.#collectedAtMs = nowMs;
    this.#signs.collect();
    this.#bytes = this.#signs.residentBytes();
  }
}

let collecting: (() => void) | null = null;

function collector(): () => void {
  if (collecting === null) {
    setFlagsFromString("--expose-gc");
    collecting = runInNewContext("gc") as () => void;
  }
  return collecting;
}

const mebibyte = 1024 * 1024;

/**
 * Sets the size of the young generation of an extraction thread (three semi-spaces of V8). A larger one saves collections and
 * processor time at the cost of memory (test/bench/results/crawl.md). A host without a memory limit has no need to save
 * memory.
 */
export function youngMegabytes(memoryBytes: number | null): number {
  return memoryBytes === null || memoryBytes >= 512 * mebibyte ? 48 : 8;
}

// Compares the size of the crawler's folder with its disk limit. The folder is measured every half minute. In between, only
// the size of the spool is updated, because nothing else grows fast. Near the limit, fetching stops and the spool gets the
// remaining space.

type Disk = Pick<CrawlerLimits, "diskBytes" | "spoolBytes">;

const measureEveryMs = 30_000;
/** Counting stops after this many entries of a folder. */
const mostEntries = 200_000;
/** Reserved for counters, keys and other small files. */
const smallFilesBytes = 1024 * 1024;

export class DiskWatch {
  #disk: Disk;
  readonly #home: string;
  readonly #spoolBytes: () => number;
  #otherBytes = 0;
  #freeBytes: number | null = null;
  readonly #timer: NodeJS.Timeout;

  constructor(disk: Disk, settings: { readonly home: string; readonly spoolBytes: () => number }) {
    this.#disk = disk;
    this.#home = settings.home;
    this.#spoolBytes = settings.spoolBytes;
    this.#timer = setInterval(() => void this.look(), measureEveryMs).unref();
    void this.look();
  }

  apply(disk: Disk): void {
    this.#disk = disk;
    void this.look();
  }

  spoolMostBytes(): number {
    const { diskBytes, spoolBytes } = this.#disk;
    if (diskBytes === null) return spoolBytes;
    return Math.max(0, Math.min(spoolBytes, diskBytes - this.#otherBytes - smallFilesBytes));
  }

  isFull(): boolean {
    const { diskBytes } = this.#disk;
    return diskBytes !== null && this.#used() + smallFilesBytes >= diskBytes;
  }

  usage(): LimitUsage {
    const cap = this.#disk.diskBytes;
    const used = cap === null ? null : this.#used();
    const words = `the crawler's folder has ${bytesInWords(used ?? 0)}, and ${bytesInWords(cap ?? 0)} are allowed`;
    return limitUsage("diskBytes", this.isFull() ? words : "", { unit: "bytes", used, cap });
  }

  /** Bytes free for this user on the folder's file system. Null if unknown. */
  get freeBytes(): number | null {
    return this.#freeBytes;
  }

  async look(): Promise<void> {
    this.#freeBytes = await statfs(this.#home).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => null,
    );
    if (this.#disk.diskBytes === null) return;
    const all = await bytesIn(this.#home);
    this.#otherBytes = Math.max(0, all - (await bytesIn(join(this.#home, "spool"))));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #used(): number {
    return this.#otherBytes + this.#spoolBytes();
  }
}

/** Does not follow links. Files that disappear during the count are taken as empty. */
async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  let entries = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && entries < mostEntries; next = folders.pop()) {
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      entries++;
      const path = join(next, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile())
        bytes += await stat(path).then(
          ({ size }) => size,
          () => 0,
        );
    }
  }
  return bytes;
}

// Checks every ten seconds whether the machine is otherwise idle. The crawler's own load is subtracted, because it would
// otherwise stop itself. Signs that the system does not provide are reported and block nothing.

const signsEveryMs = 10_000;

/** The kernel averages the load over the last minute. */
const averagedOverMs = 60_000;

interface IdleSettings {
  readonly signs?: () => MachineSigns;
  readonly nowMs?: () => number;
  readonly ownLoad: () => number;
}

export class IdleWatch {
  #limits: IdleLimits | null;
  readonly #settings: Required<IdleSettings>;
  #signs: MachineSigns | null = null;
  #ownLoad = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(limits: IdleLimits | null, settings: IdleSettings) {
    this.#limits = limits;
    this.#settings = {
      signs: () => readMachineSigns(),
      nowMs: () => performance.now(),
      ...settings,
    };
  }

  apply(limits: IdleLimits | null): void {
    this.#limits = limits;
    this.#lookedAtMs = Number.NEGATIVE_INFINITY;
  }

  isIdle(): boolean {
    return this.#busyWith() === "";
  }

  usage(): LimitUsage {
    return limitUsage("onlyWhenIdle", this.#busyWith());
  }

  untold(): string[] {
    const limits = this.#limits;
    const signs = this.#look();
    if (limits === null || signs === null) return [];
    const { load, onMainsPower, usersAwayMinutes } = signs;
    const words: string[] = [];
    if (limits.loadPerProcessor !== null && load === null) words.push("how busy it is");
    if (limits.onMainsPower && onMainsPower === null) words.push("whether it runs on its battery");
    if (limits.usersAwayMinutes > 0 && usersAwayMinutes === null) words.push("whether anybody uses it");
    return words.map((what) => `this system does not tell ${what}`);
  }

  #busyWith(): string {
    const limits = this.#limits;
    const signs = this.#look();
    if (limits === null || signs === null) return "";
    const others = Math.max(0, (signs.load ?? 0) - this.#ownLoad) / signs.processors;
    if (limits.loadPerProcessor !== null && others > limits.loadPerProcessor) {
      return `the machine has other work: a load of ${others.toFixed(2)} per processor, and ${limits.loadPerProcessor} is allowed`;
    }
    if (limits.onMainsPower && signs.onMainsPower === false) return "the machine runs on its battery";
    const away = signs.usersAwayMinutes ?? Number.POSITIVE_INFINITY;
    if (limits.usersAwayMinutes > 0 && away < limits.usersAwayMinutes) {
      return `somebody uses the machine, or did ${Math.floor(away)} minutes ago; ${limits.usersAwayMinutes} are waited for`;
    }
    return "";
  }

  #look(): MachineSigns | null {
    if (this.#limits === null) return null;
    const nowMs = this.#settings.nowMs();
    const sinceMs = nowMs - this.#lookedAtMs;
    if (this.#signs !== null && sinceMs < signsEveryMs) return this.#signs;
    this.#lookedAtMs = nowMs;
    const part = this.#signs === null ? 0 : 1 - Math.exp(-sinceMs / averagedOverMs);
    this.#ownLoad += (this.#settings.ownLoad() - this.#ownLoad) * part;
    this.#signs = this.#settings.signs();
    return this.#signs;
  }
}

// Reads whether the machine is in use. Linux: /proc/loadavg, /sys/class/power_supply, and /run/utmp with the terminals' access
// times. A sign is null if unavailable (macOS and Windows lack power and users, containers often lack utmp, Windows has no
// load average). A session without visible activity, such as a graphical one, counts as active.

export interface MachineSigns {
  readonly load: number | null;
  readonly processors: number;
  readonly onMainsPower: boolean | null;
  /** Minutes since any user was active, or infinity if nobody is logged in. */
  readonly usersAwayMinutes: number | null;
}

interface SignPlaces {
  readonly powerSupplies: string;
  readonly utmp: readonly string[];
  readonly devices: string;
}

const usualPlaces: SignPlaces = {
  powerSupplies: "/sys/class/power_supply",
  utmp: ["/run/utmp", "/var/run/utmp"],
  devices: "/dev",
};

export function readMachineSigns(places: SignPlaces = usualPlaces, now: Date = new Date()): MachineSigns {
  return {
    load: platform() === "win32" ? null : (loadavg()[0] ?? null),
    processors: availableParallelism(),
    onMainsPower: powerIn(places.powerSupplies),
    usersAwayMinutes: usersAway(places, now),
  };
}

/** A machine without a battery is on mains power. */
function powerIn(folder: string): boolean | null {
  const supplies = namesIn(folder);
  if (supplies === null) return null;
  const read = (name: string, file: string) =>
    textOf(join(folder, name, file))
      ?.trim()
      .toLowerCase();
  const ofMachine = supplies.filter((name) => read(name, "scope") !== "device");
  const mains = ofMachine.filter((name) => /^(mains|usb)/.test(read(name, "type") ?? ""));
  if (mains.some((name) => read(name, "online") === "1")) return true;
  return !ofMachine.some(
    (name) => read(name, "type") === "battery" && read(name, "status") === "discharging",
  );
}

/** utmp(5) records on Linux have 384 bytes, with the type first and the terminal's name from byte 8. */
const recordBytes = 384;

const userProcess = 7;
const mostRecordBytes = 4096 * recordBytes;

function usersAway({ utmp, devices }: SignPlaces, now: Date): number | null {
  const records = utmp.map(bytesOf).find((bytes) => bytes !== null) ?? null;
  if (records === null) return null;
  let away = Number.POSITIVE_INFINITY;
  for (let at = 0; at + recordBytes <= Math.min(records.length, mostRecordBytes); at += recordBytes) {
    if (records.readInt16LE(at) !== userProcess) continue;
    const line = records.toString("latin1", at + 8, at + 40).replace(/\0.*$/s, "");
    away = Math.min(away, minutesSinceTouched(join(devices, line), now));
  }
  return away;
}

function minutesSinceTouched(terminal: string, now: Date): number {
  try {
    return Math.max(0, (now.getTime() - statSync(terminal).atimeMs) / 60_000);
  } catch {
    return 0;
  }
}

function namesIn(folder: string): string[] | null {
  try {
    return readdirSync(folder);
  } catch {
    return null;
  }
}

function bytesOf(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}

const textOf = (path: string) => bytesOf(path)?.toString("latin1").slice(0, 100) ?? null;
