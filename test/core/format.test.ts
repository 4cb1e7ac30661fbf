import { expect, it } from "vitest";
import { bytesText, howMany, instantWords, msText, spanWords, whenWords } from "#core/format";

const now = new Date("2026-03-01T12:00:00.000Z");
const pages = (count: number) => howMany(count, "page");
const when = (at: string) => whenWords(`2026-03-01T${at}Z`, now);

it.each<readonly [figure: string, of: readonly unknown[], write: (value: never) => string, words: string]>([
  ["round-trip times", [0, 0.456, 9.99, 12.34, 212.5], msText, "0 ms, 0.46 ms, 9.99 ms, 12.3 ms, 213 ms"],
  ["sizes", [0, 999, 1000, 999_600, 4.2e9], bytesText, "0 B, 999 B, 1.00 kB, 1.00 MB, 4.20 GB"],
  [
    "spans",
    [5, 89, 91, 5300, 5400, 1e5, 2e5],
    spanWords,
    "5 s, 89 s, 2 min, 88 min, 2 hours, 28 hours, 2 days",
  ],
  ["instants", ["12:00:12", "11:50:00", "12:00:00.4"], when, "in 12 s, 10 min ago, now"],
  ["an instant", ["2026-03-01T12:00:12.000Z"], instantWords, "2026-03-01 12:00:12 UTC"],
  ["counts", [0, 1, 1.5e3], pages, "0 pages, 1 page, 1,500 pages"],
])("%s are written for people", (_, values, write, words) => {
  expect(values.map((value) => write(value as never)).join(", ")).toBe(words);
});
