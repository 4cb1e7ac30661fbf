import { describe, expect, it } from "vitest";
import { siteFurniture } from "#ops/world/page-html";

const bytesOf = (seed: number) => {
  const { head, menu, foot } = siteFurniture(seed);
  return head.length + menu.length + foot.length;
};

describe("what surrounds the text of a generated page", () => {
  it("is the same for the same seed and another for another", () => {
    expect(siteFurniture(3)).toEqual(siteFurniture(3));
    expect(siteFurniture(3)).not.toEqual(siteFurniture(4));
  });

  it("holds no visible word, so that it adds bytes and no text", () => {
    const { menu } = siteFurniture(5);

    expect(menu.replace(/<[^>]*>/g, "").trim()).toBe("");
  });

  it("spreads in size as the web's pages do: about 34 KB in the middle, some several times as large", () => {
    const sizes = Array.from({ length: 200 }, (_, seed) => bytesOf(seed)).sort((a, b) => a - b);

    expect(sizes[100]).toBeGreaterThan(25_000);
    expect(sizes[100]).toBeLessThan(45_000);
    expect(sizes[190]! / sizes[100]!).toBeGreaterThan(1.8);
  });
});
