/**
 * The time by which a coordinator decides. It is the machine's clock as long as that runs at the rate of the monotonic one.
 * After a jump of the machine's clock, the coordinator's time goes on as before and writing stops, until other evidence says
 * which of the two is right.
 *
 *   wall clock ── jumps by more than 2 s ──► held (the monotonic clock counts on) ── the jump is taken back ──────────► followed
 *                                                ├── two thirds of the crawlers elsewhere go by the new time ──► followed
 *                                                └── nobody can tell: as long as it is wide, 10 s to 10 min; at most a day ──► followed
 *
 * The clock is also compared with the database's clock and with those of crawlers on other machines. If more than two thirds
 * of these crawlers, and at least two, differ in the same direction, this clock is wrong. A database on this machine uses the
 * same clock, so it proves nothing. A suspended machine does not count as a jump (`uptimeMs`).
 */
import { spanWords } from "./format.ts";
import type { CrawlerId } from "./ids.ts";

export interface MachineClock {
  readonly wall: () => Date;
  /** Monotonic; may stop while the machine sleeps. */
  readonly steadyMs: () => number;
  /** Time since the machine's start, including sleep. */
  readonly uptimeMs: () => number;
}

export interface ClockFault {
  /** Anybody can read this text, so it holds no names and no addresses. */
  readonly words: string;
  readonly since: Date;
}

/** NTP keeps clocks within milliseconds of each other, but on a loaded machine the two readings may be up to a second apart. */
const jumpMs = 2000;
/** Maximum difference from the database's clock, in addition to the answer's duration; `doctor` uses the same. */
const databaseMs = 5000;
/** Maximum difference that partners are asked to keep (membership/member.ts). */
const crawlersMs = 60_000;
const leastCrawlers = 2;
/** A crawler's clock reading is valid this long. Crawlers send a heartbeat at least every 30 s. */
const heardMs = 120_000;
/**
 * A jump that nothing can confirm is held for as long as the jump itself, within these bounds, because a paused machine makes
 * a small one.
 */
const [leastHoldMs, mostHoldMs] = [10_000, 600_000];
/** A longer jump is not followed without evidence, because following it would delete old data. */
const mostFollowedMs = 86_400_000;
const doubtMs = 86_400_000;

export class OwnClock {
  readonly #machine: MachineClock;
  readonly #onChange: (fault: ClockFault | null, jumpedMs: number) => void;
  #followedMs: number;
  #followedSteadyMs: number;
  /** How long the machine has slept since the construction. */
  #sleptMs = 0;
  readonly #awakeSinceMs: number;
  #jumpedSteadyMs: number | null = null;
  #databaseAheadMs = 0;
  /** For each crawler, how far its clock was ahead of our time, and when (monotonic) that was measured. */
  readonly #heard = new Map<CrawlerId, { readonly aheadMs: number; readonly steadyMs: number }>();
  #doubtedSteadyMs: number | null = null;
  #fault: ClockFault | null = null;

  /** `now` calls `onChange` when a fault begins or ends. `jumpedMs` is the change of our time. */
  constructor(machine: MachineClock, onChange: (fault: ClockFault | null, jumpedMs: number) => void) {
    this.#machine = machine;
    this.#onChange = onChange;
    this.#followedSteadyMs = machine.steadyMs();
    this.#followedMs = machine.wall().getTime();
    this.#awakeSinceMs = machine.uptimeMs() - this.#followedSteadyMs;
  }

