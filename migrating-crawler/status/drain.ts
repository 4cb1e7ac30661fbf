/**
 * Draining by the host's word: nothing new is taken, what is open is finished, all results go to the coordinator, and
 * then the crawler leaves for good, so that others get its subnets. Kept on disk: a crawler that is started anew
 * meanwhile goes on draining. `resume` ends it.
 *
 *   off → (asked) draining → (nothing open, nothing waits) left
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { SinceAndWhy } from "./status-report.ts";

const mostBytes = 4096;
const mostWords = 300;
const lookEveryMs = 500;
const kept = z.object({ since: z.iso.datetime(), reason: z.string().max(mostWords) });

const drainFile = (home: string) => join(home, "draining.json");

/** Throws the system's error when the folder cannot be written. */
export function beginDrain(home: string, reason: string): void {
  const path = drainFile(home);
  const drain = { since: new Date().toISOString(), reason: reason.slice(0, mostWords) };
  if (!existsSync(home)) mkdirSync(home, { recursive: true });
  // A link in its place is not followed: root may be the one who writes here.
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, JSON.stringify(drain), { mode: 0o600, flag: "wx" });
  renameSync(`${path}.new`, path);
}

/** Throws the system's error when the folder cannot be written. */
export function endDrain(home: string): void {
  rmSync(drainFile(home), { force: true });
}

/** Null when it is not draining. A file that says nothing sensible drains nothing: leaving cannot be taken back. */
export function readDrain(home: string): SinceAndWhy | null {
  try {
    const path = drainFile(home);
    if (statSync(path).size > mostBytes) return null;
    return kept.safeParse(JSON.parse(readFileSync(path, "utf8"))).data ?? null;
  } catch {
    return null;
  }
}

interface DrainSettings {
  readonly home: string;
  /** Nothing is open and nothing waits for the coordinator. */
  readonly isEmpty: () => boolean;
  /** Called once; the crawler leaves for good then. */
  readonly onDrained: () => void;
}

export class Drain {
  readonly #settings: DrainSettings;
  #asked: SinceAndWhy | null;
  #timer: NodeJS.Timeout | null = null;

  constructor(settings: DrainSettings) {
    this.#settings = settings;
    this.#asked = readDrain(settings.home);
    if (this.#asked !== null) this.#watch();
  }

  /** Null when it is not draining. */
  get asked(): SinceAndWhy | null {
    return this.#asked;
  }

  begin(reason: string): void {
    if (this.#asked !== null) return;
    beginDrain(this.#settings.home, reason);
    this.#asked = readDrain(this.#settings.home);
    this.#watch();
  }

  end(): void {
    endDrain(this.#settings.home);
    this.#asked = null;
    this.close();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #watch(): void {
    this.#timer = setInterval(() => {
      if (!this.#settings.isEmpty()) return;
      this.end();
      this.#settings.onDrained();
    }, lookEveryMs).unref();
  }
}

// A crawler that was drained has itself end for good, in the way in which everybody else asks for it: by SIGUSR2.

/** To the dock that runs this process, or to the process itself. Without its dock a docked crawler ends anyway. */
export function askToLeave(isDocked: boolean): void {
  if (!isDocked) process.kill(process.pid, "SIGUSR2");
  else if (process.connected) process.kill(process.ppid, "SIGUSR2");
}
