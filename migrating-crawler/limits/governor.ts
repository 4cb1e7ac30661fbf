/**
 * Keeps the crawler inside what its host allows. Each limit has a room of its own; the governor asks them all before
 * anything is begun, and tells what each holds back. Limits can be changed while the crawler runs, and count at once.
 *
 *   may anything be contacted?   pause, hours, idle machine, bytes of the day and month
 *   may pages be fetched?        besides: pages of the day, disk
 *   may a request begin now?     besides: bytes a second, processor share, memory
 */

import type { CrawlerLimits } from "../settings/limits-config.ts";
import { Admission, type AdmissionBounds, type Grant } from "./admission.ts";
import { ConnectionSlots } from "./connection-slots.ts";
import { type CpuClock, CpuShare } from "./cpu-share.ts";
import { DiskWatch } from "./disk-watch.ts";
import { IdleWatch, type MachineSigns } from "./idle-watch.ts";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";
import { type MemorySigns, MemoryWatch } from "./memory-watch.ts";
import { forgetAsked, keepAsked, readAsked, type SinceAndWhy } from "./pause.ts";
import { Schedule } from "./schedule.ts";
import type { KeptSettings } from "./state-file.ts";
import { TransferRate } from "./transfer-rate.ts";
import { UsageCaps } from "./usage-caps.ts";
import { type Wire, WireCount } from "./wire-count.ts";
import { WorkPace } from "./work-pace.ts";

export interface GovernorSettings {
  readonly limits: CrawlerLimits;
  readonly kept: KeptSettings;
  /** Without a meter, bytes count when they are taken, and unread bytes are unknown. */
  readonly meter?: Wire;
  readonly spoolBytes?: () => number;
  /** Bytes queued for the coordinator that have not been sent. */
  readonly queuedBytes?: () => number;
  /** Tests replace the clock and the machine's state. */
  readonly now?: () => Date;
  readonly machine?: () => MachineSigns;
  readonly memory?: MemorySigns;
  readonly cpu?: CpuClock;
}

/** Far above what a coordinator leases: 100 hosts with 1,000 long URLs each. */
const mostLeaseBytes = 64 * 1024 * 1024;
/**
 * A first page takes robots.txt, tdmrep.json and the page. Opening a host per remaining request would spend a small
 * day's budget on robots.txt files, the next day on those of other hosts.
 */
const requestsToFirstPage = 3;
/** Limits pages that are read but not extracted; where extraction is the bottleneck, more of them only take memory. */
export const mostHeldPages = 32;
const settleEveryMs = 250;
const lookForPauseEveryMs = 2000;

export class Governor {
  readonly slots: ConnectionSlots;
  readonly disk: DiskWatch;
  readonly workPace = new WorkPace();
  /** Called with the reason when the day's or month's bytes run out; work under way is then aborted. */
  onSpent: (reason: string) => void = () => {};
  #limits: CrawlerLimits;
  readonly #home: string;
  readonly #caps: UsageCaps;
  readonly #rate: TransferRate;
  readonly #cpu: CpuShare;
  readonly #schedule: Schedule;
  readonly #idle: IdleWatch;
  readonly #memory: MemoryWatch;
  readonly #wire: WireCount;
  readonly #queuedBytes: () => number;
  readonly #admission: Admission;
  readonly #timers: readonly NodeJS.Timeout[];
  #paused: SinceAndWhy | null;
  #wasSpent = false;
  #heldPages = 0;

