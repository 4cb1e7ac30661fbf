/**
 * What is known of each cell of a tile, in the order of addresses: 16 bytes a cell, a megabyte a tile. Shares are of
 * the cell's addresses, in 255ths, and at least 1 where there is any.
 */

import { registries } from "../subnets/subnet.ts";
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { PlaceSweep } from "./places.ts";
import { cellsPerTile, type MapSpace } from "./space.ts";

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
function repeatCell(cells: TileCells, at: number, count: number): void {
  const { registered, chosen, delegated, registries, crawlers, rtts, since } = cells;
  for (const values of [registered, chosen, delegated, registries, crawlers, rtts, since])
    values.fill(values[at] as number, at, at + count);
}

/** A share of 1 as 255, and any above 0 as 1 at least. */
const packShare = (share: number): number =>
  share <= 0 ? 0 : Math.min(255, Math.max(1, Math.round(255 * share)));

const packRtt = (rttMs: number): number => Math.min(noRtt - 1, Math.max(0, Math.round(10 * rttMs)));

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

// Cells from subnets: goes over the stretches of a span in the order of addresses and weighs in each cell who has
// how many of its addresses. Works in steps, so that a long span never keeps others waiting.

/** What is known of each place of the tree. */
export interface PlaceFacts {
  readonly columns: TreeColumns;
  /** The row of the delegation that holds at each place, its own or the nearest less specific one's; −1 for none. */
  readonly rows: Int32Array;
  /** A small number from 1 for the row's crawler. */
  crawlerAt(row: number): number;
  /** NaN where nobody measured. */
  rttMsAt(row: number): number;
  /** In seconds since 1970; 0 where it is not known. */
  sinceAt(row: number): number;
}

interface FillSpan {
  readonly space: MapSpace;
  /** Position of the first cell, positions of each, and how many cells. */
  readonly from: number;
  readonly cellPositions: number;
  readonly count: number;
  /** Which of the target's cells is the first. */
  readonly target: number;
}

export class CellFill {
  readonly #facts: PlaceFacts;
  readonly #sweep: PlaceSweep;
  readonly #span: FillSpan;
  readonly #into: TileCells;
  readonly #matches: ((place: number) => boolean) | null;
  #cell = 0;
  /** Weights within the cell that is being filled, in positions. */
  readonly #byCrawler: number[] = [];
  /** Numbers of the crawlers that have any. */
  readonly #crawlers: number[] = [];
  readonly #byRegistry = new Float64Array(registries.length);
  #registered = 0;
  #chosen = 0;
  #delegated = 0;
  #rttSum = 0;
  #rttWeight = 0;
  #sinceSum = 0;
  #sinceWeight = 0;

  /** `matches`: which places count; null for all. Loads are not filled here. */
  constructor(
    facts: PlaceFacts,
    span: FillSpan,
    { into, matches }: { readonly into: TileCells; readonly matches: ((place: number) => boolean) | null },
  ) {
    this.#facts = facts;
    this.#span = span;
    this.#into = into;
    this.#matches = matches;
    const to = span.from + span.count * span.cellPositions - 1;
    this.#sweep = new PlaceSweep(facts.columns, { space: span.space, from: span.from, to });
  }

  /** Goes over so many stretches; true when the span is filled. */
  step(stretches: number): boolean {
    const sweep = this.#sweep;
    for (let left = stretches; left > 0; left -= 1) {
      if (!sweep.next()) {
        if (this.#cell < this.#span.count) this.#flush();
        return true;
      }
      this.#spread(sweep.place, sweep.first, sweep.last);
    }
    return false;
  }

  /** The rest of the cell that is being filled, then whole cells, which are all alike, then the start of one more. */
  #spread(place: number, first: number, last: number): void {
    const { from, cellPositions } = this.#span;
    const cellEnd = from + (this.#cell + 1) * cellPositions;
    if (last < cellEnd) {
      this.#weigh(place, last - first + 1);
      return;
    }
    if (first < cellEnd) this.#weigh(place, cellEnd - first);
    this.#flush();
    this.#cell += 1;
    let position = Math.max(first, cellEnd);
    const whole = Math.floor((last + 1 - position) / cellPositions);
    if (whole > 0) {
      this.#weigh(place, cellPositions);
      this.#flush();
      repeatCell(this.#into, this.#span.target + this.#cell, whole);
      this.#cell += whole;
      position += whole * cellPositions;
    }
    if (position <= last) this.#weigh(place, last - position + 1);
  }

  #weigh(place: number, weight: number): void {
    if (place < 0) return;
    this.#registered += weight;
    if (this.#matches !== null && !this.#matches(place)) return;
    const { columns, rows } = this.#facts;
    this.#chosen += weight;
    const registry = (columns.labels[place] as number) % registries.length;
    this.#byRegistry[registry] = (this.#byRegistry[registry] as number) + weight;
    const row = rows[place] as number;
    if (row >= 0) this.#weighDelegation(row, weight);
  }

  #weighDelegation(row: number, weight: number): void {
    const facts = this.#facts;
    this.#delegated += weight;
    this.#weighCrawler(facts.crawlerAt(row), weight);
    const rttMs = facts.rttMsAt(row);
    if (!Number.isNaN(rttMs)) {
      this.#rttSum += weight * rttMs;
      this.#rttWeight += weight;
    }
    const since = facts.sinceAt(row);
    if (since > 0) {
      this.#sinceSum += weight * since;
      this.#sinceWeight += weight;
    }
  }

  #weighCrawler(number: number, weight: number): void {
    const weights = this.#byCrawler;
    while (weights.length <= number) weights.push(0);
    const before = weights[number] as number;
    if (before === 0) this.#crawlers.push(number);
    weights[number] = before + weight;
  }

  #crawlerWithMost(): number {
    const weights = this.#byCrawler;
    let [best, bestWeight] = [0, 0];
    for (const number of this.#crawlers) {
      const weight = weights[number] as number;
      if (weight > bestWeight) [best, bestWeight] = [number, weight];
    }
    return best;
  }

  #flush(): void {
    const { cellPositions, target } = this.#span;
    const into = this.#into;
    const at = target + this.#cell;
    into.registered[at] = packShare(this.#registered / cellPositions);
    into.chosen[at] = packShare(this.#chosen / cellPositions);
    into.delegated[at] = packShare(this.#delegated / cellPositions);
    into.registries[at] = this.#chosen === 0 ? 0 : 1 + indexOfMost(this.#byRegistry);
    into.crawlers[at] = this.#crawlerWithMost();
    into.rtts[at] = this.#rttWeight === 0 ? noRtt : packRtt(this.#rttSum / this.#rttWeight);
    into.since[at] = this.#sinceWeight === 0 ? 0 : Math.round(this.#sinceSum / this.#sinceWeight);
    if (this.#registered > 0) this.#reset();
  }

  #reset(): void {
    this.#registered = 0;
    this.#chosen = 0;
    this.#delegated = 0;
    this.#rttSum = 0;
    this.#rttWeight = 0;
    this.#sinceSum = 0;
    this.#sinceWeight = 0;
    this.#byRegistry.fill(0);
    for (const number of this.#crawlers) this.#byCrawler[number] = 0;
    this.#crawlers.length = 0;
  }
}

function indexOfMost(weights: Float64Array): number {
  let best = 0;
  for (let index = 1; index < weights.length; index += 1) {
    if ((weights[index] as number) > (weights[best] as number)) best = index;
  }
  return best;
}
