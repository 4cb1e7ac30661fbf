/** RTTs between crawlers in short rows: the same answers as a full matrix, in bounded memory. */
import { describe, expect, it } from "vitest";
import { PeerMatrix, peersKeptByEach } from "#coordinator/place/distances/peer-matrix";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";

/** The simple implementation: full matrices that forget nothing. */
class Squares {
  readonly #ownMs = new Map<string, number>();
  readonly #atSeconds = new Map<string, number>();

  learn(from: number, to: number, rttMs: number, atMs: number): void {
    if (!(rttMs >= 0) || !Number.isFinite(rttMs) || from === to) return;
    this.#ownMs.set(`${from}-${to}`, rttMs);
    this.touch(from, to, atMs);
  }

  touch(from: number, to: number, atMs: number): void {
    this.#atSeconds.set(`${from}-${to}`, Math.max(1, Math.floor(atMs / 1000)));
  }

  rttMs(a: number, b: number): number {
    const both = [this.#ownMs.get(`${a}-${b}`), this.#ownMs.get(`${b}-${a}`)].filter(
      (ms) => ms !== undefined,
    );
    return both.length === 0 ? Number.NaN : Math.min(...both);
  }

  hasMeasured(from: number, to: number): boolean {
    return this.#ownMs.has(`${from}-${to}`);
  }

  touchedAt(from: number, to: number): number {
    return this.#atSeconds.get(`${from}-${to}`) ?? 0;
  }

  knownOf(slot: number, size: number): number {
    return Array.from({ length: size }, (_, other) => this.rttMs(slot, other)).filter(
      (ms) => !Number.isNaN(ms),
    ).length;
  }

  nearestOf(slot: number, size: number, most: number): number[] {
    return Array.from({ length: size }, (_, other) => other)
      .filter((other) => !Number.isNaN(this.rttMs(slot, other)))
      .sort((a, b) => this.rttMs(slot, a) - this.rttMs(slot, b) || a - b)
      .slice(0, most);
  }
}

const noonMs = Date.UTC(2030, 0, 1, 12);
const fleetOf = (size: number): CrawlerId[] =>
  Array.from({ length: size }, (_, index) => asCrawlerId(index + 1));

describe("rows of peers", () => {
  it("answer as full matrices do, whatever is measured in whatever order", () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const draw = seededRandom(seed);
    const matrix = new PeerMatrix();
    const squares = new Squares();
    const size = 40;
    const any = () => Math.floor(draw() * size);
    for (const crawlerId of fleetOf(size)) matrix.slotOf(crawlerId);

    for (let step = 0; step < 4000; step++) {
      const [from, to, atMs] = [any(), any(), noonMs + step * 1000];
      // Answers are cached, which must not outlive a change.
      matrix.nearestOf(any());
      if (draw() < 0.2) {
        if (from === to) continue;
        for (const one of [matrix, squares]) one.touch(from, to, atMs);
      } else {
        const rttMs = draw() < 0.05 ? Number.NaN : Math.round(draw() * 300);
        for (const one of [matrix, squares]) one.learn(from, to, rttMs, atMs);
      }
    }

    const all = Int32Array.from({ length: size }, (_, slot) => slot);
    for (let a = 0; a < size; a++) {
      const row = Array.from(all, (b) => squares.rttMs(a, b));
      expect(
        Array.from(all, (b) => matrix.rttMsAt(a, b)),
        `seed ${seed}`,
      ).toEqual(row);
      expect([...matrix.rttsBetween(a, all)], `seed ${seed}`).toEqual(row);
      expect(matrix.knownOf(a), `seed ${seed}`).toBe(squares.knownOf(a, size));
      expect([...matrix.nearestOf(a)], `seed ${seed}`).toEqual(squares.nearestOf(a, size, 32));
      for (let b = 0; b < size; b++) {
        expect(!Number.isNaN(matrix.measuredMsAt(a, b)), `seed ${seed}`).toBe(squares.hasMeasured(a, b));
        expect(matrix.touchedAt(a, b), `seed ${seed}`).toBe(squares.touchedAt(a, b));
      }
    }
  });

  it("answer the same for one slot when asked for few or many", () => {
    const matrix = new PeerMatrix();
    const crawlers = fleetOf(300).map((crawlerId) => matrix.slotOf(crawlerId));
    for (const slot of crawlers.slice(1)) matrix.learn(slot, 0, slot, noonMs);

    expect([...matrix.rttsBetween(0, Int32Array.of(7, 299, 0))]).toEqual([7, 299, Number.NaN]);
    expect([...matrix.rttsBetween(7, Int32Array.of(0, 8))]).toEqual([7, Number.NaN]);
  });
});

