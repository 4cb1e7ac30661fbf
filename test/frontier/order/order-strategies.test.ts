/** What each strategy puts first (Anansi 4.1 to 4.4, WEB-SAILOR 3.3), how lists are mixed, and whose turn a host has. */
import { describe, expect, it } from "vitest";
import {
  hostsByTurns,
  mostWorthShare,
  type OrderName,
  orderNames,
  orderStrategy,
  scoreOf,
  shareOf,
  type UrlFacts,
  worthShareOf,
} from "#coordinator/crawl/frontier/order/strategies";
import { seededRandom } from "#core/random";
import { firstCarry, mixLists } from "./mix-model.ts";

const day = 86_400;
const newUrl: UrlFacts = {
  ...{ backLinks: 12, outLinks: null, changeRatio: null, pageRank: null, ageSeconds: null },
  ...{ dueSeconds: 90, depth: 2 },
};
const oldUrl: UrlFacts = { ...newUrl, outLinks: 8, changeRatio: 0.7, pageRank: 0.001, ageSeconds: 18 * day };

describe("a strategy", () => {
  it.each<[OrderName, string, UrlFacts, number, string]>([
    ["breadth-first", "the time since it became due", newUrl, 90, "due for 2 min, 2 links from a seed"],
    [
      "breadth-first",
      "less before that",
      { ...newUrl, dueSeconds: -90, depth: 1 },
      -90,
      "due in 2 min, 1 link from a seed",
    ],
    ["back-links", "the links to it", oldUrl, 12, "12 = I, the links to it"],
    ["anansi", "the links to a new one", newUrl, 12, "12 = I, the links to it"],
    // T is 0.1 of six months after 18 days.
    ["anansi", "C·T·(I + O) for an old one", oldUrl, 1.4, "1.4 = C 0.7 × T 0.1 × (I 12 + O 8)"],
    [
      "anansi",
      "C = 1 while unknown",
      { ...oldUrl, changeRatio: null },
      2,
      "2 = C 1 (not known yet) × T 0.1 × (I 12 + O 8)",
    ],
    [
      "anansi",
      "nothing where links never change",
      { ...oldUrl, changeRatio: 0 },
      0,
      "0 = C 0 × T 0.1 × (I 12 + O 8)",
    ],
    [
      "anansi",
      "nothing for a visit in the future",
      { ...oldUrl, ageSeconds: -day },
      0,
      "0 = C 0.7 × T 0 × (I 12 + O 8)",
    ],
    ["pagerank", "its rank", oldUrl, 0.001, "0.001 = its PageRank"],
    ["pagerank", "the least without a rank", newUrl, 0, "0, since no rank was computed with this URL in it"],
  ])("%s scores a URL by %s, and says so", (name, _, url, score, reason) => {
    expect(scoreOf(orderStrategy(name), url)).toBeCloseTo(score, 12);
    expect(orderStrategy(name).reason(url)).toBe(reason);
  });

  it("is found by its name; only breadth-first has one list, and lets hosts go by turns alone", () => {
    const shares = orderNames.map((name) => worthShareOf({ name, newShare: 0.9, worthShare: 0.75 }));

    expect(orderNames.map((name) => orderStrategy(name).name)).toEqual([...orderNames]);
    expect(shares).toEqual([0, 0.75, 0.75, 0.75]);
    expect([worthShareOf({ name: "anansi", newShare: 0.9 }), worthShareOf(undefined)]).toEqual([0, 0]);
  });
});

