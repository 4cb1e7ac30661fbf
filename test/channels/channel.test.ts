/** Patterns of URLs, what a channel leaves out, and settings that cannot be. */
import { describe, expect, it } from "vitest";
import {
  channelFaults,
  channelHolds,
  leftOut,
  type OtherChannel,
  parseUrlPattern,
  patternFits,
  readChannel,
} from "#coordinator/crawl/frontier/channel";

const asked = { prefixes: ["a.example/docs/"], seeds: [], include: [], exclude: [], maxDepth: null };
const rules = (changed: Partial<Parameters<typeof readChannel>[0]> = {}) =>
  readChannel({ ...asked, ...changed });
const faults = (changed: Partial<typeof asked> | object, others: readonly OtherChannel[] = []) =>
  channelFaults(rules(changed), others);

describe("a pattern", () => {
  it.each([
    ["/docs/", "/docs/a?b", true],
    ["/docs/", "/doc", false],
    ["/*.html$", "/a/b.html", true],
    ["/*.html$", "/a/b.html?x", false],
    ["*?print=", "/a?print=1", true],
    ["/a*b*c", "/axbxc/rest", true],
    ["/a*b*c$", "/abcb", false],
    ["/a$", "/a", true],
    ["/a*a$", "/a", false],
  ])("%s on %s: %s", (text, path, fits) => {
    const pattern = parseUrlPattern(text);

    expect(typeof pattern === "string" ? pattern : patternFits(pattern, path)).toBe(fits);
  });

  it("takes no longer when it is malicious: every piece is searched once", () => {
    const pattern = parseUrlPattern(`/${"*a".repeat(140)}$`);
    let looked = 0;
    const text = `/${"a".repeat(2000)}b`;
    const path = {
      length: text.length,
      startsWith: (piece: string) => text.startsWith(piece),
      endsWith: (piece: string) => text.endsWith(piece),
      indexOf: (piece: string, at: number) => {
        looked += 1;
        return text.indexOf(piece, at);
      },
    } as unknown as string;

    expect(typeof pattern === "string" ? pattern : patternFits(pattern, path)).toBe(false);
    expect(looked).toBeLessThanOrEqual(140);
  });

  it("has limits: its length, its beginning, its characters", () => {
    expect(parseUrlPattern("x".repeat(301))).toContain("at most 300 are allowed");
    expect(parseUrlPattern("docs/")).toContain("must begin with / or *");
    expect(parseUrlPattern("/ä")).toContain("%20");
  });
});

describe("a channel", () => {
  it("holds what lies in its directories, whatever scheme and port", () => {
    const set = rules({ prefixes: ["https://a.example/docs/", "a.example/news/"] });

    expect(
      ["/docs/x", "/news/", "/doc", "/"].map((path) => channelHolds(set, `http://a.example:8080${path}`)),
    ).toEqual([true, true, false, false]);
  });

  it("leaves out what is excluded, too deep, or not included; its seeds need no include", () => {
    const channel = rules({
      seeds: ["http://a.example/docs/"],
      include: ["/docs/*.html$"],
      exclude: ["/docs/old/"],
      maxDepth: 2,
    });
    const why = (path: string, depth: number) =>
      leftOut(channel, { url: `http://a.example/docs/${path}`, depth });

    expect([why("", 0), why("x.html", 2)]).toEqual([null, null]);
    expect(why("old/x.html", 1)).toBe("its filter skips /docs/old/");
    expect(why("x.html", 3)).toBe("it is 3 links from a seed, and the channel goes 2 deep");
    expect(why("x.pdf", 1)).toBe("none of its filters includes it");
  });
});

describe("settings that contradict each other are refused with the values", () => {
  it.each([
    [
      { seeds: ["http://a.example/news/"] },
      "seed http://a.example/news/: it is outside the channel (/docs/)",
    ],
    [
      { seeds: ["http://a.example/docs/x"], exclude: ["/docs/x"] },
      "seed http://a.example/docs/x: it would never be fetched, its filter skips /docs/x",
    ],
    [
      { include: ["/docs/a/"], exclude: ["/docs/a/"] },
      "include /docs/a/: exclude /docs/a/ holds all of it, so nothing is left",
    ],
    [
      { include: ["/docs/a/b"], exclude: ["/docs/a"] },
      "include /docs/a/b: exclude /docs/a holds all of it, so nothing is left",
    ],
    [{ exclude: ["/*"] }, "exclude /*: it holds the whole channel, so nothing is left"],
    [{ include: ["/news/"] }, "include /news/: it is outside the channel (/docs/)"],
    [
      { prefixes: ["a.example/", "a.example/docs/"] },
      "directories: / holds /docs/ already; name one of them",
    ],
    [
      { prefixes: ["a.example/docs/", "a.example/docs/"] },
      "directories: /docs/ holds /docs/ already; name one of them",
    ],
    [{ maxDepth: 0 }, "max-depth 0: then only seeds are crawled, and there are none"],
    [
      { maxDepth: 0, seeds: ["http://a.example/docs/"], include: ["/docs/x"] },
      "max-depth 0: then no link is followed, so include /docs/x has no effect",
    ],
  ])("%j", (changed, fault) => {
    expect(faults(changed)).toEqual([fault]);
  });

  it("channels of one host that overlap, either way round", () => {
    const others = [{ channelId: 7, directories: ["/docs/a/", "/news/"] }];

    expect(faults({}, others)).toEqual([
      "directories: /docs/a/ is in channel 7 of this host already; a URL has one channel",
    ]);
    expect(faults({ prefixes: ["a.example/news/b/"] }, others)).toHaveLength(1);
    expect(faults({ prefixes: ["a.example/blog/"] }, others)).toEqual([]);
  });

  it("invalid texts, all at once", () => {
    const wrong = {
      prefixes: ["a.example/docs", "http://[", "b.example"],
      seeds: ["x"],
      include: ["y"],
      maxDepth: 1.5,
    };

    expect(() => rules(wrong)).toThrow(
      /not a directory: it must end with \/.*\n.*not a host or directory.*\n.*not a web URL.*\n.*must begin with \/ or \*.*\n.*max-depth 1\.5/s,
    );
    expect(() => rules({ seeds: ["http://b.example/docs/"] })).toThrow("these are of a.example, b.example");
    expect(() => rules({ prefixes: Array(51).fill("a.example/") })).toThrow("51 directories: at most 50");
  });
});
