import { describe, expect, it } from "vitest";
import { readMoment } from "#crawler/extract/page-dates";

describe("a moment", () => {
  it.each([
    ["2019-04-28", "2019-04-28"],
    ["2019-04-28T06:01", "2019-04-28T06:01"],
    ["2019-04-28 06:01:07", "2019-04-28T06:01:07"],
    ["2019-04-28T06:01:07.123Z", "2019-04-28T06:01:07Z"],
    ["2019-04-28T06:01:07+0530", "2019-04-28T06:01:07+05:30"],
    ["2019-04-28T06:01+02:00", "2019-04-28T06:01+02:00"],
    ["2019-04-28T06:01:07 UTC", "2019-04-28T06:01:07Z"],
    ["2019/4/8", "2019-04-08"],
    ["20190428", "2019-04-28"],
    ["20190428T060107Z", "2019-04-28T06:01:07Z"],
    ["Sun, 28 Apr 2019 06:01:07 GMT", "2019-04-28T06:01:07Z"],
    ["April 28, 2019 at 6:01 pm", "2019-04-28T18:01"],
    ["Posted on the 3rd of May 2020", "2020-05-03"],
    ["1. Dezember 2021, 09:30 Uhr", "2021-12-01T09:30"],
    ["le 1er août 2018", "2018-08-01"],
    ["5 de enero de 2020", "2020-01-05"],
    ["3 мая 2021 г.", "2021-05-03"],
    ["2020年7月3日", "2020-07-03"],
    ["28.04.2019", "2019-04-28"],
    ["1556431267", "2019-04-28T06:01:07Z"],
    ["1556431267000", "2019-04-28T06:01:07Z"],
  ])("%s is %s", (written, moment) => {
    expect(readMoment(written)).toBe(moment);
  });

  it.each([
    "",
    "yesterday",
    "2019",
    "2019-13-01",
    "2019-02-30",
    "1850-01-01",
    "version 10.2.1",
    "12 elephants 2019",
    "3".repeat(100_000),
  ])("is not in %.30j", (written) => {
    expect(readMoment(written)).toBeNull();
  });

  it("with slashes is read the way of the page's language", () => {
    expect(readMoment("03/04/2020", "en-US")).toBe("2020-03-04");
    expect(readMoment("03/04/2020", "en-GB")).toBe("2020-04-03");
    expect(readMoment("03/04/2020", "fr")).toBe("2020-04-03");
    expect(readMoment("28/04/2020", "en")).toBe("2020-04-28");
  });

  it("with an impossible time is a day", () => {
    expect(readMoment("2019-04-28T25:61:00Z")).toBe("2019-04-28");
  });
});
