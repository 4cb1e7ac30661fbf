import { describe, expect, it } from "vitest";
import { downloadTimeMs, initialWindowBytes, SlowStart } from "#ops/world/compare";

/** 8,000 kbit/s is 1,000 bytes a millisecond. */
const bandwidthKbps = 8000;

describe("slow start", () => {
  it("sends ten segments, waits for the first acknowledgement, then twice as many", () => {
    const pieces = new SlowStart(bandwidthKbps).send(60_000, 1000, 100);

    // 14,600 bytes leave in 14.6 ms; the next round starts 100 ms after the first, the one after 100 ms later.
    expect(pieces.map((piece) => piece.bytes)).toEqual([14_600, 29_200, 16_200]);
    expect(pieces.map((piece) => piece.leftMs)).toEqual([1014.6, 1129.2, 1216.2]);
  });

  it("keeps its window for a request that follows soon, and forgets it after an idle time", () => {
    const soon = new SlowStart(bandwidthKbps);
    soon.send(40_000, 0, 100);
    const later = new SlowStart(bandwidthKbps);
    later.send(40_000, 0, 100);

    expect(soon.send(25_000, 250, 100)).toHaveLength(1);
    expect(later.send(25_000, 2000, 100)).toHaveLength(2);
  });

  it.each([
    [1, 5],
    [14_600, 40],
    [14_601, 40],
    [40_000, 3],
    [100_000, 180],
    [900_000, 25],
  ])("takes as long for %d bytes at %d ms as the formula", (bytes, rttMs) => {
    const pieces = new SlowStart(bandwidthKbps).send(bytes, 0, rttMs);
    const formulaMs = downloadTimeMs({ rttMs, bodyBytes: bytes, bandwidthKbps, serverDelayMs: 7 });

    expect(2 * rttMs + 7 + pieces.at(-1)!.leftMs).toBeCloseTo(formulaMs, 6);
  });
});

describe("downloadTimeMs", () => {
  it("is two round trips, the server's delay and the sending time; one round trip less on an open connection", () => {
    const small = { rttMs: 50, bodyBytes: 8000, bandwidthKbps, serverDelayMs: 10 };

    expect(downloadTimeMs(small)).toBe(118);
    expect(downloadTimeMs({ ...small, connectionReused: true })).toBe(68);
    expect(downloadTimeMs({ ...small, bodyBytes: initialWindowBytes + 1000 })).toBe(161);
  });
});
