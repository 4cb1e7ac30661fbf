/**
 * What is known of each cell of a tile, in the order of addresses: 16 bytes a cell, a megabyte a tile. Shares are of
 * the cell's addresses, in 255ths, and at least 1 where there is any.
 */
import { cellsPerTile } from "./space.ts";

export interface TileCells {
  /** Registered to anybody. */
  readonly registered: Uint8Array;
  /** In a subnet that the filter lets through. */
  readonly chosen: Uint8Array;
  /** Of those, crawled by somebody. */
  readonly delegated: Uint8Array;
  /** Index + 1 of the registry that most chosen addresses are registered with; 0 for none. */
  readonly registries: Uint8Array;
  /** Number of the crawler that has most of the chosen addresses; 0 for nobody. */
  readonly crawlers: Uint16Array;
  /** Mean over the addresses whose crawler was measured, in tenths of a ms; `noRtt` for none. */
  readonly rtts: Uint16Array;
  /** Mean time of delegation, in seconds since 1970; 0 for none. */
  readonly since: Uint32Array;
  /** Pages a day of the chosen subnets; a subnet's are spread evenly over its addresses. */
  readonly loads: Float32Array;
}

export const noRtt = 0xffff;
export const bytesPerTile = 16 * cellsPerTile;

export function emptyCells(count: number = cellsPerTile): TileCells {
  return {
    registered: new Uint8Array(count),
    chosen: new Uint8Array(count),
    delegated: new Uint8Array(count),
    registries: new Uint8Array(count),
    crawlers: new Uint16Array(count),
    rtts: new Uint16Array(count).fill(noRtt),
    since: new Uint32Array(count),
    loads: new Float32Array(count),
  };
}

/** So many cells from this one on become like it; but for loads, which are added apart. */
export function repeatCell(cells: TileCells, at: number, count: number): void {
  const { registered, chosen, delegated, registries, crawlers, rtts, since } = cells;
  for (const values of [registered, chosen, delegated, registries, crawlers, rtts, since])
    values.fill(values[at] as number, at, at + count);
}

/** A share of 1 as 255, and any above 0 as 1 at least. */
export const packShare = (share: number): number =>
  share <= 0 ? 0 : Math.min(255, Math.max(1, Math.round(255 * share)));

export const packRtt = (rttMs: number): number => Math.min(noRtt - 1, Math.max(0, Math.round(10 * rttMs)));

interface Merged {
  readonly from: TileCells;
  /** Of the first cell. */
  readonly at: number;
  /** How many cells become one. */
  readonly count: number;
}

/** Cells that follow each other become one: what a tile shows of those of the next zoom. */
export function mergeCells({ from, at, count }: Merged, into: TileCells, target: number): void {
  let [registered, chosen, delegated, load] = [0, 0, 0, 0];
  let [rttSum, rttWeight, sinceSum, sinceWeight] = [0, 0, 0, 0];
  for (let cell = at; cell < at + count; cell += 1) {
    const weight = from.delegated[cell] as number;
    registered += from.registered[cell] as number;
    chosen += from.chosen[cell] as number;
    delegated += weight;
    load += from.loads[cell] as number;
    if (from.rtts[cell] !== noRtt) {
      rttSum += weight * (from.rtts[cell] as number);
      rttWeight += weight;
    }
    if (from.since[cell] !== 0) {
      sinceSum += weight * (from.since[cell] as number);
      sinceWeight += weight;
    }
  }
  into.registered[target] = packShare(registered / (255 * count));
  into.chosen[target] = packShare(chosen / (255 * count));
  into.delegated[target] = packShare(delegated / (255 * count));
  into.registries[target] = heaviest(from.registries, from.chosen, { at, count });
  into.crawlers[target] = heaviest(from.crawlers, from.delegated, { at, count });
  into.rtts[target] = rttWeight === 0 ? noRtt : Math.round(rttSum / rttWeight);
  into.since[target] = sinceWeight === 0 ? 0 : Math.round(sinceSum / sinceWeight);
  into.loads[target] = load;
}

/** The value with the most weight; the first of those that are alike. Values are small numbers, 0 for none. */
function heaviest(
  values: Uint8Array | Uint16Array,
  weights: Uint8Array,
  { at, count }: { readonly at: number; readonly count: number },
): number {
  const first = values[at] as number;
  if (count === 4 && first === values[at + 1] && first === values[at + 2] && first === values[at + 3])
    return first;
  const sums = new Map<number, number>();
  for (let cell = at; cell < at + count; cell += 1) {
    const value = values[cell] as number;
    if (value !== 0) sums.set(value, (sums.get(value) ?? 0) + (weights[cell] as number));
  }
  let [best, bestWeight] = [0, 0];
  for (const [value, weight] of sums) if (weight > bestWeight) [best, bestWeight] = [value, weight];
  return best;
}
