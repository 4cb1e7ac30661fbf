/** The commands' tables: aligned, no wider than the terminal, coloured only there. */
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { formatTable, hasColours } from "#ops/cli/output";

const columns = [
  { title: "name" },
  { title: "state" },
  { title: "pages", align: "right" },
  { title: "remark" },
] as const;
const rows = [
  ["athens", "online", "12", "a remark that is a good deal longer than a terminal is wide, and then some"],
  ["a-name-of-twenty-five-lett", "offline", "1234567", ""],
];

it("aligns columns, and cuts nothing without a terminal", () => {
  const text = formatTable(columns, rows, { width: null, colours: false });

  expect(text.split("\n").map((line) => line.indexOf("o", 26))).toEqual([-1, -1, 28, 28]);
  expect(text).toContain("and then some");
  expect(text).not.toContain("\u001b");
});

it("shortens the widest text until it fits, and never a number or a title", () => {
  const text = formatTable(columns, rows, { width: 50, colours: false });

  const lines = text.split("\n");
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(50);
  expect(lines[2]).toMatch(/^athens .* online +12 {2}a remark.*…$/);
  expect(lines[3]).toContain("1234567");
});

it("is coloured without moving a column", () => {
  const plain = formatTable(columns, rows, { width: 60, colours: false });
  const painted = formatTable(columns, rows, { width: 60, colours: true });

  expect(painted).toContain("\u001b[1mname\u001b[22m");
  expect(stripVTControlCharacters(painted).replace(/ +$/gm, "")).toBe(plain);
});

it("has colours only on a terminal, unless set otherwise", () => {
  expect(hasColours({ isTTY: true }, {})).toBe(true);
  expect(hasColours({ isTTY: false }, {})).toBe(false);
  expect(hasColours({ isTTY: true }, { NO_COLOR: "1" })).toBe(false);
  expect(hasColours({ isTTY: true }, { TERM: "dumb" })).toBe(false);
  expect(hasColours({ isTTY: false }, { FORCE_COLOR: "1" })).toBe(true);
});
