/**
 * The faults of a chaos run and their times: drawn from its seed, so that a failed run can be repeated. Faults of different
 * targets overlap; a target has one fault at a time, and each fault is undone before the plan's end.
 */
import { SeededRandom } from "#ops/world/seeded-random";

export type FaultKind =
  | "kill-crawler"
  | "stop-crawler"
  | "kill-coordinator"
  | "stop-coordinator"
  | "kill-backend"
  | "kill-database"
  | "stop-database"
  | "kill-everything"
  | "fill-crawler-disk"
  | "fill-database-disk"
  | "cut-link"
  | "stall-link"
  | "slow-link"
  | "cut-coordinator"
  | "cut-database"
  | "stall-database"
  | "slow-database";

type Thing = "crawler" | "coordinator" | "database" | "link" | "way" | "everything";

interface FaultRule {
  /** Targets that can have no other fault meanwhile. */
  readonly thing: Thing;
  /** Its weight among the others. */
  readonly weight: number;
  readonly lastsSeconds: readonly [number, number];
}

/** Link: a crawler's way to its coordinator. Way: a coordinator's way to the database; its crawlers' way to it is `coordinator`. */
const faultRules: Readonly<Record<FaultKind, FaultRule>> = {
  "kill-crawler": { thing: "crawler", weight: 4, lastsSeconds: [0, 8] },
  "stop-crawler": { thing: "crawler", weight: 3, lastsSeconds: [1, 25] },
  "kill-coordinator": { thing: "coordinator", weight: 3, lastsSeconds: [0, 8] },
  "stop-coordinator": { thing: "coordinator", weight: 2, lastsSeconds: [1, 12] },
  "kill-backend": { thing: "database", weight: 2, lastsSeconds: [0, 0] },
  "kill-database": { thing: "database", weight: 2, lastsSeconds: [0, 6] },
  "stop-database": { thing: "database", weight: 2, lastsSeconds: [1, 12] },
  "kill-everything": { thing: "everything", weight: 1, lastsSeconds: [0, 4] },
  "fill-crawler-disk": { thing: "crawler", weight: 2, lastsSeconds: [3, 20] },
  "fill-database-disk": { thing: "database", weight: 2, lastsSeconds: [2, 12] },
  "cut-link": { thing: "link", weight: 3, lastsSeconds: [0, 15] },
  "stall-link": { thing: "link", weight: 2, lastsSeconds: [2, 30] },
  "slow-link": { thing: "link", weight: 2, lastsSeconds: [5, 30] },
  "cut-coordinator": { thing: "coordinator", weight: 2, lastsSeconds: [0, 10] },
  "cut-database": { thing: "way", weight: 2, lastsSeconds: [0, 8] },
  "stall-database": { thing: "way", weight: 2, lastsSeconds: [1, 12] },
  "slow-database": { thing: "way", weight: 2, lastsSeconds: [5, 20] },
};

export const faultKinds = Object.keys(faultRules) as readonly FaultKind[];

export interface PlannedFault {
  /** From the plan's beginning. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** Which crawler or coordinator; 0 for what there is one of. */
  readonly target: number;
  readonly lastsMs: number;
}

export interface PlanSize {
  readonly seed: number;
  readonly lengthMs: number;
  readonly crawlers: number;
  readonly coordinators: number;
  readonly faultsPerMinute: number;
  /** Default: every kind. */
  readonly kinds?: readonly FaultKind[];
  /** No fault lasts longer; default: as its kind says. */
  readonly longestMs?: number;
}

/** In the order of their times. */
export function drawPlan(size: PlanSize): readonly PlannedFault[] {
  const random = new SeededRandom(size.seed);
  const kinds = size.kinds ?? faultKinds;
  const faults: PlannedFault[] = [];
  const meanGapMs = 60_000 / size.faultsPerMinute;
  for (
    let atMs = random.exponential(meanGapMs);
    atMs < size.lengthMs;
    atMs += random.exponential(meanGapMs)
  ) {
    const kind = random.pickWeighted(kinds, (one) => faultRules[one].weight);
    const { thing, lastsSeconds } = faultRules[kind];
    const target = random.integer(0, countOf(thing, size) - 1);
    const [least, most] = lastsSeconds;
    const drawnMs = 1000 * (least + (most - least) * random.next());
    const lastsMs = Math.round(Math.min(drawnMs, size.longestMs ?? drawnMs, size.lengthMs - atMs));
    const fault = { atMs: Math.round(atMs), kind, target, lastsMs };
    const isFree = faults.every((one) => one.atMs + one.lastsMs <= fault.atMs || !areOfOneThing(one, fault));
    if (isFree) faults.push(fault);
  }
  return faults;
}

function countOf(thing: Thing, { crawlers, coordinators }: PlanSize): number {
  if (thing === "crawler" || thing === "link") return crawlers;
  return thing === "coordinator" || thing === "way" ? coordinators : 1;
}

/** Faults of one target follow each other; a kill of everything overlaps no other fault. */
export function areOfOneThing(a: PlannedFault, b: PlannedFault): boolean {
  const [one, other] = [faultRules[a.kind].thing, faultRules[b.kind].thing];
  return one === "everything" || other === "everything" || (one === other && a.target === b.target);
}
