/** Crawl values with noisy signals, against a page that is played through, and against the integral that they stand for. */
import { expect, it } from "vitest";
import {
  believed,
  crawlValue,
  cycleAt,
  poissonAbove,
  SignalledWaits,
  type SignalQuality,
  signalStep,
} from "#ops/simulate/recrawl/crawl-value";
import { SeededRandom } from "#ops/world/seeded-random";

const qualities: readonly SignalQuality[] = [
  { recall: 0.5, falseShare: 0.1 },
  { recall: 0.9, falseShare: 0.5 },
  { recall: 0.2, falseShare: 0.8 },
  { recall: 0.95, falseShare: 0.02 },
];

/** Cycles of a page that changes once a unit of time, each ended when its effective time comes to the wait. */
function played(wait: number, { recall, falseShare }: SignalQuality, cycles: number) {
  const random = new SeededRandom(7);
  const falseRate = (recall * falseShare) / (1 - falseShare);
  const step = signalStep({ recall, falseShare });
  const sum = { length: 0, fresh: 0 };
  for (let cycle = 0; cycle < cycles; cycle++) {
    let [at, signals, staleAt] = [0, 0, Infinity];
    for (;;) {
      const left = Math.max(0, wait - signals * step) - at;
      const gap = random.exponential(1 / (1 + falseRate));
      if (gap >= left) {
        at += Math.max(0, left);
        break;
      }
      at += gap;
      const isChange = random.chance(1 / (1 + falseRate));
      if (isChange) staleAt = Math.min(staleAt, at);
      if (!isChange || random.chance(recall)) signals += 1;
    }
    sum.length += at;
    sum.fresh += Math.min(at, staleAt);
  }
  return { length: sum.length / cycles, fresh: sum.fresh / cycles };
}

it.each(qualities)(
  "is what a page comes to that is played through 20,000 times, with signals of %o",
  (quality) => {
    for (const wait of [0.3, 1.5, 6]) {
      const simulated = played(wait, quality, 20_000);
      const { length, fresh } = cycleAt(wait, quality);

      expect(Math.abs(length / simulated.length - 1)).toBeLessThan(0.02);
      expect(Math.abs(fresh / simulated.fresh - 1)).toBeLessThan(0.02);
    }
  },
);

it.each(qualities)(
  "rises with the wait by what time alone makes stale, integrated, with signals of %o",
  (quality) => {
    const end = 5 / (1 - quality.recall);
    const steps = 4000;
    let integral = 0;
    for (let step = 0; step < steps; step++) {
      const wait = ((step + 0.5) * end) / steps;
      const { length } = cycleAt(wait, quality);
      integral += (1 - quality.recall) * Math.exp(-(1 - quality.recall) * wait) * length * (end / steps);
    }

    expect(crawlValue(end, quality)).toBeCloseTo(integral, 4);
  },
);

it("is between 0 and 1 and never falls, from waits of nothing to waits without end", () => {
  const all = [...qualities, { recall: 0.1, falseShare: 0.95 }, { recall: 0.95, falseShare: 0.95 }, null];
  for (const quality of all) {
    const values = Array.from({ length: 190 }, (_, step) => crawlValue(10 ** (step / 10 - 12), quality));
    const falls = values.filter((value, at) => !(value >= (values[at - 1] ?? 0) - 1e-12 && value <= 1));

    expect(falls).toEqual([]);
    expect(values.at(-1)).toBe(1);
    expect(crawlValue(Infinity, null)).toBe(1);
  }
});

it("is 1 − (1 + x)e^(−x) without signals, as in the plan of optimal", () => {
  for (const wait of [1e-4, 0.1, 1, 10]) {
    expect(crawlValue(wait, null)).toBeCloseTo(1 - (1 + wait) * Math.exp(-wait), 12);
    expect(crawlValue(wait, { recall: 0, falseShare: 0.5 })).toBeCloseTo(crawlValue(wait, null), 12);
  }
});

it("sums probabilities from either end, however large the numbers", () => {
  const direct = (n: number, mean: number) => {
    let [term, sum] = [Math.exp(-mean), Math.exp(-mean)];
    for (let k = 1; k <= n; k++) {
      term *= mean / k;
      sum += term;
    }
    return 1 - sum;
  };

  for (const [n, mean] of [
    [0, 0.3],
    [3, 2],
    [5, 20],
    [40, 30],
  ] as const)
    expect(poissonAbove(n, mean)).toBeCloseTo(direct(n, mean), 12);
  expect(poissonAbove(0, 1e-20)).toBeCloseTo(1e-20, 30);
  expect(poissonAbove(5000, 5000)).toBeCloseTo(0.496, 2);
  expect(poissonAbove(3, 1e9)).toBe(1);
});

it("gives from its table what is searched for, to a hundredth", () => {
  for (const quality of qualities) {
    const waits = new SignalledWaits(quality);
    for (let share = 0.002; share < 0.999; share += 0.0317) {
      const wait = waits.waitAt(share);
      const exact = cycleAt(wait, quality).length;

      expect(Math.abs(crawlValue(wait, quality) / share - 1)).toBeLessThan(0.01);
      expect(Math.abs(waits.valueAt(wait) / share - 1)).toBeLessThan(0.01);
      expect(Math.abs(waits.cycleAt(wait).length / exact - 1)).toBeLessThan(0.02);
    }
    expect(waits.waitAt(1)).toBe(Infinity);
    expect(waits.waitAt(1e-14)).toBeGreaterThan(0);
  }
});

it("believes nothing that says too little, and nothing entirely", () => {
  expect(believed({ recall: 0.01, falseShare: 0.1 })).toBeNull();
  expect(believed({ recall: 0.9, falseShare: 0.99 })).toBeNull();
  expect(believed({ recall: Number.NaN, falseShare: 0.1 })).toBeNull();
  expect(believed({ recall: 1, falseShare: 0 })).toEqual({ recall: 0.95, falseShare: 0.02 });
});
