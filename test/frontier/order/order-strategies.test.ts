/** What each strategy puts first, and how it says so (Anansi 4.1 to 4.4, WEB-SAILOR 3.3). */
import { describe, expect, it } from "vitest";
import {
  type OrderName,
  orderNames,
  orderStrategy,
  scoreOf,
  type UrlFacts,
} from "#coordinator/crawl/frontier/order/strategies";

const day = 86_400;
const newUrl: UrlFacts = {
  backLinks: 12,
  outLinks: null,
  changeRatio: null,
  pageRank: null,
  ageSeconds: null,
  dueSeconds: 90,
  depth: 2,
};
const oldUrl: UrlFacts = { ...newUrl, outLinks: 8, changeRatio: 0.7, pageRank: 0.001, ageSeconds: 18 * day };

const score = (name: OrderName, url: UrlFacts) => scoreOf(orderStrategy(name), url);
const reason = (name: OrderName, url: UrlFacts) => orderStrategy(name).reason(url);

it("each is found by its own name", () => {
  expect(orderNames.map((name) => orderStrategy(name).name)).toEqual([...orderNames]);
});

describe("breadth-first", () => {
  it("goes by the time since a URL became due, and mixes nothing", () => {
    expect(score("breadth-first", newUrl)).toBe(90);
    expect(reason("breadth-first", { ...newUrl, depth: 1 })).toBe("due for 2 min, 1 link from a seed");
    expect(orderNames.filter((name) => !orderStrategy(name).mixesNewAndOld)).toEqual(["breadth-first"]);
  });
});

describe("back-links", () => {
  it("goes by the links to a URL", () => {
    expect(score("back-links", newUrl)).toBe(12);
    expect(reason("back-links", oldUrl)).toBe("12 = I, the links to it");
  });
});

describe("anansi", () => {
  it("goes by I for new URLs", () => {
    expect(score("anansi", newUrl)).toBe(12);
  });

  it("goes by C·T·(I + O) for old ones, T being 0.1 of six months after 18 days", () => {
    expect(score("anansi", oldUrl)).toBeCloseTo(0.7 * 0.1 * 20, 12);
    expect(reason("anansi", oldUrl)).toBe("1.4 = C 0.7 × T 0.1 × (I 12 + O 8)");
  });

  it("takes C for 1 where it is not known, and says so", () => {
    const once = { ...oldUrl, changeRatio: null };

    expect(score("anansi", once)).toBeCloseTo(2, 12);
    expect(reason("anansi", once)).toBe("2 = C 1 (not known yet) × T 0.1 × (I 12 + O 8)");
  });

  it("puts a page whose links never change behind all others", () => {
    expect(score("anansi", { ...oldUrl, changeRatio: 0 })).toBe(0);
  });

  it("takes a visit that a jumping clock puts into the future for one just now", () => {
    expect(score("anansi", { ...oldUrl, ageSeconds: -day })).toBe(0);
  });
});

describe("pagerank", () => {
  it("goes by the rank, and an absent one is the least", () => {
    expect(score("pagerank", oldUrl)).toBe(0.001);
    expect(score("pagerank", newUrl)).toBe(0);
    expect(reason("pagerank", oldUrl)).toBe("0.001 = its PageRank");
    expect(reason("pagerank", newUrl)).toContain("no rank was computed");
  });
});
