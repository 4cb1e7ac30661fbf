/** Whom arbitration asks when two crawlers disagree, and its verdicts. Crawler 1 fetched first. */
import { describe, expect, it } from "vitest";
import { nextStep, type Opinion } from "#coordinator/crawl/trust/arbitration";
import { type PageSketch, sketchOfPage, sketchOfResult, still } from "#coordinator/crawl/trust/page-sketch";
import { asCrawlerId } from "#core/ids";
import { extracted } from "../migrating-crawler/support/extracted.ts";
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
  ["anybody at first", { type: "anybody" }, said(1, a)],
  ["one near the first crawler when the second differs", { type: "near", to: one }, said(1, a), said(2, b)],
  [
    "the first crawler again when its neighbour agrees with the second",
    { type: "again", crawlerId: one },
    ...[said(1, a), said(2, b), said(3, b)],
  ],
  [
    "one near the second crawler when the first one's neighbour agrees with the first",
    { type: "near", to: two },
    ...[said(1, a), said(2, b), said(3, a)],
  ],
  [
    "one more before a crawler stands alone",
    { type: "anybody" },
    ...[said(1, a), said(2, b), said(3, b), said(1, a)],
  ],
])("is asked: %s", (_, asked, ...opinions) => {
  expect(following(opinions)).toEqual(asked);
});

it.each<[string, object, ...Opinion[]]>([
  ["agreement when both saw the same", { type: "agree" }, said(1, a), said(2, a)],
  [
    "alone when all fetches of the first differ",
    { type: "alone", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, a), said(4, b)],
  ],
  [
    "once when only the first fetch of the first differs",
    { type: "once", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, b)],
  ],
  ["no verdict when a bot gate answers one of them", { type: "cannot-tell" }, said(1, a), said(2, gate)],
  [
    "no verdict when a bot gate answers the crawler that was asked again",
    { type: "cannot-tell" },
    ...[said(1, a), said(2, b), said(3, b), said(1, gate)],
  ],
  [
    "alone when the neighbour of the second agrees with the others",
    { type: "alone", suspect: two },
    ...[said(1, a), said(2, b), said(3, a), said(4, a), said(2, b)],
  ],
  [
    "by place when neighbours agree on both sides",
    { type: "by-place" },
    ...[said(1, a), said(2, b), said(3, a), said(4, b)],
  ],
  [
    "by place when another crawler agrees with the first",
    { type: "by-place" },
    ...[said(1, a), said(2, b), said(3, b), said(1, a), said(4, a)],
  ],
  ["by visit when all three differ", { type: "by-visit" }, ...[said(1, a), said(2, b), said(3, c)]],
  [
    "no verdict when one of the fetches says nothing",
    { type: "cannot-tell" },
    ...[said(1, a), said(2, nothing)],
  ],
  [
    "once when the first is asked again and stays silent",
    { type: "once", suspect: one },
    ...[said(1, a), said(2, b), said(3, b), said(1, nothing)],
  ],
  [
    "once when the second is asked again and stays silent",
    { type: "once", suspect: two },
    ...[said(1, a), said(2, b), said(3, a), said(4, a), said(2, nothing)],
  ],
  [
    "no verdict when one of them left the other's links out as traps",
    { type: "cannot-tell", words: expect.stringContaining("left out as a trap") },
    ...[said(1, { ...page("0", [1]), trappedLinks: 2 }), said(2, page("0", [1, 2, 3]))],
  ],
])("comes to %s", (_, verdict, ...opinions) => {
  expect(following(opinions)).toMatchObject(verdict);
});

it("gives no verdict when there are only two crawlers", () => {
  expect(gate).toMatchObject({ kind: "none", isGate: true });
  expect(following([said(1, a), said(2, b)], 0)).toMatchObject({
    type: "cannot-tell",
    words: expect.stringMatching(/with two crawlers nobody can say which is right/),
  });
});

describe("a page's own changes", () => {
  // Each visit has two advertisements of its own, and a bit or two of the text.
  const visit = (number: number) => page(String(2 ** number), [1, 2, 3, 10 * number, 10 * number + 1]);

  it("show in three fetches and are remembered for the host", () => {
    expect(following([said(1, visit(1)), said(2, visit(2)), said(3, visit(3))])).toMatchObject({
      type: "by-visit",
      volatility: { links: 4, title: false },
    });
  });

  it("explain later differences on the host", () => {
    const volatility = { bits: 2, links: 4, title: false };

    expect(following([said(1, visit(4)), said(2, visit(1))], 5, volatility)).toEqual({ type: "agree" });
  });

  it("do not explain ten more links in one crawler's fetches", () => {
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

  it("agree when they read the same bytes somewhat differently", () => {
    const readOtherwise = { ...full, links: links(1, 20), linkCount: 20, titleHash: 8 };

    expect(following([said(1, full, "1.0"), said(2, readOtherwise, "1.1")])).toEqual({ type: "agree" });
  });

  it("agree when the bytes differ but the extracts hardly do", () => {
    const later = { ...full, digest: "another", simhash: "0000000000000007" };
    const sooner = { ...full, simhash: "0000000000000005" };

    expect(following([said(1, later, "1.0"), said(2, sooner, "1.1")])).toEqual({ type: "agree" });
  });

  it("get no verdict when bytes and extracts differ no more than releases may", () => {
    expect(following([said(1, a, "1.0"), said(2, page("fff"), "1.1")])).toMatchObject({
      type: "cannot-tell",
      words: expect.stringContaining("different versions"),
    });
  });

  it("are compared when the text or dozens of links differ, whatever digest they state", () => {
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

  it("have no excuse in a version that was never offered", () => {
    const more = { ...full, links: links(1, 31), linkCount: 31 };

    expect(following([stated(1, more, "9.9", false), stated(2, full, "1.1")])).toEqual({
      type: "near",
      to: one,
    });
    expect(following([stated(1, more, "1.0"), stated(2, full, "1.1")])).toEqual({ type: "agree" });
  });

  it("agree when a release's extractor leaves out the navigation", async () => {
    const sketchOf = async (html: string) => {
      const bytes = { bytes: Buffer.from(html), digest: "0".repeat(64) };
      const { links, ...read } = await extracted(html, bytes);
      return sketchOfPage({ ...read, links: links.map((_, at) => ({ urlHash: String(at) })) });
    };
    const words = Array.from({ length: 300 }, (_, at) => `word${(at * 7919) % 541}`).join(" ");
    const links = Array.from({ length: 10 }, (_, at) => `<a href="/more/${at}">more ${at}</a>`).join(" ");
    const main = `<main><h1>A harbour</h1><p>${words}</p><p>${links}</p></main>`;
    const navigation = [1, 2, 3, 4, 5].map((at) => `<a href="/section/${at}">section ${at}</a>`).join(" ");
    const older = await sketchOf(`<title>A page</title><nav>${navigation}</nav>${main}`);
    const newer = await sketchOf(`<title>A page</title>${main}`);

    expect(older.linkCount - newer.linkCount).toBe(5);
    expect(following([said(1, newer, "1.1"), said(2, older, "1.0")])).toEqual({ type: "agree" });
  });

  it("are compared on whether there is a page at all", () => {
    expect(following([said(1, without("missing"), "1.0"), said(2, b, "1.1")])).toEqual({
      type: "near",
      to: one,
    });
  });
});
