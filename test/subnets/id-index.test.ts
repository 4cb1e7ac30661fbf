import { describe, expect, it } from "vitest";
import { indexIds } from "#coordinator/place/subnets/tree-columns";
import { seededRandom } from "#core/random";

const seed = 20260301;

/** Different ids below `limit`, in no order. */
function drawIds(count: number, limit: number): Int32Array {
  const random = seededRandom(seed);
  const drawn = new Set<number>();
  while (drawn.size < count) drawn.add(Math.floor(random() * limit));
  return Int32Array.from(drawn);
}

describe.each([
  ["dense", 12_000],
  ["sparse", 2 ** 31],
])("an index over %s ids", (_, limit) => {
  const ids = drawIds(10_000, limit);
  const index = indexIds(ids);

  it("finds the row of each", () => {
    expect([...ids].filter((id, row) => index.firstRow(id) !== row)).toEqual([]);
  });

  it("finds no row for an id that is none of them, nor for a negative one", () => {
    const known = new Set(ids);
    const others = [...drawIds(5000, limit)].map((id) => (id + 1) % limit).filter((id) => !known.has(id));

    expect([...others, -1, 2 ** 31 - 1].filter((id) => !known.has(id) && index.firstRow(id) !== -1)).toEqual(
      [],
    );
  });

  it("refuses an id that appears twice, by its name", () => {
    const twice = ids.slice();
    twice[77] = twice[9_000] as number;

    expect(() => indexIds(twice)).toThrow(`the subnet id ${twice[77]} appears twice`);
  });
});

it("an index over no ids finds none", () => {
  expect(indexIds(new Int32Array()).firstRow(0)).toBe(-1);
});
