/**
 * The simulator's instances by name: `delay-space:50:7` is a delay space of seed 7 with 50 crawlers, as
 * `npm run lab -- simulate --instance` accepts them.
 */
import type { SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { worldInstance } from "#ops/world/compare";
import { generateWorld, worldLimits } from "#ops/world/generate-world";
import { delaySpaceInstance } from "./delay-space.ts";
import type { Fixture } from "./measured.ts";

export interface InstanceSource {
  readonly tuning: Tuning;
  instance(seed: number): SimulationInstance;
}

/**
 * Whether constants of a policy were fitted to it, so that good figures mean less: to this instance, to others of its kind (the
 * same generator, another seed), or to nothing like it.
 */
export type Tuning = "itself" | "kind" | "none" | "unknown";

export const tuningWords: Readonly<Record<Tuning, string>> = {
  itself: "tuned on",
  kind: "tuned on its kind",
  none: "not tuned on",
  unknown: "unknown",
};

interface FleetSize {
  readonly crawlers: number;
  readonly sites: number;
}

interface InstanceFamily {
  readonly name: string;
  readonly words: string;
  readonly tuning: Tuning;
  readonly make: (size: FleetSize & { readonly seed: number }) => SimulationInstance;
}

export const instanceFamilies: readonly InstanceFamily[] = [
  {
    ...{ name: "world", words: "a generated world", tuning: "kind" },
    make: (size) => worldInstance(generateWorld(size)),
  },
  {
    ...{ name: "delay-space", words: "clusters in a delay space, with detours", tuning: "none" },
    make: delaySpaceInstance,
  },
];

const familyNamed = (name: string) => instanceFamilies.find((family) => family.name === name);

/** Another seed is another instance of the family. */
export function familySource(name: string, size: FleetSize): InstanceSource {
  const { tuning, make } = familyNamed(name)!;
  return { tuning, instance: (seed) => make({ ...size, seed }) };
}

/** Instances that constants of `nearest` were chosen on (test/bench/results/delegation.md). */
const tunedFixtures: readonly string[] = ["PL12", "PL50"];

/** Another seed is another order of the same targets. */
export const fixtureSource = (fixture: Fixture): InstanceSource => ({
  tuning: tunedFixtures.includes(fixture.name) ? "itself" : "unknown",
  instance: () => fixture,
});

/** The seed is null when the name has none. Throws UsageError for an unknown instance. */
export function parseInstanceName(text: string) {
  const shown = `--instance "${text.slice(0, 60)}"`;
  const [family = "", crawlers = "", seed, ...more] = text.split(":");
  if (familyNamed(family) === undefined) {
    const known = instanceFamilies.map(({ name }) => name).join(", ");
    throw new UsageError(`${shown}: "${family.slice(0, 40)}" is no family of instances: ${known} are`);
  }
  if (more.length > 0) throw new UsageError(`${shown}: family:crawlers or family:crawlers:seed is expected`);
  const whole = (what: string, digits: string, from: number, to: number) => {
    const value = /^\d{1,10}$/.test(digits) ? Number(digits) : Number.NaN;
    if (value >= from && value <= to) return value;
    throw new UsageError(
      `${shown}: ${what} is "${digits.slice(0, 20)}": must be a whole number from ${from} to ${to}`,
    );
  };
  return {
    family,
    crawlers: whole("crawlers", crawlers, 1, worldLimits.crawlers),
    seed: seed === undefined ? null : whole("seed", seed, 0, 0xffff_ffff),
  };
}
