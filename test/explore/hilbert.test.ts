/** The curve against its definition by words: each square's four quarters, turned, and joined end to end. */
import { expect, it } from "vitest";
import { type Cell, cellOfIndex, indexOfCell } from "#coordinator/explore/space";
import { seededRandom } from "#core/random";

const seed = Math.floor(Math.random() * 2 ** 31);

/** All cells in order, by the definition alone: mirrored at a diagonal, copied twice, mirrored at the other. */
function curve(order: number): Cell[] {
  if (order === 0) return [{ x: 0, y: 0 }];
  const part = curve(order - 1);
  const side = 2 ** (order - 1);
  return [
    ...part.map(({ x, y }) => ({ x: y, y: x })),
    ...part.map(({ x, y }) => ({ x, y: y + side })),
    ...part.map(({ x, y }) => ({ x: x + side, y: y + side })),
    ...part.map(({ x, y }) => ({ x: 2 * side - 1 - y, y: side - 1 - x })),
  ];
}

it.each([1, 2, 3, 6])("goes at order %i as the definition says", (order) => {
  const cells = Array.from({ length: 4 ** order }, (_, index) => cellOfIndex(index, order));

  expect(cells).toEqual(curve(order));
});

it(`gives back the number of any cell, however deep (seed ${seed})`, () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 2000; round += 1) {
    const order = 1 + Math.floor(random() * 26);
    const index = Math.floor(random() * 4 ** order);

    expect([order, indexOfCell(cellOfIndex(index, order), order)]).toEqual([order, index]);
  }
});

it(`keeps neighbours on the line neighbours on the map, and a block's cells together (seed ${seed})`, () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 500; round += 1) {
    const order = 2 + Math.floor(random() * 24);
    const index = Math.floor(random() * (4 ** order - 1));
    const [one, next] = [cellOfIndex(index, order), cellOfIndex(index + 1, order)];
    const larger = cellOfIndex(Math.floor(index / 4), order - 1);

    expect(Math.abs(one.x - next.x) + Math.abs(one.y - next.y)).toBe(1);
    expect({ x: Math.floor(one.x / 2), y: Math.floor(one.y / 2) }).toEqual(larger);
  }
});
