/** The name that somebody probably meant: as few letters apart as possible (Levenshtein's distance). */

/** Null when none is near: over a third of its letters differ. */
export function nearestName(name: string, known: readonly string[]): string | null {
  const asked = name.slice(0, 60).toLowerCase();
  let nearest: string | null = null;
  let least = Math.max(2, Math.floor(asked.length / 3)) + 1;
  for (const candidate of known) {
    const distance = lettersApart(asked, candidate.toLowerCase());
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

function lettersApart(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const changed = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(changed, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}
