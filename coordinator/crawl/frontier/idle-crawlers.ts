/**
 * Tells an idle crawler once that it has no work and wakes it when some of its own work becomes due. Until then its requests
 * are answered from memory, and the database is queried for the whole fleet together.
 *
 *     unknown ─ asks, nothing is open ─► idle ─ something opens ─► woken ─ asks ─► leases, or idle again
 *
 * Openings are reported (hosts whose leases ended, delegated subnets) or read once a second in due order. Openings that
 * neither reveals (by other coordinators, or the end of an opt-out) are found by checking all idle crawlers in turn.
 *
 * Open work may not be leasable now, because its address is resting or no domain set matches. Its crawler is woken again
 * after a delay that doubles.
 */
import { Gathered } from "#core/coalesce";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import type { DueWorkReads, OpenWork } from "./due-work-store.ts";
import { askAgainSoonMs, nothing, nothingDueReason, type Tasks } from "./hand-out-tasks.ts";

interface IdleCrawlerPorts {
  readonly reads: DueWorkReads;
  readonly ownerOf: (subnetId: SubnetId) => CrawlerId | null;
  /** Returns false when the crawler is not connected or too old to be woken. */
  readonly wake: (crawlerId: CrawlerId) => boolean;
  /** Called when something is worth a check before the next run. */
  readonly onNews: () => void;
  readonly now: () => Date;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** Polling interval for crawlers that can be woken, extended by up to half. */
const fallBackMs = 300_000;
const pollMs = 2000;
/** Every idle crawler is checked once in this many runs. In a small fleet, every run checks it. */
const turnsPerRound = 120;
const leastPerTurn = 50;
const readTogether = 5000;
const readsPerTurn = 10;
/** Overlap of consecutive reads, since a write with an earlier time may commit later. */
const overlapMs = 1000;
/** Maximum notes. More are dropped, because the periodic check finds the work. */
const mostTold = 100_000;
const mostLookedAtTogether = 500;
const firstBlockedMs = 1000;
const mostBlockedMs = 16_000;

interface Idle {
  /** Earliest next wake-up, set after a wake-up for work that could not be leased. */
  readonly notBeforeMs: number;
  hasNews: boolean;
}

export class IdleCrawlers {
  readonly #ports: IdleCrawlerPorts;
  /** Ordered by last check, oldest first. */
  readonly #idle = new Map<CrawlerId, Idle>();
  /** Requests in progress, and whether something opened since they began. */
  readonly #asking = new Map<CrawlerId, { hasNews: boolean }>();
  /** Crawlers with a known state. A crawler that has just arrived is unknown until it asks. */
  readonly #known = new Set<CrawlerId>();
  readonly #wakeable = new Set<CrawlerId>();
  /** Crawlers that had open work when last checked. */
  readonly #expecting = new Set<CrawlerId>();
  /** Consecutive times that open work could not be leased. */
  readonly #inVain = new Map<CrawlerId, number>();
  readonly #looks: Gathered<CrawlerId, boolean>;
  #told = new Set<HostHash>();
  /** Crawlers by the second in which their next work opens. */
  readonly #opening = new Map<number, Set<CrawlerId>>();
  #openingCount = 0;
  #readUntil: Date | null = null;

