/**
 * Keeps the process within its share of processor time. Long work (reading pages, starting requests) asks for a turn every few
 * milliseconds and waits if the process has used too much. The kernel's count covers the whole process, with all threads and
 * the garbage collector, so that deferrable work pays for work that cannot be deferred.
 */

import { timerMs } from "#core/timer-ms";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";

export interface CpuClock {
  readonly cpuMs: () => number;
  readonly nowMs: () => number;
}

const burstMs = 200;
/** Repaying a debt takes at most this long. */
const longestDebtMs = 30_000;
const windowMs = 10_000;

const processClock: CpuClock = {
  cpuMs: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  nowMs: () => performance.now(),
};

export class CpuShare {
  #share: number | null;
  readonly #clock: CpuClock;
  /** CPU time available now, which is negative after overuse. */
  #creditMs = 0;
  #seen: { readonly cpuMs: number; readonly nowMs: number };
  #past: { readonly cpuMs: number; readonly nowMs: number }[];
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(share: number | null, clock: CpuClock = processClock) {
    this.#share = share;
    this.#clock = clock;
    this.#seen = { cpuMs: clock.cpuMs(), nowMs: clock.nowMs() };
    this.#past = [this.#seen];
  }

  apply(share: number | null): void {
    this.#look();
    this.#share = share;
    this.#creditMs = 0;
    this.#letGo();
  }