  readonly now = (): Date => {
    let [steadyMs, wallMs] = this.#read();
    let offMs = wallMs - this.#heldMs(steadyMs);
    if (Math.abs(offMs) > jumpMs) {
      // A process that stopped between the two readings would look like a jump.
      [steadyMs, wallMs] = this.#read();
      const sleptMs = Math.max(0, this.#machine.uptimeMs() - steadyMs - this.#awakeSinceMs);
      this.#followedMs += sleptMs - this.#sleptMs;
      this.#sleptMs = sleptMs;
      offMs = wallMs - this.#heldMs(steadyMs);
    }
    if (Math.abs(offMs) <= jumpMs) {
      this.#follow(wallMs, steadyMs);
      if (this.#jumpedSteadyMs !== null) this.#ended(0);
      return new Date(wallMs);
    }
    if (this.#jumpedSteadyMs === null) {
      this.#jumpedSteadyMs = steadyMs;
      this.#judge();
    } else if (this.#mayFollow(offMs, steadyMs)) {
      this.#follow(wallMs, steadyMs);
      for (const [crawlerId, heard] of this.#heard)
        this.#heard.set(crawlerId, { ...heard, aheadMs: heard.aheadMs - offMs });
      this.#ended(offMs);
      return new Date(wallMs);
    }
    return new Date(this.#heldMs(steadyMs));
  };

  /** Null when no fault is known. */
  get fault(): ClockFault | null {
    this.now();
    this.#judge();
    return this.#fault;
  }

  /** Takes the database's clock (ms since 1970), read within the last `tookMs`. */
  hearDatabase(atMs: number, tookMs: number): void {
    // The wall clock is used, so that a jump of both clocks counts as a jump.
    const aheadMs = atMs - (this.#machine.wall().getTime() - tookMs / 2);
    this.#databaseAheadMs = Math.abs(aheadMs) > databaseMs + tookMs / 2 ? aheadMs : 0;
    this.#judge();
  }

  /** Takes the time that a crawler on another machine reported. */
  hearCrawler(crawlerId: CrawlerId, at: Date): void {
    const steadyMs = this.#machine.steadyMs();
    this.#heard.set(crawlerId, { aheadMs: at.getTime() - this.now().getTime(), steadyMs });
    this.#judge();
  }

  /**
   * Call it when the last write to the database is long ago or in the future. Old data is then deleted only once the clock is
   * proven right.
   */
  doubt(): void {
    this.#doubtedSteadyMs = this.#machine.steadyMs();
  }

  /** Whether most crawlers elsewhere agree with our time, or a day has passed since `doubt` was called. */
  get isProven(): boolean {
    const steadyMs = this.#machine.steadyMs();
    if (this.#doubtedSteadyMs === null) return true;
    const heard = this.#heardSince(steadyMs - heardMs);
    const agree = heard.filter((aheadMs) => Math.abs(aheadMs) <= crawlersMs).length;
    if (!isMost(agree, heard.length) && steadyMs - this.#doubtedSteadyMs < doubtMs) return false;
    this.#doubtedSteadyMs = null;
    return true;
  }

  forgetCrawler(crawlerId: CrawlerId): void {
    this.#heard.delete(crawlerId);
  }

  #read(): [steadyMs: number, wallMs: number] {
    return [this.#machine.steadyMs(), this.#machine.wall().getTime()];
  }

  #heldMs(steadyMs: number): number {
    return this.#followedMs + (steadyMs - this.#followedSteadyMs);
  }

  #follow(wallMs: number, steadyMs: number): void {
    [this.#followedMs, this.#followedSteadyMs] = [wallMs, steadyMs];
  }

  #mayFollow(offMs: number, steadyMs: number): boolean {
    const heard = this.#heardSince(Math.max(this.#jumpedSteadyMs!, steadyMs - heardMs));
    const agreeing = (timeMs: number) =>
      heard.filter((aheadMs) => Math.abs(aheadMs - timeMs) <= crawlersMs).length;
    if (isMost(agreeing(offMs), heard.length)) return true;
    if (isMost(agreeing(0), heard.length)) return false;
    const holdMs = Math.min(mostHoldMs, Math.max(leastHoldMs, Math.abs(offMs)));
    return Math.abs(offMs) <= mostFollowedMs && steadyMs - this.#jumpedSteadyMs! >= holdMs;
  }

  #heardSince(steadyMs: number): number[] {
    return [...this.#heard.values()].flatMap((one) => (one.steadyMs >= steadyMs ? [one.aheadMs] : []));
  }

  #ended(jumpedMs: number): void {
    this.#jumpedSteadyMs = null;
    // The difference was measured with the old time. The database is asked again in two seconds.
    this.#databaseAheadMs = 0;
    this.#judge(jumpedMs);
  }

  #judge(jumpedMs = 0): void {
    const words = this.#words();
    const was = this.#fault;
    const since = was?.since ?? new Date(this.#heldMs(this.#machine.steadyMs()));
    this.#fault = words === null ? null : { words, since };
    if ((was === null) !== (words === null) || jumpedMs !== 0) this.#onChange(this.#fault, jumpedMs);
  }

  #words(): string | null {
    const steadyMs = this.#machine.steadyMs();
    if (this.#jumpedSteadyMs !== null) {
      const offMs = this.#machine.wall().getTime() - this.#heldMs(steadyMs);
      return `this coordinator's own clock ${offMs > 0 ? "jumped ahead" : "went back"} by ${spanOf(offMs)}`;
    }
    const heard = this.#heardSince(steadyMs - heardMs);
    const agree = heard.filter((aheadMs) => Math.abs(aheadMs) <= crawlersMs).length;
    if (this.#databaseAheadMs !== 0) {
      const how = `${spanOf(this.#databaseAheadMs)} ${this.#databaseAheadMs > 0 ? "behind" : "ahead of"}`;
      return isMost(agree, heard.length)
        ? `the clocks differ: this coordinator's is ${how} the database server's, and ${agree} of ${heard.length} crawlers agree with the coordinator`
        : `this coordinator's own clock is ${how} the database server's`;
    }
    for (const sign of [1, -1]) {
      const off = heard.filter((aheadMs) => sign * aheadMs > crawlersMs).sort((a, b) => a - b);
      const middle = off[off.length >> 1] ?? 0;
      const alike = off.filter((aheadMs) => Math.abs(aheadMs - middle) <= crawlersMs).length;
      if (isMost(alike, heard.length))
        return `this coordinator's own clock is ${spanOf(middle)} ${sign > 0 ? "behind" : "ahead of"} those of ${alike} of ${heard.length} crawlers`;
    }
    return null;
  }
}

const isMost = (some: number, all: number) => all >= leastCrawlers && 3 * some > 2 * all;
const spanOf = (ms: number) => spanWords(Math.abs(ms) / 1000);

/** A clock that shows a year outside this range is wrong: a dead battery gives 1970, an overflow 2106 or 2107. */
const firstYear = 2026;
const lastYear = 2099;

/** Returns what is wrong with a clock that shows this time, or null. */
export function impossibleTime(now: Date): string | null {
  const year = now.getUTCFullYear();
  if (year >= firstYear && year <= lastYear) return null;
  return `this machine's clock shows ${now.toISOString().slice(0, 10)}, which cannot be: look at it (timedatectl) and let NTP set it, then start again`;
}

/**
 * A clock further behind the last write must have been set back, or never set. Smaller differences are corrected
 * (frontier/of-the-future-writes).
 */
const mostBehindMs = 2 * 86_400_000;
/** A clock further ahead of the last write is wrong: no crawl is paused this long without anybody noticing. */
const mostAheadMs = 366 * 86_400_000;

/** When a coordinator starts this long after the last written minute, its clock is doubted. */
export const doubtedAfterMs = 2 * 86_400_000;

/** Like impossibleTime, for a start. `lastWritten` is the last minute that any coordinator of this database wrote, or null. */
export function doubtfulStart(now: Date, lastWritten: Date | null): string | null {
  if (lastWritten === null) return null;
  const aheadMs = now.getTime() - lastWritten.getTime();
  if (aheadMs >= -mostBehindMs && aheadMs <= mostAheadMs) return null;
  const how = aheadMs < 0 ? "before" : "after";
  return (
    `this machine's clock shows ${now.toISOString().slice(0, 10)}, ${spanOf(aheadMs)} ${how} the last minute that ` +
    `was written (${lastWritten.toISOString().slice(0, 10)}): look at it (timedatectl); if it is right, start once ` +
    "with --clock-is-right"
  );
}
