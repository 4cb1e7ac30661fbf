import type { CrawlerId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import { timerMs } from "../../core/timer-ms.ts";
import { unreported } from "../../place/crawlers/crawler.ts";

/**
 * Detects that a crawler has vanished, since its connection may have died silently (a half-open TCP connection sends
 * no FIN). A crawler has vanished when three heartbeats in a row were missed, and not before.
 *
 * While a long message arrives, its bytes count as signs of life, too, but not for ever.
 *
 *   last sign ─ H ─ missed ─ H ─ missed ─ H ─ missed ─ H/4 ─ vanished        before the fourth is due
 *
 * Time is counted in ticks of our own event loop instead of by a clock: if this process itself was frozen, what
 * crawlers sent meanwhile waits in the sockets and is read first.
 */

interface HeartbeatWatchSettings {
  readonly heartbeatMs: number;
  readonly bytesRead: () => number;
  /** True while nothing is read, so that no sign of life can arrive. */
  readonly isHeld: () => boolean;
  /** How often a crawler is sent a ping, at most eight times per heartbeat. */
  readonly pingMs: number;
  readonly onPing: () => void;
  readonly onVanished: () => void;
}

/**
 * Maximum interval between our pings. After three missing ones a crawler leaves its coordinator, so it reaches
 * another one before leases of a frozen coordinator matter. In a large fleet pings are as rare as heartbeats.
 */
export const mostPingMs = 2500;

const missedHeartbeats = 3;
const ticksPerHeartbeat = 8;

/** The third heartbeat may be late by a quarter of the interval. */
const lateTicks = 2;

/** A message that takes longer never ends. The longest one takes four minutes at 256 kbit/s. */
const longestMessageHeartbeats = 30;

/** If this many bytes arrive between two ticks, they are part of a long message, not just answers to pings. */
const messageUnderWayBytes = 256;

export class HeartbeatWatch {
  readonly #settings: HeartbeatWatchSettings;
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #silentTicks = 0;
  /** How many ticks have passed since the last whole message, not counting pauses in reading. */
  #wordlessTicks = 0;
  #bytesRead: number;

  constructor(settings: HeartbeatWatchSettings) {
    this.#settings = settings;
    this.#bytesRead = settings.bytesRead();
    this.#timer = setInterval(() => this.#tick(), timerMs(settings.heartbeatMs / ticksPerHeartbeat));
  }

  heard(): void {
    this.#silentTicks = 0;
    this.#wordlessTicks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    this.#ticks += 1;
    const { heartbeatMs, pingMs } = this.#settings;
    const ticksPerPing = Math.max(1, Math.floor((pingMs * ticksPerHeartbeat) / heartbeatMs));
    if (this.#ticks % ticksPerPing === 0) this.#settings.onPing();
    const bytesRead = this.#settings.bytesRead();
    const isHeld = this.#settings.isHeld();
    const isHeard = bytesRead - this.#bytesRead >= messageUnderWayBytes || isHeld;
    this.#bytesRead = bytesRead;
    this.#silentTicks = isHeard ? 0 : this.#silentTicks + 1;
    this.#wordlessTicks = isHeld ? 0 : this.#wordlessTicks + 1;
    const isSilent = this.#silentTicks > missedHeartbeats * ticksPerHeartbeat + lateTicks;
    if (!isSilent && this.#wordlessTicks <= longestMessageHeartbeats * ticksPerHeartbeat) return;
    this.stop();
    this.#settings.onVanished();
  }
}

/**
 * A token bucket for the bytes per second that one crawler may make the coordinator inflate. A message's size is
 * known only after inflating, so the bucket may go negative, and the crawler waits until that is made up for.
 */
export class ByteBudget {
  readonly #bytesPerSecond: number;
  readonly #now: () => number;
  #left: number;
  #filledAt: number;

  /** `now` reads a monotonic clock in ms. The bucket holds the bytes of one second and starts full. */
  constructor(bytesPerSecond: number, now: () => number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#now = now;
    this.#left = bytesPerSecond;
    this.#filledAt = now();
  }

  spend(bytes: number): void {
    this.#fill();
    this.#left -= bytes;
  }

  /** Returns how long to wait until bytes may be spent again; 0 if at once. */
  waitMs(): number {
    this.#fill();
    return this.#left > 0 ? 0 : Math.ceil((-this.#left / this.#bytesPerSecond) * 1000) + 1;
  }

  #fill(): void {
    const now = this.#now();
    const gained = ((now - this.#filledAt) / 1000) * this.#bytesPerSecond;
    this.#left = Math.min(this.#bytesPerSecond, this.#left + gained);
    this.#filledAt = now;
  }
}

interface PendingProbe {
  readonly crawlerId: CrawlerId;
  readonly method: ProbeMethod;
  readonly settle: (outcome: ProbeOutcome) => void;
}

export class PendingProbes {
  readonly #pending = new Map<number, PendingProbe>();
  #lastRequestId = 0;

  get size(): number {
    return this.#pending.size;
  }

  /**
   * Resolves with the report, or with the outcome `failed` after `waitMs`. `ask` sends the request and returns false
   * if it could not.
   */
  request(
    probe: { readonly crawlerId: CrawlerId; readonly method: ProbeMethod; readonly waitMs: number },
    ask: (requestId: number) => boolean,
  ): Promise<ProbeOutcome> {
    this.#lastRequestId += 1;
    const requestId = this.#lastRequestId;
    return new Promise((resolve) => {
      const settle = (outcome: ProbeOutcome) => {
        clearTimeout(deadline);
        this.#pending.delete(requestId);
        resolve(outcome);
      };
      const silent = unreported(probe.method, `the crawler did not report within ${probe.waitMs} ms`);
      const deadline = setTimeout(() => settle(silent), probe.waitMs);
      this.#pending.set(requestId, { crawlerId: probe.crawlerId, method: probe.method, settle });
      if (!ask(requestId)) settle(unreported(probe.method, "the crawler is not connected"));
    });
  }

  /** If the report matches no open request of this crawler, drops it and returns false. */
  report(crawlerId: CrawlerId, requestId: number, outcome: ProbeOutcome): boolean {
    const probe = this.#pending.get(requestId);
    if (probe?.crawlerId !== crawlerId) return false;
    probe.settle(outcome);
    return true;
  }

  abandon(crawlerId: CrawlerId, reason: string): void {
    for (const probe of [...this.#pending.values()]) {
      if (probe.crawlerId === crawlerId)
        probe.settle(unreported(probe.method, `the crawler left: ${reason}`));
    }
  }
}
