/** The instances from measured round-trip times that an evaluation uses, where they are at hand. */
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { MeasuredInstance } from "../../evaluate/figure.ts";
import { readFixture } from "../../simulate/read-fixture.ts";
import { worldFromFixture } from "../../world/fixture-world.ts";

/** Sites of a fixture's world are bounded by its targets. */
const allSites = 1_000_000;

/** Those in the folder of shared data; says so when they are not there. */
export function measuredFiles(env: NodeJS.ProcessEnv = process.env): string[] {
  const folder = resolve(env.NEARCRAWL_DATA || "../shared/data", "latency");
  return ["PL12.json", "PL50.json"].flatMap((name) => {
    const file = join(folder, name);
    if (existsSync(file)) return [file];
    process.stderr.write(`left out: ${name} is not in ${folder} (NEARCRAWL_DATA)\n`);
    return [];
  });
}

export async function readMeasured(files: readonly string[]): Promise<MeasuredInstance[]> {
  return await Promise.all(
    files.map(async (file) => {
      const instance = await readFixture(file);
      const sites = Math.min(allSites, instance.targets.length);
      const world = worldFromFixture({ json: instance, seed: 1, sites });
      return { name: basename(file, ".json"), instance, world };
    }),
  );
}
