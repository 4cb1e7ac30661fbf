/**
 * Keeps the crawler busy: asks the coordinator for host slices while limits and spool have room, crawls them in parallel (one
 * slice per host), and returns what it cannot process.
 *
 *   asking → slices arrive → crawled → room again → asking …       an empty answer says when to ask again
 *
 * A request reserves the slots, so that no more slices start than were requested. Any others are returned unread.
 */
import { canParseUrl, type SitePart } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import { maxMilliseconds } from "#protocol/fields";
import { type Lease, lease as leaseSchema, type OfferedLease } from "#protocol/lease";
import type { CrawlerMessage } from "#protocol/messages";
import { steadyNowMs } from "../core/local-time.ts";
import type { CrawlerLog } from "../core/log.ts";
import type { Carrier } from "../link/carrier.ts";
import { crawlSlice, type SliceTools } from "./crawl-slice.ts";
import type { Standing } from "./site-visit.ts";

/** Slots that become free within this time are requested in one message. */
const gatherMs = 50;
/** Minimum time between two requests, whatever the coordinator says. */
const leastAskMs = 50;
/** If the coordinator does not answer within this time, it is asked again. */
const answerMs = 60_000;

/** If limits or spool leave no room, checks again after this time, and whenever a slice ends or leaves its slot. */
const lookAgainMs = 5000;
/**
 * `concurrentHosts` limits how many hosts are crawled at once. A host that rests for long (Crawl-delay, back-off) occupies no
 * slot, but at most this many times as many slices are open. Nor does a silent host, up to `mostSilent` of them. Otherwise, a
 * few such hosts would block all others.
 */
const openPerPlace = 4;
/** The coordinator must not offer a lease that could not be read again soon. */
const unreadableWaitMs = maxMilliseconds;
const mostSilent = 128;

