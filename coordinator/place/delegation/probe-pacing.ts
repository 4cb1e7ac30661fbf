/**
 * Lets probes out at a pace that nobody minds: so many under way and so many a second for each crawler, each
 * target, each target's network (/24 or /48) and all together. Thousands may wait.
 *
 *   a probe waits in its network's line ──► the head of each line, the oldest first ──► out, when its
 *   crawler, its target, its network and the whole have room ──► done
 *
 * Nobody starves: in a line the oldest goes first, and only a line's head uses up what the network has. Among
 * the heads the oldest is looked at first, and a younger head with the same crawler needs nothing that the
 * older one does not; so what the older one lacks is only ever its crawler's next free place.
 *
 * A second is any second: no window of 1000 ms holds more than the stated number of starts.
 */
import { type AlarmClock, StartWindow, systemClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import { type IpAddress, parseAddress } from "#core/ip/address";
import type { ProbeOutcome } from "#protocol/messages";
import { type Fleet, unreported } from "../crawlers/crawler.ts";

export interface ProbeBudgetSettings {
  /** Probes under way, and started in any second, for one crawler. */
  readonly perCrawlerAtOnce: number;
  readonly perCrawlerPerSecond: number;
  /** Started in any second towards one address, by whichever crawlers. */
  readonly perTargetPerSecond: number;
  /** Started in any second towards one /24 (IPv4) or /48 (IPv6). */
  readonly perNetworkPerSecond: number;
  readonly atOnce: number;
  readonly perSecond: number;
}

interface ProbeErrand {
  readonly crawlerId: CrawlerId;
  readonly address: string;
}

interface Waiting extends ProbeErrand {
  readonly order: number;
  readonly start: () => void;
}

interface Line {
  /** The oldest first. */
  readonly waiting: Waiting[];
  readonly starts: StartWindow;
  readonly targets: Map<string, StartWindow>;
}

interface CrawlerUse {
  underWay: number;
  readonly starts: StartWindow;
}

export class ProbeBudget {
  readonly #settings: ProbeBudgetSettings;
  readonly #clock: AlarmClock;
  readonly #lines = new Map<string, Line>();
  readonly #crawlers = new Map<CrawlerId, CrawlerUse>();
  readonly #starts: StartWindow;
  #underWay = 0;
  #lastOrder = 0;
  #waiting = 0;
  #closed = false;
  #isDue = false;
  #alarm: (() => void) | null = null;

  constructor(settings: ProbeBudgetSettings, clock: AlarmClock = systemClock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#starts = new StartWindow(() => settings.perSecond);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Does the work as soon as there is room for it, and gives the room back when it is done or has failed. */
  async run<Result>(errand: ProbeErrand, work: () => Promise<Result>): Promise<Result> {
    await this.#admitted(errand);
    try {
      return await work();
    } finally {
      this.#done(errand);
    }
  }

  /** From now on nothing waits: what was waiting starts at once. For the end, when nobody is asked any more. */
  close(): void {
    this.#closed = true;
    this.#alarm?.();
    this.#alarm = null;
    const lines = [...this.#lines.values()];
    for (const { waiting } of lines) for (const one of waiting.splice(0)) this.#begin(one);
    this.#lines.clear();
  }

  #admitted(errand: ProbeErrand): Promise<void> {
    this.#lastOrder += 1;
    const order = this.#lastOrder;
    return new Promise((resolve) => {
      const one: Waiting = { ...errand, order, start: resolve };
      this.#waiting += 1;
      if (this.#closed) return this.#begin(one);
      this.#lineOf(errand.address).waiting.push(one);
      this.#soon();
    });
  }

  #begin(one: Waiting): void {
    this.#waiting -= 1;
    this.#underWay += 1;
    this.#useOf(one.crawlerId).underWay += 1;
    one.start();
  }

  #done({ crawlerId }: ProbeErrand): void {
    this.#underWay -= 1;
    this.#useOf(crawlerId).underWay -= 1;
    this.#soon();
  }

  /** Once for everything that happens at the same moment. */
  #soon(): void {
    if (this.#isDue || this.#closed) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (!this.#closed) this.#letOut();
    });
  }

  /** Starts whatever has room, and sets the alarm for what only waits for time. */
  #letOut(): void {
    const nowMs = this.#clock.nowMs();
    this.#forgetIdle(nowMs);
    let round = this.#oneEach(nowMs);
    while (round.started > 0) round = this.#oneEach(nowMs);
    this.#setAlarm(round.soonestMs);
  }

  /** The heads of all lines once, the oldest first. */
  #oneEach(nowMs: number): { readonly started: number; readonly soonestMs: number } {
    let started = 0;
    let soonestMs = Number.POSITIVE_INFINITY;
    if (this.#underWay >= this.#settings.atOnce) return { started, soonestMs };
    const heads = [...this.#lines.values()]
      .filter(({ waiting }) => waiting.length > 0)
      .sort((a, b) => a.waiting[0]!.order - b.waiting[0]!.order);
    for (const line of heads) {
      const waitMs = this.#waitMs(line, nowMs);
      soonestMs = Math.min(soonestMs, waitMs === 0 ? Number.POSITIVE_INFINITY : waitMs);
      if (waitMs > 0) continue;
      this.#start(line, nowMs);
      started += 1;
    }
    return { started, soonestMs };
  }

  /** 0: the line's head may start. Infinity: not before a probe under way ends. */
  #waitMs(line: Line, nowMs: number): number {
    const { crawlerId, address } = line.waiting[0]!;
    const use = this.#useOf(crawlerId);
    const { atOnce, perCrawlerAtOnce } = this.#settings;
    if (this.#underWay >= atOnce || use.underWay >= perCrawlerAtOnce) return Number.POSITIVE_INFINITY;
    const target = line.targets.get(address);
    return Math.max(
      this.#starts.waitMs(nowMs),
      use.starts.waitMs(nowMs),
      line.starts.waitMs(nowMs),
      target?.waitMs(nowMs) ?? 0,
    );
  }

  #start(line: Line, nowMs: number): void {
    const one = line.waiting.shift()!;
    if (line.targets.size > targetsKept) forgetIdleTargets(line, nowMs);
    const target = line.targets.get(one.address) ?? new StartWindow(() => this.#settings.perTargetPerSecond);
    line.targets.set(one.address, target);
    const windows = [this.#starts, this.#useOf(one.crawlerId).starts, line.starts, target];
    for (const starts of windows) starts.note(nowMs);
    this.#begin(one);
  }

  #setAlarm(delayMs: number): void {
    this.#alarm?.();
    this.#alarm = Number.isFinite(delayMs)
      ? this.#clock.wake(delayMs, () => {
          this.#alarm = null;
          this.#letOut();
        })
      : null;
  }

  #lineOf(address: string): Line {
    const key = networkOf(address);
    const known = this.#lines.get(key);
    if (known) return known;
    const line = {
      waiting: [],
      starts: new StartWindow(() => this.#settings.perNetworkPerSecond),
      targets: new Map(),
    };
    this.#lines.set(key, line);
    return line;
  }

  #useOf(crawlerId: CrawlerId): CrawlerUse {
    const known = this.#crawlers.get(crawlerId);
    if (known) return known;
    const use = { underWay: 0, starts: new StartWindow(() => this.#settings.perCrawlerPerSecond) };
    this.#crawlers.set(crawlerId, use);
    return use;
  }

  /** Lines that nobody waits in and whose last second is over. */
  #forgetIdle(nowMs: number): void {
    for (const [key, line] of this.#lines) {
      if (line.waiting.length === 0 && line.starts.isIdle(nowMs)) this.#lines.delete(key);
    }
  }
}

