/**
 * The steps of a crawler's move to another host, and which of the two hosts may run it. At no step may both or
 * neither: one row of the database decides, and it changes once.
 *
 *   asked → emptying → packing → sending → moved → running
 *     └────────┴──────────┴─────────┴→ failed
 */

export const moveSteps = ["asked", "emptying", "packing", "sending", "moved", "running", "failed"] as const;
export type MoveStep = (typeof moveSteps)[number];

/** Steps at which a move can still fail and the old host runs the crawler. */
export const openMoveSteps: readonly MoveStep[] = ["asked", "emptying", "packing", "sending"];

/** Seconds that a step may take without progress; null is unlimited. */
export const stepSeconds: Readonly<Record<MoveStep, number | null>> = {
  asked: 30,
  emptying: 90,
  packing: 120,
  sending: 60,
  moved: null,
  running: null,
  failed: null,
};
