/**
 * Does a name resolve differently by place (GeoDNS), or does its name server merely rotate its answers? Asked
 * of what several vantage points (the coordinator, crawlers) were told, each of them more than once, with more
 * than the answer's TTL between two times, so that no cache repeats itself.
 *
 * Addresses are compared by where they lie in the registry: two answers are *alike* when they share a subnet.
 * So one answer with all of the addresses in another order, or another address of the same leaf, is no
 * difference at all. Two conditions make GeoDNS:
 *   - two vantage points, each heard at least twice, never had a subnet in common;
 *   - vantage points keep to what they said before. Each repeated answer scores 1; each answer unlike its
 *     predecessor costs 3. Were the answers drawn at random from two or more places, a repeat would be a coin
 *     flip at best, and the score a walk that drifts downward: it ever reaches 8 with a probability under
 *     1.839^-8 = 0.8 % (Wald's bound; 1.839 is the root of x/2 + 1/(2x³) = 1), and 16 with 0.006 %.
 * Pools of one holder rotate most (load balancers, some of which stick to whom they know), so a difference
 * within one holder alone needs twice the score.
 */
import type { HolderId, SubnetId } from "#core/ids";

/** Where an address lies: its most specific subnet of more than one address, and who holds that. */
export interface AnswerArea {
  readonly subnetId: SubnetId;
  readonly holderId: HolderId | null;
}

/** What one vantage point was told, oldest answer first; each answer as the areas of its addresses. */
export interface VantageAnswers {
  readonly answers: readonly (readonly AnswerArea[])[];
}

export type PlaceVerdict =
  /** GeoDNS. */
  | "differs"
  /** The answers change of themselves, at one place too. */
  | "rotates"
  /** Everybody who was heard often enough is told the same. */
  | "same"
  | "unclear";

/** Scores as the header explains; a rotating name is given up for such a one. */
const scoreOfPlace = 8;
const scoreOfRotation = -6;
const costOfChange = 3;
/** Everybody heard so often, and no two apart: the same everywhere. */
const heardForSame = 3;

export function placeVerdict(vantages: readonly VantageAnswers[]): PlaceVerdict {
  const heard = vantages.filter(({ answers }) => answers.length >= 2);
  const score = heard.reduce((sum, { answers }) => sum + steadiness(answers), 0);
  const difference = greatestDifference(heard);
  if (difference === "none") {
    const isSettled = heard.length >= 2 && heard.every(({ answers }) => answers.length >= heardForSame);
    return isSettled ? "same" : "unclear";
  }
  if (score <= scoreOfRotation) return "rotates";
  const needed = difference === "holder" ? scoreOfPlace : 2 * scoreOfPlace;
  return score >= needed ? "differs" : "unclear";
}

/** Repeats count up, changes count down. */
function steadiness(answers: VantageAnswers["answers"]): number {
  let score = 0;
  for (let index = 1; index < answers.length; index++) {
    score += share(answers[index - 1]!, answers[index]!, "subnetId") ? 1 : -costOfChange;
  }
  return score;
}

type Difference = "none" | "subnet" | "holder";

/** Over all pairs of vantage points and all that each was ever told. */
function greatestDifference(vantages: readonly VantageAnswers[]): Difference {
  const told = vantages.map(({ answers }) => answers.flat()).filter((areas) => areas.length > 0);
  let greatest: Difference = "none";
  for (const [index, a] of told.entries()) {
    for (const b of told.slice(index + 1)) {
      if (share(a, b, "subnetId")) continue;
      if (!share(a, b, "holderId")) return "holder";
      greatest = "subnet";
    }
  }
  return greatest;
}

function share(a: readonly AnswerArea[], b: readonly AnswerArea[], by: keyof AnswerArea): boolean {
  const known = new Set(a.map((area) => area[by]).filter((id) => id !== null));
  return b.some((area) => area[by] !== null && known.has(area[by]));
}
