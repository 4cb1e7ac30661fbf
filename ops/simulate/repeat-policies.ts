/**
 * The same policies over several seeds, for mean and spread: other worlds where the world is generated, other
 * orders of the same targets where it was measured.
 */
import type { Figures, PolicyVariant } from "#coordinator/delegation/simulation/run";
import {
  type SimulatedHost,
  type SimulatedTarget,
  type SimulationInstance,
  type SimulationResult,
  simulatePolicies,
} from "#coordinator/delegation/simulation/simulation";
import { instanceOf } from "../world/compare.ts";
import { generateWorld } from "../world/generate-world.ts";
import type { World } from "../world/model.ts";
import { noisyProbes, type ProbeNoise } from "./probe-noise.ts";
import { type Spread, spreadOf } from "./spread.ts";

export interface InstanceSource {
  /** What another seed changes. */
  readonly seedChanges: "world" | "order";
  instance(seed: number): SimulationInstance;
}

export function generatedSource(size: { readonly crawlers: number; readonly sites: number }): InstanceSource {
  return { seedChanges: "world", instance: (seed) => worldInstance(generateWorld({ ...size, seed })) };
}

export function fixedSource(instance: SimulationInstance): InstanceSource {
  return { seedChanges: "order", instance: () => instance };
}

export interface RepeatSettings {
  readonly source: InstanceSource;
  readonly variants: readonly PolicyVariant[];
  readonly seeds: readonly number[];
  readonly noise: ProbeNoise;
  readonly onProgress?: (progress: SimulationProgress) => void;
}

export interface SimulationProgress {
  /** From 1. */
  readonly run: number;
  readonly runs: number;
  readonly doneTargets: number;
  readonly targets: number;
}

/** What several runs of one policy came to. */
export interface RepeatedResult {
  readonly variant: PolicyVariant;
  /** One per seed, in their order. */
  readonly results: readonly SimulationResult[];
  readonly figures: Readonly<Record<keyof Figures, Spread>>;
}

/** One result per variant, in their order. */
export function repeatPolicies(settings: RepeatSettings): RepeatedResult[] {
  const { source, variants, seeds, noise } = settings;
  const perSeed = seeds.map((seed, index) =>
    simulatePolicies(source.instance(seed), variants, {
      seed,
      observe: noisyProbes(noise, seed),
      onProgress: (doneTargets, targets) =>
        settings.onProgress?.({ run: index + 1, runs: seeds.length, doneTargets, targets }),
    }),
  );
  return variants.map((variant, index) => {
    const results = perSeed.map((ofSeed) => ofSeed[index]!);
    return { variant, results, figures: spreadsOf(results) };
  });
}

function spreadsOf(results: readonly Figures[]): Readonly<Record<keyof Figures, Spread>> {
  const of = (field: keyof Figures) => spreadOf(results.map((result) => result[field]));
  return {
    optimalPct: of("optimalPct"),
    within5msPct: of("within5msPct"),
    meanExcessMs: of("meanExcessMs"),
    p95ExcessMs: of("p95ExcessMs"),
    probesPerUrl: of("probesPerUrl"),
    probesPerUrlLast50: of("probesPerUrlLast50"),
  };
}

/** `count` seeds from `first`, one after the other; past the largest they begin again at 0. */
export function seedsFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => (first + index) % 2 ** 32);
}

// A world as an instance for the simulator in which each target's RTTs are made when they are read: a hundred
// thousand sites and a thousand crawlers need no more memory than the sites themselves.

/** The same instance as `instanceOf`, row by row. */
export function worldInstance(world: World): SimulationInstance {
  const { crawlers, crawlerRtt } = instanceOf({ ...world, sites: [] });
  const hosts = instanceOf({ ...world, crawlers: [], rttRow: () => {} }).targets;
  const targets = hosts.map((host, site) => new WorldTarget(host, world, site));
  return { crawlers, crawlerRtt, targets };
}

class WorldTarget implements SimulatedTarget {
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
  readonly #world: World;
  readonly #site: number;

  constructor(host: SimulatedHost, world: World, site: number) {
    this.path = host.path;
    this.org = host.org;
    this.cc = host.cc;
    this.#world = world;
    this.#site = site;
  }

  get rtt(): Float64Array {
    const row = new Float64Array(this.#world.crawlers.length);
    this.#world.rttRow(this.#site, row);
    return row;
  }
}