function portOf(url: string): number | null {
  if (!canParseUrl(url)) return null;
  const { port, protocol } = new URL(url);
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

interface OpenSlice {
  readonly lease: Lease;
  readonly textBytes: number;
  standing: Standing;
  readonly abort: AbortController;
  readonly ended: Promise<void>;
}

interface TaskLoopSettings {
  readonly tools: SliceTools;
  readonly carrier: Carrier;
  readonly send: (message: CrawlerMessage) => boolean;
  readonly spoolHasRoom: () => boolean;
  readonly log: CrawlerLog;
}

export class TaskLoop {
  readonly #settings: TaskLoopSettings;
  readonly #slices = new Map<string, OpenSlice>();
  #asked: NodeJS.Timeout | null = null;
  /** Requested hosts that have not arrived. Their slots are reserved. */
  #wanted = 0;
  #timer: NodeJS.Timeout | null = null;
  /** True if the timer only waits for room. */
  #hasNoRoom = false;
  #earliestAskMs = 0;
  #up = false;
  #stopping = false;
  /** While the link is down, fires when the leases expire. */
  #lost: NodeJS.Timeout | undefined;
  #keptMs = Number.POSITIVE_INFINITY;
  #idleReason = "";

  constructor(settings: TaskLoopSettings) {
    this.#settings = settings;
  }

  get openHosts(): number {
    return this.#slices.size;
  }

  get hostsInPlace(): number {
    return this.#count("in-place");
  }

  get leases(): Iterable<string> {
    return this.#slices.keys();
  }

  isLeased(host: string, port: number): boolean {
    return [...this.#slices.values()].some(
      (slice) => slice.lease.host === host && slice.lease.urls.some(({ url }) => portOf(url) === port),
    );
  }

  get idleReason(): string {
    return this.#slices.size === 0 ? this.#idleReason : "";
  }

  /** `keptMs` is how long the coordinator reserves the leases of a disconnected crawler. */
  onWelcome(keptMs: number = Number.POSITIVE_INFINITY): void {
    clearTimeout(this.#lost);
    this.#keptMs = keptMs;
    this.#up = true;
    this.#wanted = 0;
    this.#answered();
    this.onWake();
  }

  /** Slices continue only as long as the coordinator reserves their leases, because others may get the same hosts later. */
  onDown(): void {
    if (this.#up && !this.#stopping && Number.isFinite(this.#keptMs)) {
      this.#lost = setTimeout(
        () => this.#abortAll("the coordinator was away for too long"),
        timerMs(this.#keptMs),
      );
    }
    this.#up = false;
    this.#answered();
  }

  onTasks(leases: readonly OfferedLease[], askAgainMs: number, reason: string): void {
    this.#answered();
    this.#idleReason = reason;
    this.#earliestAskMs = performance.now() + Math.max(leastAskMs, askAgainMs);
    const asked = leases.slice(0, this.#wanted);
    this.#wanted -= asked.length;
    this.#giveBackUnread(leases.slice(asked.length), "nobody asked for it");
    for (const lease of asked) this.#take(lease);
    this.askSoon();
  }

  /** Work may be due before the time that the coordinator named. */
  onWake(): void {
    this.#earliestAskMs = 0;
    if (!this.#hasNoRoom) this.#stopWaiting();
    this.askSoon();
  }

  /** Asks for work if there is room. Call it whenever room may have become free. */
  askSoon(): void {
    if (this.#hasNoRoom) this.#stopWaiting();
    if (this.#timer !== null || this.#asked !== null || this.#stopping || !this.#up) return;
    this.#hasNoRoom = false;
    const waitMs = Math.max(gatherMs, this.#earliestAskMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#ask();
    }, timerMs(waitMs));
  }

  /** Returns leases that an earlier process left in the spool. */
  giveBackLeftBehind(leaseIds: readonly string[]): void {
    for (const leaseId of leaseIds) this.#giveBack({ leaseId, host: "" }, "the crawler was restarted");
  }

  /** Stops these sites and their subdomains at once, including requests in progress. */
  stopSites(domains: readonly string[], reason: string): void {
    this.#settings.tools.connector.stoppedSites.stop(domains, reason, steadyNowMs());
    this.#endStopped();
  }

  /** Stops parts of sites. Slices of these hosts continue without those URLs. */
  stopParts(parts: readonly SitePart[], reason: string): void {
    this.#settings.tools.connector.stoppedSites.stopParts(parts, reason, steadyNowMs());
    this.#endStopped();
  }

  #endStopped(): void {
    const { stoppedSites } = this.#settings.tools.connector;
    for (const { lease, abort } of this.#slices.values()) {
      const stop = stoppedSites.stopOf(lease.host, steadyNowMs());
      if (stop !== null && !abort.signal.aborted) abort.abort(stop);
    }
  }

  /** Ends resting slices at once and the others after their current request. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#lost);
    this.#stopWaiting();
    this.#answered();
    this.#abortAll("the crawler stops");
    await Promise.all([...this.#slices.values()].map(({ ended }) => ended));
  }

  #abortAll(reason: string): void {
    for (const { abort } of this.#slices.values()) abort.abort(reason);
  }

  #stopWaiting(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #ask(): void {
    const { spoolHasRoom, send } = this.#settings;
    const freeHosts = this.#freeHosts();
    if (this.#stopping) return;
    if (freeHosts < 1 || !spoolHasRoom()) {
      this.#hasNoRoom = true;
      this.#timer = setTimeout(() => this.askSoon(), lookAgainMs);
      return;
    }
    if (!send({ type: "crawler:ready", freeHosts })) return;
    this.#wanted = freeHosts;
    this.#asked = setTimeout(() => {
      this.#asked = null;
      this.askSoon();
    }, answerMs);
  }

  #freeHosts(): number {
    const { governor } = this.#settings.tools;
    const openable = this.#mostSlices() - this.#slices.size;
    return Math.min(10_000, openable, governor.freeHosts(this.hostsInPlace));
  }

  #mostSlices(): number {
    const exempt = Math.min(mostSilent, this.#count("silent"));
    return openPerPlace * this.#settings.tools.governor.places() + exempt;
  }

  #count(standing: Standing): number {
    let count = 0;
    for (const slice of this.#slices.values()) if (slice.standing === standing) count++;
    return count;
  }

  #answered(): void {
    if (this.#asked !== null) clearTimeout(this.#asked);
    this.#asked = null;
  }

  /** Checks the limits again, because they may have changed since the request. */
  #take(offered: OfferedLease): void {
    const { leaseId } = offered;
    if (this.#slices.has(leaseId)) return;
    const textBytes = JSON.stringify(offered).length;
    const held = this.#heldBack(textBytes);
    if (held !== "") {
      this.#giveBackUnread([offered], held);
      return;
    }
    const read = leaseSchema.safeParse(offered);
    if (read.success) {
      this.#begin(read.data, textBytes);
      return;
    }
    const [fault] = read.error.issues;
    const reason = `the lease cannot be read: ${fault?.path.join(".")}: ${fault?.message}`;
    this.#giveBack({ leaseId, host: "" }, reason, unreadableWaitMs);
  }

  /** Returns why no new slice starts now, or an empty string. */
  #heldBack(textBytes: number): string {
    if (this.#stopping) return "the crawler stops";
    const { tools, spoolHasRoom } = this.#settings;
    const stop = tools.governor.stop();
    if (stop !== "") return stop;
    if (!spoolHasRoom()) return "the crawler takes no new hosts";
    if (this.#slices.size >= this.#mostSlices()) return "all places for hosts are taken";
    let openBytes = textBytes;
    for (const slice of this.#slices.values()) openBytes += slice.textBytes;
    const isFull = this.#slices.size > 0 && openBytes > tools.governor.leaseBytes();
    return isFull ? "there is no memory left for its list of URLs" : "";
  }

  #begin(lease: Lease, textBytes: number): void {
    const stop = this.#settings.tools.connector.stoppedSites.stopOf(lease.host, steadyNowMs());
    if (stop !== null) return void this.#giveBack(lease, stop.words);
    const abort = new AbortController();
    const ended = this.#crawl(lease, abort.signal).finally(() => {
      this.#slices.delete(lease.leaseId);
      this.askSoon();
    });
    this.#slices.set(lease.leaseId, { lease, textBytes, standing: "in-place", abort, ended });
  }

  async #crawl(lease: Lease, signal: AbortSignal): Promise<void> {
    const { log, tools } = this.#settings;
    const stands = (standing: Standing) => this.#stands(lease.leaseId, standing);
    try {
      const ending = await crawlSlice(lease, { ...tools, stands }, signal);
      if (ending !== null) this.#giveBack(lease, ending);
    } catch (error) {
      log.error({ host: lease.host, leaseId: lease.leaseId, error }, "a host slice broke off");
      this.#giveBack(lease, "the crawler failed on it");
    }
  }

  #stands(leaseId: string, standing: Standing): void {
    const slice = this.#slices.get(leaseId);
    if (slice === undefined || slice.standing === standing) return;
    slice.standing = standing;
    if (standing !== "in-place") this.askSoon();
  }

  #giveBackUnread(leases: readonly OfferedLease[], reason: string): void {
    const strange = leases.filter(({ leaseId }) => !this.#slices.has(leaseId));
    if (strange.length === 0) return;
    const { carrier, send, log } = this.#settings;
    log.info({ leases: strange.length, reason }, "leases are given back unread");
    const end = { type: "crawler:lease-end", reason: reason.slice(0, 500) } as const;
    for (const { leaseId } of strange) void carrier.settled(leaseId).then(() => send({ ...end, leaseId }));
  }

  /** Waits until the lease's results are acknowledged. While the link is down, nothing is returned and the lease expires. */
  #giveBack(lease: Pick<Lease, "leaseId" | "host">, reason: string, leastWaitMs = 0): void {
    const { carrier, send, log, tools } = this.#settings;
    const { leaseId, host } = lease;
    log.info({ host, leaseId, reason }, "a host slice is given back");
    void carrier.settled(leaseId).then(() => {
      const hostMs = Math.max(leastWaitMs, Math.ceil(tools.gates.waitMs(host, steadyNowMs())));
      const waitMs = Math.min(maxMilliseconds, hostMs);
      const hostWaitMs = waitMs > 0 ? { hostWaitMs: waitMs } : {};
      send({ type: "crawler:lease-end", leaseId, reason: reason.slice(0, 500), ...hostWaitMs });
    });
  }
}
