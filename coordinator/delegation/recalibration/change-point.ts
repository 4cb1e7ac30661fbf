/**
 * Has the level of a host's fetch times shifted upward for good? A CUSUM (Page 1954) over ranks: each time is
 * placed among the host's earlier times, and the place gives a score that says how much likelier it is after
 * a shift than before; the scores add up, never below zero, and enough of them is a change.
 *
 * Ranks need no model of the noise: as long as nothing changed, the place is uniform whatever the host's times
 * look like (exponential, spiky, with pages of many sizes). The scores are logarithms of a likelihood ratio
 * against the uniform, so by Lorden (1971) the mean number of fetches until a false alarm is at least e^h at
 * threshold h, were the earlier times the whole truth: h = 12 is one in 162,000 fetches, 0.15 % of host-days
 * at 240 fetches a day. A window of 40 knows its own upper tail only roughly, and one slow fetch counts at
 * most ln 8; simulation (test/bench/results/calibration.md) gives the figures with all that.
 *
 *   place among earlier times, from the slow end   0–3 %   3–12.5 %   12.5–25 %   25–50 %   50–100 %
 *   likelihood after a shift, over before             8       3.6         2         0.5       0.08
 */

/** Scores needed for an alarm. */
export const changeThreshold = 12;

const steps = [
  { upTo: 0.03, score: Math.log(8) },
  { upTo: 0.125, score: Math.log(3.6) },
  { upTo: 0.25, score: Math.log(2) },
  { upTo: 0.5, score: Math.log(0.5) },
  { upTo: 1, score: Math.log(0.08) },
] as const;

/**
 * The score of a time by the share of earlier times above it, 0 to 1 (both ends excluded).
 * 0.03·8 + 0.095·3.6 + 0.125·2 + 0.25·0.5 + 0.5·0.08 = 0.997: on average no evidence where nothing changed.
 */
export function changeScore(shareAbove: number): number {
  return steps.find(({ upTo }) => shareAbove <= upTo)?.score ?? steps[4].score;
}

/** For a time that is too little above the usual to matter, however rare it is. */
export const irrelevantScore = Math.log(0.5);
