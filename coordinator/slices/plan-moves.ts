/** Which buckets move where, so that slices have about as many each. Moves are of few buckets, since their hosts rest meanwhile. */
import { bucketCount } from "../database/slices.ts";
import type { Catalogue, OwnedRange, PlannedMove } from "./catalogue-store.ts";

/** So many hosts rest at a time, about: what one transaction copies. */
const hostsOfMove = 50_000;

/** How many buckets move together where so many hosts are known. */
export const bucketsOfMove = (hosts: number): number =>
  Math.max(1, Math.min(bucketCount, Math.floor((bucketCount * hostsOfMove) / Math.max(1, hosts))));

type Standing = Pick<Catalogue, "ranges" | "moves"> & {
  readonly slices: readonly Pick<Catalogue["slices"][number], "number" | "state">[];
};

/**
 * From the slices with the most buckets to those with the fewest, until none has more than its share; a slice that is drained
 * has a share of none. What moves already counts where it goes to, and stays out of it. `most`: buckets that move together.
 */
export function balancedMoves({ slices, ranges, moves }: Standing, most: number): PlannedMove[] {
  const counts = new Map(
    slices.filter(({ state }) => state !== "preparing").map(({ number }): [number, number] => [number, 0]),
  );
  const open = slices.filter(({ state }) => state === "active").map(({ number }) => number);
  if (open.length === 0) return [];
  const free = ranges.flatMap((range) => withoutMoves(range, moves));
  for (const { slice, first, end } of free) counts.set(slice, (counts.get(slice) ?? 0) + end - first);
  for (const { to, buckets } of moves) counts.set(to, (counts.get(to) ?? 0) + buckets.end - buckets.first);
  const share = new Map(
    open.map((number, index) => [
      number,
      Math.floor(bucketCount / open.length) + (index < bucketCount % open.length ? 1 : 0),
    ]),
  );
  const over = (number: number) => (counts.get(number) ?? 0) - (share.get(number) ?? 0);
  const planned: PlannedMove[] = [];
  // From the ends of ranges, so that what stays is in one piece.
  for (const range of free.toReversed()) {
    let { end } = range;
    while (end > range.first && over(range.slice) > 0) {
      const [to] = open.filter((number) => over(number) < 0).sort((a, b) => over(a) - over(b) || a - b);
      if (to === undefined) break;
      const size = Math.min(most, end - range.first, over(range.slice), -over(to));
      planned.push({ buckets: { first: end - size, end }, from: range.slice, to });
      counts.set(range.slice, counts.get(range.slice)! - size);
      counts.set(to, counts.get(to)! + size);
      end -= size;
    }
  }
  return planned;
}

function withoutMoves(range: OwnedRange, moves: Standing["moves"]): OwnedRange[] {
  return moves.reduce<OwnedRange[]>(
    (pieces, { buckets }) =>
      pieces.flatMap((piece) =>
        [
          { ...piece, end: Math.min(piece.end, buckets.first) },
          { ...piece, first: Math.max(piece.first, buckets.end) },
        ].filter(({ first, end }) => first < end),
      ),
    [range],
  );
}

/** In pieces of so many buckets at most. */
export function inPieces({ buckets, from, to }: PlannedMove, most: number): PlannedMove[] {
  const pieces: PlannedMove[] = [];
  for (let { first } = buckets; first < buckets.end; first += most)
    pieces.push({ buckets: { first, end: Math.min(first + most, buckets.end) }, from, to });
  return pieces;
}
