/** The order of what an engine found: points that are bounded, copies, facets. */
import { describe, expect, it } from "vitest";
import type { EngineMatch } from "#coordinator/tell/search/engine/search-engine";
import { mostPoints, rankPages, reasonsOf } from "#coordinator/tell/search/ranking";
import { scoreParts } from "#coordinator/tell/search/search-api";
import type { HostHash, UrlHash } from "#core/ids";

const now = new Date("2026-03-01T12:00:00Z");
const dayMs = 86_400_000;
const daysAgo = (days: number) => new Date(now.getTime() - days * dayMs);

/** A page of its own host, published half a year ago, with the full score. */
function match(name: string, changed: Partial<EngineMatch> = {}): EngineMatch {
  return {
    ...{ hostHash: name as HostHash, urlHash: "1" as UrlHash, url: `https://${name}/`, host: name },
    ...{ score: 10, textSearchConfig: "english", language: "en", country: null, crawler: "athens" },
    ...{ publishedAt: daysAgo(180), fetchedAt: now, uses: {}, textGroup: null, isCopy: false },
    ...{ linkingHosts: 0, pageRank: null, ...changed },
  };
}

const rank = (matches: readonly EngineMatch[], sort: "relevance" | "date" = "relevance") =>
  rankPages({ matches, total: matches.length, isExact: true, isPartial: false }, sort, now);
const hosts = (...args: Parameters<typeof rank>) => rank(...args).pages.map(({ host }) => host);
const pointsOf = (changed: Partial<EngineMatch>) =>
  rank([match("best"), match("page", changed), match("base", { pageRank: 1e-6 })]).pages.find(
    ({ host }) => host === "page",
  )!.points;

describe("the points", () => {
  it("are the sum of bounded parts, whatever the engine says", () => {
    const extreme = match("extreme", {
      score: 10,
      linkingHosts: 1e9,
      pageRank: 1,
      publishedAt: daysAgo(-50),
    });
    const worst = match("worst", { score: -5, linkingHosts: 0, isCopy: true, publishedAt: daysAgo(1e6) });

    const [first, last] = rank([worst, extreme, match("base", { pageRank: 1e-9 })]).pages.filter(
      ({ host }) => host !== "base",
    );

    expect(first?.points).toBeCloseTo(100, 6);
    expect(last?.points).toBeCloseTo(-mostPoints.copy, 6);
    for (const part of scoreParts) expect(Math.abs(first!.parts[part])).toBeLessThanOrEqual(mostPoints[part]);
    expect(rank([match("none", { score: 0 })]).pages[0]?.points).toBe(2.5);
  });

  it("for words weigh more than all others together, and those for links more than the date", () => {
    const others = { score: 5, linkingHosts: 1e6, pageRank: 1, publishedAt: now };

    expect(pointsOf({})).toBeGreaterThan(pointsOf(others));
    expect(pointsOf({ linkingHosts: 3 })).toBeGreaterThan(pointsOf({ publishedAt: now }));
  });

  it("count the first linking hosts most, and PageRank by its ratio to the lowest of the matches", () => {
    const [none, one, three, many] = [0, 1, 3, 255].map((linkingHosts) => pointsOf({ linkingHosts }));
    const [lowest, sixteen, more] = [1e-6, 16e-6, 1].map((pageRank) => pointsOf({ pageRank }));

    expect(one! - none!).toBeCloseTo(three! - one!, 6);
    expect(many! - none!).toBeCloseTo(15, 6);
    expect([sixteen! - lowest!, more! - lowest!].map((points) => Math.round(1e6 * points) / 1e6)).toEqual([
      5, 10,
    ]);
    expect(lowest).toBe(none);
  });

  it("for freshness are for pages that say when they were published, whenever they were fetched", () => {
    const [old, undated] = [{ publishedAt: daysAgo(1e6) }, { publishedAt: null, fetchedAt: now }];

    expect(pointsOf(undated)).toBeCloseTo(pointsOf(old), 6);
    expect(pointsOf({ publishedAt: now }) - pointsOf(undated)).toBe(mostPoints.freshness);
  });

  it("are fewer for a page whose text existed before", () => {
    expect(pointsOf({}) - pointsOf({ isCopy: true })).toBe(mostPoints.copy);
  });

  it("are explained in words, the weightiest first", () => {
    const [page] = rank([
      match("a", { linkingHosts: 1, pageRank: 4e-6, publishedAt: daysAgo(1) }),
      match("b", { score: 5, isCopy: true, pageRank: 1e-6 }),
    ]).pages;
    const [, other] = rank([match("a"), match("b", { score: 5, isCopy: true })]).pages;

    expect(reasonsOf(page!).map(({ part, words }) => [part, words])).toEqual(
      [
        ["words", "its title, headings, address and text fit the words best"],
        ["freshness", "published 2026-02-28, 1 day ago"],
        ["links", "1 other host links to it; its PageRank is 4.0 times the lowest here"],
      ].sort(([a], [b]) => partPoints(page!, b!) - partPoints(page!, a!)),
    );
    expect(reasonsOf(other!).map(({ words }) => words)).toEqual([
      "its title, headings, address and text fit the words 50 % as well as the best",
      "another page had nearly this text before",
      "published 2025-09-02, 180 days ago",
    ]);
  });
});

const partPoints = (page: ReturnType<typeof rank>["pages"][number], part: string) =>
  page.parts[part as keyof typeof page.parts];

describe("the order", () => {
  it("is by points, or by date, then by key, whatever the engine's order", () => {
    const matches = [
      match("c", { score: 6, publishedAt: null, fetchedAt: daysAgo(180) }),
      match("b", { publishedAt: daysAgo(400) }),
      match("a", { publishedAt: daysAgo(400) }),
    ];

    expect(hosts(matches)).toEqual(["a", "b", "c"]);
    expect(hosts(matches.toReversed(), "date")).toEqual(["c", "a", "b"]);
  });

  it("has one page of nearly the same text: the first that had it, however many points its copies have", () => {
    const pages = rank([
      match("copy", { textGroup: "1", isCopy: true, linkingHosts: 255 }),
      match("first", { textGroup: "1", score: 5 }),
      match("again", { textGroup: "1", isCopy: true }),
      match("other"),
    ]);

    expect(pages.pages.map(({ host, alike }) => [host, alike])).toEqual([
      ["other", 0],
      ["first", 2],
    ]);
    expect([pages.total, pages.facets.pages]).toEqual([2, 2]);
  });
});

it("says whether more match than were ranked", () => {
  const matches = [match("a")];
  const more = (total: number, isExact: boolean) =>
    rankPages({ matches, total, isExact, isPartial: false }, "relevance", now).more;

  expect([more(1, true), more(2, true), more(1, false)]).toEqual([false, true, true]);
});

it("counts values over what was ranked, the six most frequent of each", () => {
  const { facets } = rank([
    ...Array.from({ length: 8 }, (_, at) => match(`host${at}`, { uses: { "ai-train": "denied" } })),
    match("host0", { urlHash: "2" as UrlHash, language: null }),
  ]);

  expect(facets.host.slice(0, 2)).toEqual([
    { value: "host0", pages: 2 },
    { value: "host1", pages: 1 },
  ]);
  expect([facets.host.length, facets.pages]).toEqual([6, 9]);
  expect(facets.language).toEqual([{ value: "en", pages: 8 }]);
  expect(facets.preference).toEqual([{ value: "ai-train=denied", pages: 8 }]);
});
