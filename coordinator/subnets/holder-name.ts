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
import { composed } from "#protocol/composed";
import { companyNameOf, normaliseCompanyName } from "./company-name.ts";
import { isPlaceholderHandle, isPlaceholderId, isPlaceholderName } from "./placeholder-names.ts";

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
const isMaintainer = (text: string) => text.includes("-") && maintainerName.test(text);
const maintainerName = /^(?:mnt|maint)-|-mnt$/i;

/** The holder that a registry's record names, or null when nothing in it identifies a company. */
export function holderOf(source: HolderSource): HolderIdentity | null {
  const name = shownName(source.name);
  return byHandle(source, name) ?? byOpaqueId(source, name) ?? byName(source, name);
}

function byHandle(source: HolderSource, name: string | null): HolderIdentity | null {
  const { registry, handle } = source;
  if (!registry || !handle) return null;
  const text = handle.trim().toUpperCase();
  if (!idText.test(text) || isPlaceholderHandle(text) || isMaintainer(text)) return null;
  return {
    key: customerKey(source, name) ?? `${registry}:org-handle:${text}`,
    name: name ?? text,
    handle: text,
  };
}

/** Null where the customer has no name of its own: then each of its ranges is somebody else's. */
function customerKey({ registry, parentHandle }: HolderSource, name: string | null): string | null {
  if (!parentHandle || name === null) return null;
  const parent = parentHandle.trim().toUpperCase();
  const normalised = normaliseCompanyName(name);
  if (!idText.test(parent) || isPlaceholderName(normalised)) return null;
  return `${registry}:customer:${parent}:${normalised}`;
}

function byOpaqueId({ registry, opaqueId }: HolderSource, name: string | null): HolderIdentity | null {
  if (!registry || !opaqueId) return null;
  const text = opaqueId.trim();
  if (!idText.test(text) || isPlaceholderId(text)) return null;
  return { key: `${registry}:opaque-id:${text}`, name: name ?? text, handle: null };
}

function byName({ registry, country }: HolderSource, name: string | null): HolderIdentity | null {
  if (name === null) return null;
  const { text, isDistinctive } = companyNameOf(name);
  if (isPlaceholderName(text)) return null;
  if (isDistinctive) return { key: `name:${text}`, name, handle: null };
  if (!registry && !country) return null;
  return { key: `name:${registry ?? ""}:${country ?? ""}:${text}`, name, handle: null };
}

/** The name composed and with its spaces put in order, or null when it is a placeholder, a maintainer or empty. */
function shownName(name: string | null | undefined): string | null {
  const text = withSingleSpaces(name?.slice(0, 500) ?? "");
  return text === "" || isMaintainer(text) || isPlaceholderName(text) ? null : text;
}

function withSingleSpaces(text: string): string {
  const trimmed = composed(text.trim());
  return oddSpace.test(trimmed) ? trimmed.replace(/\s+/g, " ") : trimmed;
}

const oddSpace = / {2}|[^\S ]/;
