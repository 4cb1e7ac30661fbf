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
  /** Absent: bytes count as they are taken, and what was not taken is not known. */
  readonly meter?: Wire;
  readonly spoolBytes?: () => number;
  /** Bytes that are on their way to the coordinator and have not left yet. */
  readonly queuedBytes?: () => number;
  /** For tests: the clock, and what the machine tells. */
  readonly now?: () => Date;
  readonly machine?: () => MachineSigns;
  readonly memory?: MemorySigns;
  readonly cpu?: CpuClock;
}

/** Far above what a coordinator leases: 100 hosts with 1,000 long URLs each. */
const mostLeaseBytes = 64 * 1024 * 1024;
/**
 * robots.txt, tdmrep.json and a page. With a host for each request that the day has left, a small day would be spent on
 * robots.txt alone, and the next one on that of other hosts.
 */
const requestsToFirstPage = 3;
/** Pages that are read and not extracted: where extraction is what takes the time, more of them only take memory. */
export const mostHeldPages = 32;
const settleEveryMs = 250;
const lookForPauseEveryMs = 2000;

export class Governor {
  readonly slots: ConnectionSlots;
  readonly disk: DiskWatch;
  readonly workPace = new WorkPace();
  /** Told, with the reason, when the day's or month's bytes run out: what is under way is to be broken off. */
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

  /** New limits, in force at once; what is open beyond them ends by itself and is not replaced. */
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

  /** Null when it is not paused. */
  get paused(): SinceAndWhy | null {
    return this.#paused;
  }

  /** Until `resume`, over restarts. Throws the system's error when that cannot be kept on disk. */
  pause(reason: string): void {
    keepAsked("pause", this.#home, reason);
    this.#lookForPause();
  }

  resume(): void {
    forgetAsked("pause", this.#home);
    this.#lookForPause();
  }

  /** Why nothing at all may be contacted, in words; empty when something may. */
  silence(): string {
    if (this.#paused !== null) return this.#pauseUsage().holdingBack;
    if (!this.#schedule.isOpen()) return this.#schedule.usage().holdingBack;
    const busy = this.#idle.usage().holdingBack;
    if (busy !== "") return busy;
    return this.#caps.leftBytes("fetch") > 0 ? "" : this.#caps.spent();
  }

  /** Why no page may be fetched, in words; empty when one may. */
  stop(): string {
    const silence = this.silence();
    if (silence !== "") return silence;
    if (!this.#caps.hasPages()) return this.#caps.spent();
    return this.disk.isFull() ? this.disk.usage().holdingBack : "";
  }

  mayFetch(): boolean {
    return this.stop() === "";
  }

  /** Whether so many bytes are left to ship results. */
  mayShip(bytes: number): boolean {
    this.#count(this.#wire.settle());
    return this.#caps.leftBytes("ship") > bytes;
  }

  /** Whether bytes are left to keep the link to the coordinator. */
  mayLink(): boolean {
    return this.#caps.leftBytes("link") > 0;
  }

  /**
   * Waits until another request may begin; null when it may not, or not within the bounds. Whatever it asks for
   * (robots.txt and HEAD, too) is one of the day's pages from now on, before it is sent: a host who allows five a day
   * sees five requests.
   */
  admit(bounds: AdmissionBounds): Promise<Grant | null> {
    return this.#admission.enter({ ...bounds, onGrant: () => this.#caps.count(1, 0) });
  }

  /** A page is read and not extracted yet: its memory is still taken. Call what is returned once, when it is. */
  holdPage(): () => void {
    this.#heldPages++;
    return () => {
      this.#heldPages--;
      this.#admission.look();
    };
  }

  /** A request that was let in was not sent after all. */
  takeBack(): void {
    this.#caps.count(-1, 0);
    this.#admission.look();
  }

  /** Counts bytes that were read; resolves when the rate allows the next piece, null when at once. */
  takeBytes(bytes: number): Promise<void> | null {
    this.#count(this.#wire.take(bytes));
    return this.#rate.take(0);
  }

  /** Resolves when a few milliseconds of the processor may be used. */
  cpuTurn(): Promise<void> {
    return this.#cpu.turn();
  }

  /** Counts what was carried besides what was taken. */
  settle(): void {
    this.#count(this.#wire.settle());
    this.#admission.look();
  }

  /** Until a probe may be let out as far as the rate goes: what was carried up to now is counted first. */
  probeWaitMs(): number {
    this.#count(this.#wire.settle());
    return this.#rate.waitMs();
  }

  probeLimits(): Pick<CrawlerLimits, "probesPerSecond" | "concurrentHosts"> {
    return this.#limits;
  }

  /** How many more hosts may be opened, when so many are open: none for whose first page the day has no room. */
  freeHosts(openHosts: number): number {
    const hostsOfDay = Math.ceil(this.#caps.leftPages() / requestsToFirstPage);
    return Math.max(0, Math.min(this.places(), hostsOfDay) - openHosts);
  }

  /** Hosts at a time. */
  places(): number {
    return this.mayFetch() ? this.#memory.hosts(this.workPace.places(this.#limits.concurrentHosts)) : 0;
  }

  /** What the lists of URLs of all open hosts may take. */
  leaseBytes(): number {
    const { memoryBytes } = this.#limits;
    return memoryBytes === null ? mostLeaseBytes : Math.min(mostLeaseBytes, memoryBytes / 64);
  }

  /** What the limits hold back right now, in words; empty when nothing. */
  holdingBack(openHosts: number): string[] {
    return this.usage(openHosts).flatMap(({ holdingBack }) => (holdingBack === "" ? [] : [holdingBack]));
  }

  /** What was to be watched and this system does not tell, in words. */
  untold(): string[] {
    return this.#idle.untold();
  }

  /** Every limit with what is used of it. */
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

  /** Writes the counters; nobody waits for anything any more. */
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
