/**
 * Which hosts somebody may have: each layer is the domain sets that one party states (the operator for a crawler, its
 * partner, the coordinator's own settings), and a host must be in one set of every layer. So parties narrow each other
 * and nobody widens. A layer without sets holds everything.
 */
import {
  type DomainSet,
  domainSetsOverlap,
  domainSetText,
  type HostToHold,
  parseDomainSet,
  someDomainSetHolds,
} from "./domain-set.ts";

export type Layer = readonly DomainSet[];
export type Partition = readonly Layer[];

/** Sets of one party, at most. */
export const mostSets = 16;

/** The sets in the order given, each once; or what is wrong, in words that name the value. */
export function readLayer(texts: readonly string[]): Layer | string {
  if (texts.length > mostSets) return `${texts.length} domain sets are given: at most ${mostSets}`;
  const sets = new Map<string, DomainSet>();
  for (const text of texts) {
    const set = parseDomainSet(text);
    if (typeof set === "string") return set;
    sets.set(domainSetText(set), set);
  }
  return [...sets.values()];
}

/** What is kept: stored sets were read before, so that what cannot be read counts for nothing. */
export function partitionOf(...parties: readonly (readonly string[])[]): Partition {
  return parties.map(keptLayer).filter((layer) => layer.length > 0);
}

export function partitionHolds(partition: Partition, host: HostToHold): boolean {
  return partition.every((layer) => someDomainSetHolds(layer, host));
}

export function layerTexts(layer: Layer): string[] {
  return layer.map(domainSetText);
}

/** ".com, .net lang:en" of every layer, for people. */
export function partitionText(partition: Partition): string {
  if (partition.length === 0) return "every domain";
  return partition.map((layer) => layerTexts(layer).join(" or ")).join(", and in ");
}

/** Why nothing at all can be in both layers; null: something can. */
export function nothingInBoth(
  given: Layer,
  other: { readonly layer: Layer; readonly whose: string },
): string | null {
  if (given.length === 0 || other.layer.length === 0) return null;
  const meets = given.some((set) => other.layer.some((one) => domainSetsOverlap(set, one).length > 0));
  if (meets) return null;
  return `${layerTexts(given).join(" or ")} has nothing in common with ${other.whose}: ${layerTexts(other.layer).join(" or ")}`;
}

function keptLayer(texts: readonly string[]): Layer {
  const layer = readLayer(texts.slice(0, mostSets));
  return typeof layer === "string" ? [] : layer;
}
