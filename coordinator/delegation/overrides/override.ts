/**
 * Delegations finer than a subnet: one host whose name resolves differently by place, or a part of a leaf that
 * measures apart. One rule for all: a host is crawled by the crawler of its
 * finer delegation, if it has one, else by its subnet's.
 */
import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import type { FinishedRound } from "../delegation.ts";
import type { DeniedTargets } from "../denied-targets.ts";
import type { CoordinatorState } from "../state.ts";
import type { FinerDelegationStore } from "./override-store.ts";

declare const brand: unique symbol;
export type FinerId = number & { readonly [brand]: "FinerId" };

/** Most finer delegations in all; beyond that, hosts go with their subnets. */
export const maxFinerDelegations = 20_000;

/** A round for one host or for an address of a part; what is known of the subnet around it stays as it is. */
export type FinerRound = Omit<FinishedRound, "subnetId"> & { readonly withinSubnetId: SubnetId };

/** What a finer delegation is for. The addresses of a part are text. */
export type FinerPlace =
  | { readonly type: "host"; readonly hostHash: HostHash; readonly host: string }
  | { readonly type: "part"; readonly first: string; readonly last: string };

export interface FinerDelegation extends FinerDecision {
  readonly finerId: FinerId;
  readonly place: FinerPlace;
  /** The leaf that is split; for a host, the subnet in which it was found. */
  readonly subnetId: SubnetId;
  /** Who has the subnet as a whole now; null: nobody. */
  readonly subnetCrawlerId: CrawlerId | null;
  /** What its latest round probed. */
  readonly target: ProbedTarget;
}

export interface ProbedTarget {
  readonly url: string;
  readonly host: string;
  readonly address: string;
}

/** Who gets it, by which round. */
export interface FinerDecision {
  readonly roundId: RoundId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** What the subnet's own crawler measured in the same round. */
  readonly subnetRttMs: number | null;
}

export interface PlannedPart extends FinerDecision {
  readonly first: string;
  readonly last: string;
  /** For the history, in words. */
  readonly reason: string;
}

/** What one vantage point was told; null stands for the coordinator. */
export interface SeenAnswer {
  readonly crawlerId: CrawlerId | null;
  readonly addresses: readonly string[];
}

export interface DelegatedHost extends FinerDecision {
  readonly hostHash: HostHash;
  readonly subnetId: SubnetId;
  readonly seen: readonly SeenAnswer[];
  /** For the history, in words. */
  readonly reason: string;
}

/** A host as the frontier has it. */
export interface HostPlace {
  readonly hostHash: HostHash;
  readonly host: string;
  /** One of its URLs. */
  readonly url: string;
  /** As the coordinator resolved it, the first one first. */
  readonly addresses: readonly string[];
  readonly subnetId: SubnetId;
  /** True: it is delegated by itself already. */
  readonly byItself: boolean;
}

export interface ReviewTimes {
  readonly now: Date;
  /** When it is to be probed again. */
  readonly reviewAt: Date;
}

const reviewEveryMs = 6 * 3_600_000;

/** What is decided now is looked at again so much later. */
export function reviewTimes(now: Date): ReviewTimes {
  return { now, reviewAt: new Date(now.getTime() + reviewEveryMs) };
}

// What crawlers have besides whole subnets, when they are gone or drained: hosts and parts go to the nearest of
// the others by their latest round, without a new probe; of which nothing is known, to the subnet's crawler
// until they are probed again. What some partner denies goes to the runner-up or to the subnet's crawler, if they
// may have it, and is probed again at once; else it goes with its subnet again. To be called after the subnets have
// gone to others.

interface ReplaceFinerPorts {
  readonly finer: Pick<FinerDelegationStore, "crawlers" | "inherit" | "dueForReview" | "reviewed" | "end">;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  readonly state: CoordinatorState;
  /** Crawlers that may take something now. */
  readonly online: () => readonly CrawlerId[];
}

interface DepartureTimes {
  /** A crawler is gone when it has been away for longer. */
  readonly departureMs: number;
  /** When this coordinator started: nobody could come back before. */
  readonly since: Date;
  readonly now: Date;
}

/** One pass over all crawlers that are leaving; returns how many hosts and parts moved. */
export async function replaceFiner(ports: ReplaceFinerPorts, times: DepartureTimes): Promise<number> {
  const owners = await ports.finer.crawlers();
  const leaving = owners.filter((crawlerId) => isLeaving(crawlerId, ports.state, times));
  if (leaving.length === 0) return 0;
  const heirs = ports
    .online()
    .filter((crawlerId) => !leaving.includes(crawlerId) && !isDrained(crawlerId, ports.state));
  if (heirs.length === 0) return 0;
  let moved = await replaceDenied({ leaving, heirs }, ports, times.now);
  for (const crawlerId of leaving) {
    moved += (await ports.finer.inherit(crawlerId, heirs, times.now)).moved;
  }
  return moved;
}

/** A review is never put off for longer. */
const anyReviewMs = 366 * 86_400_000;

/** While nobody denies anything, nothing is read. Returns how many went to another crawler. */
async function replaceDenied(
  { leaving, heirs }: { readonly leaving: readonly CrawlerId[]; readonly heirs: readonly CrawlerId[] },
  { finer, denied }: ReplaceFinerPorts,
  now: Date,
): Promise<number> {
  if (!denied?.deniesAnything) return 0;
  const all = await finer.dueForReview(maxFinerDelegations, new Date(now.getTime() + anyReviewMs));
  let moved = 0;
  for (const one of all.filter(({ crawlerId }) => leaving.includes(crawlerId))) {
    const target = { ...one.target, subnetId: one.subnetId };
    const allowed = heirs.filter((heir) => !denied.denies(heir, target, now.getTime()));
    if (allowed.length === heirs.length) continue;
    const decision = decisionFor(one, allowed);
    if (decision === null)
      await finer.end(one.finerId, "its crawler is gone, and who is next may not have it", now);
    else await finer.reviewed(one.finerId, decision, { now, reviewAt: now });
    moved += decision === null ? 0 : 1;
  }
  return moved;
}

function decisionFor(one: FinerDelegation, allowed: readonly CrawlerId[]) {
  const heir = [one.runnerUpId, one.subnetCrawlerId].find((id) => id !== null && allowed.includes(id));
  if (heir === undefined || heir === null) return null;
  const { roundId, subnetRttMs } = one;
  const rttMs = heir === one.runnerUpId ? one.runnerUpRttMs : null;
  const reason = "its crawler is gone; this one is the next best that may have it";
  return { roundId, crawlerId: heir, rttMs, runnerUpId: null, runnerUpRttMs: null, subnetRttMs, reason };
}

function isLeaving(crawlerId: CrawlerId, state: CoordinatorState, times: DepartureTimes): boolean {
  const crawler = state.crawler(crawlerId);
  if (crawler === null || isDrained(crawlerId, state)) return true;
  if (crawler.state !== "offline") return false;
  const lastSeenMs = Math.max(times.since.getTime(), crawler.lastSeenAt?.getTime() ?? 0);
  return times.now.getTime() - lastSeenMs > times.departureMs;
}

function isDrained(crawlerId: CrawlerId, state: CoordinatorState): boolean {
  const crawler = state.crawler(crawlerId);
  return crawler !== null && (crawler.drainingSince !== null || crawler.state === "draining");
}
