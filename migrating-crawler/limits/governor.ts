/**
 * Keeps the crawler within its host's limits. Each limit has its own class. The governor asks all of them before work begins,
 * and reports what each holds back. Limits can be changed while the crawler runs, and apply at once.
 *
 *   may anything be contacted?   pause, hours, idle machine, bytes of the day and month
 *   may pages be fetched?        besides: pages of the day, disk
 *   may a request begin now?     besides: bytes a second, processor share, memory
 */

import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { LocalTime } from "../core/local-time.ts";
import { type CrawlerLimits, isOpen, type Week } from "../settings/limits-config.ts";
import { Admission, type AdmissionBounds, type Grant } from "./admission.ts";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";
import { DiskWatch, IdleWatch, type MachineSigns, type MemorySigns, MemoryWatch } from "./machine-watch.ts";
import { ConnectionSlots, type CpuClock, CpuShare, TransferRate } from "./shares.ts";
import { forgetAsked, type KeptSettings, keepAsked, readAsked, type SinceAndWhy } from "./state-file.ts";
import { UsageCaps } from "./usage-caps.ts";

export interface GovernorSettings {
  readonly limits: CrawlerLimits;
  readonly kept: KeptSettings;
  /** If there is no meter, bytes count when they are taken, and unread bytes are unknown. */
  readonly meter?: Wire;
  readonly spoolBytes?: () => number;
  /** How many bytes are queued for the coordinator and not sent yet. */
  readonly queuedBytes?: () => number;
  readonly now?: () => Date;
  readonly machine?: () => MachineSigns;
  readonly memory?: MemorySigns;
  readonly cpu?: CpuClock;
}

/** Far more than a coordinator leases: 100 hosts with 1,000 long URLs each. */
const mostLeaseBytes = 64 * 1024 * 1024;
/**
 * A host's first page requires robots.txt, tdmrep.json and the page itself. If a host were opened for every remaining request,
 * a small day's budget would be spent on robots.txt files, and the next day's on those of other hosts.
 */
const requestsToFirstPage = 3;
/** Maximum number of pages that are read but not extracted. If extraction is the bottleneck, more of them only take memory. */
export const mostHeldPages = 32;
const settleEveryMs = 250;
const lookForPauseEveryMs = 2000;

export class Governor {
  readonly slots: ConnectionSlots;
  readonly disk: DiskWatch;
  readonly workPace = new WorkPace();
  /** Is called with the reason when the day's or month's bytes run out. Work in progress is then aborted. */
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

  /** Applies new limits at once. What exceeds them ends by itself and is not replaced. */
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

