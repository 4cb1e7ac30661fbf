/**
 * Hands over the subnets of draining crawlers and of those absent beyond the grace time. Those with known RTTs move at
 * once; the rest is probed at a limited rate, so that a large crawler's end causes no storm of probes.
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

/** Rounds requested per pass, for all crawlers. */
const roundsPerPass = 40;
/** The rest is planned and probed again after this time, when others may have room. */
const planAgainMs = 60_000;

export class HandOvers {
  readonly #ports: HandOverPorts;
  readonly #rule: DepartureRule;
  /** Per crawler: what the last plan left without a requested round, and the time of that plan. */
  readonly #left = new Map<CrawlerId, { readonly orphans: SubnetId[]; readonly atMs: number }>();
  /** Orphans of each crawler when last reported; reported once, since they may stay for long. */
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
        // The crawler may have connected meanwhile, here or to another coordinator.
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

  /** Returns how many rounds were requested. */
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

/** Draining ones first, because somebody waits for them. */
function leavingCrawlers(state: CoordinatorState, rule: DepartureRule, now: Date): CrawlerId[] {
  const draining = state.crawlers
    .filter(({ drainingSince }) => drainingSince !== null)
    .map(({ crawlerId }) => crawlerId)
    .filter((crawlerId) => state.subnetCountOf(crawlerId) > 0);
  return [...new Set([...draining, ...departedCrawlers(state, rule, now)])];
}
