/**
 * Carries results to the coordinator: stores them in the spool, sends them in order within the link's credits, and drops them
 * once acknowledged. Each welcome restarts at the first result that the coordinator lacks.
 */
import { packSoundly, soundly } from "#protocol/codec";
import { packResult } from "#protocol/packed/message-frames";
import { type FetchResult, type FetchTiming, failedResult } from "#protocol/result";
import type { CrawlerLog } from "../core/log.ts";
import type { Spool, SpooledResult } from "../spool/spool.ts";
import type { CoordinatorLink } from "./coordinator-link.ts";

type ResultLink = Pick<CoordinatorLink, "sendResult" | "isUp"> &
  Partial<Pick<CoordinatorLink, "queuedBytes">>;

export class Carrier {
  readonly #spool: Spool;
  readonly #link: ResultLink;
  readonly #log: CrawlerLog;
  readonly #mayShip: (bytes: number) => boolean;
  #next: number | null = null;
  readonly #lastFound: number;
  readonly #latestOfLease: Map<string, number>;
  /** Since when the oldest waiting result has been the oldest. */
  #stillSinceMs = performance.now();
  #waiters: { readonly sequence: number; readonly wake: () => void }[] = [];

  /** `mayShip` tells whether the host's limits leave enough bytes. If absent, results are always sent. */
  constructor(settings: {
    readonly spool: Spool;
    readonly link: ResultLink;
    readonly log: CrawlerLog;
    readonly mayShip?: (bytes: number) => boolean;
  }) {
    this.#spool = settings.spool;
    this.#link = settings.link;
    this.#log = settings.log;
    this.#mayShip = settings.mayShip ?? (() => true);
    this.#latestOfLease = new Map(settings.spool.leases);
    this.#lastFound = settings.spool.last ?? 0;
  }

  get leases(): Iterable<string> {
    return this.#latestOfLease.keys();
  }

  /** Returns false if the spool is full. The URL is then fetched again. */
  keep(leaseId: string, result: FetchResult): boolean {
    const wasEmpty = this.#spool.first === null;
    const { packed, fault } = packSoundly(leaseId, { ...result, timing: inTenths(result.timing) });
    if (fault !== null)
      this.#log.warn({ url: result.url, fault }, "a result cannot be shipped, and a failure is in its place");
    const sequence = this.#spool.append(leaseId, packed);
    if (sequence === null) return false;
    if (wasEmpty) this.#stillSinceMs = performance.now();
    this.#latestOfLease.set(leaseId, sequence);
    this.pump();
    return true;
  }

  /** The coordinator has everything up to `acknowledged`. */
  onWelcome(acknowledged: number): void {
    // Must come first, because the last session's position does not apply to this one.
    this.#next = null;
    this.onAcknowledge(acknowledged);
  }

  onAcknowledge(sequence: number): void {
    if (sequence > this.#spool.acknowledged) this.#stillSinceMs = performance.now();
    this.#spool.acknowledge(sequence);
    const woken = this.#waiters.filter((waiter) => waiter.sequence <= sequence);
    this.#waiters = this.#waiters.filter((waiter) => waiter.sequence > sequence);
    for (const [leaseId, latest] of this.#latestOfLease) {
      if (latest <= sequence) this.#latestOfLease.delete(leaseId);
    }
    for (const { wake } of woken) wake();
    this.pump();
  }

  pump(): void {
    if (!this.#link.isUp) return;
    for (;;) {
      const sequence = this.#next ?? this.#spool.first;
      const record = sequence === null ? null : this.#record(sequence);
      if (record === null || !this.#mayShip(this.#bytesUnderWayWith(record))) return;
      if (!this.#link.sendResult(record)) return;
      this.#next = record.sequence + 1;
    }
  }

  /** An upper bound, since uncompressed data count in full. */
  #bytesUnderWayWith({ packed }: SpooledResult): number {
    const links = packed.links?.reduce((sum, link) => sum + link.length, 0) ?? 0;
    return (this.#link.queuedBytes ?? 0) + packed.text.length + packed.numbers.length + links;
  }

  /** Returns a message if the waiting results have not been acknowledged for long, or else an empty string. */
  stuck(nowMs: number): string {
    const minutes = Math.floor((nowMs - this.#stillSinceMs) / 60_000);
    if (this.#spool.first === null || minutes < stuckMinutes) return "";
    return `nothing was acknowledged for ${minutes} minutes; ${this.#spool.waiting} results wait`;
  }

  /** Resolves when all results of the lease so far are acknowledged. */
  async settled(leaseId: string): Promise<void> {
    const sequence = this.#latestOfLease.get(leaseId);
    if (sequence !== undefined) await this.#acknowledged(sequence);
  }

  async drained(): Promise<void> {
    const { last } = this.#spool;
    if (last !== null) await this.#acknowledged(last);
  }

  async #acknowledged(sequence: number): Promise<void> {
    await new Promise<void>((wake) => this.#waiters.push({ sequence, wake }));
  }

  /**
   * Sequences must have no gaps, so a record lost on disk is replaced by one without a lease, which the coordinator
   * acknowledges and drops. Its URL is fetched again when the lease expires.
   */
  #record(sequence: number): SpooledResult | null {
    const record = this.#spool.read(sequence);
    if (record !== null) return sequence > this.#lastFound ? record : this.#soundly(record);
    const last = this.#spool.last;
    if (last === null || sequence > last) return null;
    this.#log.warn({ sequence }, "a spooled result is damaged and is given up");
    const lost = failedResult(null, "the spooled result could not be read", "spool-damaged");
    return { sequence, leaseId: "0", packed: packResult("0", lost) };
  }

  /** An earlier release may have stored results that coordinators reject. */
  #soundly(record: SpooledResult): SpooledResult {
    const { packed, fault } = soundly(record.leaseId, record.packed);
    if (fault === null) return record;
    this.#log.warn(
      { sequence: record.sequence, fault },
      "a spooled result cannot be shipped, and a failure is in its place",
    );
    return { ...record, packed };
  }
}

/** Digits below 0.1 ms are meaningless and would only cost bytes. */
function inTenths({ totalMs, ...phases }: FetchTiming): FetchTiming {
  const rounded = (ms: number) => Math.round(ms * 10) / 10;
  const names = Object.keys(phases) as (keyof typeof phases)[];
  const tenths = names.map((name) => [name, phases[name] === null ? null : rounded(phases[name])]);
  return { ...(Object.fromEntries(tenths) as typeof phases), totalMs: rounded(totalMs) };
}

/** A working coordinator acknowledges within seconds. */
const stuckMinutes = 5;