  /** Pauses until `resume`, even across restarts. Throws the system's error if the pause cannot be saved. */
  pause(reason: string): void {
    keepAsked("pause", this.#home, reason);
    this.#lookForPause();
  }

  resume(): void {
    forgetAsked("pause", this.#home);
    this.#lookForPause();
  }

  silence(): string {
    if (this.#paused !== null) return this.#pauseUsage().holdingBack;
    if (!this.#schedule.isOpen()) return this.#schedule.usage().holdingBack;
    const busy = this.#idle.usage().holdingBack;
    if (busy !== "") return busy;
    return this.#caps.leftBytes("fetch") > 0 ? "" : this.#caps.spent();
  }

  stop(): string {
    const silence = this.silence();
    if (silence !== "") return silence;
    if (!this.#caps.hasPages()) return this.#caps.spent();
    return this.disk.isFull() ? this.disk.usage().holdingBack : "";
  }

  mayFetch(): boolean {
    return this.stop() === "";
  }

  mayShip(bytes: number): boolean {
    this.#count(this.#wire.settle());
    return this.#caps.leftBytes("ship") > bytes;
  }

  mayLink(): boolean {
    return this.#caps.leftBytes("link") > 0;
  }

  /**
   * Waits until another request may start. Returns null if it may not within the bounds. Every request, including robots.txt
   * and HEAD, counts as one of the day's pages before it is sent, so a host that allows five sees five.
   */
  admit(bounds: AdmissionBounds): Promise<Grant | null> {
    return this.#admission.enter({ ...bounds, onGrant: () => this.#caps.count(1, 0) });
  }

  /** Counts the memory of a page that is read but not extracted. The returned function must be called once, after extraction. */
  holdPage(): () => void {
    this.#heldPages++;
    return () => {
      this.#heldPages--;
      this.#admission.look();
    };
  }

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

  /** Counts bytes that connections carried but nobody took, such as headers. */
  settle(): void {
    this.#count(this.#wire.settle());
    this.#admission.look();
  }

  probeWaitMs(): number {
    this.#count(this.#wire.settle());
    return this.#rate.waitMs();
  }

  probeLimits(): Pick<CrawlerLimits, "probesPerSecond" | "concurrentHosts"> {
    return this.#limits;
  }

  /** Returns how many more hosts may be opened. The day must have room for the first page of each. */
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

type Hours = Pick<CrawlerLimits, "hours" | "timeZone">;

const minuteMs = 60_000;
const minutesPerDay = 1440;
const minutesPerWeek = 7 * minutesPerDay;

export class Schedule {
  #hours: Hours;
  #time: LocalTime;
  readonly #now: () => Date;

  constructor(hours: Hours, now: () => Date) {
    this.#hours = hours;
    this.#time = new LocalTime(hours.timeZone);
    this.#now = now;
  }

  apply(hours: Hours): void {
    this.#hours = hours;
    this.#time = new LocalTime(hours.timeZone);
  }

  isOpen(): boolean {
    const { hours } = this.#hours;
    return hours === null || this.#isOpenAt(hours, this.#now());
  }

  usage(): LimitUsage {
    const { hours } = this.#hours;
    const resetsAt = hours === null ? null : this.#nextChange(hours);
    const isHeld = !this.isOpen();
    const until = resetsAt === null ? "" : ` until ${this.#time.words(resetsAt)}`;
    return limitUsage("hours", isHeld ? `outside the hours that are set for crawling${until}` : "", {
      resetsAt,
    });
  }

  /**
   * Returns when the schedule next opens or closes, or null if it never does. The result is valid until daylight saving next
   * changes, and is then computed again.
   */
  #nextChange(week: Week): Date | null {
    const isOpenNow = this.#isOpenAt(week, this.#now());
    for (let from = this.#now(); ; ) {
      const change = this.#changeByTheWall(week, from, isOpenNow);
      const clocks = change && this.#time.clockChange(from, change);
      if (clocks === null) return change;
      if (this.#isOpenAt(week, clocks) !== isOpenNow) return clocks;
      from = clocks;
    }
  }

  #isOpenAt(week: Week, time: Date): boolean {
    const { weekday, minute } = this.#time.at(time);
    return isOpen(week, weekday, minute);
  }

  #changeByTheWall(week: Week, from: Date, isOpenNow: boolean): Date | null {
    const { weekday, minute } = this.#time.at(from);
    const begun = weekday * minutesPerDay + minute;
    for (let ahead = 1; ahead <= minutesPerWeek; ahead++) {
      const at = (begun + ahead) % minutesPerWeek;
      if (isOpen(week, Math.floor(at / minutesPerDay), at % minutesPerDay) !== isOpenNow)
        return new Date((Math.floor(from.getTime() / minuteMs) + ahead) * minuteMs);
    }
    return null;
  }
}

// Tracks how many hosts at a time the coordinator asks for, within this host's limit (WEB-SAILOR section 4.3): as many as the
// due work needs, at least one, and the full limit on `hurry-up`. Each message replaces the last one. A host still receives
// one request at a time, at its own pace.

export type PaceMessage = Extract<CoordinatorMessage, { type: "coordinator:work-pace" }>;

export interface AskedPace {
  readonly pace: PaceMessage["pace"];
  /**
   * Host slices that are due or being worked on. Counting stops once the decision is certain, so this may be an underestimate.
   */
  readonly due: number;
  readonly reason: string;
  readonly since: Date;
  /** Maximum number of hosts at a time, which the host's limit may lower. Null means the limit itself. */
  readonly places: number | null;
}

export class WorkPace {
  #asked: AskedPace | null = null;

  get asked(): AskedPace | null {
    return this.#asked;
  }

  /** Must be called when a session begins or ends, because what the coordinator last asked for no longer applies. */
  forget(): void {
    this.#asked = null;
  }

  places(limit: number): number {
    return Math.min(limit, this.#asked?.places ?? limit);
  }

  take({ pace, due, reason }: PaceMessage, now: Date = new Date()): void {
    const before = this.#asked;
    const since = before?.pace === pace ? before.since : now;
    const places = pace === "hurry-up" ? null : Math.max(1, due);
    this.#asked = { pace, due, reason, since, places };
  }
}

// Counts what the connections have carried as exactly as possible, from the sockets' own counts, which are read several times
// a second, and in between from what the readers report.

/** Minimum time between two readings of all sockets while bytes arrive. `fewSockets` or fewer are read each time. */
const lookEveryMs = 5;
const fewSockets = 64;

interface Wire {
  carriedBytes(): number;
  readonly openConnections: number;
}

class WireCount {
  readonly #wire: Wire;
  readonly #nowMs: () => number;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** The bytes carried and the bytes taken at the last reading. */
  #seenBytes = 0;
  #takenThen = 0;
  #taken = 0;
  #counted = 0;

  constructor(wire: Wire, nowMs: () => number = () => performance.now()) {
    this.#wire = wire;
    this.#nowMs = nowMs;
  }

  /** Returns how many bytes are new since the last call. They include `bytes`, which the sockets also count. */
  take(bytes: number): number {
    this.#taken += bytes;
    const isDue = this.#nowMs() - this.#lookedAtMs >= lookEveryMs;
    if (isDue || this.#wire.openConnections <= fewSockets) this.#look();
    return this.#news();
  }

  settle(): number {
    this.#look();
    return this.#news();
  }

  #look(): void {
    this.#lookedAtMs = this.#nowMs();
    this.#seenBytes = this.#wire.carriedBytes();
    this.#takenThen = this.#taken;
  }

  /** A reading may already include bytes that are taken after it, so the next reading adds fewer. */
  #news(): number {
    const known = Math.max(this.#taken, this.#seenBytes + this.#taken - this.#takenThen);
    const news = Math.max(0, known - this.#counted);
    this.#counted += news;
    return news;
  }
}
