/** Who is asked when two crawlers disagree, and what it comes to. Crawler 1 fetched first. */
import { describe, expect, it } from "vitest";
import { nextStep, type Opinion } from "#coordinator/crawl/trust/arbitration";
import { type PageSketch, sketchOfResult, still } from "#coordinator/crawl/trust/page-sketch";
import { asCrawlerId } from "#core/ids";
import { arrivedResult } from "../support/store-world.ts";
import { page, said, without } from "./sketches.ts";

const [a, b, c] = [page("0"), page("ffff"), page("ff0000ff")];
const [one, two] = [asCrawlerId(1), asCrawlerId(2)];

const { result: challengedResult } = arrivedResult({
  ...{ sequence: 1, leaseId: "1", url: "http://a.example/" },
  outcome: {
    ...{ type: "failed", blame: "target", code: "challenged", reason: "" },
    challenge: { provider: "anubis", of: "page", status: 200 },
  },
});

function following(opinions: readonly Opinion[], others = 5, volatility = still) {
  const step = nextStep({ opinions, volatility, others });
  return step.type === "ask" ? step.asked : step.verdict;
}

const gate = sketchOfResult(challengedResult, [])!;
const nothing = without("none");

it.each<[string, object, ...Opinion[]]>([
  ["anybody, at first", { type: "anybody" }, said(1, a)],
  ["one near the first crawler, when the second differs", { type: "near", to: one }, said(1, a), said(2, b)],
  [
    "the first crawler itself, when its neighbour sees what the second saw",
    { type: "again", crawlerId: one },
    ...[said(1, a), said(2, b), said(3, b)],
  ],
  [
    "one near the second crawler, when the first one's neighbour sees what the first saw",
    { type: "near", to: two },
    ...[said(1, a), said(2, b), said(3, a)],
  ],
  [
    "one more, before a crawler is said to stand alone",
    { type: "anybody" },
    ...[said(1, a), said(2, b), said(3, b), said(1, a)],
  ],
])("is asked: %s", (_, asked, ...opinions) => {
  expect(following(opinions)).toEqual(asked);
});

it.each<[string, object, ...Opinion[]]>([
  ["agreement, when both saw the same", { type: "agree" }, said(1, a), said(2, a)],
  [
    "the first one stands alone with all of its fetches",
    { type: "alone", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, a), said(4, b)],
  ],
  [
    "the first one differed once, and its second fetch is as the others'",
    { type: "once", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, b)],
  ],
  ["nothing, where a bot gate answers one of them", { type: "cannot-tell" }, said(1, a), said(2, gate)],
  [
    "nothing, where a bot gate answers whoever was asked again",
    { type: "cannot-tell" },
    ...[said(1, a), said(2, b), said(3, b), said(1, gate)],
  ],
  [
    "the second one stands alone, when its own neighbour sees what the others see",
    { type: "alone", suspect: two },
    ...[said(1, a), said(2, b), said(3, a), said(4, a), said(2, b)],
  ],
  [
    "a difference by place, when neighbours agree with each other on both sides",
    { type: "by-place" },
    ...[said(1, a), said(2, b), said(3, a), said(4, b)],
  ],
  [
    "a difference by place, when somebody else sees what the first crawler alone saw until then",
    { type: "by-place" },
    ...[said(1, a), said(2, b), said(3, b), said(1, a), said(4, a)],
  ],
  [
    "a page that differs at each visit, and accuses nobody",
    { type: "by-visit" },
    ...[said(1, a), said(2, b), said(3, c)],
  ],
  [
    "nobody's fault, where one of the fetches says nothing",
    { type: "cannot-tell" },
    ...[said(1, a), said(2, nothing)],
  ],
  [
    "whoever is asked again and has no answer differed once: silence is no way out",
    { type: "once", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, nothing)],
  ],
  [
    "the second one, asked again without an answer, too",
    { type: "once", suspect: two },
    ...[said(1, a), said(2, b), said(3, a), said(4, a), said(2, nothing)],
  ],
])("comes to %s", (_, verdict, ...opinions) => {
  expect(following(opinions)).toMatchObject(verdict);
});

