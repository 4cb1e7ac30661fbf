/**
 * Which company a subnet is registered to (the paper's "same company", section 4.3): one key per company, so
 * that two ranges with the same key may be delegated alike. Merging strangers costs wrong delegations, splitting
 * a company costs a few probes; in doubt, split. So identity is taken, in this order, from
 *
 *   1. the organisation's handle, within its registry      ripencc:org-handle:ORG-EX1-RIPE
 *      a customer of ARIN's, who has a handle for every    arin:customer:EXAMP-12:example bakery
 *      range: the parent's handle and the name
 *   2. the opaque-id of extended statistics, within the    ripencc:opaque-id:6c1b…
 *      registry (its publisher promises no more)
 *   3. the name, normalised                                name:example networks
 *      one that strangers may share, within registry       name:apnic:JP:data center
 *      and country, or not at all where neither is known
 *
 * Placeholders ("not allocated", "private customer") and maintainers (`mnt-by`) never name a company.
 */
import { isDistinctive, normaliseCompanyName } from "./company-name.ts";

export interface HolderSource {
  /** The registry that the handle or opaque-id belongs to. */
  readonly registry?: string | null;
  readonly country?: string | null;
  /** The organisation's handle: `org:` in RPSL, `orgHandle` at ARIN, `ownerid` at LACNIC. */
  readonly handle?: string | null;
  /** Of a customer whose own handle means one range only: the organisation that it is a customer of. */
  readonly parentHandle?: string | null;
  readonly opaqueId?: string | null;
  readonly name?: string | null;
}

export interface HolderIdentity {
  readonly key: string;
  /** As registered, for people; the handle or opaque-id where no name is known. */
  readonly name: string;
  readonly handle: string | null;
}

/** Handles and ids as registries write them; anything else is no identity. */
const idText = /^[\p{L}\p{N}][\p{L}\p{N}._@/:+-]{0,99}$/u;
/** Organisations that stand for "nobody in particular" in registry databases. */
const placeholderHandles = new Set([
  "ORG-IANA1-RIPE",
  "IANA",
  "IANA-RESERVED",
  "IANA1-RIPE",
  "NOT-ALLOCATED",
]);
const placeholderIds = /^(?:0+|x+|n\/?a|none|null|unknown|reserved|available|unallocated)$/i;
const placeholderNames =
  /^(?:|[^\p{L}]*|x+|tba|tbd|n ?a|nil|none|null|unknown|unspecified|undefined|unnamed|no name|not available|not applicable|anonymous|private|private (?:customer|person|individual|user|residence|residential customer)s?|(?:residential )?(?:customer|user|individual|subscriber)s?|reserved|unallocated|unassigned|available|free|spare|legacy|test|testing|dummy|example|placeholder|stub|to be (?:defined|determined|assigned)|various(?: registries)?|iana|internet assigned numbers authority|(?:not|never) (?:allocated|assigned)(?: .*)?|administered by .*|(?:early|transferred) .*registration.*|non ripe ncc managed.*|address(?:es)? not .*|(?:iana|afrinic|apnic|arin|lacnic|ripe) (?:reserved|special|block|blk|pool).*)$/u;
const maintainerName = /^(?:mnt|maint)-|-mnt$/i;

/** The holder that a registry's record names, or null when nothing in it identifies a company. */
export function holderOf(source: HolderSource): HolderIdentity | null {
  const name = shownName(source.name);
  return byHandle(source, name) ?? byOpaqueId(source, name) ?? byName(source, name);
}

function byHandle(source: HolderSource, name: string | null): HolderIdentity | null {
  const { registry, handle } = source;
  const text = handle?.trim().toUpperCase() ?? "";
  if (!registry || !idText.test(text) || placeholderHandles.has(text) || maintainerName.test(text))
    return null;
  return {
    key: customerKey(source, name) ?? `${registry}:org-handle:${text}`,
    name: name ?? text,
    handle: text,
  };
}

/** Null where the customer has no name of its own: then each of its ranges is somebody else's. */
function customerKey({ registry, parentHandle }: HolderSource, name: string | null): string | null {
  const parent = parentHandle?.trim().toUpperCase() ?? "";
  const normalised = name === null ? "" : normaliseCompanyName(name);
  if (!idText.test(parent) || normalised === "" || placeholderNames.test(normalised)) return null;
  return `${registry}:customer:${parent}:${normalised}`;
}

function byOpaqueId({ registry, opaqueId }: HolderSource, name: string | null): HolderIdentity | null {
  const text = opaqueId?.trim() ?? "";
  if (!registry || !idText.test(text) || placeholderIds.test(text)) return null;
  return { key: `${registry}:opaque-id:${text}`, name: name ?? text, handle: null };
}

function byName({ registry, country }: HolderSource, name: string | null): HolderIdentity | null {
  const normalised = name === null ? "" : normaliseCompanyName(name);
  if (name === null || normalised === "" || placeholderNames.test(normalised)) return null;
  if (isDistinctive(normalised)) return { key: `name:${normalised}`, name, handle: null };
  if (!registry && !country) return null;
  return { key: `name:${registry ?? ""}:${country ?? ""}:${normalised}`, name, handle: null };
}

/** The name with its spaces put in order, or null when it is a placeholder, a maintainer or empty. */
function shownName(name: string | null | undefined): string | null {
  const text = name?.slice(0, 500).replace(/\s+/g, " ").trim() ?? "";
  if (text === "" || maintainerName.test(text)) return null;
  return placeholderNames.test(plain(text)) ? null : text;
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
