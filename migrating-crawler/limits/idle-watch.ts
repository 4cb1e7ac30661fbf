/**
 * Checks every ten seconds whether the machine is otherwise idle. The crawler's own load is subtracted first, or it
 * would stop itself. Signs that the system does not provide are reported and block nothing.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { availableParallelism, loadavg, platform } from "node:os";
import { join } from "node:path";
import type { IdleLimits } from "../settings/limits-config.ts";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";

const lookEveryMs = 10_000;

/** The kernel averages the load over the last minute. */
const averagedOverMs = 60_000;

interface IdleSettings {
  readonly signs?: () => MachineSigns;
  readonly nowMs?: () => number;
  /** Processors that the crawler has used recently. */
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

  /** Returns null when idle checks are off. */
  #look(): MachineSigns | null {
    if (this.#limits === null) return null;
    const nowMs = this.#settings.nowMs();
    const sinceMs = nowMs - this.#lookedAtMs;
    if (this.#signs !== null && sinceMs < lookEveryMs) return this.#signs;
    this.#lookedAtMs = nowMs;
    const part = this.#signs === null ? 0 : 1 - Math.exp(-sinceMs / averagedOverMs);
    this.#ownLoad += (this.#settings.ownLoad() - this.#ownLoad) * part;
    this.#signs = this.#settings.signs();
    return this.#signs;
  }
}

// Reads whether the machine is in use. Linux: /proc/loadavg, /sys/class/power_supply, and /run/utmp with the terminals'
// access times. A sign is null where unavailable (macOS and Windows lack power and users, containers often lack utmp,
// Windows has no load average). A session without visible activity, such as a graphical one, counts as active.

export interface MachineSigns {
  /** The load average of the last minute, in processors. */
  readonly load: number | null;
  readonly processors: number;
  readonly onMainsPower: boolean | null;
  /** Minutes since any user was active; infinity when nobody is logged in. */
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

/** utmp(5) records on Linux have 384 bytes: the type first, the terminal's name from byte 8. */
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
