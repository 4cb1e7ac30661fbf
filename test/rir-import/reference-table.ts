/**
 * A slow table to check fast look-ups: a plain array searched from end to end by the rule of subnets/nest alone: the
 * smallest range wins, and of equal sizes the one that starts later.
 */
export interface ReferenceRange {
  readonly first: bigint;
  readonly last: bigint;
  readonly name: string;
}

/** The first of equal ranges counts. */
export function withoutDuplicates(ranges: readonly ReferenceRange[]): readonly ReferenceRange[] {
  const seen = new Set<string>();
  return ranges.filter(({ first, last }) => seen.size < seen.add(`${first}-${last}`).size);
}

/** Names from the least to the most specific. */
export function referenceAnswer(
  table: readonly ReferenceRange[],
  asked: { readonly first: bigint; readonly last: bigint },
): readonly string[] {
  const chain: ReferenceRange[] = [];
  let next = smallestHolder(table, asked);
  while (next !== null) {
    chain.unshift(next);
    next = smallestHolder(table, next);
  }
  return chain.map(({ name }) => name);
}

/** The smallest other range that contains the given one. */
function smallestHolder(
  table: readonly ReferenceRange[],
  within: { readonly first: bigint; readonly last: bigint },
): ReferenceRange | null {
  let best: ReferenceRange | null = null;
  for (const range of table) {
    if (range === within || !holds(range, within)) continue;
    if (best === null || isSmaller(range, best)) best = range;
  }
  return best;
}

const holds = (range: ReferenceRange, { first, last }: { readonly first: bigint; readonly last: bigint }) =>
  range.first <= first && range.last >= last;

function isSmaller(a: ReferenceRange, b: ReferenceRange): boolean {
  const [sizeA, sizeB] = [a.last - a.first, b.last - b.first];
  return sizeA === sizeB ? a.first > b.first : sizeA < sizeB;
}
