/** The compact set of known digests: what is in it is found, little else is, and nothing breaks by what comes. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "#core/errors";
import { seededRandom } from "#core/random";
import {
  KnownDigests,
  knownPlaces,
  mostKnownBytes,
  mostKnownDigests,
  packKnownDigests,
} from "#protocol/known-digests";

const digestOf = (number: number) => createHash("sha256").update(`page ${number}`).digest("hex");
const digests = (count: number, from = 0) => Array.from({ length: count }, (_, at) => digestOf(from + at));

describe("a set", () => {
  it.each([0, 1, 2, 100, mostKnownDigests])(
    "of %i digests holds all of them, whichever place it reads",
    (count) => {
      for (const place of [0, 7, knownPlaces - 1, 1_000_003]) {
        const packed = packKnownDigests(digests(count), place);
        const known = new KnownDigests(packed);

        expect(digests(count).filter((digest) => !known.has(digest))).toEqual([]);
        expect(packed.length).toBeLessThanOrEqual(mostKnownBytes);
      }
    },
  );

  it("takes about 18 bits a digest, and errs on fewer than 1 in 10,000, on others with another place", () => {
    const packed = packKnownDigests(digests(2000), 0);
    const [one, other] = [new KnownDigests(packed), new KnownDigests(packKnownDigests(digests(2000), 9))];
    const unknown = digests(100_000, 1_000_000);
    const mistaken = unknown.filter((digest) => one.has(digest));

    expect((8 * packed.length) / 2000).toBeLessThan(18.2);
    expect(mistaken.length).toBeLessThan(10);
    expect(mistaken.filter((digest) => other.has(digest))).toEqual([]);
  });

  it("has a bound: of more digests the first count", () => {
    const known = new KnownDigests(packKnownDigests(digests(mostKnownDigests + 50), 3));

    expect(known.has(digestOf(mostKnownDigests - 1))).toBe(true);
    expect(digests(50, mostKnownDigests).some((digest) => known.has(digest))).toBe(false);
  });
});

describe("a damaged set is refused, or is one that holds something else", () => {
  it("too short, too long, of too many, or read beyond the digest", () => {
    const bad = [
      Buffer.alloc(3),
      Buffer.alloc(mostKnownBytes + 1),
      Buffer.from([255, 255, 255, 0]),
      Buffer.from([0, 0, 1, 53]),
    ];

    for (const bytes of bad) expect(() => new KnownDigests(bytes)).toThrow(ProtocolError);
    expect(() => new KnownDigests(Buffer.from([0, 0, 1, 0, 255, 255, 255]))).toThrow("cut off");
    expect(() => new KnownDigests(Buffer.from([0, 0, 0, 0, 0, 0, 0, 255]))).toThrow("beyond its range");
  });

  it("any bytes at all: a ProtocolError and nothing else", () => {
    const random = seededRandom(11);
    for (let run = 0; run < 3000; run += 1) {
      const bytes = packKnownDigests(digests(30), run);
      const changes = 1 + Math.floor(random() * 4);
      for (let at = 0; at < changes; at += 1)
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      try {
        new KnownDigests(bytes.subarray(0, Math.floor(random() * (bytes.length + 1)))).has(digestOf(1));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });
});
