/**
 * PageRank by its definition, independent of our code: the Google matrix, dense, and the linear system (I - d·P) x =
 * (1 - d)/n solved by elimination with pivots. Self-links are left out; parallel links count each.
 */
export function densePageRank(
  nodes: number,
  links: readonly (readonly [from: number, to: number, weight?: number])[],
  damping = 0.85,
): number[] {
  if (nodes === 0) return [];
  const others = links.filter(([from, to]) => from !== to);
  const out = Array.from({ length: nodes }, (_, node) =>
    others.filter(([from]) => from === node).reduce((sum, [, , weight = 1]) => sum + weight, 0),
  );
  const matrix = Array.from({ length: nodes }, (_, to) =>
    Array.from({ length: nodes }, (_, from) => {
      const weight = others
        .filter((link) => link[0] === from && link[1] === to)
        .reduce((sum, [, , one = 1]) => sum + one, 0);
      const moves = out[from] === 0 ? 1 / nodes : weight / out[from]!;
      return (to === from ? 1 : 0) - damping * moves;
    }),
  );
  return solve(
    matrix,
    Array.from({ length: nodes }, () => (1 - damping) / nodes),
  );
}

function solve(matrix: number[][], right: number[]): number[] {
  const n = right.length;
  for (let column = 0; column < n; column++) {
    let pivot = column;
    for (let row = column + 1; row < n; row++) {
      if (Math.abs(matrix[row]![column]!) > Math.abs(matrix[pivot]![column]!)) pivot = row;
    }
    [matrix[column], matrix[pivot]] = [matrix[pivot]!, matrix[column]!];
    [right[column], right[pivot]] = [right[pivot]!, right[column]!];
    for (let row = column + 1; row < n; row++) {
      const factor = matrix[row]![column]! / matrix[column]![column]!;
      for (let at = column; at < n; at++) matrix[row]![at]! -= factor * matrix[column]![at]!;
      right[row]! -= factor * right[column]!;
    }
  }
  for (let row = n - 1; row >= 0; row--) {
    for (let at = row + 1; at < n; at++) right[row]! -= matrix[row]![at]! * right[at]!;
    right[row]! /= matrix[row]![row]!;
  }
  return right;
}
