import { LRUCache } from "lru-cache";
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { growingTo, NumberMap } from "#core/small-collections";

const ends = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)];

describe("a map of numbers", () => {
  it("holds the ends of the 32 bits as keys and as values, and none for what it was not given", () => {
    const map = new NumberMap();

    for (const key of ends) map.set(key, key === 0 ? 7 : key);

    expect(ends.map((key) => map.get(key))).toEqual([7, 1, -1, 2 ** 31 - 1, -(2 ** 31)]);
    expect([map.get(2), map.size]).toEqual([0, 5]);
  });

  it.each([
    ["dense", 1, 300],
    ["sparse", 2 ** 31, 2 ** 31],
    ["in steps that a weak hash would put into one place", 65_536, 2 ** 31],
  ])("agrees with a plain Map on random writes and removals of keys that are %s", (_, step, limit) => {
    const seed = 20260304;
    const random = seededRandom(seed);
    const [map, plain] = [new NumberMap(), new Map<number, number>()];
    const keys = Array.from({ length: 300 }, (_, index) =>
      step === 2 ** 31 ? Math.floor(random() * limit) : (index * step) % limit,
    );

    for (let times = 0; times < 30_000; times += 1) {
      const key = keys[Math.floor(random() * keys.length)]!;
      const value = random() < 0.45 ? 0 : Math.floor(random() * 2 ** 32) - 2 ** 31;
      map.set(key, value);
      if (value === 0) plain.delete(key);
      else plain.set(key, value);
      if (times % 1000 > 0) continue;
      expect(
        keys.filter((one) => map.get(one) !== (plain.get(one) ?? 0)),
        `seed ${seed}`,
      ).toEqual([]);
    }

    expect(map.size).toBe(plain.size);
  });

  it("takes at most 16 bytes an entry, and few more than 10 when it has just not grown", () => {
    const map = new NumberMap();

    for (let key = 1; key <= 100_000; key += 1) {
      map.set(key, key);
      if (key > 1000 && map.bytes / key > 16.1) throw new Error(`${map.bytes} bytes for ${key} entries`);
    }

    expect(map.get(99_999)).toBe(99_999);
  });
});

describe("a cache that grows", () => {
  it("keeps as many entries as it may, and drops the one that was used least lately", () => {
    const cache = new LRUCache<number, string>(growingTo(3));

    for (const key of [1, 2, 3]) cache.set(key, `${key}`);
    cache.get(1);
    cache.set(4, "4");

    expect([...cache.keys()].sort()).toEqual([1, 3, 4]);
  });
});
