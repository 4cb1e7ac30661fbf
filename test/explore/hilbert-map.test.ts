/** The curve against its definition, and which square shows an address or a block. */
import { expect, it } from "vitest";
import { blockText, type Cell, cellOfIndex, squareHolding } from "#coordinator/tell/explore/hilbert-map";
import { parseRange } from "#core/ip/range";

/** All cells in order, by the definition only: mirrored at a diagonal, copied twice, mirrored at the other. */
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

it.each([1, 2, 3, 6])("matches the definition at order %i", (order) => {
  const cells = Array.from({ length: 4 ** order }, (_, index) => cellOfIndex(index, order));

  expect(cells).toEqual(curve(order));
});

it.each([
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["64.0.0.0/4", "64.0.0.0/4"],
  ["64.0.0.0/5", "64.0.0.0/4"],
  ["10.0.0.0 - 10.0.0.9", "10.0.0.0/20"],
  ["192.0.2.1", "192.0.0.0/20"],
  ["2a00::/12", "2a00::/11"],
  ["2001:db8::1", "2001:db8::/115"],
  ["::/0", "2000::/3"],
  ["fe80::/10", "2000::/3"],
])("%s is shown in %s", (asked, square) => {
  expect(blockText(squareHolding(parseRange(asked)!))).toBe(square);
});
