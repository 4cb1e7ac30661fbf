/** Processes of the box: how they are started, spoken to and ended, and what /proc says that they used. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readPidFile } from "#db/embedded-postgres";

const endMs = 15_000;

/** A TypeScript file of this folder in a process of its own, with a channel; `built`: what it imports is that in dist/. */
export class BoxProcess {
  readonly #child: ChildProcess;
  #words = "";

  constructor(file: string, onMessage: (message: { readonly type: string }) => void, built = false) {
    this.#child = fork(join(import.meta.dirname, file), [], {
      execArgv: [...(built ? [] : ["--conditions=nearcrawl-source"]), "--import", "tsx"],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child.on("message", (message) => onMessage(message as { readonly type: string }));
    this.#child.on("error", () => {});
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (data) => {
        this.#words = (this.#words + data).slice(-4000);
      });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The last that it printed. */
  get words(): string {
    return this.#words;
  }

  tell(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Null: no answer of that type within the time. Throws when the process has ended. */
  async ask<Answer>(message: object, type: string, withinMs: number): Promise<Answer | null> {
    const over = new AbortController();
    const deadline = setTimeout(() => over.abort(), withinMs);
    try {
      this.tell(message);
      for (;;) {
        if (!this.isRunning) throw new Error(`a process of the box has ended: ${this.#words}`);
        const [answer] = await Promise.race([
          once(this.#child, "message", { signal: over.signal }),
          once(this.#child, "exit", { signal: over.signal }).then(() => [{ type: "" }]),
        ]);
        if (answer.type === type) return answer as Answer;
      }
    } catch (error) {
      if ((error as Error).name === "AbortError") return null;
      throw error;
    } finally {
      clearTimeout(deadline);
      over.abort();
    }
  }

  /** Kills it when it has not ended by itself within the time. */
  async ended(withinMs = endMs): Promise<void> {
    if (!this.isRunning) return;
    const gone = once(this.#child, "exit");
    await Promise.race([gone, delay(withinMs, undefined, { ref: false })]);
    this.kill();
    await gone;
  }

  kill(): void {
    if (this.isRunning) this.#child.kill("SIGKILL");
  }
}

// What the system counts: proc(5).

const ticksPerSecond = 100;

/** User and system time of a process' threads; 0 when it is gone. */
export function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === null ? 0 : ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

export function residentBytesOf(pid: number): number {
  try {
    const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) * 1024;
  } catch {
    return 0;
  }
}

/** Of the embedded server and its processes, those that ended included. */
export function postgresCpuMs(home: string): number {
  const postmaster = readPidFile(home)?.pid ?? -1;
  let ticks = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const fields = statOf(Number(pid));
    if (fields === null) continue;
    const isPostmaster = Number(pid) === postmaster;
    if (!isPostmaster && Number(fields[1]) !== postmaster) continue;
    // utime, stime and, of children that were waited for, cutime and cstime.
    for (const at of isPostmaster ? [11, 12, 13, 14] : [11, 12]) ticks += Number(fields[at]);
  }
  return (1000 * ticks) / ticksPerSecond;
}

/** Of all processes of the machine. */
export function machineCpuMs(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8")
    .split(/\s+/, 9)
    .map(Number);
  return ((user! + nice! + system! + irq! + softirq!) * 1000) / ticksPerSecond;
}

/** Counted from the state on, since the name before it may hold anything; null when the process is gone. */
function statOf(pid: number): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return null;
  }
}
