/**
 * Reviews finer delegations periodically. The crawler is confirmed or changed, and unnecessary delegations end. A host's ends
 * if every vantage point gets the same answer. A part's ends if the subnet's crawler is the nearest anyway, or exceeds the
 * nearest by no more than half the splitting limit, which avoids flapping.
 */
import type { CrawlerId } from "#core/ids";
import type { DeniedTargets } from "../denied-targets.ts";
import type { CoordinatorState } from "../state.ts";
import { areasOf, type DelegateHostsPorts, hearVantages, share } from "./hosts.ts";
import {
  type FinerDecision,
  type FinerDelegation,
  maxFinerDelegations,
  reviewTimes,
  type SeenAnswer,
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
/** A part is joined again if the subnet's crawler is farther by at most this many ms. */
const joinGainMs = 2.5;
/** The present crawler stays if it is farther than the nearest by at most this many ms. */
const stayGainMs = 5;

/** Makes one pass. Returns how many were reviewed and how many of them ended. */
export async function reviewFiner(ports: ReviewFinerPorts): Promise<{ reviewed: number; ended: number }> {
  const due = await ports.finer.dueForReview(reviewsPerPass, ports.now());
  let ended = 0;
  for (const finer of due) {
    const { place } = finer;
    const end =
      place.type === "host" ? await reviewHost(finer, place, ports) : await reviewPart(finer, ports);
    if (end === null) continue;
    await ports.finer.end(finer.finerId, end, ports.now());
    ended += 1;
  }
  return { reviewed: due.length, ended };
}

/** Why the part ends, or null if it continues. */
async function reviewPart(part: FinerDelegation, ports: ReviewFinerPorts): Promise<string | null> {
  const { subnetCrawlerId, target, subnetId: withinSubnetId } = part;
  if (subnetCrawlerId === part.crawlerId) return "the subnet's crawler has this part of it anyway";
  const first = [subnetCrawlerId, part.crawlerId];
  const chosen = chosenOf(await finerRound({ target, withinSubnetId, cause: "review", first }, ports), part);
  if (chosen === null) return await putOff(part, ports);
  const { decision, nearestMs } = chosen;
  if (decision.subnetRttMs !== null && nearestMs >= decision.subnetRttMs - joinGainMs)
    return "the subnet's crawler is as near to this part as any other";
  if (decision.crawlerId === subnetCrawlerId) return "the subnet's crawler is the nearest to it again";
  const reason = "another crawler is nearer to this part of the subnet";
  await ports.finer.reviewed(part.finerId, { ...decision, reason }, reviewTimes(ports.now()));
  return null;
}

async function reviewHost(
  finer: FinerDelegation,
  { hostHash, host }: Extract<FinerDelegation["place"], { type: "host" }>,
  ports: ReviewFinerPorts,
): Promise<string | null> {
  const [known] = await ports.finer.hostPlaces([hostHash]);
  if (known === undefined) return "nothing of this host is to be fetched any more";
  const heard = await hearVantages(known, [finer.subnetCrawlerId, finer.crawlerId], ports);
  const chosen = chosenOf(heard?.outcome ?? null, finer);
  if (heard === null || chosen === null) return await putOff(finer, ports);
  const { seen } = heard;
  if (seesTheSame(seen, ports)) return `${host} resolves to the same everywhere again`;
  const { subnetId } = known;
  const reason = `${known.host} resolves differently by place`;
  await ports.finer.setHost(
    { ...chosen.decision, hostHash, subnetId, seen, reason },
    reviewTimes(ports.now()),
  );
  return null;
}

/** True if at least two vantage points answered and every two of them had a subnet in common. */
function seesTheSame(seen: readonly SeenAnswer[], { state }: ReviewFinerPorts): boolean {
  const areas = seen.map(({ addresses }) => areasOf(addresses, state)).filter(({ length }) => length > 0);
  return areas.length >= 2 && areas.every((a) => areas.every((b) => share(a, b, "subnetId")));
}

async function putOff(finer: FinerDelegation, ports: ReviewFinerPorts): Promise<null> {
  const now = ports.now();
  await ports.finer.reviewed(finer.finerId, null, { now, reviewAt: new Date(now.getTime() + retryMs) });
  return null;
}

/** The nearest, or the present crawler if hardly farther. Null if no crawler answered or the present one could not probe. */
function chosenOf(outcome: FinerOutcome | null, { crawlerId, subnetCrawlerId }: FinerDelegation) {
  const nearestMs = outcome?.decision?.rttMs ?? null;
  if (!outcome?.decision || nearestMs === null || outcome.unheard.has(crawlerId)) return null;
  const { rttsMs } = outcome;
  const subnetRttMs = subnetCrawlerId === null ? null : (rttsMs.get(subnetCrawlerId) ?? null);
  const decision: FinerDecision = { ...outcome.decision, subnetRttMs };
  const rttMs = rttsMs.get(crawlerId);
  const stays = rttMs !== undefined && rttMs <= nearestMs + stayGainMs;
  if (!stays || decision.crawlerId === crawlerId) return { decision, nearestMs };
  const runnerUp = { runnerUpId: decision.crawlerId, runnerUpRttMs: nearestMs };
  return { decision: { ...decision, crawlerId, rttMs, ...runnerUp }, nearestMs };
}

// Passes on the hosts and parts of departed or draining crawlers: to the nearest by their latest round without a new probe,
// or to the subnet's crawler until they are probed again. A host or part that a partner denies goes to the runner-up or the
// subnet's crawler, if allowed, and is probed at once. If neither is allowed, it returns to its subnet. Call this after the
// subnets have been handed over.

interface ReplaceFinerPorts {
  readonly finer: Pick<FinerDelegationStore, "crawlers" | "inherit" | "dueForReview" | "reviewed" | "end">;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
  readonly state: CoordinatorState;
  readonly online: () => readonly CrawlerId[];
}

interface DepartureTimes {
  /** Absence after which a crawler counts as gone. */
  readonly departureMs: number;
  /** Start of this coordinator. Before it, no crawler could return. */
  readonly since: Date;
  readonly now: Date;
}

/** Makes one pass over all leaving crawlers. Returns how many hosts and parts moved. */
export async function replaceFiner(ports: ReplaceFinerPorts, times: DepartureTimes): Promise<number> {
  const owners = await ports.finer.crawlers();
  const leaving = owners.filter((crawlerId) => isLeaving(crawlerId, ports.state, times));
  const heirs = ports
    .online()
    .filter((crawlerId) => !leaving.includes(crawlerId) && !isDrained(crawlerId, ports.state));
  if (leaving.length === 0 || heirs.length === 0) return 0;
  let moved = await replaceDenied({ leaving, heirs }, ports, times.now);
  for (const crawlerId of leaving) moved += (await ports.finer.inherit(crawlerId, heirs, times.now)).moved;
  return moved;
}

const anyReviewMs = 366 * 86_400_000;

/** Reads nothing while no crawler denies anything. Returns how many moved to another crawler. */
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
