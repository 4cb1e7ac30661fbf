/** Nine new URLs to one old (Anansi, section 5.1), whatever the size of a lease. */
import { describe, expect, it } from "vitest";
import { firstCarry, mixLists, mostOwed, owedAfter, shareOf } from "#coordinator/crawl/frontier/order/mix";
import { seededRandom } from "#core/random";

/** Leases of one host, one after the other. */
function newOf(sizes: readonly number[], share = 0.9, first = 0): number {
  let [carry, taken] = [first, 0];
  for (const size of sizes) {
    const one = shareOf(size, share, carry);
    carry = one.carry;
    taken += one.slots;
  }
  return taken;
}
const times = (count: number, size: number) => Array.from({ length: count }, () => size);

describe("slots for new URLs", () => {
  it("are 18 of 20, whatever was left over", () => {
    expect([0, 0.5, 0.99].map((carry) => shareOf(20, 0.9, carry).slots)).toEqual([18, 18, 18]);
  });

  it.each([1, 2, 3, 4, 5])("are nine in ten over leases of %d of a host", (size) => {
    expect([0, 0.35, 0.999].map((first) => newOf(times(100, size), 0.9, first))).toEqual(times(3, 90 * size));
  });

  it("are nine in ten over leases of one to five, to less than a whole one at any time", () => {
    const random = seededRandom(3);
    const sizes = Array.from({ length: 500 }, () => 1 + Math.floor(random() * 5));
    const sum = (until: number) => sizes.slice(0, until).reduce((total, size) => total + size, 0);

    const off = sizes.map((_, index) => newOf(sizes.slice(0, index + 1)) - 0.9 * sum(index + 1));

    expect(Math.min(...off)).toBeGreaterThan(-1);
    expect(Math.max(...off)).toBeLessThan(1);
  });

  it("are nine in ten over the first leases of many hosts, which start with their hashes", () => {
    const hosts = Array.from({ length: 1000 }, (_, index) => String(index - 500));

    expect(hosts.reduce((sum, hash) => sum + newOf([1], 0.9, firstCarry(hash)), 0)).toBe(900);
  });

  it("are all or none where only one kind is wanted", () => {
    expect([0, 0.999].map((carry) => shareOf(7, 1, carry).slots)).toEqual([7, 7]);
    expect([0, 0.999].map((carry) => shareOf(7, 0, carry).slots)).toEqual([0, 0]);
  });

  it("are fewer after leases that went by worth and had no old ones, by what the old are owed", () => {
    const owed = owedAfter(20, 0.9, 0);

    expect(owed).toBeCloseTo(-2, 9);
    expect(shareOf(20, 0.9, owed).slots).toBe(16);
    expect(shareOf(1, 0.9, owed)).toEqual({ slots: 0, carry: expect.closeTo(-1.1, 9) });
    expect(owedAfter(1000, 0.9, 0)).toBe(-mostOwed);
  });
});

describe("a lease from both lists", () => {
  const newUrls = ["n1", "n2", "n3", "n4", "n5"];
  const oldUrls = ["o1", "o2", "o3"];

  it("has the most urgent of both, the old ones spread among the new", () => {
    expect(mixLists({ newUrls, oldUrls }, 6, 4)).toEqual(["n1", "n2", "o1", "n3", "n4", "o2"]);
  });

  it("is filled from the other list where one runs out", () => {
    expect(mixLists({ newUrls, oldUrls: ["o1"] }, 6, 3)).toEqual(["n1", "o1", "n2", "n3", "n4", "n5"]);
    expect(mixLists({ newUrls: [], oldUrls }, 2, 2)).toEqual(["o1", "o2"]);
  });
});
