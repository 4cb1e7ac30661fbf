/** Days and months of use, whatever the clock does. */
import { expect, it } from "vitest";
import { bytesOfMonth, emptyLedger, onDay, type UsageLedger, withUse } from "#crawler/limits/usage-caps";

/** The ledger after so many bytes on each of these days, in this order. */
function after(...days: readonly (readonly [day: string, bytes: number])[]): UsageLedger {
  return days.reduce((ledger, [day, bytes]) => withUse(onDay(ledger, day), 1, bytes), emptyLedger);
}

it("begins a day with nothing, and counts it to its month", () => {
  const ledger = after(["2026-11-21", 100], ["2026-11-22", 30], ["2026-11-24", 5]);

  expect(ledger.today).toMatchObject({ day: "2026-11-24", pages: 1, bytes: 5 });
  expect(bytesOfMonth(ledger)).toBe(135);
});

it("begins a month with nothing, also a year later", () => {
  expect(bytesOfMonth(after(["2026-11-30", 100], ["2026-12-01", 30]))).toBe(30);
  expect(bytesOfMonth(after(["2026-11-30", 100], ["2027-11-30", 30]))).toBe(30);
});

it("goes on with a day that the clock goes back to", () => {
  const ledger = after(["2026-11-21", 100], ["2026-11-22", 30], ["2026-11-21", 1]);

  expect(ledger.today.bytes).toBe(101);
  expect(onDay(ledger, "2026-11-22").today.bytes).toBe(30);
});

it("gives nothing away to a clock that is set back to a day before all others", () => {
  const ledger = after(["2026-11-21", 100], ["2026-11-22", 30], ["2000-01-01", 7]);

  expect(ledger.today.bytes).toBe(37);
  expect(bytesOfMonth(ledger)).toBe(137);
});

it("counts what came in a wrong day to the right one once the clock is fixed", () => {
  const ledger = after(["2026-11-21", 100], ["2026-11-22", 30], ["2000-01-01", 7], ["2026-11-22", 1]);

  expect(ledger.today).toMatchObject({ bytes: 38, pages: 3 });
  expect(bytesOfMonth(ledger)).toBe(138);
});

it("outlives a clock that was years ahead", () => {
  const ledger = after(["2026-11-22", 30], ["2036-01-01", 9], ["2026-11-22", 1], ["2026-11-23", 2]);

  expect(ledger.today.bytes).toBe(2);
  expect(bytesOfMonth(ledger)).toBe(33);
});

it("takes over into the next day what the clock's going back added to the month", () => {
  const ledger = after(["2026-11-21", 100], ["2026-11-22", 30], ["2026-11-21", 1], ["2026-11-22", 0]);

  expect(bytesOfMonth(ledger)).toBe(131);
});
