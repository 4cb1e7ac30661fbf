/**
 * Runs flows periodically. A flow never overlaps itself: the next turn is counted from the end of the last.
 * A flow that throws is logged and runs again at its next turn; stopping waits for what is under way.
 *
 * Where several coordinators share a database, a flow is for the one that leads (crawlers/coordinator-presence-store), unless
 * its rule says `onEach`: at the others its turns pass.
 */

import type { Log } from "./log.ts";
import { timerMs } from "./timer-ms.ts";

/** Which coordinators do a job, and when. */
export interface JobRule {
  /** Each coordinator does it for itself, for its sessions, its memory and its figures; left out: the one that leads does. */
  readonly onEach?: true;
  /** It goes on while the clock is wrong: it tells of that, or decides nothing by time. */
  readonly whateverTheClock?: true;
}

/** Whether time may decide (core/own-clock). */
interface DutyClock {
  /** While it is not, turns pass. */
  isRight(): boolean;
  /** Whether those may run that delete what is old, whose names begin with forget. */
  mayForget(): boolean;
}

interface Duty {
  readonly name: string;
  /** Whether its turns are this coordinator's. */
  readonly isOurs: () => boolean;
  readonly rule: JobRule;
  readonly everyMs: () => number;
  /** The interval that its next turn is set by; null: it is hurried, or runs. */
  setMs: number | null;
  readonly work: () => Promise<unknown>;
  timer: NodeJS.Timeout | null;
  dueMs: number;
  running: Promise<void> | null;
  /** It was hurried while it runs: once more so many ms after its end; null: as its interval says. */
  againMs: number | null;
  /** Of `performance.now()`. */
  startedMs: number | null;
  endedMs: number | null;
  failures: number;
  failingSinceMs: number | null;
  error: unknown;
}

/** How a flow fares, for whoever watches; times are those of `performance.now()`. */
export interface DutyReport {
  readonly name: string;
  readonly everyMs: number;
  /** Since when its turn is under way; null: it waits for the next. */
  readonly runningSinceMs: number | null;
  /** When a turn last ended without an error; null: none has. Turns that pass, since another coordinator leads, count. */
  readonly succeededMs: number | null;
  /** In a row, up to now. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Of its last turn; undefined: that ended well. */
  readonly error: unknown;
}

export class Timekeeper {
  readonly #log: Log;
  readonly #leads: () => boolean;
  readonly #onFailed: (error: unknown) => void;
  readonly #clock: DutyClock;
  readonly #duties = new Map<string, Duty>();
  readonly #stopping = new AbortController();

  /**
   * `leads`: whether this coordinator does what one does for all; left out, there is no other. `onFailed`: a turn threw this.
   */
  constructor(
    log: Log,
    leads = () => true,
    onFailed: (error: unknown) => void = () => {},
    clock: DutyClock = { isRight: () => true, mayForget: () => true },
  ) {
    this.#log = log;
    this.#leads = leads;
    this.#onFailed = onFailed;
    this.#clock = clock;
  }

  /** Aborts when flows are to end: for work that `stop` would wait for too long. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** `every`: ms, or what gives them whenever a turn ends. */
  every(
    name: string,
    every: number | (() => number),
    work: () => Promise<unknown>,
    rule: JobRule = {},
  ): void {
    const everyMs = typeof every === "number" ? () => every : every;
    const duty: Duty = {
      name,
      isOurs: () => rule.onEach === true || this.#leads(),
      rule,
      everyMs,
      work,
      setMs: null,
      timer: null,
      dueMs: 0,
      running: null,
      againMs: null,
      startedMs: null,
      endedMs: null,
      failures: 0,
      failingSinceMs: null,
      error: undefined,
    };
    const before = this.#duties.get(name);
    if (before?.timer) clearTimeout(before.timer);
    this.#duties.set(name, duty);
    this.#scheduleNext(duty);
  }

  /** How often flows run has changed: what waits for its turn waits as long as it would have by the new interval. */
  retime(): void {
    if (this.#stopped) return;
    for (const duty of this.#duties.values()) {
      const { setMs, dueMs } = duty;
      if (setMs === null || setMs === duty.everyMs()) continue;
      this.#scheduleNext(duty, Math.max(0, performance.now() - (dueMs - setMs)));
    }
  }

  /** Runs a flow now, or within `delayMs` if it would run later; when it is under way, once more so long after its end. */
  hurry(name: string, delayMs = 0): void {
    const duty = this.#duties.get(name);
    if (!duty || this.#stopped) return;
    if (duty.running) duty.againMs = Math.min(delayMs, duty.againMs ?? delayMs);
    else if (performance.now() + delayMs < duty.dueMs) this.#schedule(duty, delayMs);
  }

  reports(): DutyReport[] {
    return [...this.#duties.values()].map((duty) => ({
      name: duty.name,
      everyMs: duty.everyMs(),
      runningSinceMs: duty.running === null ? null : duty.startedMs,
      succeededMs: duty.endedMs,
      failures: duty.failures,
      failingSinceMs: duty.failingSinceMs,
      error: duty.error,
    }));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const duty of this.#duties.values()) if (duty.timer) clearTimeout(duty.timer);
    await Promise.all([...this.#duties.values()].map((duty) => duty.running));
  }

  /** Its next turn in the order of the clock; of the interval, `passedMs` have passed. */
  #scheduleNext(duty: Duty, passedMs = 0): void {
    const everyMs = duty.everyMs();
    this.#schedule(duty, Math.max(0, everyMs - passedMs));
    duty.setMs = everyMs;
  }

  #schedule(duty: Duty, delayMs: number): void {
    if (duty.timer) clearTimeout(duty.timer);
    duty.setMs = null;
    duty.dueMs = performance.now() + delayMs;
    duty.timer = setTimeout(() => {
      duty.timer = null;
      duty.setMs = null;
      duty.running = this.#run(duty);
    }, timerMs(delayMs));
  }

  #isInTime({ name, rule }: Duty): boolean {
    if (rule.whateverTheClock === true) return true;
    return this.#clock.isRight() && (!name.startsWith("forget-") || this.#clock.mayForget());
  }

  async #run(duty: Duty): Promise<void> {
    duty.startedMs = performance.now();
    try {
      if (duty.isOurs() && this.#isInTime(duty)) await duty.work();
      duty.endedMs = performance.now();
      duty.failures = 0;
      duty.failingSinceMs = null;
      duty.error = undefined;
    } catch (error) {
      duty.failures += 1;
      duty.failingSinceMs ??= performance.now();
      duty.error = error;
      this.#log.error({ flow: duty.name, error }, "flow failed, will run again");
      this.#onFailed(error);
    }
    duty.running = null;
    if (this.#stopped || this.#duties.get(duty.name) !== duty) return;
    const { againMs } = duty;
    duty.againMs = null;
    if (againMs === null || againMs >= duty.everyMs()) this.#scheduleNext(duty);
    else this.#schedule(duty, againMs);
  }
}

/** Names of the jobs that other rooms than their own hurry (core/scheduler). */
export const jobs = {
  resolveHosts: "resolve-hosts",
  applyLinks: "apply-links",
  delegate: "delegate-subnets",
  measurePeers: "measure-crawlers",
  handOver: "hand-over-subnets",
  settle: "settle-newcomers",
  rebalance: "rebalance-load",
  reviewDatabase: "review-database",
} as const;
