/**
 * What nobody has been compared for, a newcomer is asked about first: a crawler that was alone has all there is, and what it has says
 * nothing of who is near. Those subnets come first that lie where the newcomer is likely near (by tree, holder, country, published
 * ranges, and by how the rounds before ended), and of those alike, the ones of which most is fetched. Each is decided by a round of
 * its own, in which others may turn out to be nearer still; what a round has decided is never asked about here again.
 *
 *   rank all ─► the best few thousand ─► so many rounds under way ─► what they decided weighs the rest ─► …
 *   ─► over when none is left, or too few of the latest rounds went to the newcomer
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { UnmeasuredSubnet } from "../delegation/delegation.ts";
import type { DelegationQueue } from "../delegation/queue.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import { keptCandidates, LatestFinds, type NewcomerFindings, rankedAtOnce } from "./join-search.ts";

export interface UnmeasuredPorts {
  readonly state: CoordinatorState;
  readonly fleet: Pick<Fleet, "online">;
  readonly rounds: Pick<DelegationQueue, "request" | "isUnderWay">;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

export class UnmeasuredSearch {
  readonly #newcomer: CrawlerId;
  readonly #findings: NewcomerFindings;
  readonly #ports: UnmeasuredPorts;
  readonly #asked = new Set<SubnetId>();
  readonly #underWay = new Set<SubnetId>();
  readonly #latest = new LatestFinds();
  #ranked: readonly UnmeasuredSubnet[] | null = null;
  #kept: UnmeasuredSubnet[] = [];
  #gained = 0;

  constructor(newcomer: CrawlerId, findings: NewcomerFindings, ports: UnmeasuredPorts) {
    this.#newcomer = newcomer;
    this.#findings = findings;
    this.#ports = ports;
  }

  get figures(): { readonly asked: number; readonly gained: number } {
    return { asked: this.#asked.size, gained: this.#gained };
  }

  /** `subnets` are unmeasured, `rounds` is the concurrency, `room` the subnets it may gain. Returns false when the search is over. */
  async step(
    subnets: readonly UnmeasuredSubnet[],
    { rounds, room }: Record<"rounds" | "room", number>,
  ): Promise<boolean> {
    const gained = this.#hear();
    if (this.#latest.arePoor) return this.#underWay.size > 0;
    const best = await this.#best(subnets, Math.min(rounds, room - gained) - this.#underWay.size);
    for (const subnetId of best) {
      this.#asked.add(subnetId);
      this.#underWay.add(subnetId);
    }
    this.#ports.rounds.request(best, "joined");
    return this.#underWay.size > 0;
  }

  /** Evaluates ended rounds and returns the gains. Unanswered subnets are tried again later by other jobs. */
  #hear(): number {
    const { state, rounds } = this.#ports;
    const before = this.#gained;
    for (const subnetId of this.#underWay) {
      if (rounds.isUnderWay(subnetId)) continue;
      this.#underWay.delete(subnetId);
      const delegation = state.delegationOf(subnetId);
      if (!delegation?.measured) continue;
      const isOurs = delegation.crawlerId === this.#newcomer;
      if (isOurs) this.#gained += 1;
      this.#latest.note(isOurs);
      const placement = state.placementOf(subnetId);
      if (placement !== null) this.#findings.note(placement, isOurs);
    }
    return this.#gained - before;
  }

  async #best(subnets: readonly UnmeasuredSubnet[], wanted: number): Promise<SubnetId[]> {
    if (wanted <= 0) return [];
    this.#kept = (await this.#rank(this.#kept)).slice(0, keptCandidates);
    if (this.#kept.length === 0 && this.#ranked !== subnets) {
      this.#ranked = subnets;
      this.#kept = (await this.#rank(subnets)).slice(0, keptCandidates);
    }
    return this.#kept.splice(0, wanted).map(({ subnetId }) => subnetId);
  }

  async #rank(subnets: readonly UnmeasuredSubnet[]): Promise<UnmeasuredSubnet[]> {
    const online = new Set(this.#ports.fleet.online());
    const ranked: (UnmeasuredSubnet & { readonly share: number })[] = [];
    for (const [at, subnet] of subnets.entries()) {
      if (at % rankedAtOnce === rankedAtOnce - 1) await nextTurn();
      const placement = this.#isOpen(subnet.subnetId, online)
        ? this.#ports.state.placementOf(subnet.subnetId)
        : null;
      // Ranks by tenths of likelihood, then by pages.
      if (placement !== null)
        ranked.push({ ...subnet, share: Math.round(10 * this.#findings.shareAround(placement)) });
    }
    return ranked.sort(
      (a, b) => b.share - a.share || b.pagesPerDay - a.pagesPerDay || a.subnetId - b.subnetId,
    );
  }

  #isOpen(subnetId: SubnetId, online: ReadonlySet<CrawlerId>): boolean {
    const { state, rounds, anycast } = this.#ports;
    if (this.#asked.has(subnetId) || rounds.isUnderWay(subnetId) || anycast?.has(subnetId)) return false;
    const delegation = state.delegationOf(subnetId);
    if (delegation === null || delegation.measured || delegation.crawlerId === this.#newcomer) return false;
    // A leaving crawler's subnets are handed over anyway.
    const owner = state.crawler(delegation.crawlerId);
    return online.has(delegation.crawlerId) && (owner?.drainingSince ?? null) === null;
  }
}
