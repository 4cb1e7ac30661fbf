/**
 * Every place has a stretch of addresses: from where its range starts to where the next one does. Within it a
 * look-up tries the place and then its parents, the nearest first. That is right wherever the ranges over an
 * address hold one another, and quick wherever the way up is short. The other stretches are hard, and look-ups
 * there ask a table of segments that is cut from the ranges over hard stretches alone:
 *
 *   A [0 ............... 99]              place  stretch   behind B comes A, one step up: easy
 *     B [10 .. 19]                        A      0–9
 *               C [50 .. 69]              B      10–49
 *                     D [60 ..... 150]    C      50–59     C and D cross: 60–69 lies in both
 *                                         D      60–…      hard
 *
 * Why only places whose stretch touches an address in two ranges that cross: at any other place P all ranges
 * over its first address hold one another, so they are the chain of its parents; and a range over a later
 * address of the stretch starts no later than P, so it is P or holds P.
 */
import { cutSegments } from "./cut-segments.ts";
import type { Crossing } from "./nest.ts";
import { compareWords, type RangeColumns } from "./range-columns.ts";
import type { Segments } from "./segments.ts";

/** Ranges of one family in the order of places. */
export interface Hierarchy {
  readonly columns: RangeColumns;
  readonly parents: Int32Array;
  readonly crossings: readonly Crossing[];
}

/** A way up that is longer is hard whatever lies there: the look-up's time stays bounded. */
const mostStepsUp = 8;
/** 1 for each place whose stretch is hard. */
export function findHardStretches(hierarchy: Hierarchy): Uint8Array {
  const hard = new Uint8Array(hierarchy.columns.count);
  markCrossings(hierarchy, hard);
  markLongWays(hierarchy, hard);
  return hard;
}

/** The table over the ranges that touch a hard stretch; its answers hold in hard stretches only. */
export function cutHardSegments(columns: RangeColumns, hard: Uint8Array): Segments {
  const { first, last, words } = columns;
  const touching: number[] = [];
  let next = -1;
  for (let place = columns.count - 1; place >= 0; place -= 1) {
    if (hard[place] === 1) next = place;
    if (next >= 0 && compareWords(first, next, last, place, words) <= 0) touching.push(place);
  }
  return cutSegments(columns, Int32Array.from(touching.reverse()));
}

/**
 * Two ranges that cross share what lies from the first address of the later one to the last of the earlier.
 * The list of crossings need not have every pair, but its shares cover those of all: a pair is left out where
 * one of the two crosses a third that is listed and shares as much.
 */
function markCrossings({ columns, crossings }: Hierarchy, hard: Uint8Array): void {
  const { first, last, words } = columns;
  const crossed = new Map<number, number>();
  for (const { earlier, later } of crossings) {
    const known = crossed.get(later);
    if (known === undefined || compareWords(last, known, last, earlier, words) < 0)
      crossed.set(later, earlier);
  }
  let reaching = -1;
  for (let place = 0; place < columns.count && crossed.size > 0; place += 1) {
    const earlier = crossed.get(place) ?? -1;
    if (earlier >= 0 && (reaching < 0 || compareWords(last, reaching, last, earlier, words) < 0))
      reaching = earlier;
    if (reaching >= 0 && compareWords(last, reaching, first, place, words) >= 0) hard[place] = 1;
  }
}

function markLongWays({ columns, parents }: Hierarchy, hard: Uint8Array): void {
  const { first, last, words, count } = columns;
  for (let place = 0; place < count; place += 1) {
    const next = place + 1;
    let steps = 0;
    for (let at = place; at >= 0 && steps <= mostStepsUp; steps += 1) {
      if (next < count && compareWords(last, at, first, next, words) >= 0) break;
      at = parents[at] as number;
    }
    if (steps > mostStepsUp) hard[place] = 1;
  }
}
