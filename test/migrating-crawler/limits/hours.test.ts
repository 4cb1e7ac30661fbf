/** Hours of the week, and days and months by the clock on the wall. */
import { describe, expect, it } from "vitest";
import { isTimeZone, LocalTime } from "#crawler/limits/local-time";
import { Schedule } from "#crawler/limits/schedule";
import { isOpen, limitsSchema, openMinutesPerWeek, parseHours } from "#crawler/settings/limits-config";

const weekOf = (days: object) => limitsSchema.parse({ hours: days }).hours!;
const [sunday, monday, tuesday] = [0, 1, 2];
const at = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

describe("hours of the week", () => {
  it.each([
    ["22:00-06:00", [[1320, 1800]]],
    [
      "00:00-06:00, 20:00-24:00",
      [
        [0, 360],
        [1200, 1440],
      ],
    ],
    ["Never", []],
    ["always", [[0, 1440]]],
    ["9:30-10:00", [[570, 600]]],
    ["10:00-10:00", null],
    ["24:00-10:00", null],
    ["25:00-26:00", null],
    ["10:60-11:00", null],
    ["10:00", null],
    ["", null],
    ["10:00-11:00,".repeat(30), null],
  ])("are read: %s", (text, spans) => {
    const expected = spans?.map(([fromMinute, untilMinute]) => ({ fromMinute, untilMinute })) ?? null;

    expect(parseHours(text)).toEqual(expected);
  });

  it("that begin in the evening last into the next morning, also from Sunday to Monday", () => {
    const week = weekOf({ sunday: "22:00-06:00" });

    expect(isOpen(week, sunday, at("21:59"))).toBe(false);
    expect(isOpen(week, sunday, at("22:00"))).toBe(true);
    expect(isOpen(week, monday, at("05:59"))).toBe(true);
    expect(isOpen(week, monday, at("06:00"))).toBe(false);
    expect(isOpen(week, sunday, at("03:00"))).toBe(false);
    expect(openMinutesPerWeek(week)).toBe(8 * 60);
  });

  it("have nothing on days that are not named", () => {
    expect(isOpen(weekOf({ monday: "always" }), tuesday, at("12:00"))).toBe(false);
  });

  it("follow the clock on the wall through the night that summer time begins", () => {
    let now = new Date("2026-03-28T20:00:00Z");
    const limits = { hours: weekOf({ sunday: "02:00-05:00" }), timeZone: "Europe/Athens" };
    const schedule = new Schedule(limits, () => now);

    const early = [schedule.isOpen(), schedule.usage().holdingBack];
    // 03:00 does not exist in Athens on that night: 02:59 is followed by 04:00.
    now = new Date("2026-03-29T00:59:00Z");
    const before = schedule.isOpen();
    now = new Date("2026-03-29T01:59:00Z");
    const within = schedule.isOpen();
    now = new Date("2026-03-29T02:00:00Z");
    const after = schedule.isOpen();

    expect(early).toEqual([false, "outside the hours that are set for crawling until Sun 02:00"]);
    expect([before, within, after]).toEqual([true, true, false]);
  });
});

describe("a day in a time zone", () => {
  it.each([
    ["Europe/Athens", "2026-03-28T23:00:00Z", "2026-03-29", "2026-03-29T21:00:00Z"],
    ["Europe/Athens", "2026-10-24T22:00:00Z", "2026-10-25", "2026-10-25T22:00:00Z"],
    ["Asia/Kathmandu", "2026-11-21T18:14:59Z", "2026-11-21", "2026-11-21T18:15:00Z"],
    ["UTC", "2026-12-31T23:59:59Z", "2026-12-31", "2027-01-01T00:00:00Z"],
  ])("of %s at %s is %s and ends at %s", (zone, now, day, end) => {
    const time = new LocalTime(zone);

    expect(time.at(new Date(now)).day).toBe(day);
    expect(time.dayEnd(new Date(now))).toEqual(new Date(end));
  });

  it("lies in a month that ends there, too", () => {
    const athens = new LocalTime("Europe/Athens");

    expect(athens.monthEnd(new Date("2026-10-05T12:00:00Z"))).toEqual(new Date("2026-10-31T22:00:00Z"));
    expect(athens.monthEnd(new Date("2026-10-31T22:00:00Z"))).toEqual(new Date("2026-11-30T22:00:00Z"));
  });

  it("is refused for a zone that there is not", () => {
    expect([isTimeZone("Europe/Athens"), isTimeZone("Europe/Atlantis")]).toEqual([true, false]);
  });
});
