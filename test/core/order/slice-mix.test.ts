/** Nine new URLs to one old (Anansi, section 5.1), whatever the size of a lease. */
import { describe, expect, it } from "vitest";
import { mixLists, newSlots } from "#core/order/slice-mix";

describe("slots for new URLs", () => {
  it("are 18 of 20, at every turn", () => {
    expect([0, 0.5, 0.99].map((turn) => newSlots(20, 0.9, turn))).toEqual([18, 18, 18]);
  });

  it("are nine in ten over many leases of a single URL", () => {
    const turns = Array.from({ length: 1000 }, (_, index) => index / 1000);

    const taken = turns.reduce((sum, turn) => sum + newSlots(1, 0.9, turn), 0);

    expect(taken).toBe(900);
  });

  it("are all or none where only one kind is wanted", () => {
    expect([0, 0.999].map((turn) => newSlots(7, 1, turn))).toEqual([7, 7]);
    expect([0, 0.999].map((turn) => newSlots(7, 0, turn))).toEqual([0, 0]);
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