describe("of a fleet that is too large to keep every pair", () => {
  const kept = 5;
  const fleet = () => {
    const matrix = new PeerMatrix(() => kept);
    for (const crawlerId of fleetOf(50)) matrix.slotOf(crawlerId);
    return matrix;
  };

  it("each crawler keeps its latest measurements and forgets the oldest", () => {
    const matrix = fleet();
    for (let to = 1; to <= kept; to++) matrix.learn(0, to, 10 * to, noonMs + to * 1000);
    matrix.learn(0, 1, 11, noonMs + 60_000);
    const before = matrix.revision;

    matrix.learn(0, 9, 90, noonMs + 61_000);

    const known = Array.from({ length: 50 }, (_, slot) => slot).filter(
      (slot) => !Number.isNaN(matrix.rttMsAt(0, slot)),
    );
    expect(known).toEqual([1, 3, 4, 5, 9]);
    expect([matrix.rttMsAt(2, 0), matrix.measuredMsAt(0, 2), matrix.touchedAt(0, 2)]).toEqual([
      Number.NaN,
      Number.NaN,
      0,
    ]);
    expect([matrix.knownOf(0), matrix.knownOf(2)]).toEqual([kept, 0]);
    expect(matrix.revision).toBeGreaterThan(before);
  });

  it("a pair that the other crawler measured too keeps that measurement", () => {
    const matrix = fleet();
    matrix.learn(0, 1, 10, noonMs);
    matrix.learn(1, 0, 25, noonMs);

    for (let to = 2; to <= kept + 1; to++) matrix.learn(0, to, 10 * to, noonMs + to * 1000);

    expect([matrix.measuredMsAt(0, 1), matrix.rttMsAt(0, 1), matrix.rttMsAt(1, 0)]).toEqual([
      Number.NaN,
      25,
      25,
    ]);
  });

  it("a crawler that everybody measures is known to all without a row of its own", () => {
    const matrix = fleet();

    for (let from = 1; from < 50; from++) matrix.learn(from, 0, from, noonMs);

    expect(matrix.knownOf(0)).toBe(49);
  });

  it("grows with the crawlers, not with their square, whatever they measure", () => {
    const draw = seededRandom(7);
    const entriesOf = (size: number) => {
      const matrix = new PeerMatrix(() => 20);
      for (const crawlerId of fleetOf(size)) matrix.slotOf(crawlerId);
      for (let from = 0; from < size; from++)
        for (let turn = 0; turn < 50; turn++)
          matrix.learn(from, Math.floor(draw() * size), 1 + draw() * 200, noonMs + turn * 1000);
      return matrix.entries;
    };

    // Each pair is in two rows; 20 of the 50 that each measured are kept.
    expect(entriesOf(1000)).toBeLessThanOrEqual(1000 * 2 * 20);
    expect(entriesOf(2000)).toBeLessThanOrEqual(2000 * 2 * 20);
  });

  it("begins beyond 724 crawlers", () => {
    expect([12, 724, 725, 1000, 3000, 10_000].map(peersKeptByEach)).toEqual([
      Number.POSITIVE_INFINITY,
      Number.POSITIVE_INFINITY,
      723,
      524,
      174,
      96,
    ]);
  });
});
