/** Effects of results on other hosts as they wait in the outbox: packed, summed, in order. */
import { describe, expect, it } from "vitest";
import type { AdmittedUrl } from "#coordinator/crawl/batch/found-urls";
import {
  effectsOf,
  isAfter,
  type LinkEffect,
  packEffects,
  sumEffects,
  unpackEffects,
} from "#coordinator/crawl/frontier/link-outbox";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { nameOf } from "#core/url-key";
import { keyOf } from "../support/store-world.ts";

const [north, south] = [asCrawlerId(1), asCrawlerId(2)];
const named = (url: string, depth = 1): AdmittedUrl => ({ key: keyOf(url), depth, redirects: 0, lists: 0 });
const linked = (url: string, links: number) => {
  const { hostHash, urlHash } = keyOf(url);
  return { hostHash, urlHash, links };
};

describe("effects of a batch", () => {
  it("are one per URL: named, linked to, or both; links that cancel out are none", () => {
    const effects = effectsOf(
      [named("http://b.example/x"), named("http://b.example/y")],
      [linked("http://b.example/y", 2), linked("http://c.example/", -1), linked("http://d.example/", 0)],
    );

    expect(effects).toEqual([
      { ...linked("http://b.example/x", 0), named: named("http://b.example/x") },
      { ...linked("http://b.example/y", 2), named: named("http://b.example/y") },
      { ...linked("http://c.example/", -1), named: null },
    ]);
  });

  it("survive packing, whatever the host's name looks like", () => {
    const urls = [
      "http://b.example/",
      "https://b.example:8443/a%20b?c=d:e/f",
      "http://[2001:db8::1]/x",
      "http://[2001:db8::1]:8080/",
      "http://192.0.2.7:8080/p",
      "https://xn--bcher-kva.example/%C3%BC",
      "http://name@b.example/with-user",
    ].map((url) => keyOf(url));
    const effects: LinkEffect[] = urls.flatMap((key, index) => [
      {
        ...linked(key.url, index - 3),
        named: {
          ...{ key, depth: index, redirects: index, lists: index % 4 },
          ...(index % 3 === 0 ? {} : { linkedFrom: `site${index % 2}.example` }),
        },
      },
      { ...linked(`${key.url}#only-linked`, -index - 1), named: null },
    ]);

    expect(unpackEffects(packEffects(effects))).toEqual(effects);
    expect(unpackEffects(packEffects([]))).toEqual([]);
  });

  it("are refused for foreign bytes, and never read beyond them", () => {
    const packed = packEffects([{ ...linked("http://b.example/", 1), named: named("http://b.example/") }]);

    expect(() => unpackEffects(Buffer.alloc(0))).toThrow(RangeError);
    expect(() => unpackEffects(Buffer.concat([Buffer.of(3), packed.subarray(1)]))).toThrow(
      "begins with byte 3",
    );
    for (let end = 0; end < packed.length; end += 1)
      expect(() => unpackEffects(packed.subarray(0, end))).toThrow(RangeError);
  });
});

const namersOf = (...crawlers: CrawlerId[]) => crawlers.map((crawlerId) => ({ crawlerId, site: null }));

describe("effects of many batches", () => {
  it("are summed per URL; the shallowest naming counts, and of the same depth the first", () => {
    const { effects, namers } = sumEffects([
      {
        crawlerId: north,
        effects: [{ ...linked("http://b.example/", 1), named: named("http://b.example/", 3) }],
      },
      { crawlerId: south, effects: [{ ...linked("http://b.example/", -2), named: null }] },
      {
        crawlerId: south,
        effects: [{ ...linked("http://b.example/", 4), named: named("http://b.example/", 2) }],
      },
      {
        crawlerId: north,
        effects: [
          { ...linked("http://b.example/", 0), named: { ...named("http://b.example/", 2), redirects: 1 } },
          { ...linked("http://c.example/", 1), named: null },
        ],
      },
    ]);

    expect(new Map(effects.map((one) => [nameOf(one), one]))).toEqual(
      new Map([
        [
          nameOf(keyOf("http://b.example/")),
          { ...linked("http://b.example/", 3), named: named("http://b.example/", 2) },
        ],
        [nameOf(keyOf("http://c.example/")), { ...linked("http://c.example/", 1), named: null }],
      ]),
    );
    expect(namers).toEqual(new Map([[keyOf("http://b.example/").hostHash, namersOf(north, south)]]));
  });

  it("come in signed order of hosts and URLs, and can be resumed after any of them", () => {
    const random = seededRandom(3);
    const some = Array.from({ length: 300 }, () => ({
      ...linked(`http://h${Math.floor(random() * 40)}.example/${Math.floor(random() * 20)}`, 1),
      named: null,
    }));

    const { effects } = sumEffects([{ crawlerId: north, effects: some }]);

    const numbers = effects.map(({ hostHash, urlHash }) => [BigInt(hostHash), BigInt(urlHash)] as const);
    for (const [index, [host, url]] of numbers.entries()) {
      const [before, urlBefore] = numbers[index - 1] ?? [host - 1n, url];
      expect(before < host || (before === host && urlBefore < url)).toBe(true);
    }
    expect(numbers.some(([host]) => host < 0n) && numbers.some(([host]) => host > 0n)).toBe(true);
    for (const [index, reached] of effects.entries())
      expect(effects.filter((one) => isAfter(one, reached)).length).toBe(effects.length - index - 1);
    expect(effects.filter((one) => isAfter(one, null))).toEqual(effects);
  });
});
