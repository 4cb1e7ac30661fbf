/** Packed links come out as they went in, whatever they are. */
import { describe, expect, it } from "vitest";
import type { HostHash, UrlHash } from "#core/ids";
import { type LinkTarget, nameOf, packDifference, packLinks, unpackLinks } from "#core/link-set";
import { seededRandom } from "#core/random";

const link = (host: bigint | number, url: bigint | number): LinkTarget => ({
  hostHash: `${host}` as HostHash,
  urlHash: `${url}` as UrlHash,
});
const names = (links: readonly LinkTarget[]) => links.map(nameOf).sort();
const distinct = (links: readonly LinkTarget[]) => [...new Set(names(links))];

describe("packed links", () => {
  it("come out whole, each once, from random pages of 0 to 3,000 links", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const links = randomLinks(seed);

      expect(names(unpackLinks(packLinks(links), null)), `seed ${seed}`).toEqual(distinct(links));
    }
  });

  it("hold the ends of 64 bits", () => {
    const ends = [-(2n ** 63n), -1n, 0n, 1n, 2n ** 63n - 1n];
    const links = ends.flatMap((host) => ends.map((url) => link(host, url)));

    expect(names(unpackLinks(packLinks(links), null))).toEqual(distinct(links));
  });

  it("of an earlier visit come out of the difference to the next one", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const earlier = randomLinks(seed);
      const later = [...earlier.filter((_, index) => index % 7 !== 0), ...randomLinks(seed + 1000)];

      const packed = packDifference(earlier, later);

      expect(names(unpackLinks(packed, later)), `seed ${seed}`).toEqual(distinct(earlier));
    }
  });

  it("take hardly more than half of two hashes a link on a page with 100 links to 5 hosts, an unchanged visit 3 in all", () => {
    const links = Array.from({ length: 100 }, (_, index) => link(hash(index % 5), hash(1000 + index)));

    expect(packLinks(links).length).toBeLessThan(0.53 * 16 * 100);
    expect(packDifference(links, links).length).toBe(3);
  });

  it("are refused when bytes are missing, added to nothing, or none of ours", () => {
    const packed = packLinks(randomLinks(5));

    expect(() => unpackLinks(packed.subarray(0, packed.length - 2), null)).toThrow("end too early");
    expect(() => unpackLinks(packDifference([], [link(1, 2)]), null)).toThrow("to nothing");
    expect(() => unpackLinks(Uint8Array.of(9, 0), null)).toThrow("begin with byte 9");
    expect(() => unpackLinks(Uint8Array.of(1, 255, 255, 255, 127), null)).toThrow("say that there are");
  });

  it("never make random bytes a reason to run out of memory or time", () => {
    const random = seededRandom(7);
    for (let round = 0; round < 200; round++) {
      const bytes = Uint8Array.from({ length: 40 }, () => Math.floor(random() * 256));
      bytes[0] = 1;

      const read = () => unpackLinks(bytes, null).length;

      expect(attempt(read)).toBeLessThanOrEqual(320);
    }
  });
});

function attempt(read: () => number): number {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(RangeError);
    return 0;
  }
}

function randomLinks(seed: number): LinkTarget[] {
  const random = seededRandom(seed);
  const hosts = 1 + Math.floor(random() * 40);
  const count = Math.floor(random() ** 3 * 3000);
  const hostHashes = Array.from({ length: hosts }, () => word(random));
  return Array.from({ length: count }, () => link(hostHashes[Math.floor(random() * hosts)]!, word(random)));
}

function word(random: () => number): bigint {
  const bits = (BigInt(Math.floor(random() * 2 ** 32)) << 32n) | BigInt(Math.floor(random() * 2 ** 32));
  return BigInt.asIntN(64, bits);
}

const hash = (seed: number) => word(seededRandom(seed));