it("comes to nobody's fault, where only two crawlers are there", () => {
  expect(gate).toMatchObject({ kind: "none", isGate: true });
  expect(following([said(1, a), said(2, b)], 0)).toMatchObject({
    type: "cannot-tell",
    words: expect.stringMatching(/with two crawlers nobody can say which is right/),
  });
});

describe("a page's own changes", () => {
  // Each visit has two advertisements of its own, and a bit or two of the text.
  const visit = (number: number) => page(String(2 ** number), [1, 2, 3, 10 * number, 10 * number + 1]);

  it("show in three fetches, and are remembered as the host's", () => {
    expect(following([said(1, visit(1)), said(2, visit(2)), said(3, visit(3))])).toMatchObject({
      type: "by-visit",
      volatility: { links: 4, title: false },
    });
  });

  it("explain later differences on the host", () => {
    const volatility = { bits: 2, links: 4, title: false };

    expect(following([said(1, visit(4)), said(2, visit(1))], 5, volatility)).toEqual({ type: "agree" });
  });

  it("do not explain ten more links in the fetch of one crawler", () => {
    const spam = Array.from({ length: 10 }, (_, index) => 500 + index);
    const altered = page("10", [...visit(4).links, ...spam]);

    const opinions = [
      said(1, altered),
      said(2, visit(1)),
      said(3, visit(2)),
      said(1, altered),
      said(4, visit(3)),
    ];

    expect(following(opinions)).toMatchObject({ type: "alone", suspect: one });
  });
});

describe("crawlers of different versions", () => {
  const links = (first: number, count: number) => Array.from({ length: count }, (_, at) => first + at);
  const stated = (crawler: number, sketch: PageSketch, version: string, isOffered = true): Opinion => ({
    ...said(crawler, sketch, version),
    isOffered,
  });
  const full = page("ff", links(1, 30));

  it("agree where the page's bytes were the same, and they read them somewhat differently", () => {
    const readOtherwise = { ...full, links: links(1, 20), linkCount: 20, titleHash: 8 };

    expect(following([said(1, full, "1.0"), said(2, readOtherwise, "1.1")])).toEqual({ type: "agree" });
  });

  it("agree where the bytes were not the same, and what they read hardly differs", () => {
    const later = { ...full, digest: "another", simhash: "0000000000000007" };
    const sooner = { ...full, simhash: "0000000000000005" };

    expect(following([said(1, later, "1.0"), said(2, sooner, "1.1")])).toEqual({ type: "agree" });
  });

  it("cannot be told apart where neither the bytes nor what was read are the same, within what releases differ by", () => {
    expect(following([said(1, a, "1.0"), said(2, page("fff"), "1.1")])).toMatchObject({
      type: "cannot-tell",
      words: expect.stringContaining("different versions"),
    });
  });

  it("are compared where the text is another or links are there by the dozen, whatever is said of the bytes", () => {
    const otherText = { ...full, simhash: "ffffffff000000ff" };
    const spam = { ...full, links: links(1, 60), linkCount: 60 };

    for (const altered of [otherText, spam]) {
      expect(following([said(1, altered, "1.0"), said(2, full, "1.1")])).toEqual({ type: "near", to: one });
      const all = [
        said(1, altered, "1.0"),
        said(2, full, "1.1"),
        said(3, full, "1.1"),
        said(1, altered, "1.0"),
      ];
      expect(following([...all, said(4, full, "1.1")])).toMatchObject({ type: "alone", suspect: one });
    }
  });

  it("have no excuse in a version that was never offered: one link more is compared", () => {
    const more = { ...full, links: links(1, 31), linkCount: 31 };

    expect(following([stated(1, more, "9.9", false), stated(2, full, "1.1")])).toEqual({
      type: "near",
      to: one,
    });
    expect(following([stated(1, more, "1.0"), stated(2, full, "1.1")])).toEqual({ type: "agree" });
  });

  it("are compared in whether there is a page at all", () => {
    expect(following([said(1, without("missing"), "1.0"), said(2, b, "1.1")])).toEqual({
      type: "near",
      to: one,
    });
  });
});
