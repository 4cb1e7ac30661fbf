import { describe, expect, it } from "vitest";
import { withSections } from "#ops/cli/commands/evaluate";
import { fullPlan } from "#ops/evaluate/figure";
import { type DownloadGroup, ratiosOf, subFleet } from "#ops/evaluate/figures/download-time";
import { nearTargets } from "#ops/evaluate/figures/large-fleet";
import { linearTrend } from "#ops/evaluate/figures/learning";
import { drawBars } from "#ops/evaluate/pictures/bar-picture";
import { axisFor, placeOn } from "#ops/evaluate/pictures/document";
import { drawLines } from "#ops/evaluate/pictures/line-picture";
import { generateWorld } from "#ops/world/generate-world";

const section = { name: "a", title: "A", text: "first", provenance: "today" };

describe("the page", () => {
  it("begins with a headline, and takes new sections at its end", () => {
    const page = withSections("", [section, { ...section, name: "b", title: "B" }]);

    expect(page).toMatch(
      /^# Delegation\n\n<!-- evaluate a: begin -->\n## A\nfirst\n\ntoday\n<!-- evaluate a: end -->/,
    );
    expect(page.indexOf("## B")).toBeGreaterThan(page.indexOf("## A"));
  });

  it("replaces a section where it stands, and keeps what people wrote before and after", () => {
    const page = `# Mine\nbefore\n${withSections("", [section]).replace("# Delegation", "")}after\n`;

    const again = withSections(page, [{ ...section, text: "second" }]);

    expect(again).toBe(page.replace("first", "second"));
    expect(withSections(again, [{ ...section, text: "second" }])).toBe(again);
  });
});

describe("an axis", () => {
  it("has round marks from 0 to a little over the largest value", () => {
    expect(axisFor("ms", [3, 8.2])).toEqual({ label: "ms", from: 0, to: 10, ticks: [0, 2, 4, 6, 8, 10] });
    expect(axisFor("ms", [0.31]).ticks).toEqual([0, 0.1, 0.2, 0.3, 0.4]);
    expect(axisFor("%", [], { from: 60, to: 100 }).ticks).toEqual([60, 70, 80, 90, 100]);
  });

  it("has marks even where every value is 0", () => {
    expect(axisFor("ms", [0]).ticks.length).toBeGreaterThan(1);
  });

  it("places values in proportion, or by their logarithm", () => {
    const linear = placeOn(axisFor("", [], { from: 0, to: 10 }), 100, 200);
    const logarithmic = placeOn({ label: "", from: 1, to: 100, ticks: [], scale: "logarithmic" }, 0, 100);

    expect(linear(5)).toBe(150);
    expect(logarithmic(10)).toBeCloseTo(50);
  });
});

describe("a picture", () => {
  const frame = { title: "a < b & c", description: '"quoted"' };

  it("escapes whatever text it is given", () => {
    const axis = axisFor("<x>", [1]);
    const lines = [
      { name: "n & m", role: "nearest", style: "line", points: [{ x: 0, y: 1, label: "<p>" }] },
    ] as const;

    const svg = drawLines({ ...frame, panels: [{ title: "<t>", x: axis, y: axis, lines }] });

    expect(svg).toContain("a &lt; b &amp; c");
    for (const raw of ["<x>", "<t>", "<p>", "n & m"]) expect(svg).not.toContain(raw);
  });

  it("stacks the parts of a bar on each other, to the height of their sum", () => {
    const svg = drawBars({
      ...frame,
      valueLabel: "ms",
      parts: [
        { name: "one", role: "part-1" },
        { name: "two", role: "part-2" },
      ],
      panels: [{ title: "", bars: [{ name: "both", values: [30, 10] }] }],
    });

    const bars = [...svg.matchAll(/class="bar" x="[\d.]+" y="([\d.]+)" width="52" height="([\d.]+)"/g)];
    const [first, second] = bars.map(([, y, height]) => ({ y: Number(y), height: Number(height) }));
    expect(second!.y + second!.height).toBeCloseTo(first!.y, 0);
    expect(first!.height / second!.height).toBeCloseTo(3, 1);
    expect(svg).toContain(">40</text>");
  });
});

describe("the numbers behind the figures", () => {
  it("a linear trend is the least-squares line", () => {
    expect(linearTrend([4, 3, 2, 1])).toEqual({ atFirst: 4, change: -3 });
    expect(linearTrend([1, 1, 1]).change).toBeCloseTo(0);
    expect(linearTrend([2])).toEqual({ atFirst: 2, change: 0 });
  });

  it("one tenth of the time would need RTTs further apart than ten to one, by what the rest takes", () => {
    const row = (policy: string, rttMs: number) => ({
      policy,
      rttMs,
      roundTripsMs: 2 * rttMs,
      serverMs: 10,
      bytesMs: 10,
    });
    const group: DownloadGroup = {
      name: "",
      tuning: "unknown",
      rows: [row("random", 90), row("exhaustive", 20)],
    };

    const ratios = ratiosOf(group);

    expect(ratios.rtt).toBe(4.5);
    // 200 ms against 60; and ten times 60 ms are 580 ms of round trips, where the nearest has 40.
    expect(ratios.download).toBeCloseTo(200 / 60);
    expect(ratios.neededRtt).toBeCloseTo(14.5);
  });

  it("a fleet within a fleet has some of its crawlers, at the same distances", () => {
    const world = generateWorld({ crawlers: 8, sites: 5, seed: 1 });

    const part = subFleet(world, 3, 7);

    const indices = part.crawlers.map((crawler) => world.crawlers.indexOf(crawler));
    expect(indices).toHaveLength(3);
    expect(indices).not.toContain(-1);
    const { address } = world.sites[0]!;
    indices.forEach((index, position) => {
      expect(part.rttMs(position, address)).toBe(world.rttMs(index, address));
    });
    const row = new Float64Array(3);
    part.rttRow(0, row);
    expect([...row]).toEqual(indices.map((index) => world.rttMs(index, address)));
    expect(part.crawlerRttMs(0, 2)).toBe(world.crawlerRttMs(indices[0]!, indices[2]!));
    expect(subFleet(world, 8, 7)).toBe(world);
  });

  it("targets that a crawler is within 2 ms of are counted, and those that got one", () => {
    const first = { bestRttsMs: [1, 2, 2.1, 0.5], rttsMs: [1, 2.5, 2.1, 1.9] };
    const noneNear = { bestRttsMs: [3, 4], rttsMs: [3, 9] };

    expect(nearTargets([first])).toMatchObject({ coverablePct: { mean: 75 }, foundPct: { mean: 66.6667 } });
    expect(nearTargets([first, noneNear])).toMatchObject({
      coverablePct: { mean: 37.5, least: 0, most: 75 },
      foundPct: { mean: 66.6667 },
    });
    expect(nearTargets([noneNear]).foundPct).toEqual({ mean: 0, least: 0, most: 0 });
  });

  it("the full plan has every fleet from 6 to 1,000 crawlers, and worlds from 1,000 to 100,000 sites", () => {
    const { scale, untuned, crawlers } = fullPlan;

    expect(new Set(scale.map(({ crawlers }) => crawlers))).toEqual(new Set([6, 12, 50, 200, 1000]));
    expect(new Set(scale.map(({ sites }) => sites))).toEqual(new Set([1000, 10_000, 100_000]));
    expect(untuned.map((step) => step.crawlers)).toEqual([12, 50, 200, 1300]);
    expect(crawlers.large).toBe(1300);
  });
});
