/**
 * What a machine tells about whether it is in use. Linux: /proc/loadavg, /sys/class/power_supply, /run/utmp with the
 * access times of terminals. Each is null where the system does not tell (macOS and Windows tell no power and no
 * users this way; containers often have no utmp; Windows has no load average). A session whose activity cannot be
 * seen, as one at a screen, counts as active.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { availableParallelism, loadavg, platform } from "node:os";
import { join } from "node:path";

export interface MachineSigns {
  /** Load average of the last minute, in processors. */
  readonly load: number | null;
  readonly processors: number;
  readonly onMainsPower: boolean | null;
  /** Minutes since any user did anything; infinite when none is logged in. */
  readonly usersAwayMinutes: number | null;
}

export interface SignPlaces {
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

/** utmp(5): records of 384 bytes on Linux, the type first, the terminal's name from byte 8. */
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
