/**
 * Where a crawler's move to another host stands, and which of the two hosts may run it. There is no step at which
 * both may, or neither: what decides is one row of the database, and it changes once.
 *
 *   asked → emptying → packing → sending → moved → running
 *     └────────┴──────────┴─────────┴→ failed
 */

export const moveSteps = ["asked", "emptying", "packing", "sending", "moved", "running", "failed"] as const;
export type MoveStep = (typeof moveSteps)[number];

/**
 * begun     a coordinator took it up and has asked the other host
 * ready     the other host has done and shipped its own work
 * packed    the crawler has ended its work and signed over what it keeps
 * arrived   the other host has all of it on its disk, and it is what was signed
 * came      the crawler's first session from the other host
 * broken    either end, or the coordinator, was lost or gave up, or nothing happened for too long
 */
export type MoveEvent = "begun" | "ready" | "packed" | "arrived" | "came" | "broken";

const next: Readonly<Record<MoveStep, Readonly<Partial<Record<MoveEvent, MoveStep>>>>> = {
  asked: { begun: "emptying", broken: "failed" },
  emptying: { ready: "packing", broken: "failed" },
  packing: { packed: "sending", broken: "failed" },
  sending: { arrived: "moved", broken: "failed" },
  moved: { came: "running" },
  running: {},
  failed: {},
};

/** Null: this cannot happen now, and changes nothing. */
export function nextMoveStep(step: MoveStep, event: MoveEvent): MoveStep | null {
  return next[step][event] ?? null;
}

/** Steps from which a move can still fail. */
export const openMoveSteps: readonly MoveStep[] = moveSteps.filter(
  (step) => nextMoveStep(step, "broken") !== null,
);

export function hostThatMayRun(step: MoveStep): "old" | "new" {
  return step === "moved" || step === "running" ? "new" : "old";
}

/** So long may pass at a step without anything happening, in seconds; null: for ever. */
export const stepSeconds: Readonly<Record<MoveStep, number | null>> = {
  asked: 30,
  emptying: 90,
  packing: 120,
  sending: 60,
  moved: null,
  running: null,
  failed: null,
};