describe("slots for new URLs", () => {
  /** Leases of one host, one after the other. */
  function newOf(sizes: readonly number[], first = 0): number {
    let [carry, taken] = [first, 0];
    for (const size of sizes) {
      const one = shareOf(size, 0.9, carry);
      carry = one.carry;
      taken += one.slots;
    }
    return taken;
  }

  it.each([1, 2, 3, 4, 5, 20])("are nine in ten over leases of %d URLs, whatever was carried", (size) => {
    const sizes = Array<number>(100).fill(size);

    expect([0, 0.35, 0.999].map((first) => newOf(sizes, first))).toEqual(Array(3).fill(90 * size));
  });

  it("are never a whole one off over leases of one to five", () => {
    const random = seededRandom(3);
    const sizes = Array.from({ length: 500 }, () => 1 + Math.floor(random() * 5));
    const off = sizes.map((_, index) => {
      const leases = sizes.slice(0, index + 1);
      return newOf(leases) - 0.9 * leases.reduce((total, size) => total + size, 0);
    });

    expect(Math.min(...off)).toBeGreaterThan(-1);
    expect(Math.max(...off)).toBeLessThan(1);
  });

  it("are nine in ten over the first leases of many hosts, which start with their hashes", () => {
    const hashes = Array.from({ length: 1000 }, (_, index) => String(index - 500));

    expect(hashes.reduce((sum, hash) => sum + newOf([1], firstCarry(hash)), 0)).toBe(900);
  });

  it("are all or none where only one kind is wanted, and fewer when the old ones are owed", () => {
    expect([0, 0.999].map((carry) => shareOf(7, 1, carry).slots)).toEqual([7, 7]);
    expect([0, 0.999].map((carry) => shareOf(7, 0, carry).slots)).toEqual([0, 0]);
    expect(shareOf(20, 0.9, -2).slots).toBe(16);
    expect(shareOf(1, 0.9, -2)).toEqual({ slots: 0, carry: expect.closeTo(-1.1, 9) });
  });
});

it.each([
  [
    "spreads the old URLs among the new",
    ["n1", "n2", "n3", "n4", "n5"],
    ["o1", "o2", "o3"],
    6,
    4,
    "n1 n2 o1 n3 n4 o2",
  ],
  [
    "is filled with new URLs when the old run out",
    ["n1", "n2", "n3", "n4", "n5"],
    ["o1"],
    6,
    3,
    "n1 o1 n2 n3 n4 n5",
  ],
  ["is filled with old URLs when there are no new ones", [], ["o1", "o2", "o3"], 2, 2, "o1 o2"],
])("a lease from both lists %s", (_, newUrls, oldUrls, slots, slotsForNew, leased) => {
  expect(mixLists({ newUrls, oldUrls }, slots, slotsForNew).join(" ")).toBe(leased);
});

describe("hosts", () => {
  const host = (host_hash: string, worth: number | null = null) => ({ host_hash, worth });
  const lists = {
    worthiest: [host("w1", 9), host("w2", 8), host("w3", 5), host("w4", 4)],
    longestDue: [host("d1"), host("d2"), host("w1", 9), host("d3"), host("d4")],
  };
  const three = { worthiest: lists.worthiest.slice(0, 3) };

  it.each([
    [
      "three by worth to the longest due, which need the worth of the next",
      {},
      3,
      "w1>4 w2>4 w3>4 d1 d2 d3 d4",
    ],
    ["each once, and none takes a turn from those that wait", {}, 2, "w1>5 d1 w2>5 d2 d3 d4"],
    ["by worth without a bound when there is no next", three, 3, "w1>null w2>null w3>null d1 d2 d3 d4"],
    ["by how long they are due when no worth is known", { worthiest: [] }, 3, "d1 d2 w1 d3 d4"],
  ])("take turns: %s", (_, given, byWorth, expected) => {
    const turns = hostsByTurns({ ...lists, ...given }, { wanted: 4, byWorth }).map(
      ({ host_hash, leastWorth }) => host_hash + (leastWorth === undefined ? "" : `>${leastWorth}`),
    );

    expect(turns.join(" ")).toBe(expected);
  });

  it.each([0.5, 0.75, mostWorthShare])(
    "without worth come after what has been due for longer, however much worth arrives (share %d)",
    (share) => {
      const random = seededRandom(5);
      let waiting = [..."abcdefg", "poor"].map((name) => host(name));
      let [carry, handed] = [0, 0];

      for (let request = 0; waiting.some(({ host_hash }) => host_hash === "poor"); request++) {
        expect(request).toBeLessThan(1000);
        const wanted = 1 + Math.floor(random() * 4);
        const byWorth = shareOf(wanted, share, carry);
        carry = byWorth.carry;
        const worthiest = Array.from({ length: 10 }, (_, index) => host(`${request}-${index}`, 1e6 - index));
        const turns = hostsByTurns({ worthiest, longestDue: waiting }, { wanted, byWorth: byWorth.slots });
        const taken = new Set(turns.slice(0, wanted).map(({ host_hash }) => host_hash));
        waiting = waiting.filter(({ host_hash }) => !taken.has(host_hash));
        handed += wanted;
      }

      expect(handed).toBeLessThanOrEqual(Math.ceil(8 / (1 - share)) + 4);
    },
  );
});
