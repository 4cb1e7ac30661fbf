/**
 * Reviews finer delegations periodically: the crawler is confirmed or changed, and unnecessary ones end. A host's ends
 * when every vantage point gets the same answer. A part's ends when the subnet's crawler is the nearest anyway, or
 * exceeds the nearest by no more than half the splitting limit, so that parts near the limit do not come and go.
 */
import type { CrawlerId } from "#core/ids";
import type { DeniedTargets } from "../denied-targets.ts";
import type { CoordinatorState } from "../state.ts";
import { areasOf, type DelegateHostsPorts, hearVantages } from "./hosts.ts";
import {
  type FinerDecision,
  type FinerDelegation,
  type HostPlace,
  maxFinerDelegations,
  reviewTimes,
} from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerOutcome, finerRound } from "./round.ts";

interface ReviewFinerPorts extends Omit<DelegateHostsPorts, "names"> {
  readonly finer: Pick<
    FinerDelegationStore,
    "saveRound" | "hostPlaces" | "setHost" | "dueForReview" | "reviewed" | "end"
  >;
}

const reviewsPerPass = 4;
/** Delay after a review without an answer. */
const retryMs = 3_600_000;
/** A part is joined again when the subnet's crawler is farther by at most this many ms. */
const joinGainMs = 2.5;
/** The present crawler stays when it is farther than the nearest by at most this many ms. */
const stayGainMs = 5;

/** One pass; returns how many were reviewed and how many of them ended. */
export async function reviewFiner(ports: ReviewFinerPorts): Promise<{ reviewed: number; ended: number }> {
  const due = await ports.finer.dueForReview(reviewsPerPass, ports.now());
  let ended = 0;
  for (const finer of due) {
    const end = finer.place.type === "host" ? await reviewHost(finer, ports) : await reviewPart(finer, ports);
    if (end === null) continue;
    await ports.finer.end(finer.finerId, end, ports.now());
    ended += 1;
  }
  return { reviewed: due.length, ended };
}

/** Why the part ends, or null when it continues. */
async function reviewPart(part: FinerDelegation, ports: ReviewFinerPorts): Promise<string | null> {
  const { subnetCrawlerId } = part;
  if (subnetCrawlerId === part.crawlerId) return "the subnet's crawler has this part of it anyway";
  const first = [subnetCrawlerId, part.crawlerId].filter((crawlerId) => crawlerId !== null);
  const outcome = await finerRound(
    { target: part.target, withinSubnetId: part.subnetId, cause: "review", first, byName: false },
    ports,
  );
  const chosen = chosenOf(outcome, part);
  if (chosen === null) return await putOff(part, ports);
  if (chosen.subnetRttMs !== null && chosen.nearestMs >= chosen.subnetRttMs - joinGainMs) {
    return "the subnet's crawler is as near to this part as any other";
  }
  if (chosen.decision.crawlerId === subnetCrawlerId) return "the subnet's crawler is the nearest to it again";
  const reason = "another crawler is nearer to this part of the subnet";
  await ports.finer.reviewed(part.finerId, { ...chosen.decision, reason }, reviewTimes(ports.now()));
  return null;
}

async function reviewHost(finer: FinerDelegation, ports: ReviewFinerPorts): Promise<string | null> {
  const { place } = finer;
  if (place.type !== "host") return null;
  const [known] = await ports.finer.hostPlaces([place.hostHash]);
  if (known === undefined) return "nothing of this host is to be fetched any more";
  const first = [finer.subnetCrawlerId, finer.crawlerId];
  const heard = await hearVantages(known, first, ports);
  const chosen = chosenOf(heard?.outcome ?? null, finer);
  if (heard === null || chosen === null) return await putOff(finer, ports);
  if (isToldTheSame(heard.seen, ports)) return `${place.host} resolves to the same everywhere again`;
  await ports.finer.setHost(
    {
      ...chosen.decision,
      hostHash: known.hostHash,
      subnetId: known.subnetId,
      seen: heard.seen,
      reason: reviewedReason(known),
    },
    reviewTimes(ports.now()),
  );
  return null;
}

const reviewedReason = ({ host }: HostPlace) => `${host} resolves differently by place`;

/** True when at least two vantage points answered and no two lacked a common subnet. */
function isToldTheSame(
  seen: readonly { readonly addresses: readonly string[] }[],
  ports: ReviewFinerPorts,
): boolean {
  const told = seen
    .map(({ addresses }) => new Set(areasOf(addresses, ports.state).map(({ subnetId }) => subnetId)))
    .filter((areas) => areas.size > 0);
  if (told.length < 2) return false;
  return told.every((a) => told.every((b) => [...a].some((subnetId) => b.has(subnetId))));
}

async function putOff(finer: FinerDelegation, ports: ReviewFinerPorts): Promise<null> {
  const now = ports.now();
  await ports.finer.reviewed(finer.finerId, null, { now, reviewAt: new Date(now.getTime() + retryMs) });
  return null;
}

interface Chosen {
  readonly decision: FinerDecision;
  readonly nearestMs: number;
  readonly subnetRttMs: number | null;
}

/** The nearest, or the present crawler if hardly farther; null when nobody answered or the present one could not probe. */
function chosenOf(outcome: FinerOutcome | null, finer: FinerDelegation): Chosen | null {
  if (!outcome?.decision || outcome.decision.rttMs === null || outcome.unheard.has(finer.crawlerId))
    return null;
  const { decision, rttsMs } = outcome;
  const nearestMs = outcome.decision.rttMs;
  const subnetRttMs = finer.subnetCrawlerId === null ? null : (rttsMs.get(finer.subnetCrawlerId) ?? null);
  const presentMs = rttsMs.get(finer.crawlerId);
  const stays = presentMs !== undefined && presentMs <= nearestMs + stayGainMs;
  if (!stays || decision.crawlerId === finer.crawlerId) {
    return { decision: { ...decision, subnetRttMs }, nearestMs, subnetRttMs };
  }
  const runnerUp: { runnerUpId: CrawlerId; runnerUpRttMs: number } = {
    runnerUpId: decision.crawlerId,
    runnerUpRttMs: nearestMs,
  };
  const kept = { ...decision, crawlerId: finer.crawlerId, rttMs: presentMs, ...runnerUp, subnetRttMs };
  return { decision: kept, nearestMs, subnetRttMs };
}

// Passes on the hosts and parts of departed or draining crawlers: to the nearest by their latest round without a new
// probe, or to the subnet's crawler until they are probed again. What a partner denies goes to the runner-up or the
// subnet's crawler, if allowed, and is probed at once; otherwise it returns to its subnet. Call after the subnets have
// been handed over.

interface ReplaceFinerPorts {
  readonly finer: Pick<FinerDelegationStore, "crawlers" | "inherit" | "dueForReview" | "reviewed" | "end">;
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
  readonly state: CoordinatorState;
  /** Crawlers that can take something now. */
  readonly online: () => readonly CrawlerId[];
}

interface DepartureTimes {
  /** Absence after which a crawler counts as gone. */
  readonly departureMs: number;
  /** Start of this coordinator, before which nobody could return. */
  readonly since: Date;
  readonly now: Date;
}

/** One pass over all leaving crawlers; returns how many hosts and parts moved. */
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

/** A review is never postponed for longer. */
const anyReviewMs = 366 * 86_400_000;

/** Reads nothing while nobody denies anything. Returns how many moved to another crawler. */
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
