/** How many nodes have how many links: averages, and a distribution in bins that double (the Anansi thesis' figure 5.2). */

export interface DegreeBin {
  /** Degrees from … to …, both within. */
  readonly least: number;
  readonly most: number;
  readonly nodes: number;
}

export interface Degrees {
  readonly average: number;
  readonly most: number;
  /** 0, 1, 2 to 3, 4 to 7 and so on, up to the last that has a node; empty for no nodes. */
  readonly bins: readonly DegreeBin[];
}

export function degreesOf(degrees: Uint32Array): Degrees {
  const counts: number[] = [];
  let [total, most] = [0, 0];
  for (let node = 0; node < degrees.length; node++) {
    const degree = degrees[node]!;
    // 0 → 0, 1 → 1, 2 and 3 → 2: as many as the number has bits.
    const bin = 32 - Math.clz32(degree);
    counts[bin] = (counts[bin] ?? 0) + 1;
    total += degree;
    most = Math.max(most, degree);
  }
  const bins = Array.from(counts, (nodes = 0, bin) => ({
    least: bin === 0 ? 0 : 2 ** (bin - 1),
    most: bin === 0 ? 0 : 2 ** bin - 1,
    nodes,
  }));
  return { average: degrees.length === 0 ? 0 : total / degrees.length, most, bins };
}

/** The `count` nodes with the largest values, the largest first; of equal ones the lower number first. */
export function largest(values: Float64Array | Uint32Array, count: number): number[] {
  const best: number[] = [];
  for (let node = 0; node < values.length; node++) {
    const value = values[node]!;
    if (best.length === count && value <= values[best[count - 1]!]!) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]!]! < value) at -= 1;
    best.splice(at, 0, node);
    if (best.length > count) best.pop();
  }
  return best;
}
