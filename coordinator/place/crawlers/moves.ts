/**
 * Where a crawler's move to another host stands, and which of the two hosts may run it. There is no step at which
 * both may, or neither: what decides is one row of the database, and it changes once.
 *
 *   asked → emptying → packing → sending → moved → running
 *     └────────┴──────────┴─────────┴→ failed
 */

export const moveSteps = ["asked", "emptying", "packing", "sending", "moved", "running", "failed"] as const;
export type MoveStep = (typeof moveSteps)[number];

/** Steps from which a move can still fail: the old host runs the crawler. */
export const openMoveSteps: readonly MoveStep[] = ["asked", "emptying", "packing", "sending"];

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
