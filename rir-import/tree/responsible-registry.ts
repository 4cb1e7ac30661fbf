/**
 * Which registry is responsible for each range: the one whose statistics cover it, else the one that IANA
 * gave the block to. One walk over the ranges in order beside the covering ones, which hardly overlap.
 */
import { compareWords, type RangeColumns } from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import type { SourceKind } from "../formats/record.ts";
import type { CandidateTable } from "./candidate-table.ts";

const unknown = 255;

/** Gives the responsible registry of a record, by its index; null where neither source covers its range. */
export function responsibleRegistries(
  table: CandidateTable,
  columns: RangeColumns,
  order: Int32Array,
): (index: number) => Registry | null {
  const answers = new Uint8Array(columns.count).fill(unknown);
  for (const source of ["iana", "statistics"] as const)
    markCovered({ table, columns, order, source, answers });
  return (index) => registries[answers[index] ?? unknown] ?? null;
}

function markCovered(work: {
  readonly table: CandidateTable;
  readonly columns: RangeColumns;
  readonly order: Int32Array;
  readonly source: SourceKind;
  readonly answers: Uint8Array;
}): void {
  const { table, columns, order, source, answers } = work;
  const covering = order.filter((index) => table.source(index) === source);
  let next = 0;
  /** The latest covering range that starts at or before the current one. */
  let current = -1;
  for (const index of order) {
    while (next < covering.length && startsAtOrBefore(columns, covering[next] as number, index)) {
      current = wider(columns, current, covering[next++] as number);
    }
    if (current < 0 || !endsAtOrBehind(columns, current, index)) continue;
    const registry = table.registry(current);
    if (registry !== null) answers[index] = registries.indexOf(registry);
  }
}

/** Of equal starts the one that ends last; else the later start. */
function wider({ first, last, words }: RangeColumns, current: number, next: number): number {
  if (current < 0 || compareWords(first, current, first, next, words) !== 0) return next;
  return compareWords(last, current, last, next, words) >= 0 ? current : next;
}

const startsAtOrBefore = ({ first, words }: RangeColumns, a: number, b: number) =>
  compareWords(first, a, first, b, words) <= 0;

const endsAtOrBehind = ({ last, words }: RangeColumns, a: number, b: number) =>
  compareWords(last, a, last, b, words) >= 0;
