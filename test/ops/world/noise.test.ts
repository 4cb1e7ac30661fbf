import { describe, expect, it } from "vitest";
import { generateWorld } from "#ops/world/generate-world";
import { Noise } from "#ops/world/network-conditions";

const world = generateWorld({ seed: 1, sites: 40, crawlers: 4 });
const { address, place } = world.sites[0]!;
/** Hours by which the sun is ahead of UTC there. */
const aheadHours = Math.round(world.places[place!]!.longitude / 15);
const drawn = (noise: Noise, count = 4000) => Array.from({ length: count }, () => noise.drawMs(address));
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe("noise", () => {
  it("is none until it is asked for", () => {
    expect(new Set(drawn(new Noise(world), 100))).toEqual(new Set([0]));
  });

  it("is exponential with the mean that was set", () => {
    const noise = new Noise(world);
    noise.setMean(4);
    const values = drawn(noise);

    expect(mean(values)).toBeCloseTo(4, 0);
    expect(values.filter((ms) => ms > 4).length / values.length).toBeCloseTo(Math.exp(-1), 1);
  });

  it("has spikes of one height, as often as was set", () => {
    const noise = new Noise(world);
    noise.setSpikes({ share: 0.1, spikeMs: 80 });
    const values = drawn(noise);

    expect(new Set(values)).toEqual(new Set([0, 80]));
    expect(mean(values)).toBeCloseTo(8, -0.3);
  });

  it("comes and goes with the local time of the site, by the world's clock", () => {
    const noise = new Noise(world);
    noise.setDailyWave({ waveMs: 20, peakHour: 21 });
    const at = (localHour: number) => {
      noise.setClock(Date.UTC(2026, 5, 1, localHour - aheadHours));
      return noise.drawMs(address);
    };

    expect(at(21)).toBeCloseTo(20, 1);
    expect(at(9)).toBeCloseTo(0, 1);
    expect(at(3)).toBeCloseTo(10, 1);
  });

  it("refuses senseless values", () => {
    const noise = new Noise(world);

    expect(() => noise.setMean(-1)).toThrow(/noise of -1 ms: 0 to 10,000 allowed/);
    expect(() => noise.setSpikes({ share: 2, spikeMs: 1 })).toThrow(/share of 2: 0 to 1/);
    expect(() => noise.setDailyWave({ waveMs: 1, peakHour: 25 })).toThrow(/peak of 25/);
    expect(() => noise.setClock(Number.NaN)).toThrow(/clock at NaN/);
  });
});
