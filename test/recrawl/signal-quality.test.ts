/** How good a host's signals are, learnt from visits that say only whether the page has changed. */
import { expect, it } from "vitest";
import { addSums, changesPerDay, noVisits } from "#coordinator/recrawl/change-rate";
import {
  addSignalSums,
  heededQuality,
  mostRemembered,
  noSignalSums,
  qualityOf,
  type SignalSums,
  signalEvidence,
} from "#coordinator/recrawl/signal-quality";
import { comparedSums } from "#coordinator/recrawl/visit-findings";
import { SeededRandom } from "#ops/world/seeded-random";

interface Signalling {
  readonly recall: number;
  /** False signals for each change. */
  readonly falseSignals: number;
  /** Mean changes between two visits. */
  readonly gap: number;
}

function counted(random: SeededRandom, mean: number): number {
  let count = 0;
  for (let at = random.exponential(1); at < mean; at += random.exponential(1)) count += 1;
  return count;
}

/** Visits at one distance to a page whose changes are so signalled. */
function visited({ recall, falseSignals, gap }: Signalling, visits: number, seed: number): SignalSums {
  const random = new SeededRandom(seed);
  let sums = noSignalSums;
  for (let visit = 0; visit < visits; visit++) {
    const changes = counted(random, gap);
    let signals = counted(random, gap * falseSignals);
    for (let change = 0; change < changes; change++) if (random.chance(recall)) signals += 1;
    const evidence = signalEvidence({ signals, hasChanged: changes > 0, expectedChanges: gap }, sums);
    sums = addSignalSums(sums, evidence);
  }
  return sums;
}

it.each([
  [0.9, 0.1],
  [0.5, 0.1],
  [0.5, 0.5],
  [0.9, 0.5],
])(
  "finds after 1,500 visits that %d of the changes are signalled and %d of the signals are of none",
  (recall, falseShare) => {
    const falseSignals = (recall * falseShare) / (1 - falseShare);

    const heeded = heededQuality(visited({ recall, falseSignals, gap: 0.3 }, 1500, 5));

    expect(Math.abs(heeded!.recall - recall)).toBeLessThan(0.12);
    expect(Math.abs(heeded!.falseShare - falseShare)).toBeLessThan(0.08);
  },
);

it("heeds signals that are right within tens of visits, and hardly ever such as say nothing", () => {
  const right = Array.from({ length: 40 }, (_, seed) =>
    heededQuality(visited({ recall: 0.9, falseSignals: 0.1, gap: 0.7 }, 40, seed)),
  );
  const nothing = Array.from({ length: 40 }, (_, seed) =>
    heededQuality(visited({ recall: 0, falseSignals: 0.5, gap: 0.7 }, 400, seed)),
  );

  expect(right.filter((quality) => quality !== null).length).toBeGreaterThan(35);
  expect(nothing.filter((quality) => quality !== null).length).toBeLessThan(2);
});

it("stops heeding a host that signals changes that are none", () => {
  let sums = visited({ recall: 0.9, falseSignals: 0, gap: 0.7 }, 60, 1);
  const before = heededQuality(sums);
  for (let visit = 0; visit < 60; visit++)
    sums = addSignalSums(sums, signalEvidence({ signals: 5, hasChanged: false, expectedChanges: 0.1 }, sums));

  expect(before).not.toBeNull();
  const after = heededQuality(sums);
  expect(after === null || after.falseShare > 0.7).toBe(true);
});

it("begins with little, keeps numbers in bounds and learns nothing from what is no visit", () => {
  expect(qualityOf(noSignalSums)).toEqual({ recall: 1 / 3, falseShare: 0.5 });
  expect(heededQuality(noSignalSums)).toBeNull();
  for (const expectedChanges of [0, -1, Number.NaN, Infinity, 2.1])
    expect(signalEvidence({ signals: 3, hasChanged: true, expectedChanges }, noSignalSums)).toBe(
      noSignalSums,
    );
  const flood = signalEvidence({ signals: 100, hasChanged: true, expectedChanges: 1e-9 }, noSignalSums);
  expect(Object.values(flood).every(Number.isFinite)).toBe(true);
  expect(flood.trueSignals).toBeLessThanOrEqual(100);
  let sums = noSignalSums;
  for (let visit = 0; visit < 50; visit++) sums = addSignalSums(sums, flood);
  expect(sums.signals).toBeLessThanOrEqual(mostRemembered);
});

it("does not take a page for restless because a true signal brings its visits right after its changes", () => {
  const random = new SeededRandom(2);
  const heeded = { recall: 0.95, falseShare: 0.05 };
  let [plain, apart] = [noVisits, noVisits];
  // Once a day on the average, each time fetched a minute later.
  for (let visit = 0; visit < 200; visit++) {
    const elapsedSeconds = random.exponential(86_400) + 60;
    const found = { elapsedSeconds, hasChanged: true, lastChangeSecondsAgo: 60, plannedSeconds: 10 * 86_400 };
    plain = addSums(plain, comparedSums(found, 1, null)!);
    apart = addSums(apart, comparedSums(found, 1, heeded)!);
  }

  expect(changesPerDay(plain)).toBeGreaterThan(3);
  expect(changesPerDay(apart)).toBeGreaterThan(0.8);
  expect(changesPerDay(apart)).toBeLessThan(1.2);
});
