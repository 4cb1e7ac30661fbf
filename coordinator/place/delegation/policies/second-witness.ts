/**
 * Whether the report that wins a round is borne out by others. A crawler may say of a target that it is beside it, and a
 * round would believe that at once and ask nobody else. Where the winner says x, another measured y to the target and D to
 * the winner, and the winner is right, y and D differ by x at most (triangle inequality), so that one of them is not much
 * more than the other:
 *
 *   against   the larger of y and D is more than 1.4 times x + the smaller + 5 ms; the more, the more it weighs
 *   for       y + D is hardly more than x: whoever is beside the winner is near the target, too; nothing more is asked
 *   agrees    y is what D would be for a target beside the winner, but both are large: chance does it at times, so it weighs half
 *
 * Whoever is nearest to the winner tells most, and is asked first; where nobody is near it, the one whom the round would ask
 * next if the winner had not answered. At most four are asked. Nobody is accused by it, and nothing is remembered: a report
 * that two speak against, or one strongly and nobody for it, counts as what the sharpest of them leaves, and the round goes
 * on. Real paths violate the triangle, so an honest crawler loses a subnet now and then, to one that measured less than that
 * (figures: test/bench/results/trust.md). D is what the witness measured, for a liar would state it to fit.
 */
import type { CrawlerId } from "#core/ids";
import { type CandidateFleet, shortestTo } from "../fleet.ts";

interface Report {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

interface WonReport {
  readonly winner: Report;
  /** What all others measured; of one that failed there is none. */
  readonly others: readonly Report[];
  readonly fleet: CandidateFleet;
  /** How many were asked for the winner's sake so far. */
  readonly looks: number;
  /** Uniform in [0, 1): which of the nearest is asked, so that a liar cannot foresee its witness. */
  readonly draw: number;
  /** May still be asked. */
  readonly mayAsk: (crawlerId: CrawlerId) => boolean;
  /** Whom the round would ask next if the winner had not answered; null: nobody. */
  readonly nextWithoutIt: () => CrawlerId | null;
}

export type WinJudgement =
  | { readonly type: "believed" }
  | { readonly type: "ask"; readonly crawlerId: CrawlerId }
  /** The report counts as this many ms. */
  | { readonly type: "counts-as"; readonly rttMs: number };

const slackMs = 5;
const leastRatio = 1.4;
/** Of one witness, in steps of that ratio: a bad route of one outweighs no two whom the winner's word fits. */
const mostAgainst = 2;
const besideIt = { ms: 12, perMs: 0.5 } as const;
const weightOfBeside = 2;
const alike = { ms: 3, share: 0.1 } as const;
/** So much more for it than against it, or against it than for it, is enough. */
const enough = 2;
/** And so much against it where nobody is left to ask. */
const enoughAtLast = 1;
const mostLooks = 4;
/** The witness is drawn from so many of the nearest. */
const drawnFrom = 3;
/** What a single witness leaves of its distance. */
const trustInOne = 0.7;

const believed: WinJudgement = { type: "believed" };

export function judgeWin(won: WonReport): WinJudgement {
  const { winner, looks } = won;
  const heard = testimonyOf(won);
  const surplus = heard.weightFor - heard.weightAgainst;
  if (surplus >= enough && (heard.isBeside || looks > 0)) return believed;
  if (-surplus >= enough && heard.against.length > 1) return countsAs(winner, heard.against);
  const crawlerId = looks < mostLooks ? nextWitness(won) : null;
  if (crawlerId !== null) return { type: "ask", crawlerId };
  return -surplus >= enoughAtLast ? countsAs(winner, heard.against) : believed;
}

interface Contradiction {
  readonly smallerMs: number;
  readonly largerMs: number;
}

function testimonyOf({ winner, others, fleet }: WonReport) {
  let [besides, alikes, weightAgainst] = [0, 0, 0];
  const against: Contradiction[] = [];
  for (const { crawlerId, rttMs } of others) {
    const straightMs = fleet.peerRtts.measuredMs(crawlerId, winner.crawlerId);
    if (straightMs === null) continue;
    // A bad route between two is no distance: looked for only where it would tell a lie.
    const isFar = ratioOf(rttMs, straightMs, winner) > leastRatio && straightMs > rttMs;
    const apartMs = isFar ? shortestTo(fleet, crawlerId, winner.crawlerId, straightMs) : straightMs;
    const [smallerMs, largerMs] = rttMs < apartMs ? [rttMs, apartMs] : [apartMs, rttMs];
    const ratio = ratioOf(rttMs, apartMs, winner);
    if (ratio > leastRatio) {
      weightAgainst += Math.min(mostAgainst, Math.log(ratio) / Math.log(leastRatio));
      against.push({ smallerMs, largerMs });
    } else if (rttMs + apartMs <= winner.rttMs * (1 + besideIt.perMs) + besideIt.ms) besides += 1;
    else if (largerMs - smallerMs <= winner.rttMs + alike.ms + alike.share * largerMs) alikes += 1;
  }
  against.sort((a, b) => a.smallerMs - b.smallerMs);
  const weightFor = besides * weightOfBeside + alikes;
  return { weightFor, weightAgainst, isBeside: besides > 0, against };
}

const ratioOf = (rttMs: number, apartMs: number, winner: Report): number =>
  Math.max(rttMs, apartMs) / (Math.min(rttMs, apartMs) + winner.rttMs + slackMs);

/** The sharpest is the one that is nearest to either of the two: its other distance is all but theirs. */
function countsAs(winner: Report, [sharpest, second]: readonly Contradiction[]): WinJudgement {
  if (sharpest === undefined) return believed;
  const leftMs =
    second === undefined ? trustInOne * sharpest.largerMs : Math.min(sharpest.largerMs, second.largerMs);
  return { type: "counts-as", rttMs: Math.max(winner.rttMs, leftMs) };
}

function nextWitness({ winner, fleet, looks, draw, mayAsk, nextWithoutIt }: WonReport): CrawlerId | null {
  const near: Report[] = [];
  for (const crawlerId of fleet.candidates) {
    const rttMs = mayAsk(crawlerId) ? fleet.peerRtts.measuredMs(crawlerId, winner.crawlerId) : null;
    if (rttMs === null || rttMs >= (near[drawnFrom - 1]?.rttMs ?? Number.POSITIVE_INFINITY)) continue;
    near.push({ crawlerId, rttMs });
    near.sort((a, b) => a.rttMs - b.rttMs);
    near.length = Math.min(near.length, drawnFrom);
  }
  if (near.length === 0) return null;
  const isWorthIt = looks === 0 || near[0]!.rttMs <= nearMs + winner.rttMs;
  // Another number for each look, from the one that the round was given.
  const at = Math.floor(((draw * (looks + 1) * drawnAnew) % 1) * near.length);
  return isWorthIt ? near[at]!.crawlerId : nextWithoutIt();
}

/** As near to the winner as this, a second one tells more than whom the round would ask. */
const nearMs = 20;
const drawnAnew = 997;
