/**
 * What a round of `nearest` notes of each candidate: a column for each figure, in the fleet's order. All columns lie in
 * one piece of memory, for a round copies them with every answer, and a dozen small typed arrays cost more to
 * allocate than their figures to work out.
 */

export interface CandidateColumns {
  /** Measured RTT in ms; NaN where nobody answered. */
  readonly rttsMs: Float64Array;
  /** Belief from the tree that the candidate is the nearest, before any answer; 0 where no key speaks for it. */
  readonly shares: Float64Array;
  /** The same above 0. */
  readonly beliefs: Float64Array;
  /** How well the answers fit a target beside the candidate: the product of 1/(1 + (gap/scale)²). */
  readonly fits: Float64Array;
  /** Of the triangle inequality, in ms: |D − y| at most over the answers. */
  readonly gapsMs: Float64Array;
  /** The probe whose answer left that gap, by its position in the round; −1 where no gap is known. */
  readonly gapProbes: Float64Array;
  /** D of that answer, in ms. */
  readonly gapApartMs: Float64Array;
  /** The other side of the triangle, in ms: y + D at least over the answers; infinite where nothing is known. */
  readonly mostMs: Float64Array;
  /** 1 for who was asked, with or without an answer; else 0. */
  readonly asked: Float64Array;
}

const columnCount = 9;

/** Columns of so many candidates, of whom nothing is known. */
export function emptyColumns(count: number): CandidateColumns {
  const columns = columnsIn(new Float64Array(columnCount * count));
  startRows(columns, 0);
  return columns;
}

/** A copy with room for `count` candidates; of those at its end nothing is known. */
export function copiedColumns(before: CandidateColumns, count: number): CandidateColumns {
  const known = before.rttsMs.length;
  if (count === known) return columnsIn(new Float64Array(blockOf(before)));
  const from = blockOf(before);
  const block = new Float64Array(columnCount * count);
  for (let column = 0; column < columnCount; column++)
    for (let index = 0; index < known; index++) block[column * count + index] = from[column * known + index]!;
  const columns = columnsIn(block);
  startRows(columns, known);
  return columns;
}

function startRows({ rttsMs, fits, gapProbes, mostMs }: CandidateColumns, first: number): void {
  rttsMs.fill(Number.NaN, first);
  fits.fill(1, first);
  gapProbes.fill(-1, first);
  mostMs.fill(Number.POSITIVE_INFINITY, first);
}

/** The columns' memory; `rttsMs` lies at its beginning. */
const blockOf = ({ rttsMs }: CandidateColumns) =>
  new Float64Array(rttsMs.buffer, rttsMs.byteOffset, columnCount * rttsMs.length);

function columnsIn(block: Float64Array): CandidateColumns {
  const count = block.length / columnCount;
  const column = (at: number) => new Float64Array(block.buffer, 8 * at * count, count);
  return {
    rttsMs: column(0),
    shares: column(1),
    beliefs: column(2),
    fits: column(3),
    gapsMs: column(4),
    gapProbes: column(5),
    gapApartMs: column(6),
    mostMs: column(7),
    asked: column(8),
  };
}
