/**
 * Keeps the process within its share of processor time. Long work (reading pages, starting requests) asks for a turn
 * every few milliseconds and waits while the process has used too much. The kernel's count covers the whole process,
 * with all threads and the garbage collector, so deferrable work pays for work that cannot be deferred.
 */
import { timerMs } from "#core/timer-ms";

export interface CpuClock {
  readonly cpuMs: () => number;
  readonly nowMs: () => number;
}

/** Up to this much of the share may be used at once. */
const burstMs = 200;
/** No debt takes longer than this to repay. */
const longestDebtMs = 30_000;
/** `recent` averages over this period. */
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
  /** CPU time available now; negative after overuse. */
  #creditMs = 0;
  #seen: { readonly cpuMs: number; readonly nowMs: number };
  #past: { readonly cpuMs: number; readonly nowMs: number }[];
  readonly #waiting: (() => void)[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  /** `share` counts processors; null means no limit. */
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

  /** Returns 0 when work may run now. */
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

  /** The next caller starts after the current one has worked, when its use is known. */
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
