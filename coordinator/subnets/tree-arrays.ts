/**
 * The tree taken apart into named arrays, for a file, and put together again. What can be made from the others
 * in little time is left out: the indexes by address and by id.
 */
import { TextPool } from "#core/text-pool";
import { type Ipv4Parts, indexedIpv4 } from "./ipv4-places.ts";
import { type Ipv6Parts, indexedIpv6 } from "./ipv6-places.ts";
import { indexSegments } from "./segments.ts";
import { SubnetTree } from "./subnet-tree.ts";
import { indexIds } from "./tree-columns.ts";

/** To be raised with every change of what the arrays mean. */
export const treePartsVersion = 1;

/** Every part, with the kind of array it is. */
export const partKinds = {
  "ipv4.keys": Int32Array,
  "ipv4.links": Int32Array,
  "ipv4.farParents": Int32Array,
  "ipv4.farStarts": Int32Array,
  "ipv4.odd": Int32Array,
  "ipv4.oddStarts": Int32Array,
  "ipv4.segmentStarts": Uint32Array,
  "ipv4.segmentOwners": Int32Array,
  "ipv6.keys": Int32Array,
  "ipv6.links": Int32Array,
  "ipv6.farParents": Int32Array,
  "ipv6.farStarts": Int32Array,
  "ipv6.odd": Int32Array,
  "ipv6.oddStarts": Int32Array,
  "ipv6.segmentStarts": Uint32Array,
  "ipv6.segmentOwners": Int32Array,
  ids: Int32Array,
  holderIds: Int32Array,
  labels: Uint16Array,
  nameIds: Int32Array,
  nameText: Uint8Array,
  nameEnds: Uint32Array,
} as const;

export type PartName = keyof typeof partKinds;
export type TreeParts = { readonly [Name in PartName]: ArrayOf<(typeof partKinds)[Name]> };
export type PartArray = Int32Array | Uint32Array | Uint16Array | Uint8Array;
type ArrayOf<Kind> = Kind extends Int32ArrayConstructor
  ? Int32Array
  : Kind extends Uint32ArrayConstructor
    ? Uint32Array
    : Kind extends Uint16ArrayConstructor
      ? Uint16Array
      : Uint8Array;

/** The tree's own arrays, not copies. */
export function partsOf({ columns }: SubnetTree): TreeParts {
  const { ipv4, ipv6, ids, holderIds, labels, nameIds, names } = columns;
  const { text, ends } = names.parts();
  const families = { ...familyParts("ipv4", ipv4), ...familyParts("ipv6", ipv6) };
  return { ...families, ids, holderIds, labels, nameIds, nameText: text, nameEnds: ends };
}

/** The tree that they came from; it keeps the arrays. Throws a RangeError when their lengths do not fit together. */
export function treeFromParts(parts: TreeParts): SubnetTree {
  checkLengths(parts);
  const { ids, holderIds, labels, nameIds } = parts;
  return new SubnetTree({
    ipv4: indexedIpv4(familyFrom("ipv4", parts)),
    ipv6: indexedIpv6(familyFrom("ipv6", parts)),
    ipv6Base: parts["ipv4.links"].length,
    ids,
    byId: indexIds(ids),
    holderIds,
    labels,
    nameIds,
    names: TextPool.from({ text: parts.nameText, ends: parts.nameEnds }),
  });
}

type Family = "ipv4" | "ipv6";
type FamilyParts<Name extends Family> = Pick<TreeParts, Extract<PartName, `${Name}.${string}`>>;

function familyParts<Name extends Family>(
  family: Name,
  { keys, links, lists, segments }: Ipv4Parts | Ipv6Parts,
): FamilyParts<Name> {
  const parts = {
    [`${family}.keys`]: keys,
    [`${family}.links`]: links,
    [`${family}.farParents`]: lists.farParents,
    [`${family}.farStarts`]: lists.farStarts,
    [`${family}.odd`]: lists.odd,
    [`${family}.oddStarts`]: lists.oddStarts,
    [`${family}.segmentStarts`]: segments.starts,
    [`${family}.segmentOwners`]: segments.owners,
  };
  return parts as FamilyParts<Name>;
}

function familyFrom(family: Family, parts: TreeParts): Ipv4Parts & Ipv6Parts {
  return {
    keys: parts[`${family}.keys`],
    links: parts[`${family}.links`],
    lists: {
      farParents: parts[`${family}.farParents`],
      farStarts: parts[`${family}.farStarts`],
      odd: parts[`${family}.odd`],
      oddStarts: parts[`${family}.oddStarts`],
    },
    segments: indexSegments(parts[`${family}.segmentStarts`], parts[`${family}.segmentOwners`]),
  };
}

function checkLengths(parts: TreeParts): void {
  const [ipv4, ipv6] = [parts["ipv4.links"].length, parts["ipv6.links"].length];
  const wanted: Partial<Record<PartName, number>> = {
    "ipv4.keys": ipv4,
    "ipv6.keys": 2 * ipv6,
    "ipv4.segmentStarts": parts["ipv4.segmentOwners"].length,
    "ipv6.segmentStarts": 4 * parts["ipv6.segmentOwners"].length,
    ids: ipv4 + ipv6,
    holderIds: ipv4 + ipv6,
    labels: ipv4 + ipv6,
    nameIds: ipv4 + ipv6,
  };
  for (const [name, length] of Object.entries(wanted)) {
    const found = parts[name as PartName].length;
    if (found !== length) throw new RangeError(`the tree's part ${name} has ${found} entries, not ${length}`);
  }
}
