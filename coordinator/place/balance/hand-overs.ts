/**
 * Whose subnets go to others, and how fast: crawlers that have been away for longer than the grace time, and
 * draining ones, online or not. What is known moves at once; the rest is probed by the queue, so many rounds
 * a pass, so that a large crawler's end does not become a storm of probes.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { DelegationQueue } from "../delegation/queue.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import { type DepartureRule, departedCrawlers, refreshCrawlers } from "./presence.ts";
import { type ReplaceCrawlerPorts, type Replaced, replaceCrawler } from "./successors.ts";

export interface HandOverPorts extends ReplaceCrawlerPorts {
  readonly crawlers: Pick<CrawlerStore, "mustJoin" | "list">;
  readonly queue: Pick<DelegationQueue, "request">;
  readonly onMoved: (cause: "crawler-left" | "drained", subnets: number) => void;
  readonly log: Log;
  readonly now: () => Date;
}

/** Rounds that are asked for in one pass, of all crawlers together. */
const roundsPerPass = 40;
/** What is left is planned again after so long (others may have room by now), and its rounds asked for again. */
const planAgainMs = 60_000;

export class HandOvers {
  readonly #ports: HandOverPorts;
  readonly #rule: DepartureRule;
  /** Per crawler what the last plan left over and no round was asked for yet, and when that was. */
  readonly #left = new Map<CrawlerId, { readonly orphans: SubnetId[]; readonly atMs: number }>();
  /** Orphans of each crawler when it was last told of; told once, since it may stay so for long. */
  readonly #told = new Map<CrawlerId, number>();

  constructor(ports: HandOverPorts, rule: DepartureRule) {
    this.#ports = ports;
    this.#rule = rule;
  }

  async pass(): Promise<void> {
    const { state, online } = this.#ports;
    const now = this.#ports.now();
    const leaving = leavingCrawlers(state, this.#rule, now);
    const isLeaving = new Set(leaving);
    for (const crawlerId of this.#left.keys()) if (!isLeaving.has(crawlerId)) this.#left.delete(crawlerId);
    let rounds = roundsPerPass;
    for (const crawlerId of leaving) {
      if (online().every((other) => other === crawlerId)) continue;
      if (!this.#isPlanned(crawlerId, now)) {
        // Meanwhile it may have come, to this coordinator or to another one.
        await refreshCrawlers(this.#ports, [crawlerId]);
        if (!leavingCrawlers(state, this.#rule, now).includes(crawlerId)) continue;
        await this.#replace(crawlerId, now);
      }
      rounds -= this.#askForRounds(crawlerId, rounds);
    }
  }

  #isPlanned(crawlerId: CrawlerId, now: Date): boolean {
    const plan = this.#left.get(crawlerId);
    return plan !== undefined && now.getTime() - plan.atMs < planAgainMs;
  }

  async #replace(crawlerId: CrawlerId, now: Date): Promise<void> {
    const replaced = await replaceCrawler(crawlerId, this.#ports, now);
    this.#left.set(crawlerId, { orphans: [...replaced.orphans], atMs: now.getTime() });
    if (replaced.moved.length > 0) await this.#noteMoved(crawlerId, replaced, now);
    this.#tell(crawlerId, replaced);
  }

  async #noteMoved(crawlerId: CrawlerId, { moved }: Replaced, now: Date): Promise<void> {
    const { crawlers, onMoved } = this.#ports;
    onMoved(this.#isDraining(crawlerId) ? "drained" : "crawler-left", moved.length);
    await crawlers.mustJoin(crawlerId, now);
    await refreshCrawlers(this.#ports, [crawlerId]);
  }

  /** How many were asked for. */
  #askForRounds(crawlerId: CrawlerId, most: number): number {
    const asked = this.#left.get(crawlerId)?.orphans.splice(0, Math.max(0, most)) ?? [];
    const cause = this.#isDraining(crawlerId) ? "drained" : "crawler-left";
    if (asked.length > 0) this.#ports.queue.request(asked, cause);
    return asked.length;
  }

  #tell(crawlerId: CrawlerId, { moved, orphans, returnedLeases }: Replaced): void {
    const isOld = moved.length + returnedLeases === 0 && this.#told.get(crawlerId) === orphans.length;
    this.#told.set(crawlerId, orphans.length);
    if (isOld) return;
    const counts = { crawlerId, moved: moved.length, orphans: orphans.length, returnedLeases };
    const { log } = this.#ports;
    if (this.#isDraining(crawlerId)) log.warn(counts, "a crawler hands over, its subnets go to others");
    else log.warn(counts, "a crawler is gone, its subnets go to others");
  }

  #isDraining(crawlerId: CrawlerId): boolean {
    return (this.#ports.state.crawler(crawlerId)?.drainingSince ?? null) !== null;
  }
}

/** Draining ones first: somebody waits for them. */
function leavingCrawlers(state: CoordinatorState, rule: DepartureRule, now: Date): CrawlerId[] {
  const draining = state.crawlers
    .filter(({ drainingSince }) => drainingSince !== null)
    .map(({ crawlerId }) => crawlerId)
    .filter((crawlerId) => state.subnetCountOf(crawlerId) > 0);
  return [...new Set([...draining, ...departedCrawlers(state, rule, now)])];
}
