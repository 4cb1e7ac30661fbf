/**
 * Cells from subnets: goes over the stretches of a span in the order of addresses and weighs in each cell who has
 * how many of its addresses. Works in steps, so that a long span never keeps others waiting.
 */

import { registries } from "../subnet/subnet.ts";
import type { TreeColumns } from "../subnet/tree-columns.ts";
import type { MapSpace } from "./map-space.ts";
import { PlaceSweep } from "./place-sweep.ts";
import { noRtt, packRtt, packShare, type TileCells } from "./tile-cells.ts";

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
  readonly #byCrawler = new Map<number, number>();
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

  #spread(place: number, first: number, last: number): void {
    const { from, cellPositions } = this.#span;
    for (let position = first; position <= last; ) {
      const cell = Math.floor((position - from) / cellPositions);
      if (cell !== this.#cell) {
        this.#flush();
        this.#cell = cell;
      }
      const end = Math.min(last, from + (cell + 1) * cellPositions - 1);
      if (place >= 0) this.#weigh(place, end - position + 1);
      position = end + 1;
    }
  }

  #weigh(place: number, weight: number): void {
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
    const crawler = facts.crawlerAt(row);
    this.#byCrawler.set(crawler, (this.#byCrawler.get(crawler) ?? 0) + weight);
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

  #flush(): void {
    const { cellPositions, target } = this.#span;
    const into = this.#into;
    const at = target + this.#cell;
    into.registered[at] = packShare(this.#registered / cellPositions);
    into.chosen[at] = packShare(this.#chosen / cellPositions);
    into.delegated[at] = packShare(this.#delegated / cellPositions);
    into.registries[at] = this.#chosen === 0 ? 0 : 1 + indexOfMost(this.#byRegistry);
    into.crawlers[at] = keyOfMost(this.#byCrawler);
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
    this.#byCrawler.clear();
  }
}

function indexOfMost(weights: Float64Array): number {
  let best = 0;
  for (let index = 1; index < weights.length; index += 1) {
    if ((weights[index] as number) > (weights[best] as number)) best = index;
  }
  return best;
}

/** 0 when there is none. */
function keyOfMost(weights: ReadonlyMap<number, number>): number {
  let [best, bestWeight] = [0, 0];
  for (const [key, weight] of weights) {
    if (weight > bestWeight) [best, bestWeight] = [key, weight];
  }
  return best;
}
