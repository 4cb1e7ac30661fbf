/**
 * How much of a page's links changed between two visits: C of the Anansi thesis (section 4.3.3). Its text calls C "the
 * ratio of changed links between two continuous visits" and gives pages with a larger ratio of change a higher priority;
 * equation 4.2 prints |previous ∩ latest| / |previous ∪ latest|, which is the ratio of links that did not change and
 * would put the pages that never change first. The text is followed here: 1 - |∩| / |∪|. Both give 1 for a page without
 * links on either visit, since the thesis says so.
 */
import { type LinkTarget, nameOf } from "#core/link-set";

/** `changed`: as the thesis' text says; `in-common`: as its equation is printed. */
export type ChangeReading = "changed" | "in-common";

/** 0 to 1. Links count once however often a page repeats them. */
export function changeRatio(
  previous: readonly LinkTarget[],
  latest: readonly LinkTarget[],
  reading: ChangeReading = "changed",
): number {
  const before = new Set(previous.map(nameOf));
  const now = new Set(latest.map(nameOf));
  if (before.size === 0 && now.size === 0) return 1;
  let inCommon = 0;
  for (const name of now) if (before.has(name)) inCommon += 1;
  const share = inCommon / (before.size + now.size - inCommon);
  return reading === "changed" ? 1 - share : share;
}
