import { describe, expect, it } from "vitest";
import { LinkList, NodeIndex } from "#coordinator/crawl/web-graph/link-graph";
import { degreesOf, largest } from "#coordinator/crawl/web-graph/summary";
import { seededRandom } from "#core/random";

describe("degrees", () => {
  it("are counted in bins of doubling size", () => {
    expect(degreesOf(Uint32Array.of(0, 0, 1, 2, 3, 4, 9))).toEqual({
      average: 19 / 7,
      most: 9,
      bins: [
        { least: 0, most: 0, nodes: 2 },
        { least: 1, most: 1, nodes: 1 },
        { least: 2, most: 3, nodes: 2 },
        { least: 4, most: 7, nodes: 1 },
        { least: 8, most: 15, nodes: 1 },
      ],
    });
    expect(degreesOf(new Uint32Array(0))).toEqual({ average: 0, most: 0, bins: [] });
  });

  it("list the largest, the first of equal ones first", () => {
    expect(largest(Uint32Array.of(3, 9, 1, 9, 4), 3)).toEqual([1, 3, 4]);
    expect(largest(Uint32Array.of(9, 9, 9, 9), 2)).toEqual([0, 1]);
    expect(largest(Uint32Array.of(1), 3)).toEqual([0]);
  });
});

describe("numbers for nodes", () => {
  it("are the same for the same hashes, whatever was added in between", () => {
    const index = new NodeIndex(7);
    const random = seededRandom(2);
    const names = Array.from({ length: 20_000 }, () =>
      [0, 1, 2, 3].map(() => Math.floor(random() * 2 ** 32) | 0),
    ) as [number, number, number, number][];
    // Many that differ only in the host's hash, or in one half.
    names.push(...names.slice(0, 500).map(([a, b, c, d]) => [a ^ 1, b, c, d] as (typeof names)[0]));
    names.push(...names.slice(0, 500).map(([a, b, c, d]) => [a, b ^ 1, c, d] as (typeof names)[0]));
    names.push(...names.slice(0, 500).map(([a, b, c, d]) => [a, b, c ^ 1, d] as (typeof names)[0]));

    const first = names.map((name) => index.add(...name));
    const again = names.map((name) => index.add(...name));

    expect(first).toEqual(names.map((_, at) => at));
    expect(again).toEqual(first);
    expect([...index.keys]).toEqual(names.flat());
  });
});

describe("a list of links", () => {
  it("keeps all of them when it grows", () => {
    const list = new LinkList();

    for (let link = 0; link < 10_000; link++) list.add(link, link + 1);

    expect(list.count).toBe(10_000);
    expect(list.from.every((from, at) => from === at && list.to[at] === at + 1)).toBe(true);
  });
});
