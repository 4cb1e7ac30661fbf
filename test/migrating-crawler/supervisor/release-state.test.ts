/** In a young fleet no release has passed its watch yet, and a faulty one arrives. */
import { expect, it } from "vitest";
import {
  emptyState,
  type KeptRelease,
  noteWelcome,
  passWatch,
  returnToGood,
  swapTo,
} from "#crawler/core/release-state";

const fault = { reason: "it ended with code 1", at: new Date("2026-01-01T12:00:00Z"), againMs: 3_600_000 };
const releaseOf = (number: number): KeptRelease => ({
  version: `0.${number}.0`,
  digest: String(number).repeat(64),
  sequence: number,
  bytes: 1000,
});
const [first, second, third] = [releaseOf(1), releaseOf(2), releaseOf(3)] as const;

it("goes back to a release that was welcomed, though it had not passed its watch", () => {
  const young = swapTo(noteWelcome(swapTo(emptyState, first)), second);

  const returned = returnToGood(young, fault);

  expect(returned).toMatchObject({ current: first, good: first, bad: [{ digest: second.digest }] });
});

it("has nothing to go back to where the one before was never welcomed", () => {
  const never = swapTo(swapTo(emptyState, first), second);

  expect(returnToGood(never, fault)).toBeNull();
});

it("goes back to what has passed its watch rather than to what was only welcomed", () => {
  const passed = passWatch(noteWelcome(swapTo(emptyState, first)));
  const young = swapTo(noteWelcome(swapTo(passed, second)), third);

  expect(returnToGood(young, fault)).toMatchObject({ current: first });
});
