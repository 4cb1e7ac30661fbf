/** Meta robots and X-Robots-Tag: the stricter of what addresses everybody and us applies. */
import { describe, expect, it } from "vitest";
import { robotsDirectives } from "#crawler/extract/extract-list";

const nowMs = Date.parse("2026-11-22T12:00:00Z");
const unbounded = Number.POSITIVE_INFINITY;

function said(metas: readonly string[], header?: string | readonly string[]) {
  return robotsDirectives({ metas, header, nowMs });
}

describe("robots directives", () => {
  it("forbid nothing when none are there, or only what is allowed anyway", () => {
    const nothing = { noindex: false, nofollow: false, excerptCharacters: unbounded };

    expect(said([])).toEqual(nothing);
    expect(said(["all", "index, follow, max-snippet:-1, max-image-preview:large"])).toEqual(nothing);
  });

  it.each([
    ["none", true, true],
    ["NoIndex", true, false],
    ["noindex nofollow", true, true],
    ["noindex;nofollow", true, true],
    ["  nofollow ,noarchive", false, true],
    ["nosnippet", false, false],
  ])("%j: noindex %s, nofollow %s", (value, noindex, nofollow) => {
    expect(said([value])).toMatchObject({ noindex, nofollow });
    expect(said([], value)).toMatchObject({ noindex, nofollow });
  });

  it("hold together: the more restrictive wins, wherever it stands", () => {
    expect(said(["index, follow"], ["noindex", "follow"])).toMatchObject({ noindex: true, nofollow: false });
    expect(said(["noindex", "nofollow"], "all")).toMatchObject({ noindex: true, nofollow: true });
  });

  it("of another crawler are not for us, those by our name are", () => {
    expect(said([], "googlebot: noindex, nofollow")).toMatchObject({ noindex: false, nofollow: false });
    expect(said([], "Nearcrawl: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawl*: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawl/0.1: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawler: noindex")).toMatchObject({ noindex: false });
    expect(said([], "nofollow, otherbot: noindex, nearcrawl: nosnippet")).toEqual({
      noindex: false,
      nofollow: true,
      excerptCharacters: 0,
    });
  });

  it.each([
    ["unavailable_after: 21-Nov-26 15:00:00 GMT", true],
    ["unavailable_after: Wednesday, 25-Nov-26 15:00:00 GMT", false],
    ["nofollow, unavailable_after: Sat, 21 Nov 2026 15:00:00 GMT, noarchive", true],
    ["unavailable_after: 2026-11-23", false],
    ["unavailable_after: 2026-11-21T00:00:00Z", true],
    ["unavailable_after: soon", false],
    ["unavailable_after: May", false],
    ["unavailable_after: Sat Nov 21 15:00:00 2026", true],
    ["unavailable_after: 21 November 2026 15:00 PST", true],
    ["otherbot: unavailable_after: 2020-01-01", false],
  ])("%s: the page is over: %s", (value, noindex) => {
    expect(said([value]).noindex).toBe(noindex);
    expect(said([], value).noindex).toBe(noindex);
  });

  it.each([
    ["nosnippet", 0],
    ["noarchive", unbounded],
    ["nocache, noimageindex, notranslate", unbounded],
    ["noarchive, max-snippet:20", 20],
    ["max-snippet:0", 0],
    ["max-snippet: 50, max-snippet:80", 50],
    ["max-snippet:-1", unbounded],
    ["max-snippet:many", unbounded],
  ])("%s: an excerpt of %d characters", (value, excerptCharacters) => {
    expect(said([value])).toEqual({ noindex: false, nofollow: false, excerptCharacters });
  });

  it("without end are read as far as real ones go", () => {
    const many = Array.from({ length: 10_000 }, () => "x:".repeat(5000));

    expect(said(many.slice(0, 10), many).noindex).toBe(false);
  });
});
