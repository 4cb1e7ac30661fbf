/** Only URLs that were recently added pass for known: a bounded set of whole hashes. */
import { describe, expect, it } from "vitest";
import { KnownUrls } from "#coordinator/crawl/frontier/known-urls";
import type { UrlHash } from "#core/ids";
import { seededRandom } from "#core/random";

const noon = new Date("2030-01-01T12:00:00Z");
const minutesAfter = (minutes: number) => new Date(noon.getTime() + 60_000 * minutes);

function hashes(count: number, seed: number): UrlHash[] {
  const random = seededRandom(seed);
  const half = () => BigInt(Math.floor(random() * 2 ** 32));
  return Array.from(
    { length: count },
    () => BigInt.asIntN(64, (half() << 32n) | half()).toString() as UrlHash,
  );
}

describe("known URLs", () => {
  it("are exactly those that were added, up to one set's capacity", () => {
    const known = new KnownUrls(4096);
    const [added, others] = [hashes(1600, 1), hashes(20_000, 2)];

    known.add(added, noon);

    expect(added.filter((url) => !known.has(url, noon))).toEqual([]);
    expect(others.filter((url) => known.has(url, noon))).toEqual([]);
  });

  it("are forgotten when too many arrive, the latest last", () => {
    const known = new KnownUrls(1024);
    const added = hashes(5000, 3);

    for (const url of added) known.add([url], noon);

    const kept = added.map((url) => known.has(url, noon));
    expect(kept.slice(-400).every(Boolean)).toBe(true);
    expect(kept.slice(0, 4000).some(Boolean)).toBe(false);
  });

  it("are forgotten within an hour, even if named again, and when the clock goes back", () => {
    const known = new KnownUrls(1024);
    const [url] = hashes(1, 4) as [UrlHash];

    known.add([url], noon);

    expect(known.has(url, minutesAfter(29))).toBe(true);
    expect(known.has(url, minutesAfter(45))).toBe(true);
    expect(known.has(url, minutesAfter(61))).toBe(false);
    known.add([url], minutesAfter(62));
    expect(known.has(url, minutesAfter(1))).toBe(false);
  });

  it("take no longer when somebody chose URLs with similar hashes", () => {
    const known = new KnownUrls(1024);
    const alike = Array.from({ length: 200 }, (_, at) => `${BigInt(at + 1) << 32n}` as UrlHash);

    known.add(alike, noon);

    expect(alike.filter((url) => known.has(url, noon))).toHaveLength(32);
    expect(known.has(`${999n << 32n}` as UrlHash, noon)).toBe(false);
  });
});
