import { LRUCache } from "lru-cache";
import { describe, expect, it } from "vitest";
import { growingTo } from "#core/small-collections";

describe("a cache that grows", () => {
  it("keeps up to its limit, and drops the least recently used entry", () => {
    const cache = new LRUCache<number, string>(growingTo(3));

    for (const key of [1, 2, 3]) cache.set(key, `${key}`);
    cache.get(1);
    cache.set(4, "4");

    expect([...cache.keys()].sort()).toEqual([1, 3, 4]);
  });
});