/** Beyond so many in one network, those that nobody asked in the last second are forgotten. */
const targetsKept = 64;

function forgetIdleTargets(line: Line, nowMs: number): void {
  for (const [address, starts] of line.targets) if (starts.isIdle(nowMs)) line.targets.delete(address);
}

/** The /24 or /48 of an address, as a key; what is no address stands for itself. */
function networkOf(text: string): string {
  const address = parseAddress(text);
  return address === null ? text : keyOf(address);
}

const keyOf = (address: IpAddress) =>
  address.family === 4 ? `4-${address.value >>> 8}` : `6-${address.value >> 80n}`;

// The fleet as everybody who probes sees it: each probe waits until the budget has room for it. A target is asked at its
// URL's port; crawlers probe few ports but the web's, so where that fails at another one, the usual port of the scheme is
// asked: the way is the same, and a refusal is an answer.

type Target = Parameters<Fleet["probe"]>[1];

const webPorts: readonly number[] = [80, 443];

export function pacedFleet(fleet: Fleet, budget: ProbeBudget): Fleet {
  const ask = async (crawlerId: CrawlerId, target: Target) =>
    await budget.run({ crawlerId, address: target.address }, async (): Promise<ProbeOutcome> => {
      if (!budget.isClosed) return await fleet.probe(crawlerId, target);
      return unreported(target.method, "the coordinator is stopping");
    });
  return {
    online: () => fleet.online(),
    probe: async (crawlerId, target) => {
      const outcome = await ask(crawlerId, target);
      if (outcome.type !== "failed" || webPorts.includes(target.port)) return outcome;
      return await ask(crawlerId, { ...target, port: target.secure ? 443 : 80 });
    },
  };
}
