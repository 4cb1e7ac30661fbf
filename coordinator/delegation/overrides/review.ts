/**
 * Finer delegations are looked at again from time to time: the crawler is confirmed or changed, and what is no
 * longer needed goes with its subnet again. A host does when everybody is told the same of it. A part does when
 * the subnet's crawler has come to have it anyway, or is no farther from it than the nearest by half of what
 * made it a part: a part at the limit does not come and go.
 */
import type { CrawlerId } from "#core/ids";
import { areasOf, type DelegateHostsPorts, hearVantages } from "./hosts.ts";
import { type FinerDecision, type FinerDelegation, type HostPlace, reviewTimes } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import { type FinerOutcome, finerRound } from "./round.ts";

interface ReviewFinerPorts extends Omit<DelegateHostsPorts, "names"> {
  readonly finer: Pick<
    FinerDelegationStore,
    "saveRound" | "hostPlaces" | "setHost" | "dueForReview" | "reviewed" | "end"
  >;
}

const reviewsPerPass = 4;
/** After a review without an answer. */
const retryMs = 3_600_000;
/** The subnet's crawler may be farther by so much for a part to be joined again, in ms. */
const joinGainMs = 2.5;
/** The present crawler stays while it is no farther than the nearest by so much, in ms. */
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

/** Why it ends, or null when it goes on. */
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

/** Two vantage points at least, and no two of them without a subnet in common. */
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

/** The nearest, or the present crawler where that is hardly farther; null when nobody answered, or the present one could not ask. */
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
