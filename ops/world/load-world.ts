/** The world that a run's parameters mean: generated, or from a fixture file. The same parameters, the same world. */
import { readFile } from "node:fs/promises";
import { UsageError } from "#core/errors";
import { worldFromFixture } from "./fixture-world.ts";
import { generateWorld } from "./generate-world.ts";
import type { World } from "./model.ts";

export interface LoadParameters {
  readonly seed: number;
  readonly sites: number;
  /** Ignored with a fixture, which brings its own crawlers. */
  readonly crawlers: number;
  /** A file in the format of instance.ts; its first `sites` targets are used. */
  readonly fixture?: string | null | undefined;
}

export async function loadWorld({ seed, sites, crawlers, fixture }: LoadParameters): Promise<World> {
  if (fixture === undefined || fixture === null) return generateWorld({ seed, sites, crawlers });
  let json: unknown;
  try {
    json = JSON.parse(await readFile(fixture, "utf8"));
  } catch (error) {
    throw new UsageError(`fixture ${fixture}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return worldFromFixture({ json, seed, sites });
}