  constructor(ports: IdleCrawlerPorts) {
    this.#ports = ports;
    this.#looks = new Gathered(async (crawlerIds) => {
      const having = new Set(await ports.reads.crawlersWithWork(crawlerIds, ports.now()));
      return crawlerIds.map((crawlerId) => having.has(crawlerId));
    }, mostLookedAtTogether);
  }

  get count(): number {
    return this.#idle.size;
  }

  isIdle(crawlerId: CrawlerId): boolean {
    return this.#idle.has(crawlerId);
  }

  /** Begins a session. `canBeWoken` says whether the crawler understands wake messages. */
  arrived(crawlerId: CrawlerId, canBeWoken: boolean): void {
    this.left(crawlerId);
    if (canBeWoken) this.#wakeable.add(crawlerId);
  }

  left(crawlerId: CrawlerId): void {
    this.#idle.delete(crawlerId);
    for (const marks of [this.#known, this.#expecting, this.#wakeable, this.#inVain]) marks.delete(crawlerId);
  }

  /** Answers a request for work. Runs `handOut` only if there may be some. */
  async answer(crawlerId: CrawlerId, handOut: () => Promise<Tasks>): Promise<Tasks> {
    if (this.#idle.has(crawlerId)) return this.#nothingDue(crawlerId);
    const asking = { hasNews: false };
    this.#asking.set(crawlerId, asking);
    try {
      if (!this.#known.has(crawlerId)) {
        this.#known.add(crawlerId);
        if (!(await this.#looks.ask(crawlerId))) return this.#end(crawlerId, asking.hasNews);
        this.#expecting.add(crawlerId);
      }
      const tasks = await handOut();
      if (tasks.reason === nothingDueReason) return this.#end(crawlerId, asking.hasNews);
      this.#expecting.delete(crawlerId);
      this.#inVain.delete(crawlerId);
      return tasks;
    } finally {
      this.#asking.delete(crawlerId);
    }
  }

  note(crawlerId: CrawlerId): void {
    const asking = this.#asking.get(crawlerId);
    if (asking !== undefined) asking.hasNews = true;
    const idle = this.#idle.get(crawlerId);
    if (idle === undefined) return;
    idle.hasNews = true;
    if (idle.notBeforeMs <= this.#ports.nowMs()) this.#wake(crawlerId);
  }

  /** Wakes the crawler on the next run. Unlike `note`, it suits frequent notes. */
  noteLater(crawlerId: CrawlerId): void {
    const asking = this.#asking.get(crawlerId);
    if (asking !== undefined) asking.hasNews = true;
    const idle = this.#idle.get(crawlerId);
    if (idle === undefined || idle.hasNews) return;
    idle.hasNews = true;
    this.#ports.onNews();
  }

  noteHosts(hosts: readonly HostHash[]): void {
    if (this.#idle.size + this.#asking.size === 0) return;
    for (const host of hosts) if (this.#told.size < mostTold) this.#told.add(host);
    if (hosts.length > 0) this.#ports.onNews();
  }

  /** Runs once a second and after news. Returns how many crawlers were woken. */
  async turn(): Promise<number> {
    const before = this.#idle.size;
    await this.#readTold();
    await this.#readDue();
    this.#takeOpening();
    for (const [crawlerId, idle] of this.#idle) {
      if (idle.hasNews && idle.notBeforeMs <= this.#ports.nowMs()) this.#wake(crawlerId);
    }
    await this.#lookInTurn();
    return Math.max(0, before - this.#idle.size);
  }

  #end(crawlerId: CrawlerId, hasNews: boolean): Tasks {
    const wasOpen = this.#expecting.delete(crawlerId);
    if (hasNews && !wasOpen) return nothing(nothingDueReason, askAgainSoonMs);
    const inVain = this.#inVain.get(crawlerId) ?? 0;
    if (wasOpen) this.#inVain.set(crawlerId, inVain + 1);
    const waitMs = wasOpen ? Math.min(mostBlockedMs, firstBlockedMs * 2 ** inVain) : 0;
    this.#idle.set(crawlerId, { notBeforeMs: this.#ports.nowMs() + waitMs, hasNews });
    return this.#nothingDue(crawlerId);
  }

  #nothingDue(crawlerId: CrawlerId): Tasks {
    const askAgainMs = this.#wakeable.has(crawlerId)
      ? fallBackMs * (1 + this.#ports.random() / 2)
      : pollMs * (1 + this.#ports.random() / 2);
    return nothing(nothingDueReason, Math.round(askAgainMs));
  }

  #wake(crawlerId: CrawlerId): void {
    this.#idle.delete(crawlerId);
    this.#expecting.add(crawlerId);
    this.#ports.wake(crawlerId);
  }

  #take({ crawlerId, subnetId, openAt }: OpenWork): void {
    const owner = crawlerId ?? this.#ports.ownerOf(subnetId);
    if (owner === null) return;
    if (openAt <= this.#ports.now()) this.note(owner);
    else this.#expect(owner, openAt.getTime());
  }

  /** Adds a second, so that the work is open when it is checked. */
  #expect(owner: CrawlerId, openAtMs: number): void {
    if (this.#openingCount >= mostTold) return;
    const second = Math.floor(openAtMs / 1000) + 1;
    const owners = this.#opening.get(second) ?? new Set();
    this.#opening.set(second, owners.add(owner));
    this.#openingCount += 1;
  }

  #takeOpening(): void {
    const nowSecond = this.#ports.now().getTime() / 1000;
    for (const [second, owners] of this.#opening) {
      if (second > nowSecond) continue;
      this.#opening.delete(second);
      for (const owner of owners) this.note(owner);
    }
    this.#openingCount = 0;
    for (const owners of this.#opening.values()) this.#openingCount += owners.size;
  }

  async #readTold(): Promise<void> {
    const hosts = [...this.#told];
    this.#told = new Set();
    for (let at = 0; at < hosts.length; at += readTogether) {
      for (const work of await this.#ports.reads.openOf(hosts.slice(at, at + readTogether))) this.#take(work);
    }
  }

  async #readDue(): Promise<void> {
    const now = this.#ports.now();
    const from = this.#readUntil ?? now;
    this.#readUntil = now;
    // After a clock jump, only the periodic check can find what became due.
    const isClockSound = now >= from && now.getTime() - from.getTime() < fallBackMs;
    if (!isClockSound || this.#idle.size + this.#asking.size === 0) return;
    let reached = new Date(from.getTime() - overlapMs);
    for (let reads = 0; reads < readsPerTurn && reached < now; reads++) {
      const { work, until } = await this.#ports.reads.dueBetween(reached, now, readTogether);
      for (const one of work) this.#take(one);
      reached = until > reached ? until : new Date(reached.getTime() + 1);
    }
  }

  async #lookInTurn(): Promise<void> {
    const most = Math.max(leastPerTurn, Math.ceil(this.#idle.size / turnsPerRound));
    const nowMs = this.#ports.nowMs();
    const looked: CrawlerId[] = [];
    for (const [crawlerId, { notBeforeMs }] of this.#idle) {
      if (looked.length === most) break;
      if (notBeforeMs <= nowMs) looked.push(crawlerId);
    }
    if (looked.length === 0) return;
    for (const crawlerId of looked) {
      const idle = this.#idle.get(crawlerId)!;
      this.#idle.delete(crawlerId);
      this.#idle.set(crawlerId, idle);
    }
    for (const crawlerId of await this.#ports.reads.crawlersWithWork(looked, this.#ports.now())) {
      this.note(crawlerId);
    }
  }
}
