/**
 * Paces probes: concurrency and starts per second are limited per crawler, target, target network (/24 or /48) and in total.
 * Thousands may wait.
 *
 *     a probe waits in its network's line ──► the head of each line, the oldest first ──► out, when its
 *     crawler, its target, its network and the total have room ──► done
 *
 * No probe starves: lines are first in, first out, and only a line's head uses the network's capacity. The oldest head is
 * served first, and a younger one with the same crawler needs nothing the older lacks except that crawler's next free slot.
 *
 * A second is any second: no window of 1000 ms holds more than the stated number of starts.
 */
import { type AlarmClock, StartWindow, systemClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import { type IpAddress, parseAddress } from "#core/ip/address";
import type { ProbeOutcome } from "#protocol/messages";
import { type Fleet, unreported } from "../crawlers/crawler.ts";

export interface ProbeBudgetSettings {
  /** Maximum concurrent probes, and starts in any second, per crawler. */
  readonly perCrawlerAtOnce: number;
  readonly perCrawlerPerSecond: number;
  /** Maximum starts in any second towards one address, over all crawlers. */
  readonly perTargetPerSecond: number;
  /** Maximum starts in any second towards one /24 (IPv4) or /48 (IPv6). */
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

  /** Runs the work as soon as there is room, and releases the room afterwards. */
  async run<Result>(errand: ProbeErrand, work: () => Promise<Result>): Promise<Result> {
    await this.#admitted(errand);
    try {
      return await work();
    } finally {
      this.#done(errand);
    }
  }

  /** Stops pacing at shutdown: everything that waits starts at once. */
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

  /** Runs once for all events of the same moment. */
  #soon(): void {
    if (this.#isDue || this.#closed) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      if (!this.#closed) this.#letOut();
    });
  }

  /** Starts whatever has room, and sets the alarm for the rest. */
  #letOut(): void {
    const nowMs = this.#clock.nowMs();
    this.#forgetIdle(nowMs);
    let round = this.#oneEach(nowMs);
    while (round.started > 0) round = this.#oneEach(nowMs);
    this.#setAlarm(round.soonestMs);
  }

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

  /** 0 if the line's head may start now. Infinity until a running probe ends. */
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

  /** Removes lines in which no probe waits and whose last second is over. */
  #forgetIdle(nowMs: number): void {
    for (const [key, line] of this.#lines) {
      if (line.waiting.length === 0 && line.starts.isIdle(nowMs)) this.#lines.delete(key);
    }
  }
}

/** Maximum targets remembered per network. Beyond it, those not probed in the last second are forgotten. */
const targetsKept = 64;

function forgetIdleTargets(line: Line, nowMs: number): void {
  for (const [address, starts] of line.targets) if (starts.isIdle(nowMs)) line.targets.delete(address);
}

/** The /24 or /48 of an address, as a key. Any other text is its own key. */
function networkOf(text: string): string {
  const address = parseAddress(text);
  return address === null ? text : keyOf(address);
}

const keyOf = (address: IpAddress) =>
  address.family === 4 ? `4-${address.value >>> 8}` : `6-${address.value >> 80n}`;

// The fleet as used for probes: each probe waits for the budget. A target is probed at its URL's port. Crawlers probe few
// ports besides the web's, so if that fails, the scheme's usual port is tried: the path is the same, and a refusal is an
// answer.

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
