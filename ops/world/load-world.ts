/** The world that a run's parameters mean: generated, or from a fixture file. The same parameters, the same world. */

import type { WorldOddities } from "./finish-world.ts";
import { worldFromFixture } from "./fixture-world.ts";
import { generateWorld } from "./generate-world.ts";
import type { World } from "./model.ts";
import { readFixture } from "./read-fixture.ts";

export interface LoadParameters {
  readonly seed: number;
  readonly sites: number;
  /** Ignored with a fixture, which brings its own crawlers. */
  readonly crawlers: number;
  /** A file in the format of instance.ts; its first `sites` targets are used. */
  readonly fixture?: string | null | undefined;
  /** Only of a generated world. */
  readonly oddities?: Partial<WorldOddities> | undefined;
}

export async function loadWorld(parameters: LoadParameters): Promise<World> {
  const { seed, sites, crawlers, fixture, oddities = {} } = parameters;
  if (fixture === undefined || fixture === null) return generateWorld({ seed, sites, crawlers, oddities });
  const json = await readFixture(fixture);
  return worldFromFixture({ json, seed, sites });
}
