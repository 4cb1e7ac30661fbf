import { describe, expect, it } from "vitest";
import { bytesText, howMany, instantWords, msText, spanWords, whenWords } from "#core/format";

describe("figures in words", () => {
  it("round-trip times have three figures", () => {
    expect([0, 0.456, 9.99, 12.34, 212.5].map(msText)).toEqual([
      "0 ms",
      "0.46 ms",
      "9.99 ms",
      "12.3 ms",
      "213 ms",
    ]);
  });

  it("sizes have a fitting decimal unit", () => {
    expect([0, 999, 1000, 1500, 999_600, 4.2e9].map(bytesText)).toEqual([
      "0 B",
      "999 B",
      "1.00 kB",
      "1.50 kB",
      "1.00 MB",
      "4.20 GB",
    ]);
  });

  it("spans have a fitting unit", () => {
    expect([5, 89, 91, 5300, 5400, 100_000, 200_000].map(spanWords)).toEqual([
      "5 s",
      "89 s",
      "2 min",
      "88 min",
      "2 hours",
      "28 hours",
      "2 days",
    ]);
  });

  it("instants are told from now", () => {
    const now = new Date("2026-03-01T12:00:00.000Z");

    expect(whenWords("2026-03-01T12:00:12.000Z", now)).toBe("in 12 s");
    expect(whenWords("2026-03-01T11:50:00.000Z", now)).toBe("10 min ago");
    expect(whenWords("2026-03-01T12:00:00.400Z", now)).toBe("now");
    expect(instantWords("2026-03-01T12:00:12.000Z")).toBe("2026-03-01 12:00:12 UTC");
  });

  it("counts agree with their noun", () => {
    expect([howMany(0, "page"), howMany(1, "page"), howMany(1234, "page")]).toEqual([
      "0 pages",
      "1 page",
      "1,234 pages",
    ]);
  });
});
