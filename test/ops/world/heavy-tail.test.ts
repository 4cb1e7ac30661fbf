import { describe, expect, it } from "vitest";
import { HeavyTail } from "#ops/world/organisations";
import { SeededRandom } from "#ops/world/seeded-random";

function groupSizes(members: number, settings = { concentration: 300, discount: 0.75 }): number[] {
  const tail = new HeavyTail(new SeededRandom(9), settings);
  const sizes: number[] = [];
  for (let member = 0; member < members; member++) {
    const group = tail.next();
    sizes[group] = (sizes[group] ?? 0) + 1;
  }
  return sizes;
}

describe("groups with a heavy tail", () => {
  it("are numbered as they are founded, without gaps", () => {
    const sizes = groupSizes(500);

    expect(sizes.every((size) => size > 0)).toBe(true);
  });

  it("are as many as announced ranges have organisations: 788, 5,702 and 31,494 of 1,000, 10,000 and 100,000", () => {
    for (const [ranges, organisations] of [
      [1000, 788],
      [10_000, 5702],
      [100_000, 31_494],
    ] as const) {
      const found = groupSizes(ranges).length;

      expect(found / organisations).toBeGreaterThan(0.88);
      expect(found / organisations).toBeLessThan(1.12);
    }
  });

  it("are mostly of one, and a few hold many", () => {
    const sizes = groupSizes(10_000).sort((a, b) => b - a);
    const share = (most: readonly number[]) => most.reduce((sum, size) => sum + size, 0) / 10_000;

    expect(sizes.filter((size) => size === 1).length / sizes.length).toBeGreaterThan(0.6);
    expect(share(sizes.slice(0, Math.round(sizes.length / 100)))).toBeGreaterThan(0.1);
  });

  it("hold one each where the discount is 1", () => {
    expect(groupSizes(50, { concentration: 1, discount: 1 })).toHaveLength(50);
  });
});
