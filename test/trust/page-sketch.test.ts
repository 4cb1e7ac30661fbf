/** Sketches of pages, differences between them, and the share of pages that is compared. */
import { describe, expect, it } from "vitest";
import { isSilent, newHost, withVerdict } from "#coordinator/crawl/trust/evidence";
import {
  defaultSamplingRule,
  differenceOf,
  isWithin,
  maxSketchLinks,
  samplingShare,
  sketchOfPage,
  sketchOfResult,
  still,
} from "#coordinator/crawl/trust/page-sketch";
import { asCrawlerId } from "#core/ids";
import { resultOf, text } from "../results/shipping-world.ts";
import { page, without } from "./sketches.ts";

const linksTo = (numbers: readonly number[]) => numbers.map((number) => ({ urlHash: String(number) }));
const upTo = (count: number) => Array.from({ length: count }, (_, index) => 1000 * index + 1);
const withLinks = (numbers: readonly number[]) =>
  sketchOfPage({ digest: "d", simhash: "0".repeat(16), title: "A page", links: linksTo(numbers) });

describe("a sketch", () => {
  it("holds each link once, ordered by hash, and counts them", () => {
    expect(withLinks([30, 10, 30, 20])).toMatchObject({ links: [10, 20, 30], linkCount: 3 });
  });

  it("is limited, however many links a page has", () => {
    const sketch = withLinks(upTo(2000));

    expect([sketch.links.length, sketch.linkCount]).toEqual([maxSketchLinks, 2000]);
  });

  it("is taken from the index when the crawler left out text that the index has", () => {
    const known = { ...text(1), title: "", textKnown: true } as const;

    expect(sketchOfResult(resultOf("http://s.example/", { page: known }, new Date(0)), [])).toBeNull();
  });

  it("accepts the negative hashes of the database", () => {
    expect(withLinks([-1]).links).toEqual([2 ** 48 - 1]);
  });

  it("is the same for a title that the database cleaned", () => {
    const clean = sketchOfPage({ digest: "d", simhash: "0".repeat(16), title: "A  page ", links: [] });

    expect(clean.titleHash).toBe(withLinks([]).titleHash);
    const [composed, marked] = ["NFC", "NFD"].map((form) =>
      sketchOfPage({ digest: "d", simhash: "0".repeat(16), title: "Zürich".normalize(form), links: [] }),
    );
    expect(marked?.titleHash).toBe(composed?.titleHash);
  });
});

describe("a difference", () => {
  it("counts links of only one page, bits of the text, and the title", () => {
    const difference = differenceOf(page("0", [1, 2, 3], 7), page("f", [1, 2, 4], 8));

    expect(difference).toEqual({ kind: false, bits: 4, links: 2, title: true });
  });

  it("shows added links even when not all links are kept", () => {
    const spam = [5, 7, 11];

    expect(
      differenceOf(withLinks(upTo(500)), withLinks([...upTo(500), ...spam]))?.links,
    ).toBeGreaterThanOrEqual(3);
  });

  it("tolerates a time of day in the text, but no additional link", () => {
    expect(isWithin(differenceOf(page("0"), page("7"))!, still)).toBe(true);
    expect(isWithin(differenceOf(page("0", [1]), page("0", [1, 2]))!, still)).toBe(false);
  });

  it("between a page and none exceeds any variation of a page", () => {
    const volatility = { bits: 64, links: 1000, title: true };

    expect(isWithin(differenceOf(page(), without("missing"))!, volatility)).toBe(false);
  });

  it("is unknown when one fetch was refused or failed", () => {
    expect(differenceOf(page(), without("none"))).toBeNull();
  });
});

describe("a host", () => {
  it("proves nothing once it differed by place", () => {
    expect(isSilent(withVerdict(newHost, { type: "by-place", words: "" }))).toBe(true);
  });

  it("proves nothing once two crawlers stood alone on it", () => {
    const alone = (suspect: number) => ({ type: "alone", suspect: asCrawlerId(suspect), words: "" }) as const;
    const first = withVerdict(newHost, alone(1));

    expect(isSilent(withVerdict(first, alone(1)))).toBe(false);
    expect(isSilent(withVerdict(first, alone(2)))).toBe(true);
  });

  it("still counts when it rotates advertisements, but not when its pages vary a lot", () => {
    const byVisit = (bits: number, links: number) =>
      ({ type: "by-visit", volatility: { bits, links, title: false }, words: "" }) as const;

    expect(isSilent(withVerdict(newHost, byVisit(3, 6)))).toBe(false);
    expect(isSilent(withVerdict(newHost, byVisit(30, 6)))).toBe(true);
  });
});

describe("the share of pages that is compared", () => {
  it("is 15 % of a newcomer's first 2000 pages, then 5 %", () => {
    const shares = [0, 1999, 2000].map((pages) =>
      samplingShare({ pages, watchedUntilPage: 0 }, defaultSamplingRule),
    );

    expect(shares).toEqual([0.15, 0.15, 0.05]);
  });

  it("is 30 % for a while after a page stood alone", () => {
    const shares = [5499, 5500].map((pages) =>
      samplingShare({ pages, watchedUntilPage: 5500 }, defaultSamplingRule),
    );

    expect(shares).toEqual([0.3, 0.05]);
  });
});
