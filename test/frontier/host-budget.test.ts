/** What a host may have in the frontier, and what its URLs count for in that. */
import { describe, expect, it } from "vitest";
import type { PageWorth } from "#coordinator/crawl/batch/found-urls";
import { type HostPages, hostBudget, pageWorth } from "#coordinator/crawl/frontier/budgets";
import type { FetchOutcome, PageExtract } from "#protocol/result";
import { arrivedResult } from "../support/store-world.ts";

const nothing: HostPages = {
  good: 0,
  nearDuplicates: 0,
  notFound: 0,
  empty: 0,
  failed: 0,
  trappedLinks: 0,
  outsideLinks: 0,
};
const budget = (pages: Partial<HostPages>, limit = 1_000_000) => hostBudget({ ...nothing, ...pages }, limit);

describe("a host's budget", () => {
  it("starts at 50, and never passes the operator's limit", () => {
    expect([budget({}), budget({}, 20), budget({ good: 1000 }, 300)]).toEqual([50, 20, 300]);
  });

  it("grows by 4 with a good page, and by 8 more for each that a link from another host stands for", () => {
    expect([budget({ good: 10 }), budget({ good: 10, outsideLinks: 3 })]).toEqual([90, 114]);
    expect(budget({ good: 10, outsideLinks: 1_000_000 })).toBe(170);
    expect(budget({ outsideLinks: 1_000_000 })).toBe(50);
  });

  it("shrinks by 2 with each bad URL and by 1 with ten trapped links, but not below 10", () => {
    expect(budget({ nearDuplicates: 1, notFound: 1, empty: 1, failed: 1 })).toBe(42);
    expect([budget({ trappedLinks: 9 }), budget({ trappedLinks: 29 })]).toEqual([50, 48]);
    expect(budget({ nearDuplicates: 1000 })).toBe(10);
  });

  it("lets a host grow without end while half of what is fetched is good, and a trap not", () => {
    const grown = (goodOfTen: number) => {
      let urls = 0;
      const pages = { ...nothing };
      while (urls < hostBudget(pages, 10_000)) {
        pages[urls % 10 < goodOfTen ? "good" : "nearDuplicates"] += 1;
        urls += 1;
      }
      return urls;
    };

    expect([10, 5].map(grown)).toEqual([10_000, 10_000]);
    expect(grown(4)).toBeLessThan(150);
    expect(grown(0)).toBeLessThan(20);
  });
});

describe("what a URL counts for", () => {
  const page = arrivedResult({ sequence: 1, leaseId: "1", url: "http://a.example/" }).result.page!;
  const fetched: FetchOutcome = { type: "fetched", status: 200, truncated: false };
  const worth = (
    differences: Partial<PageExtract>,
    isNearDuplicate = false,
    before: PageWorth | null = null,
  ) =>
    pageWorth({ outcome: fetched, page: { ...page, words: 100, ...differences } }, isNearDuplicate, before);
  const worthOfOutcome = (outcome: FetchOutcome, before: PageWorth | null = "good") =>
    pageWorth({ outcome, page: null }, false, before);
  const status = (code: number): FetchOutcome => ({
    type: "http-error",
    status: code,
    retryAfterSeconds: null,
  });
  const failed = (code: string): FetchOutcome => ({ type: "failed", blame: "target", code, reason: "" });

  it("is what its page is", () => {
    expect(worth({})).toBe("good");
    expect(worth({}, true)).toBe("near-duplicate");
    expect(worth({ words: 4 })).toBe("empty");
    expect(worth({ softNotFound: true }, true)).toBe("not-found");
    expect(worth({}, false, "failed")).toBe("good");
  });

  it("is nothing for a list, a page that is not to be indexed, a redirect and a refusal", () => {
    expect([worth({ kind: "sitemap" }), worth({ kind: "feed" })]).toEqual([null, null]);
    expect(worth({ robots: { noindex: true, nofollow: false } })).toBeNull();
    expect(worthOfOutcome({ type: "redirected", status: 301, location: "http://b.example/" })).toBeNull();
    expect(worthOfOutcome({ type: "refused-by-robots", rule: "" })).toBeNull();
  });

  it("is an error where that will not pass, and else what it was before", () => {
    expect([400, 404, 410].map((code) => worthOfOutcome(status(code)))).toEqual([
      "failed",
      "failed",
      "failed",
    ]);
    expect([408, 425, 429, 500, 503].map((code) => worthOfOutcome(status(code)))).toEqual(
      Array(5).fill("good"),
    );
    expect(worthOfOutcome(failed("too-many-redirects"))).toBe("failed");
    expect(worthOfOutcome(failed("reset"))).toBe("good");
    expect(worthOfOutcome({ type: "unchanged", status: 304 }, "near-duplicate")).toBe("near-duplicate");
    expect(worthOfOutcome(status(503), null)).toBeNull();
    expect(worthOfOutcome(status(402))).toBeNull();
  });
});
