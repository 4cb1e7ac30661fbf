/**
 * Pace of work (WEB-SAILOR section 4.3): a crawler with less due work than a threshold is to slow down, one with more
 * than another is to hurry up, and changes its number of parallel connections; between the two it has one for each
 * piece of work. Due work is counted in host slices, due
 * or in hand, which is what a connection works on at a time (the paper counts seed URLs). With hysteresis, which the
 * paper leaves out: a pace ends only once the work is well past its threshold, so that it does not come and go.
 */

/** As messages have it (protocol/coordinator-messages). */
export const workPaces = ["slow-down", "steady", "hurry-up"] as const;
export type WorkPace = (typeof workPaces)[number];

export interface PaceRule {
  /** Host slices. */
  readonly slowDownUnder: number;
  /** More than `slowDownUnder`. */
  readonly hurryUpOver: number;
}

/** A pace ends at so many times, or parts, of its threshold. */
const hysteresis = 2;

export function nextPace(pace: WorkPace, due: number, rule: PaceRule): WorkPace {
  const { slowDownUnder, hurryUpOver } = rule;
  if (due < slowDownUnder) return "slow-down";
  if (due > hurryUpOver) return "hurry-up";
  if (pace === "slow-down" && due < Math.min(hurryUpOver, slowDownUnder * hysteresis)) return "slow-down";
  if (pace === "hurry-up" && due > Math.max(slowDownUnder, hurryUpOver / hysteresis)) return "hurry-up";
  return "steady";
}

/** As many slices as have to be counted to tell a pace: more change nothing. */
export function countedSlices({ hurryUpOver }: PaceRule): number {
  return Math.ceil(hurryUpOver) + 1;
}

/** In words, for the crawler's host: why. */
export function paceReason(pace: WorkPace, due: number, rule: PaceRule): string {
  const slices = `${due} host ${due === 1 ? "slice" : "slices"} due or in hand`;
  if (pace === "slow-down") return `${slices}, under ${rule.slowDownUnder}: no more connections than that`;
  if (pace === "hurry-up")
    return `${slices}, over ${rule.hurryUpOver / hysteresis}: as many connections as are allowed`;
  return `${slices}: a connection for each, where the limits allow`;
}
