import { describe, expect, it } from "vitest";
import {
  addressShare,
  mostPoints,
  type PageSignals,
  scoreOf,
  totalOf,
} from "#coordinator/tell/search/page-score";
import { firstTierPages, leastStandingOf, standingOf } from "#coordinator/tell/search/ranking";

const plain: PageSignals = {
  textRank: 0.1,
  headRank: 0,
  addressShare: 0,
  linkingHosts: 0,
  ageDays: 180,
  isLaterCopy: false,
};
const points = (changed: Partial<PageSignals>) => totalOf(scoreOf({ ...plain, ...changed }));

describe("a page's score", () => {
  it("is the sum of bounded parts, whatever the signals", () => {
    const best = scoreOf({
      textRank: 1e9,
      headRank: 1e9,
      addressShare: 1,
      linkingHosts: 1e9,
      ageDays: -5,
      isLaterCopy: false,
    });

    expect(totalOf(best)).toBeCloseTo(100, 3);
    expect(scoreOf(plain)).toEqual({ text: 20, head: 0, address: 0, links: 0, freshness: 2.5, copy: 0 });
  });

  it("weighs the title more than any number of links, and links more than the date", () => {
    expect(points({ headRank: 0.61 })).toBeGreaterThan(points({ linkingHosts: 1e6, ageDays: 0 }));
    expect(points({ linkingHosts: 3 })).toBeGreaterThan(points({ ageDays: 0 }));
  });

  it("counts the first linking hosts most", () => {
    const [none, one, three, many] = [0, 1, 3, 255].map((linkingHosts) => points({ linkingHosts }));

    expect(one! - none!).toBeCloseTo(three! - one!, 6);
    expect(many! - none!).toBeCloseTo(mostPoints.links, 6);
  });

  it("is lower for a page whose text existed before", () => {
    expect(points({}) - points({ isLaterCopy: true })).toBe(mostPoints.copy);
  });

  it("counts only separate words in an address", () => {
    expect(addressShare("https://www.example.org/Ferry-times", ["ferry", "harbour"])).toBe(0.5);
    expect(addressShare("https://www.example.org/ferryman", ["ferry"])).toBe(0);
    expect(addressShare("https://www.example.org/", [])).toBe(0);
  });
});

describe("a page's standing", () => {
  it("grows with each doubling of the hosts that link to it, and a copy has none", () => {
    const standing = (linkingHosts: number, isFrontPage = false, isLaterCopy = false) =>
      standingOf({ linkingHosts, isFrontPage, isLaterCopy });

    expect([0, 1, 3, 7, 1000].map((hosts) => standing(hosts))).toEqual([0, 2, 4, 6, 20]);
    expect([standing(0, true), standing(7, true, true)]).toEqual([3, 0]);
  });

  it("puts the whole of a small index into the first tier, and at most 4 % of a large one", () => {
    const small = new Map([[0, firstTierPages]]);
    const large = new Map([
      [0, 900_000],
      [2, 70_000],
      [4, 25_000],
      [6, 5_000],
    ]);

    expect(leastStandingOf(small)).toBe(0);
    expect(leastStandingOf(large)).toBe(3);
    expect(leastStandingOf(new Map([[0, 1_000_000]]))).toBe(1);
  });
});
