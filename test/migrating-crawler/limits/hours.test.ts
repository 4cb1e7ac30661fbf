/** Weekly hours, and days and months in local time. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { isTimeZone, LocalTime } from "#crawler/core/local-time";
import { Schedule } from "#crawler/limits/governor";
import { isOpen, limitsSchema, openMinutesPerWeek, parseHours } from "#crawler/settings/limits-config";

const weekOf = (days: object) => limitsSchema.parse({ hours: days }).hours!;
const [sunday, monday, tuesday] = [0, 1, 2];
const at = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

describe("hours of the week", () => {
  it.each([
    ["22:00-06:00", [1320, 1800]],
    ["00:00-06:00, 20:00-24:00", [0, 360, 1200, 1440]],
    ["Never", []],
    ["always", [0, 1440]],
    ["9:30-10:00", [570, 600]],
    ["10:00-10:00", null],
    ["24:00-10:00", null],
    ["25:00-26:00", null],
    ["10:60-11:00", null],
    ["10:00", null],
    ["", null],
    ["10:00-11:00,".repeat(30), null],
  ])("are read: %s", (text, spans) => {
    const read = parseHours(text)?.flatMap(({ fromMinute, untilMinute }) => [fromMinute, untilMinute]);

    expect(read ?? null).toEqual(spans);
  });

  it("that begin in the evening last until the next morning, also from Sunday to Monday", () => {
    const week = weekOf({ sunday: "22:00-06:00" });

    expect(isOpen(week, sunday, at("21:59"))).toBe(false);
    expect(isOpen(week, sunday, at("22:00"))).toBe(true);
    expect(isOpen(week, monday, at("05:59"))).toBe(true);
    expect(isOpen(week, monday, at("06:00"))).toBe(false);
    expect(isOpen(week, sunday, at("03:00"))).toBe(false);
    expect(openMinutesPerWeek(week)).toBe(8 * 60);
  });

  it("are closed on days that are not named", () => {
    expect(isOpen(weekOf({ monday: "always" }), tuesday, at("12:00"))).toBe(false);
  });

  it("follow local time through the night when summer time begins", () => {
    let now = new Date("2026-03-28T20:00:00Z");
    const limits = { hours: weekOf({ sunday: "02:00-05:00" }), timeZone: "Europe/Athens" };
    const schedule = new Schedule(limits, () => now);

    const early = [schedule.isOpen(), schedule.usage().holdingBack];
    // 03:00 does not exist in Athens that night: 02:59 is followed by 04:00.
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

describe("the next opening or closing on nights when clocks change", () => {
  const days = "monday tuesday wednesday thursday friday saturday sunday".split(" ");
  const every = (hours: string) => weekOf(Object.fromEntries(days.map((day) => [day, hours])));

  it.each([
    ["Europe/Athens", "22:00-06:00", "2026-10-24T21:00:00Z", "2026-10-25T04:00:00Z"],
    ["Europe/Athens", "07:00-22:00", "2026-10-24T21:00:00Z", "2026-10-25T05:00:00Z"],
    ["Europe/Athens", "22:00-06:00", "2027-03-27T22:30:00Z", "2027-03-28T03:00:00Z"],
    ["America/New_York", "08:00-18:00", "2026-11-01T02:00:00Z", "2026-11-01T13:00:00Z"],
    // 03:00 to 04:00 does not exist that night, so it closes when the clock would show 03:00.
    ["Europe/Athens", "02:30-03:30", "2027-03-27T22:30:00Z", "2027-03-28T00:30:00Z"],
    ["Europe/Athens", "02:30-03:30", "2027-03-28T00:40:00Z", "2027-03-28T01:00:00Z"],
    // It would open within the missing hour, so it opens on the next night.
    ["Europe/Athens", "03:15-03:45", "2027-03-27T22:30:00Z", "2027-03-29T00:15:00Z"],
    // 03:00 to 04:00 occurs twice.
    ["Europe/Athens", "03:30-05:00", "2026-10-25T00:40:00Z", "2026-10-25T01:00:00Z"],
    ["Europe/Athens", "03:30-05:00", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"],
    ["Australia/Lord_Howe", "06:00-23:00", "2026-10-03T14:00:00Z", "2026-10-03T19:00:00Z"],
    // A whole day was skipped.
    ["Pacific/Apia", "09:00-17:00", "2011-12-30T05:00:00Z", "2011-12-30T19:00:00Z"],
    ["Europe/Athens", "always", "2026-10-24T21:00:00Z", null],
  ])("in %s with %s at %s: %s", (timeZone, hours, now, truth) => {
    const schedule = new Schedule({ hours: every(hours), timeZone }, () => new Date(now));

    expect(schedule.usage().resetsAt?.toISOString() ?? null).toBe(truth?.replace("Z", ".000Z") ?? null);
  });

  it("is the first such minute, in a hundred random nights, zones and hours", () => {
    const random = seededRandom(41);
    const zones = ["Europe/Athens", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "UTC"];
    const nights = "2026-10-24T20 2027-03-27T20 2026-11-01T02 2026-10-03T12".split(" ");
    for (let round = 0; round < 100; round++) {
      const time = () =>
        `${String(Math.floor(random() * 24)).padStart(2, "0")}:${random() < 0.5 ? "00" : "30"}`;
      const [from, until] = [time(), time()];
      const timeZone = zones[Math.floor(random() * zones.length)]!;
      const startMs =
        Date.parse(`${nights[Math.floor(random() * nights.length)]}:00Z`) +
        Math.floor(random() * 600) * 60_000;
      if (from === until) continue;
      let nowMs = startMs;
      const schedule = new Schedule({ hours: every(`${from}-${until}`), timeZone }, () => new Date(nowMs));
      const { resetsAt } = schedule.usage();
      const isOpenNow = schedule.isOpen();
      while (schedule.isOpen() === isOpenNow) nowMs += 60_000;
      expect(resetsAt, `${timeZone} ${from}-${until} ${new Date(startMs).toISOString()}`).toEqual(
        new Date(nowMs),
      );
    }
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

  it("is in a month that also ends in local time", () => {
    const athens = new LocalTime("Europe/Athens");

    expect(athens.monthEnd(new Date("2026-10-05T12:00:00Z"))).toEqual(new Date("2026-10-31T22:00:00Z"));
    expect(athens.monthEnd(new Date("2026-10-31T22:00:00Z"))).toEqual(new Date("2026-11-30T22:00:00Z"));
  });

  it("is refused for an unknown zone", () => {
    expect([isTimeZone("Europe/Athens"), isTimeZone("Europe/Atlantis")]).toEqual([true, false]);
  });
});
