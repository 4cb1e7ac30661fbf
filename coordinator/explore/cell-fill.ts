/**
 * Cells from subnets: goes over the stretches of a span in the order of addresses and weighs in each cell who has
 * how many of its addresses. Works in steps, so that a long span never keeps others waiting.
 */

import { registries } from "../subnets/subnet.ts";
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { PlaceSweep } from "./place-sweep.ts";
import type { MapSpace } from "./space.ts";
import { noRtt, packRtt, packShare, repeatCell, type TileCells } from "./tile.ts";

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

export interface FillSpan {
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
