import { describe, expect, it } from "vitest";
import { correctionOf, slipsBetween } from "#coordinator/tell/search/edit-distance";
import { seededRandom } from "#core/random";

/** By definition and without bounds: the reference for the fast one. */
function slowDistance(a: string, b: string): number {
  if (a === "" || b === "") return a.length + b.length;
  const same = a.at(-1) === b.at(-1) ? 0 : 1;
  const [x, y] = [a.slice(0, -1), b.slice(0, -1)];
  const swapped =
    a.length > 1 && b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1)
      ? slowDistance(a.slice(0, -2), b.slice(0, -2)) + 1
      : Number.POSITIVE_INFINITY;
  return Math.min(slowDistance(x, b) + 1, slowDistance(a, y) + 1, slowDistance(x, y) + same, swapped);
}

describe("slips", () => {
  it("are counted as defined", () => {
    const random = seededRandom(5);
    const word = () =>
      Array.from({ length: 1 + Math.floor(random() * 5) }, () => "abc"[Math.floor(random() * 3)]).join("");
    for (let round = 0; round < 300; round++) {
      const [a, b] = [word(), word()];

      expect([a, b, slipsBetween(a, b)]).toEqual([a, b, Math.min(3, slowDistance(a, b))]);
    }
  });
});

describe("a correction", () => {
  const known = [
    { word: "harbour", pages: 900 },
    { word: "harbours", pages: 300 },
    { word: "barbour", pages: 2000 },
    { word: "once", pages: 1 },
  ];

  it("is the word with the fewest slips and the same first letter", () => {
    expect(correctionOf("harboru", known)).toBe("harbour");
    expect(correctionOf("arbour", known)).toBe("barbour");
  });

  it("is null for a word about as frequent, unlike all others, or seen once", () => {
    expect(correctionOf("harbours", known)).toBeNull();
    expect(correctionOf("submarine", known)).toBeNull();
    expect(correctionOf("onse", known)).toBeNull();
  });
});
