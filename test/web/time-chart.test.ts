import { describe, expect, test } from "vitest";
import { rangePicker, timeChart, timeTicks } from "#coordinator/web/time-chart";
import { rangeStepSeconds, rangeWords, timeRange } from "#core/time-range";

const now = new Date("2026-03-10T12:00:00Z");
const asked = (query: Readonly<Record<string, string>>) => timeRange(query, now);
const span = ({ since, until }: { since: Date; until: Date }) =>
  `${since.toISOString()} ${until.toISOString()}`;
const anHour = asked({ range: "1h" });
const atMinute = (minutes: number) => new Date(anHour.since.getTime() + minutes * 60_000);
const chart = (more: Partial<Parameters<typeof timeChart>[0]>) =>
  timeChart({ title: "Pages", range: anHour, series: [], text: (value) => `${value}`, ...more }).markup;
/** Parses `0:4 30:- 60:8`: minutes with their values, `-` for unknown. */
const line = (name: string, values: string) => ({
  name,
  points: values.split(" ").map((pair) => {
    const [minutes, value] = pair.split(":");
    return { at: atMinute(Number(minutes)), value: value === "-" ? null : Number(value) };
  }),
});
const pathsOf = (markup: string, kind: string) =>
  [...markup.matchAll(/<path class="([^"]+)" d="([^"]*)"/g)]
    .filter(([, name]) => name!.startsWith(kind))
    .map(([, , d]) => d);

describe("the range of time that an address asks for", () => {
  test("a name counts back from now", () => {
    expect(span(asked({ range: "7d" }))).toBe("2026-03-03T12:00:00.000Z 2026-03-10T12:00:00.000Z");
    expect(rangeWords(asked({ range: "1y" }))).toBe("the last year");
  });

  test("two instants without a zone are UTC, and need no seconds", () => {
    const chosen = asked({ since: "2026-03-01T10:20", until: "2026-03-02T10:20:30+01:00" });

    expect(span(chosen)).toBe("2026-03-01T10:20:00.000Z 2026-03-02T09:20:30.000Z");
    expect(rangeWords(chosen)).toBe("2026-03-01 10:20 to 2026-03-02 09:20 UTC");
  });

  test.each([
    [{ range: "forever" }, "That is no range of time"],
    [{ range: "constructor" }, "That is no range of time"],
    [{ since: "2026-02-31", until: "2026-03-04" }, "From or to is not a date and time"],
    [{ since: "<script>", until: "9".repeat(2000) }, "From or to is not a date and time"],
    [{ since: "2026-03-04", until: "2026-03-01" }, "From is not before to"],
    [{ since: "2027-01-01", until: "2028-01-01" }, "That time has not come yet"],
    [{ since: "0001-01-01" }, "That is more than five years"],
    [{ until: "0000-01-01" }, "That is more than five years"],
  ])("%j is answered with the usual range, and said", (query: Record<string, string>, said) => {
    const range = asked(query);

    if (query.until === "0000-01-01") expect(range.until <= now).toBe(true);
    else expect([range.name, range.said]).toEqual(["24h", said]);
  });

  test("a range into the future ends now, and a second becomes five minutes", () => {
    expect(span(asked({ since: "2026-03-10T11:00", until: "2026-03-11" }))).toContain(
      " 2026-03-10T12:00:00.000Z",
    );
    expect(span(asked({ since: "2026-03-10T11:00:00Z", until: "2026-03-10T11:00:01Z" }))).toBe(
      "2026-03-10T10:55:01.000Z 2026-03-10T11:00:01.000Z",
    );
  });

  test("a point covers a round time, and no range has more than 240 of them", () => {
    const steps = ["1h", "6h", "24h", "7d", "30d", "90d", "1y"].map((range) =>
      rangeStepSeconds(asked({ range })),
    );

    expect(steps).toEqual([60, 120, 600, 3600, 3 * 3600, 12 * 3600, 48 * 3600]);
  });
});

