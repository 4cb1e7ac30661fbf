/** A host that always has a page to be fetched, asked for days by a controller of the pace, and what came of it. */
import { mix32, seededRandom } from "#core/random";
import { afterAnswer, newPace, type PaceCircumstances } from "#crawler/limits/host-pace";
import type { HostAnswer } from "#crawler/limits/request-outcome";
import { afterAnswerEarlier, newEarlierPace } from "./earlier-pace.ts";
import { type LimiterKind, limitedSite } from "./limiters.ts";

export const controllers = ["earlier", "tolerated"] as const;
export type Controller = (typeof controllers)[number];

export interface PaceRun {
  readonly kind: LimiterKind;
  readonly controller: Controller;
  readonly seed: number;
  readonly hours: number;
  readonly settings: PaceCircumstances["settings"];
}

export interface PaceOutcome {
  readonly asked: number;
  /** 429, 503, or no answer. */
  readonly refused: number;
  /** Of those, in the second half of the time. */
  readonly refusedLate: number;
  readonly bannedHours: number;
  /** Requests while others had it overloaded. */
  readonly askedOverloaded: number;
  /** What got through, of what the limiter and the settings allow together. */
  readonly share: number;
  /** The same of the second half of the time. */
  readonly shareLate: number;
  /** Until half an hour began in which 70 % of that got through with one refusal at most; null: never. */
  readonly settledAfterHours: number | null;
  /** Requests an hour that got through, by the tenth of an hour. */
  readonly perHour: readonly number[];
}

const hourMs = 3_600_000;
const slotMs = hourMs / 10;
const settledSlots = 5;
const settledShare = 0.7;

export function simulatePace({ kind, controller, seed, hours, settings }: PaceRun): PaceOutcome {
  const site = limitedSite(kind, seed);
  const random = seededRandom(mix32(seed ^ 0x70616365));
  const step = stepOf(controller);
  const endMs = hours * hourMs;
  const good = new Float64Array(Math.ceil(endMs / slotMs));
  const refused = new Float64Array(good.length);
  let [asked, bannedMs, askedOverloaded, tookMs] = [0, 0, 0, 0];
  let atMs = 0;
  while (atMs < endMs) {
    const answer = site.ask(atMs);
    const slot = Math.floor(atMs / slotMs);
    const isGood = answer.status === 200;
    asked += 1;
    if (isGood) good[slot]! += 1;
    else refused[slot]! += 1;
    if (isGood) tookMs += answer.tookMs;
    if (site.isOverloaded(atMs)) askedOverloaded += 1;
    const nowMs = atMs + answer.tookMs;
    const nextMs = Math.max(nowMs, step(answer, { settings, nowMs, random: random() }));
    if (site.isBanned(nowMs)) bannedMs += bannedWithin(site.isBanned, nowMs, Math.min(nextMs, endMs));
    atMs = nextMs;
  }
  const goodOnes = sum(good);
  const usualMs = goodOnes === 0 ? 0 : tookMs / goodOnes;
  const restMs = Math.max(settings.fastestMs ?? settings.floorMs, settings.responseTimeFactor * usualMs);
  const allowedPerHour = Math.min(site.allowedPerHour, hourMs / (restMs + usualMs));
  const half = Math.floor(good.length / 2);
  return {
    asked,
    refused: sum(refused),
    refusedLate: sum(refused.subarray(half)),
    bannedHours: bannedMs / hourMs,
    askedOverloaded,
    share: goodOnes / (allowedPerHour * hours),
    shareLate: sum(good.subarray(half)) / ((allowedPerHour * hours * (good.length - half)) / good.length),
    settledAfterHours: settledAfter(good, refused, allowedPerHour),
    perHour: [...good].map((each) => each * 10),
  };
}

/** From an answer to when the host may be asked again. */
function stepOf(controller: Controller): (answer: HostAnswer, now: PaceCircumstances) => number {
  if (controller === "earlier") {
    let pace = newEarlierPace;
    return (answer, now) => {
      pace = afterAnswerEarlier(pace, answer, now);
      return pace.notBeforeMs;
    };
  }
  let pace = newPace;
  return (answer, now) => {
    pace = afterAnswer(pace, answer, now);
    return pace.notBeforeMs;
  };
}

/** Nobody asks meanwhile, so a ban ends once. */
function bannedWithin(isBanned: (atMs: number) => boolean, fromMs: number, toMs: number): number {
  if (isBanned(toMs)) return toMs - fromMs;
  let [banned, free] = [fromMs, toMs];
  while (free - banned > 1000) {
    const middle = (banned + free) / 2;
    if (isBanned(middle)) banned = middle;
    else free = middle;
  }
  return banned - fromMs;
}

function settledAfter(good: Float64Array, refused: Float64Array, allowedPerHour: number): number | null {
  const wanted = (settledShare * allowedPerHour * settledSlots * slotMs) / hourMs;
  for (let from = 0; from + settledSlots <= good.length; from++) {
    const within = (of: Float64Array) => sum(of.subarray(from, from + settledSlots));
    if (within(good) >= wanted && within(refused) <= 1) return (from * slotMs) / hourMs;
  }
  return null;
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}
