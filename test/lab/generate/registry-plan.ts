/**
 * How many objects of which kind each registry gets: exact numbers, from the size that was asked for alone.
 * Shares follow the registries' databases of 2025: RIPE 45 %, ARIN 30 %, APNIC 15 %, LACNIC 7 %, AFRINIC 3 %,
 * one object in eight IPv6.
 */
import { type AddressBlock, blocksOf, type RegionalRegistry, regionalRegistries } from "./address-blocks.ts";
import { draw } from "./path-random.ts";

export interface GenerateSettings {
  /** Network objects (inetnum, inet6num, net) in generation 0, from 1 to `maxObjects`. */
  readonly objects: number;
  readonly seed: number;
  /** Quarters since generation 0, at most `maxGeneration`. */
  readonly generation: number;
  /** Share of the objects that change from one generation to the next, 0 to 1. */
  readonly changedShare: number;
  /** Adds one malformed record of every kind. */
  readonly faults: boolean;
}

export const maxObjects = 100_000_000;
export const maxGeneration = 100;

export interface BlockPlan {
  readonly block: AddressBlock;
  /** Objects in it, the block's own among them. */
  readonly objects: number;
  readonly path: number;
}

export interface RegistryPlan {
  readonly registry: RegionalRegistry;
  readonly settings: GenerateSettings;
  readonly path: number;
  readonly ipv4: readonly BlockPlan[];
  readonly ipv6: readonly BlockPlan[];
  /** Objects that stand for another registry's space or for nobody. */
  readonly placeholders: number;
  /** Objects in private and other special-purpose space. */
  readonly specials: number;
  /** Ranges that ARIN's database holds as well; for ARIN, all of them. */
  readonly shared: number;
  /** Organisations, the missing ones included; LACNIC's owners, who have no objects. */
  readonly organisations: number;
  /** ARIN's customers. */
  readonly customers: number;
  /** Companies known by name only, the same list for all registries. */
  readonly companies: number;
}

const shares: Readonly<Record<RegionalRegistry, number>> = {
  ripencc: 0.45,
  apnic: 0.15,
  arin: 0.3,
  lacnic: 0.07,
  afrinic: 0.03,
};
const ipv6Share = 0.12;
/** Organisations per object; LACNIC and ARIN name one nearly everywhere. */
const organisationShares: Readonly<Record<RegionalRegistry, number>> = {
  ripencc: 0.04,
  apnic: 0.03,
  arin: 0.05,
  lacnic: 0.25,
  afrinic: 0.05,
};
const customerShare = 0.2;
const companyShare = 0.2;
/** A block is opened for about so many objects, as long as the registry has any left. */
const objectsPerBlock = 2500;
const placeholdersEvery = 600;
const specialsEvery = 1500;
const sharedEvery = 1500;

export function planRegistries(settings: GenerateSettings): readonly RegistryPlan[] {
  const objects = regionalRegistries.map((registry) => Math.floor(shares[registry] * settings.objects));
  objects[0] = (objects[0] ?? 0) + settings.objects - objects.reduce((sum, count) => sum + count, 0);
  const shared = objects.map((count, at) =>
    regionalRegistries[at] === "arin" ? 0 : Math.floor(count / sharedEvery),
  );
  const atArin = shared.reduce((sum, count) => sum + count, 0);
  return regionalRegistries.map((registry, at) =>
    planRegistry(settings, {
      registry,
      objects: objects[at] as number,
      shared: registry === "arin" ? atArin : (shared[at] as number),
    }),
  );
}

function planRegistry(
  settings: GenerateSettings,
  part: { readonly registry: RegionalRegistry; readonly objects: number; readonly shared: number },
): RegistryPlan {
  const { registry, objects, shared } = part;
  const path = draw(settings.seed, regionalRegistries.indexOf(registry));
  const placeholders = Math.floor(objects / placeholdersEvery);
  const specials = Math.floor(objects / specialsEvery);
  const slots = objects - placeholders - specials - shared;
  const ipv6 = Math.round(slots * ipv6Share);
  const some = (share: number) => (objects === 0 ? 0 : 2 + Math.floor(objects * share));
  return {
    registry,
    settings,
    path,
    ipv4: planBlocks(blocksOf(registry, 4), slots - ipv6, draw(path, 4)),
    ipv6: planBlocks(blocksOf(registry, 6), ipv6, draw(path, 6)),
    placeholders,
    specials,
    shared,
    organisations: some(organisationShares[registry]),
    customers: registry === "arin" ? some(customerShare) : 0,
    companies: 10 + Math.floor(settings.objects * companyShare),
  };
}

/** The objects in equal parts, in an order of the blocks that is not that of their addresses. */
function planBlocks(blocks: readonly AddressBlock[], objects: number, path: number): readonly BlockPlan[] {
  const used = Math.min(blocks.length, Math.ceil(objects / objectsPerBlock));
  const shuffled = blocks
    .map((block, at) => ({ block, key: draw(path, at) }))
    .sort((a, b) => a.key - b.key)
    .slice(0, used);
  return shuffled.map(({ block, key }, at) => ({
    block,
    objects: Math.floor((objects * (at + 1)) / used) - Math.floor((objects * at) / used),
    path: key,
  }));
}