  constructor(settings: GovernorSettings) {
    const { limits, kept, meter, now = () => new Date() } = settings;
    this.#limits = limits;
    this.#home = kept.home;
    this.#caps = new UsageCaps({ limits, kept, now });
    this.#rate = new TransferRate(limits.kilobytesPerSecond);
    this.#cpu = new CpuShare(limits.cpuShare, settings.cpu);
    this.#schedule = new Schedule(limits, now);
    this.#memory = new MemoryWatch(limits.memoryBytes, settings.memory);
    this.#idle = new IdleWatch(limits.onlyWhenIdle, {
      ownLoad: () => this.#cpu.recent(),
      ...(settings.machine ? { signs: settings.machine } : {}),
    });
    this.disk = new DiskWatch(limits, { home: kept.home, spoolBytes: settings.spoolBytes ?? (() => 0) });
    this.slots = new ConnectionSlots(limits.openConnections);
    this.#wire = new WireCount(meter ?? { carriedBytes: () => 0, openConnections: 0 });
    this.#queuedBytes = settings.queuedBytes ?? (() => 0);
    this.#admission = new Admission({
      isClosed: () => this.stop() !== "",
      waitMs: (underWay, expectedBytes) => this.#waitMs(underWay, expectedBytes),
      pay: (bytes) => this.#payAhead(bytes),
      take: (bytes) => this.takeBytes(bytes),
    });
    this.#paused = readAsked("pause", kept.home);
    this.#timers = [
      setInterval(() => this.settle(), settleEveryMs).unref(),
      setInterval(() => this.#lookForPause(), lookForPauseEveryMs).unref(),
    ];
  }

  /** Applies new limits at once; what exceeds them ends by itself and is not replaced. */
  apply(limits: CrawlerLimits): void {
    this.#limits = limits;
    this.#caps.apply(limits);
    this.#rate.apply(limits.kilobytesPerSecond);
    this.#cpu.apply(limits.cpuShare);
    this.#schedule.apply(limits);
    this.#memory.apply(limits.memoryBytes);
    this.#idle.apply(limits.onlyWhenIdle);
    this.disk.apply(limits);
    this.slots.apply(limits.openConnections);
    this.settle();
  }

  get paused(): SinceAndWhy | null {
    return this.#paused;
  }

  /** Lasts until `resume`, across restarts. Throws the system's error when it cannot be saved. */
  pause(reason: string): void {
    keepAsked("pause", this.#home, reason);
    this.#lookForPause();
  }

  resume(): void {
    forgetAsked("pause", this.#home);
    this.#lookForPause();
  }

  /** Returns why nothing may be contacted, or an empty string. */
  silence(): string {
    if (this.#paused !== null) return this.#pauseUsage().holdingBack;
    if (!this.#schedule.isOpen()) return this.#schedule.usage().holdingBack;
    const busy = this.#idle.usage().holdingBack;
    if (busy !== "") return busy;
    return this.#caps.leftBytes("fetch") > 0 ? "" : this.#caps.spent();
  }

  /** Returns why no page may be fetched, or an empty string. */
  stop(): string {
    const silence = this.silence();
    if (silence !== "") return silence;
    if (!this.#caps.hasPages()) return this.#caps.spent();
    return this.disk.isFull() ? this.disk.usage().holdingBack : "";
  }

  mayFetch(): boolean {
    return this.stop() === "";
  }

  /** Returns whether enough bytes are left to ship results of this size. */
  mayShip(bytes: number): boolean {
    this.#count(this.#wire.settle());
    return this.#caps.leftBytes("ship") > bytes;
  }

  mayLink(): boolean {
    return this.#caps.leftBytes("link") > 0;
  }

  /**
   * Waits until another request may start; null when it may not within the bounds. Every request, including robots.txt
   * and HEAD, counts as one of the day's pages before it is sent: a host that allows five sees five requests.
   */
  admit(bounds: AdmissionBounds): Promise<Grant | null> {
    return this.#admission.enter({ ...bounds, onGrant: () => this.#caps.count(1, 0) });
  }

  /**
   * Accounts for the memory of a page that is read but not extracted. Call the returned function once, after
   * extraction.
   */
  holdPage(): () => void {
    this.#heldPages++;
    return () => {
      this.#heldPages--;
      this.#admission.look();
    };
  }

  /** Undoes the count of an admitted request that was not sent. */
  takeBack(): void {
    this.#caps.count(-1, 0);
    this.#admission.look();
  }

  /** Counts bytes read. Returns null to continue, or a promise to wait for. */
  takeBytes(bytes: number): Promise<void> | null {
    this.#count(this.#wire.take(bytes));
    return this.#rate.take(0);
  }

  cpuTurn(): Promise<void> {
    return this.#cpu.turn();
  }

  /** Counts bytes that were carried but not taken, such as headers. */
  settle(): void {
    this.#count(this.#wire.settle());
    this.#admission.look();
  }

  /** Returns how long a probe must wait for the rate, after counting what was carried so far. */
  probeWaitMs(): number {
    this.#count(this.#wire.settle());
    return this.#rate.waitMs();
  }

  probeLimits(): Pick<CrawlerLimits, "probesPerSecond" | "concurrentHosts"> {
    return this.#limits;
  }

  /** Returns how many more hosts may be opened; the day must have room for each one's first page. */
  freeHosts(openHosts: number): number {
    const hostsOfDay = Math.ceil(this.#caps.leftPages() / requestsToFirstPage);
    return Math.max(0, Math.min(this.places(), hostsOfDay) - openHosts);
  }

  places(): number {
    return this.mayFetch() ? this.#memory.hosts(this.workPace.places(this.#limits.concurrentHosts)) : 0;
  }

  leaseBytes(): number {
    const { memoryBytes } = this.#limits;
    return memoryBytes === null ? mostLeaseBytes : Math.min(mostLeaseBytes, memoryBytes / 64);
  }

  holdingBack(openHosts: number): string[] {
    return this.usage(openHosts).flatMap(({ holdingBack }) => (holdingBack === "" ? [] : [holdingBack]));
  }

  untold(): string[] {
    return this.#idle.untold();
  }

  usage(openHosts: number): LimitUsage[] {
    return [
      this.#pauseUsage(),
      ...this.#caps.usage(),
      this.#rateUsage(),
      this.#hostUsage(openHosts),
      this.slots.usage(),
      this.#cpuUsage(),
      this.#memory.usage(),
      this.disk.usage(),
      this.#schedule.usage(),
      this.#idle.usage(),
    ];
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#count(this.#wire.settle());
    this.#caps.close();
    this.disk.close();
    this.#admission.close();
    this.#rate.close();
    this.#cpu.close();
  }

  #count(bytes: number): void {
    if (bytes > 0) {
      this.#caps.count(0, bytes);
      this.#rate.spend(bytes);
    }
    const isSpent = this.#caps.leftBytes("fetch") <= 0;
    if (isSpent && !this.#wasSpent) this.onSpent(this.#caps.spent());
    this.#wasSpent = isSpent;
  }

  #waitMs(underWay: number, expectedBytes: number): number {
    const leftBytes = this.#caps.leftBytes("fetch") - this.#queuedBytes();
    if (this.#heldPages >= mostHeldPages) return Number.POSITIVE_INFINITY;
    const inMemory = underWay + this.#heldPages;
    if (inMemory > 0 && this.#memory.isShort(inMemory)) return Number.POSITIVE_INFINITY;
    const isShort = underWay > 0 && leftBytes < (underWay + 1) * expectedBytes;
    if (isShort || leftBytes <= 0) return Number.POSITIVE_INFINITY;
    return Math.max(this.#rate.waitMs(), this.#cpu.waitMs());
  }

  #payAhead(bytes: number): void {
    this.#rate.spend(bytes);
    this.#caps.expect(bytes);
  }

  #lookForPause(): void {
    this.#paused = readAsked("pause", this.#home);
    this.#admission.look();
  }

  #pauseUsage(): LimitUsage {
    const paused = this.#paused;
    return limitUsage("pause", paused === null ? "" : `paused since ${paused.since}: ${paused.reason}`);
  }

  #rateUsage(): LimitUsage {
    const cap = this.#limits.kilobytesPerSecond;
    const { waiting } = this.#rate;
    const words = waiting > 0 ? `${waiting} downloads wait for the rate of ${cap} KB/s` : "";
    return limitUsage("kilobytesPerSecond", words, { unit: "KiB a second", cap });
  }

  #hostUsage(openHosts: number): LimitUsage {
    const cap = this.#limits.concurrentHosts;
    const words = openHosts >= cap ? `all ${cap} places for hosts are taken` : "";
    return limitUsage("concurrentHosts", words, { unit: "hosts", used: openHosts, cap });
  }

  #cpuUsage(): LimitUsage {
    const cap = this.#limits.cpuShare;
    const words = `the processor share of ${cap} is used up: ${this.#cpu.waiting} pieces of work wait`;
    const holdingBack = this.#cpu.waiting > 0 ? words : "";
    return limitUsage("cpuShare", holdingBack, { unit: "processors", used: this.#cpu.recent(), cap });
  }
}
