/**
 * Instances by name, as `npm run lab -- simulate --instance` takes them: `delay-space:50:7` are 50 crawlers in
 * a delay space, made by seed 7. Every family is a line of the table.
 */
import { UsageError } from "#core/errors";
import { worldLimits } from "#ops/world/generate-world";
import { generatedSource, type InstanceSource } from "../repeat-policies.ts";
import { delaySpaceInstance, type InstanceSize } from "./delay-space.ts";

interface InstanceFamily {
  readonly words: string;
  source(size: Omit<InstanceSize, "seed">): InstanceSource;
}

export const instanceFamilies = {
  world: { words: "a generated world, as --world", source: generatedSource },
  "delay-space": {
    words: "clusters in a delay space, with detours",
    source: (size) => ({
      seedChanges: "world",
      tuning: "none",
      instance: (seed) => delaySpaceInstance({ ...size, seed }),
    }),
  },
} as const satisfies Readonly<Record<string, InstanceFamily>>;

const form = /^([\w-]+):(\d{1,4})(?::(\d{1,10}))?$/;

/** The family, the number of crawlers and the seed, null where none is named. Throws UsageError for what is none. */
export function parseInstanceName(text: string) {
  const [, name = "", crawlers, seed] = form.exec(text) ?? [];
  const family = Object.entries(instanceFamilies).find(([known]) => known === name)?.[1];
  const isInRange =
    Number(crawlers) >= 1 && Number(crawlers) <= worldLimits.crawlers && Number(seed ?? 0) <= 0xffff_ffff;
  if (family === undefined || !isInRange)
    throw new UsageError(
      `--instance "${text.slice(0, 60)}": ${Object.keys(instanceFamilies).join(" or ")}:crawlers or :crawlers:seed is expected`,
    );
  return { family, crawlers: Number(crawlers), seed: seed === undefined ? null : Number(seed) };
}
