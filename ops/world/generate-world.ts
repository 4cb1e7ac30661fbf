/**
 * The seeded generator: organisations are drawn one after the other until the sites are used up, each with
 * its place, its provider (not always one of its own country) and its ranges; then the plan gets addresses.
 * The same settings give the same world on every machine.
 */
import { UsageError } from "#core/errors";
import { drawCrawlers } from "./draw-crawlers.ts";
import { drawOddity } from "./draw-oddities.ts";
import { finishWorld } from "./finish-world.ts";
import type { World } from "./model.ts";
import { noOddities, type WorldOddities } from "./oddities.ts";
import { Organisations } from "./organisations.ts";
import { WorldDraft } from "./world-draft.ts";

export interface WorldSettings {
  readonly seed: number;
  readonly sites: number;
  readonly crawlers: number;
  /** What else live code must cope with; default: nothing. */
  readonly oddities?: Partial<WorldOddities>;
}

/** Bounds of what the generator is asked for; beyond them the planned /8s would not do. */
export const worldLimits = { sites: 1_000_000, crawlers: 1_000 } as const;

export function generateWorld({ seed, sites, crawlers, oddities: asked }: WorldSettings): World {
  const oddities = { ...noOddities, ...asked };
  refuseBadSettings({ seed, sites, crawlers }, oddities);
  const draft = new WorldDraft({ seed, sites });
  drawCrawlers(draft, crawlers);
  const organisations = new Organisations(draft);
  while (draft.sitesLeft > 0) {
    if (!drawOddity(draft, oddities)) organisations.addSite();
  }
  organisations.register();
  return finishWorld(draft, oddities);
}

function refuseBadSettings(counts: Omit<WorldSettings, "oddities">, oddities: WorldOddities): void {
  const check = (name: string, value: number, low: number, high: number) => {
    if (Number.isInteger(value) && value >= low && value <= high) return;
    throw new UsageError(`world: ${name} is ${value}: must be a whole number from ${low} to ${high}`);
  };
  check("seed", counts.seed, 0, 2 ** 32 - 1);
  check("sites", counts.sites, 1, worldLimits.sites);
  check("crawlers", counts.crawlers, 1, worldLimits.crawlers);
  for (const [name, share] of Object.entries(oddities)) {
    if (!(share >= 0 && share <= 1)) throw new UsageError(`world: ${name} is ${share}: must be from 0 to 1`);
  }
}