  waitMs(): number {
    if (this.#share === null || this.#isClosed) return 0;
    this.#look();
    return Math.max(0, -this.#creditMs / this.#share);
  }

  /** Resolves when a few milliseconds of work may run, first come first served. */
  async turn(): Promise<void> {
    if (this.waitMs() === 0 && this.#waiting.length === 0) return;
    await new Promise<void>((goOn) => {
      this.#waiting.push(goOn);
      if (this.#timer === null) this.#letGo();
    });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  recent(): number {
    this.#look();
    const [first] = this.#past;
    const elapsedMs = this.#seen.nowMs - (first?.nowMs ?? 0);
    return first === undefined || elapsedMs <= 0 ? 0 : (this.#seen.cpuMs - first.cpuMs) / elapsedMs;
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  /** The next caller starts only after the current one has worked, when its use is known. */
  #letGo(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#waiting.length === 0) return;
    const waitMs = this.waitMs();
    if (waitMs === 0) this.#waiting.shift()?.();
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#letGo(), timerMs(waitMs));
  }

  #look(): void {
    const now = { cpuMs: this.#clock.cpuMs(), nowMs: this.#clock.nowMs() };
    const share = this.#share ?? 0;
    const earnedMs = (now.nowMs - this.#seen.nowMs) * share;
    const creditMs = this.#creditMs + earnedMs - (now.cpuMs - this.#seen.cpuMs);
    this.#creditMs = Math.max(-longestDebtMs * share, Math.min(burstMs * share, creditMs));
    this.#seen = now;
    if (now.nowMs - this.#past.at(-1)!.nowMs > windowMs / 20) this.#past.push(now);
    while (this.#past.length > 1 && now.nowMs - this.#past[1]!.nowMs >= windowMs) this.#past.shift();
  }
}

// Limits bytes a second with a token bucket: short pieces pass at once, longer ones wait until they are paid for, first come
// first served. Headers, handshakes and the link also use up the bucket, and later pieces wait for them.

/** The bytes of this fraction of a second may arrive at once. */
const burstSeconds = 0.1;
const leastBurstBytes = 8 * 1024;

interface Waiting {
  readonly takenBytes: number;
  readonly goOn: () => void;
}

export class TransferRate {
  #bytesPerSecond: number;
  #filledBytes: number;
  #takenBytes = 0;
  #filledAtMs: number;
  readonly #nowMs: () => number;
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(kilobytesPerSecond: number | null, nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#bytesPerSecond = rateOf(kilobytesPerSecond);
    this.#filledBytes = 0;
    this.#filledAtMs = nowMs();
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  apply(kilobytesPerSecond: number | null): void {
    this.#fill();
    this.#bytesPerSecond = rateOf(kilobytesPerSecond);
    this.#letGo();
  }

  /** Returns null to continue, or a promise to wait for. */
  take(bytes: number): Promise<void> | null {
    this.spend(bytes);
    if (this.waitMs() === 0) return null;
    return new Promise((goOn) => {
      this.#waiting.push({ takenBytes: this.#takenBytes, goOn });
      this.#letGo();
    });
  }

  /** Uses up bytes without waiting. A negative number is a refund. */
  spend(bytes: number): void {
    if (bytes >= 0) this.#takenBytes += bytes;
    else this.#filledBytes -= bytes;
  }

  waitMs(): number {
    return this.#untilMs(this.#takenBytes);
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { goOn } of this.#waiting.splice(0)) goOn();
  }

  #letGo(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#waiting[0] !== undefined) {
      const waitMs = this.#untilMs(this.#waiting[0].takenBytes);
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#letGo(), timerMs(waitMs));
        return;
      }
      this.#waiting.shift()?.goOn();
    }
  }

  #untilMs(takenBytes: number): number {
    if (this.#bytesPerSecond === Number.POSITIVE_INFINITY) return 0;
    this.#fill();
    return Math.max(0, ((takenBytes - this.#filledBytes) / this.#bytesPerSecond) * 1000);
  }

  #fill(): void {
    const nowMs = this.#nowMs();
    const seconds = Math.max(0, nowMs - this.#filledAtMs) / 1000;
    this.#filledAtMs = nowMs;
    const burstBytes = Math.max(leastBurstBytes, this.#bytesPerSecond * burstSeconds);
    const most = this.#takenBytes + burstBytes;
    const filled = this.#filledBytes + seconds * this.#bytesPerSecond;
    this.#filledBytes = Number.isFinite(filled) ? Math.min(most, filled) : this.#takenBytes;
  }
}

function rateOf(kilobytesPerSecond: number | null): number {
  return kilobytesPerSecond === null ? Number.POSITIVE_INFINITY : kilobytesPerSecond * 1024;
}

// Limits the number of open connections. When all slots are taken, callers wait, first come first served.

/** One slot is reserved for the link to the coordinator. */
const forLink = 1;

type EndConnection = () => void;

export class ConnectionSlots {
  #most: number;
  #open = 0;
  readonly #waiting = new Set<() => void>();

  constructor(openConnections: number) {
    this.#most = openConnections;
  }

  /** Lowering the number closes nothing. Connections end by themselves and are not replaced. */
  apply(openConnections: number): void {
    this.#most = openConnections;
    this.#letGo();
  }

  /** True if few slots are left, so that idle connections should be closed. */
  isScarce(): boolean {
    return this.#waiting.size > 0 || this.#open + forLink >= 0.9 * this.#most;
  }

  /** Resolves with null if no slot became free in time. */
  take(withinMs: number): Promise<EndConnection | null> {
    return this.#open + forLink < this.#most ? Promise.resolve(this.#begin()) : this.#wait(withinMs);
  }

  usage(): LimitUsage {
    const used = this.#open + forLink;
    const words = `all ${this.#most} connections are open, and ${this.#waiting.size} more are waited for`;
    const holdingBack = this.#waiting.size > 0 ? words : "";
    return limitUsage("openConnections", holdingBack, { unit: "connections", used, cap: this.#most });
  }

  #begin(): EndConnection {
    this.#open++;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#open--;
      this.#letGo();
    };
  }

  #letGo(): void {
    for (const begin of this.#waiting) {
      if (this.#open + forLink >= this.#most) return;
      begin();
    }
  }

  #wait(withinMs: number): Promise<EndConnection | null> {
    return new Promise((resolve) => {
      const leave = () => {
        clearTimeout(late);
        this.#waiting.delete(begin);
      };
      const begin = () => {
        leave();
        resolve(this.#begin());
      };
      const late = setTimeout(() => {
        leave();
        resolve(null);
      }, timerMs(withinMs));
      this.#waiting.add(begin);
    });
  }
}