describe("a chart", () => {
  test("has the range's beginning on the left, zero at the bottom, and a round figure at the top", () => {
    const markup = chart({
      series: [line("", "0:0 30:40 60:80")],
    });

    expect(pathsOf(markup, "chart-line")).toEqual(["M0 100L500 50L1000 0"]);
    expect(markup).toMatch(/text-anchor="end">80<.*|>80</);
    expect(markup).toContain("now 80, mean 40, highest 80");
  });

  test("has a gap where a value is unknown or missing, and a dot for a single value", () => {
    const markup = chart({
      series: [line("", "0:4 1:4 2:- 3:4 4:4 30:4 59:4 60:4")],
    });

    expect(pathsOf(markup, "chart-line")[0]!.match(/M/g)).toHaveLength(3);
    expect(pathsOf(markup, "chart-alone")).toEqual(["M500 0h0"]);
  });

  test("merges many points into means over round times, without closing gaps", () => {
    const points = Array.from({ length: 3600 }, (_, index) => ({
      at: new Date(anHour.since.getTime() + index * 1000),
      value: index >= 600 && index < 1200 ? null : index % 60,
    }));
    const markup = chart({ series: [{ name: "", points }] });

    expect(markup.match(/<tr><th scope="row"/g)).toHaveLength(50);
    expect(pathsOf(markup, "chart-line")[0]!.match(/M/g)).toHaveLength(2);
    expect(markup).toContain("Each is the mean of a minute.");
    expect(markup).toContain("mean 29.5");
  });

  test("distinguishes lines by more than colour, and names them", () => {
    const markup = chart({
      series: [line("amsterdam", "0:1 1:2"), line("<b>osaka</b>", "0:2 1:1")],
    });

    expect(markup).toContain('class="chart-line chart-line-2"');
    expect(markup).toContain("&lt;b&gt;osaka&lt;/b&gt;");
    expect(markup).not.toContain("<b>osaka");
  });

  test("leaves out values from the future, and says so", () => {
    const markup = chart({
      series: [line("", "58:1 59:1 90:500")],
    });

    expect(markup).toContain("1 value claims to be of the future and is left out");
    expect(markup).toContain("highest 1<");
  });

  test("says what is missing instead of drawing nothing", () => {
    const markup = chart({
      series: [line("", "0:- 5:NaN")],
      empty: "No crawler is connected.",
    });

    expect(markup).not.toContain("<svg");
    expect(markup).toContain("No crawler is connected.");
  });

  test("draws at most fifty marks with their words, and counts the rest", () => {
    const marks = Array.from({ length: 60 }, (_, index) => ({
      at: atMinute(index),
      words: `policy ${index} "changed"`,
    }));
    const markup = chart({
      series: [line("", "0:1 60:1")],
      marks: [{ at: atMinute(-5), words: "before" }, ...marks],
      moreMarks: 3,
    });

    expect(markup.match(/class="chart-mark"/g)).toHaveLength(50);
    expect(markup).toContain("63 changes in this time");
    expect(markup).toContain("13 more are not shown.");
    expect(markup).toContain("policy 0 &quot;changed&quot;");
    expect(markup).not.toContain("before");
  });

  test.each([
    [[0], "0"],
    [[1e300], "1e+300"],
    [[0.002], "0.002"],
    [[-5, 5], "-5"],
  ])("has an axis for %j", (values: number[], text) => {
    const markup = chart({
      series: [line("", values.map((value, index) => `${index}:${value}`).join(" "))],
    });

    expect(markup).not.toMatch(/NaN|Infinity/);
    expect(markup).toContain(`>${text}</text>`);
  });

  test("has round figures without useless zeros, and round minutes for durations", () => {
    const values = line("", "0:0 60:1400");
    const texts = (markup: string) =>
      [...markup.matchAll(/text-anchor="end">([^<]*[a-zA-Z])</g)].map(([, text]) => text);

    expect(texts(chart({ series: [values], text: (value) => `${(value / 1000).toFixed(2)} MB` }))).toEqual([
      ...["0 MB", "0.5 MB", "1 MB", "1.5 MB"],
    ]);
    expect(
      texts(chart({ series: [values], text: (value) => `${value / 60} min`, isDuration: true })),
    ).toEqual(["0 min", "10 min", "20 min", "30 min"]);
  });

  test("has no figure twice on its axis", () => {
    const markup = chart({
      series: [line("", "0:1 60:0")],
      text: (value) => `${Math.round(value)} hosts`,
    });

    expect([...markup.matchAll(/text-anchor="end">([^<]* hosts)</g)].map(([, text]) => text)).toEqual([
      "0 hosts",
      "1 hosts",
    ]);
  });

  test.each([
    ["1h", ["11:00", "11:10", "11:20", "11:30", "11:40", "11:50", "12:00"]],
    ["24h", ["12:00", "18:00", "10 Mar", "06:00", "12:00"]],
    ["7d", ["4 Mar", "6 Mar", "8 Mar", "10 Mar"]],
    ["90d", ["2026", "Feb", "Mar"]],
    ["1y", ["Apr", "Jul", "Oct", "2026"]],
  ])("names round times under %s", (range, texts) => {
    expect(timeTicks(asked({ range })).map(({ text }) => text)).toEqual(texts);
  });
});

test("the picker keeps the other parameters, and no text escapes its attribute", () => {
  const markup = rangePicker(
    "/fleet/queue",
    { reason: '"><script>', page: null },
    asked({ since: "2026-03-01", until: "2026-03-02" }),
  ).markup;

  expect(markup).toContain('href="/fleet/queue?reason=%22%3E%3Cscript%3E&amp;range=7d"');
  expect(markup).toContain('name="reason" value="&quot;&gt;&lt;script&gt;"');
  expect(markup).toContain('value="2026-03-01T00:00"');
  expect(markup).toContain("since=2026-02-28T00%3A00&amp;until=2026-03-01T00%3A00");
  expect(markup).not.toContain("<script>");
});
