import { describe, expect, it } from "vitest";
import type { SimulatedProbe } from "#coordinator/place/delegation/simulation/run";
import { noisyProbes, noNoise, type ProbeNoise } from "./repeat-policies.ts";

const probe: SimulatedProbe = { target: 3, crawler: 2, rttMs: 40, how: "probe" };

/** What 4,000 pairs of crawler and target measure of 40 ms. */
function measure(noise: Partial<ProbeNoise>, how: SimulatedProbe["how"] = "probe") {
  const observe = noisyProbes({ ...noNoise, ...noise }, 1);
  const seen = Array.from({ length: 4000 }, (_, target) => observe({ ...probe, target, how }));
  const delaysMs = seen.flatMap((one) => ("rttMs" in one ? [one.rttMs - 40] : []));
  const meanMs = delaysMs.reduce((sum, ms) => sum + ms, 0) / delaysMs.length;
  return { failed: seen.length - delaysMs.length, delaysMs, meanMs };
}

describe("a simulated probe", () => {
  it("with one try is delayed by an exponential with the stated mean, and never early", () => {
    const { delaysMs, meanMs, failed } = measure({ noiseMs: 4, tries: 1 });

    expect(failed).toBe(0);
    expect(Math.min(...delaysMs)).toBeGreaterThanOrEqual(0);
    expect(meanMs).toBeGreaterThan(3.8);
    expect(meanMs).toBeLessThan(4.2);
    // An exponential exceeds three times its mean in one case of twenty.
    expect(delaysMs.filter((ms) => ms > 12).length / 4000).toBeCloseTo(0.05, 1);
  });

  it("takes the smallest of its tries: two always, up to six where they do not agree", () => {
    const single = measure({ noiseMs: 4, tries: 1 });
    const live = measure({ noiseMs: 4 });

    expect(live.meanMs).toBeLessThan(single.meanMs / 2);
    expect(live.meanMs).toBeGreaterThan(single.meanMs / 6);
  });

  it("fails when all tries are lost, and only then", () => {
    expect(measure({ lossShare: 0.5, tries: 1 }).failed / 4000).toBeCloseTo(0.5, 1);
    expect(measure({ lossShare: 0.5, tries: 6 }).failed / 4000).toBeLessThan(0.03);
    expect(measure({ lossShare: 1 }).failed).toBe(4000);
  });

  it("is the same for the same seed, target and crawler, in whatever order they ask", () => {
    const observe = noisyProbes({ ...noNoise, noiseMs: 4 }, 9);
    const first = observe(probe);
    observe({ ...probe, crawler: 5 });

    expect(observe(probe)).toEqual(first);
    expect(observe({ ...probe, crawler: 5 })).not.toEqual(first);
    expect(observe({ ...probe, target: 4 })).not.toEqual(first);
    expect(noisyProbes({ ...noNoise, noiseMs: 4 }, 10)(probe)).not.toEqual(first);
  });
});
