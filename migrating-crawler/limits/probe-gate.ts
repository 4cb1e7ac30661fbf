/**
 * Limits measurements (probes, peer distances, echoes) per address and in total, both in number at a time and per second,
 * within the host's limits. A coordinator's own defaults are gentler (20 probes a second per crawler, 8 at a time, three to an
 * address over all crawlers), so this only stops a dishonest coordinator.
 *
 * An admitted probe waits for nothing else. One that cannot start in time is answered with the reason.
 */
import { timerMs } from "#core/timer-ms";
import { addressKey } from "./address-pace.ts";

/** An address is an IPv4 address or an IPv6 /64. A try is a connection, a HEAD or an echo. */
const probesPerAddress = 3;
const triesPerAddress = 20;
const atOncePerAddress = 2;
/** Totals that apply besides the host's limits. `triesPerProbe` is how many tries each allowed probe a second permits. */
const mostAtOnce = 16;
const triesPerProbe = 6;
/** Fewer at a time, because each echo is a process. */
const mostPingsAtOnce = 8;
const mostWaiting = 1000;
const windowMs = 1000;
/** How often the rate is checked while a probe waits for it. */
const lookEveryMs = 50;

export interface ProbeErrand {
  /** The target's address, or a name that is still to be resolved. */
  readonly address: string;
  readonly tries: number;
  readonly pings?: boolean;
}

interface ProbeGateRules {
  readonly limits: () => { readonly probesPerSecond: number; readonly concurrentHosts: number };
  /** Milliseconds until the rate has paid for everything that was carried. */
  readonly waitMs: () => number;
  readonly nowMs?: () => number;
}

interface Use {
  underWay: number;
  readonly probes: Starts;
  readonly tries: Starts;
}

interface Waiting extends ProbeErrand {
  readonly key: string;
  readonly end: (answer: (() => void) | string) => void;
}

export class ProbeGate {
  readonly #rules: ProbeGateRules;
  readonly #nowMs: () => number;
  readonly #waiting = new Set<Waiting>();
  readonly #addresses = new Map<string, Use>();
  readonly #all: Use = newUse();
  #pings = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(rules: ProbeGateRules) {
    this.#rules = rules;
    this.#nowMs = rules.nowMs ?? (() => performance.now());
  }

  /** Resolves with a function that must be called exactly once at the end, or with the reason for a refusal. */
  enter(errand: ProbeErrand, withinMs: number): Promise<(() => void) | string> {
    if (this.#waiting.size >= mostWaiting) return Promise.resolve(`${mostWaiting} probes wait already`);
    return new Promise((resolve) => {
      const end = (answer: (() => void) | string) => {
        clearTimeout(late);
        this.#waiting.delete(waiting);
        resolve(answer);
      };
      const waiting = { ...errand, key: addressKey(errand.address), end };
      const late = setTimeout(() => end(this.#reason(waiting)), timerMs(withinMs));
      this.#waiting.add(waiting);
      this.#lookAt(waiting, this.#nowMs(), this.#rules.waitMs());
    });
  }

  mayGoOn(): boolean {
    return this.#rules.waitMs() <= 0;
  }

  #look(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const [nowMs, rateMs] = [this.#nowMs(), this.#rules.waitMs()];
    if (this.#addresses.size > mostWaiting) this.#forgetIdle(nowMs);
    for (const waiting of this.#waiting) this.#lookAt(waiting, nowMs, rateMs);
  }

  #lookAt(waiting: Waiting, nowMs: number, rateMs: number): void {
    const waitMs = rateMs > 0 ? Math.min(lookEveryMs, rateMs) : this.#waitMs(waiting, nowMs);
    if (waitMs <= 0) waiting.end(this.#begin(waiting, nowMs));
    else if (waitMs < Number.POSITIVE_INFINITY && this.#timer === null) {
      this.#timer = setTimeout(() => this.#look(), timerMs(Math.min(lookEveryMs, waitMs)));
    }
  }

  /** Infinity means not before a probe in progress ends. */
  #waitMs({ key, tries, pings }: Waiting, nowMs: number): number {
    const { probesPerSecond, concurrentHosts } = this.#rules.limits();
    const use = this.#addresses.get(key);
    const isFull =
      this.#all.underWay >= Math.min(mostAtOnce, concurrentHosts) ||
      (use?.underWay ?? 0) >= atOncePerAddress ||
      (pings === true && this.#pings >= mostPingsAtOnce);
    if (isFull || probesPerSecond === 0) return Number.POSITIVE_INFINITY;
    const mostTries = triesPerProbe * probesPerSecond;
    return Math.max(
      this.#all.probes.waitMs(1, probesPerSecond, nowMs),
      this.#all.tries.waitMs(Math.min(tries, mostTries), mostTries, nowMs),
      use?.probes.waitMs(1, probesPerAddress, nowMs) ?? 0,
      use?.tries.waitMs(Math.min(tries, triesPerAddress), triesPerAddress, nowMs) ?? 0,
    );
  }

  #begin({ key, tries, pings }: Waiting, nowMs: number): () => void {
    const use = this.#addresses.get(key) ?? newUse();
    this.#addresses.set(key, use);
    for (const each of [this.#all, use]) {
      each.underWay += 1;
      each.probes.note(1, nowMs);
      each.tries.note(tries, nowMs);
    }
    if (pings) this.#pings += 1;
    return () => {
      for (const each of [this.#all, use]) each.underWay -= 1;
      if (pings) this.#pings -= 1;
      this.#look();
    };
  }

  #reason({ key, pings }: Waiting): string {
    const { probesPerSecond, concurrentHosts } = this.#rules.limits();
    if (this.#rules.waitMs() > 0) return "this crawler's limit on bytes per second leaves no room for it";
    const use = this.#addresses.get(key);
    if (use && (use.underWay > 0 || use.probes.waitMs(1, 1, this.#nowMs()) > 0)) {
      return `this crawler probes one address ${probesPerAddress} times a second at most`;
    }
    const atOnce = Math.min(mostAtOnce, concurrentHosts, pings ? mostPingsAtOnce : mostAtOnce);
    return `this crawler makes ${probesPerSecond} probes per second at most, ${atOnce} at a time`;
  }

  #forgetIdle(nowMs: number): void {
    for (const [key, use] of this.#addresses) {
      if (use.underWay === 0 && use.probes.waitMs(1, 1, nowMs) === 0) this.#addresses.delete(key);
    }
  }
}

const newUse = (): Use => ({ underWay: 0, probes: new Starts(), tries: new Starts() });

/** Counts the starts of the last second in a sliding window, so that no second exceeds the limit. */
class Starts {
  readonly #starts: { readonly atMs: number; readonly weight: number }[] = [];

  waitMs(weight: number, most: number, nowMs: number): number {
    while (this.#starts[0] !== undefined && this.#starts[0].atMs + windowMs <= nowMs) this.#starts.shift();
    let sum = this.#starts.reduce((total, start) => total + start.weight, weight);
    for (const start of this.#starts) {
      if (sum <= most) break;
      sum -= start.weight;
      if (sum <= most) return start.atMs + windowMs - nowMs;
    }
    return 0;
  }

  note(weight: number, nowMs: number): void {
    this.#starts.push({ atMs: nowMs, weight });
  }
}
