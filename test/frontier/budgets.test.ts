/** Rules of what comes in: a host's budget, what a URL counts for in it, room for new URLs, and shares of subnets and domains. */
import { describe, expect, it } from "vitest";
import type { PageWorth } from "#coordinator/crawl/batch/found-urls";
import {
  type HostPages,
  hostBudget,
  hostsInARow,
  largestShare,
  pageWorth,
  splitByShare,
} from "#coordinator/crawl/frontier/budgets";
import { type HostRoom, mostListUrls, placeUrls } from "#coordinator/crawl/frontier/place-urls";
import type { HostHash } from "#core/ids";
import type { FetchOutcome, PageExtract } from "#protocol/result";
import { arrivedResult, keyOf } from "../support/store-world.ts";

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

  it("grows by 4 with a good page, and by 8 more for each that has a link from another host", () => {
    expect([budget({ good: 10 }), budget({ good: 10, outsideLinks: 3 })]).toEqual([90, 114]);
    expect(budget({ good: 10, outsideLinks: 1_000_000 })).toBe(170);
    expect(budget({ outsideLinks: 1_000_000 })).toBe(50);
  });

  it("shrinks by 2 with each bad URL and by 1 with ten trapped links, but not below 10", () => {
    expect(budget({ nearDuplicates: 1, notFound: 1, empty: 1, failed: 1 })).toBe(42);
    expect([budget({ trappedLinks: 9 }), budget({ trappedLinks: 29 })]).toEqual([50, 48]);
    expect(budget({ nearDuplicates: 1000 })).toBe(10);
  });

  it("lets a host grow while half of its fetches are good, and stops a trap", () => {
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

  it("follows its page", () => {
    expect(worth({})).toBe("good");
    expect(worth({}, true)).toBe("near-duplicate");
    expect(worth({ words: 4 })).toBe("empty");
    expect(worth({ softNotFound: true }, true)).toBe("not-found");
    expect(worth({}, false, "failed")).toBe("good");
  });

  it("is nothing for a list, a noindex page, a redirect and a refusal", () => {
    expect([worth({ kind: "sitemap" }), worth({ kind: "feed" })]).toEqual([null, null]);
    expect(worth({ robots: { noindex: true, nofollow: false } })).toBeNull();
    expect(worthOfOutcome({ type: "redirected", status: 301, location: "http://b.example/" })).toBeNull();
    expect(worthOfOutcome({ type: "refused-by-robots", rule: "" })).toBeNull();
  });

  it("is a failure after a permanent error, and otherwise stays what it was", () => {
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

describe("new URLs", () => {
  const room = (open: number, rest: Partial<HostRoom> = {}): HostRoom => ({
    refused: null,
    open,
    holds: 0,
    lists: 0,
    ...rest,
  });

  const found = (path: string, depth = 1, isList = false) => ({
    key: keyOf(`http://a.example/${path}`),
    depth,
    ...(isList ? { isList } : {}),
  });

  const hostHash: HostHash = keyOf("http://a.example/").hostHash;

  function placed(urls: ReturnType<typeof found>[], roomOfHost: HostRoom) {
    const { placed: rows, counts } = placeUrls(urls, new Map([[hostHash, roomOfHost]]));
    return {
      rows: rows.map(({ url, state }) => `${url.key.url.slice("http://a.example/".length)} ${state}`),
      counts: counts.get(hostHash),
    };
  }

  it("are due shallowest first, then in order found; some are held and the rest is dropped", () => {
    const urls = [found("deep", 3), found("one"), found("two"), found("three"), found("four")];

    expect(placed(urls, room(2, { holds: 2 }))).toEqual({
      rows: ["one due", "two due", "three held", "four held"],
      counts: { urls: 2, due: 2, held: 2, lists: 0, leftOut: 1 },
    });
  });

  it("of a refused host are refused with its reason as far as it has room, and none is held", () => {
    const { placed: rows, counts } = placeUrls(
      [found("one"), found("two")],
      new Map([[hostHash, room(1, { refused: "10.0.0.1 is private", holds: 5 })]]),
    );

    expect(rows).toMatchObject([{ state: "refused", reason: "10.0.0.1 is private" }]);
    expect(counts.get(hostHash)).toEqual({ urls: 1, due: 0, held: 0, lists: 0, leftOut: 1 });
  });

  it("that are sitemaps or feeds have a limit of their own", () => {
    const urls = [found("map-1", 0, true), found("map-2", 0, true), found("page")];

    expect(placed(urls, room(9, { lists: mostListUrls - 1 }))).toEqual({
      rows: ["map-1 due", "page due"],
      counts: { urls: 2, due: 2, held: 0, lists: 1, leftOut: 1 },
    });
  });

  it("of a host that opted out are neither taken nor counted", () => {
    expect(placeUrls([found("one")], new Map())).toEqual({ placed: [], counts: new Map() });
  });
});

describe("a crawler's hosts", () => {
  /** Each of a domain of its own, unless it is named behind the subnet. */
  const hosts = (...names: string[]) =>
    names.map((name, index) => ({ shares: [name[0]!, name[1] ?? `domain ${index}`] as const }));
  const names = (chosen: readonly { shares: readonly string[] }[]) =>
    chosen
      .map(({ shares: [subnet, domain] }) => `${subnet}${domain!.slice(1) === "" ? domain : ""}`)
      .join("");

  it("of one subnet are a quarter of many, and five of the latest twenty when few are requested", () => {
    expect([1, 20, 40, 1000].map(largestShare)).toEqual([5, 5, 10, 250]);
  });

  it("beyond their subnet's share follow the others, in their order", () => {
    const { within, beyond } = splitByShare(hosts(..."aaaaaaabc"), { wanted: 20, recent: [] });

    expect([names(within), names(beyond)]).toEqual(["aaaaabc", "aa"]);
  });

  it("count with those of its previous requests, twenty in all", () => {
    const recent = [..."aaaaa", ..."b".repeat(15)].map((subnet) => [subnet]);

    const alone = splitByShare(hosts("a", "c"), { wanted: 1, recent: recent.slice(0, 5) });
    const longAgo = splitByShare(hosts("a"), { wanted: 1, recent });
    const together = splitByShare(hosts("a"), { wanted: hostsInARow, recent: recent.slice(0, 5) });

    expect([names(alone.within), names(alone.beyond)]).toEqual(["c", "a"]);
    expect(names(longAgo.within)).toBe("a");
    expect(names(together.within)).toBe("a");
  });

  it("within the shares are at most as many as wanted", () => {
    const { within, beyond } = splitByShare(hosts(..."abcd"), { wanted: 2, recent: [] });

    expect([names(within), names(beyond)]).toEqual(["ab", "cd"]);
  });

  it("beyond their subnet's share are of other domains first", () => {
    const waiting = hosts(...Array(8).fill("aE"), ..."aaaa");

    const { within, beyond } = splitByShare(waiting, { wanted: 20, recent: [] });

    expect([names(within), names(beyond)]).toEqual(["aEaEaEaEaE", "aaaaaEaEaE"]);
  });
});
