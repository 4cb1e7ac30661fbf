/**
 * Runs jobs periodically. A job never overlaps itself: the interval starts at the end of the last run. A job that throws is
 * logged and runs again after its interval. Stopping waits for running jobs.
 *
 * If several coordinators share a database, only the leader (crawlers/coordinator-presence-store) runs a job, unless its rule
 * says `onEach`.
 */

import type { Log } from "./log.ts";
import { timerMs } from "./timer-ms.ts";

/** Which coordinators run a job, and when. */
interface JobRule {
  /** Each coordinator runs it for its own sessions, memory and figures, rather than only the leader. */
  readonly onEach?: true;
  /** It runs even while the clock is wrong, because it reports that or does not decide by time. */
  readonly whateverTheClock?: true;
}

/** Whether decisions by time are allowed (core/own-clock). */
interface DutyClock {
  isRight(): boolean;
  /** Whether jobs that delete old data (named `forget…`) may run. */
  mayForget(): boolean;
}

interface Duty {
  readonly name: string;
  readonly isOurs: () => boolean;
  readonly rule: JobRule;
  readonly everyMs: () => number;
  /** The interval until the next run; null if the job was hurried or is running. */
  setMs: number | null;
  readonly work: () => Promise<unknown>;
  timer: NodeJS.Timeout | null;
  dueMs: number;
  running: Promise<void> | null;
  /** How many ms after the current run the job runs again, if it was hurried meanwhile; null if its interval applies. */
  againMs: number | null;
  startedMs: number | null;
  endedMs: number | null;
  failures: number;
  failingSinceMs: number | null;
  error: unknown;
}

/** The state of a job, for monitoring. Times are those of `performance.now()`. */
export interface DutyReport {
  readonly name: string;
  readonly everyMs: number;
  /** Null while the job waits. */
  readonly runningSinceMs: number | null;
  /** When a run last ended without an error, or null. Includes runs skipped because another coordinator leads. */
  readonly succeededMs: number | null;
  /** How many of the latest runs failed in a row. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  readonly error: unknown;
}

export class Timekeeper {
  readonly #log: Log;
  readonly #leads: () => boolean;
  readonly #onFailed: (error: unknown) => void;
  readonly #clock: DutyClock;
  readonly #duties = new Map<string, Duty>();
  readonly #stopping = new AbortController();

  /** `leads` returns whether this coordinator is the leader (default: it is). `onFailed` gets what a run threw. */
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

  /** Aborted by `stop`. Long-running work should watch it, so that `stop` does not wait for that work to finish. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  get #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** `every` is in ms, or a function that is called after each run. */
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

  retime(): void {
    if (this.#stopped) return;
    for (const duty of this.#duties.values()) {
      const { setMs, dueMs } = duty;
      if (setMs === null || setMs === duty.everyMs()) continue;
      this.#scheduleNext(duty, Math.max(0, performance.now() - (dueMs - setMs)));
    }
  }

  /** Runs a job in `delayMs` at the latest. A running job runs again that long after its end. */
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

  /** Schedules the next run; `passedMs` of the interval have already passed. */
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

/** Names of jobs that other rooms hurry. */
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
