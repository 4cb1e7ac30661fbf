/**
 * What a coordinator owns: domain sets by name (`.gr`, `example.org not blog.example.org`), or blocks of addresses
 * (CIDR). Never both, and no languages: a host may be in a set by its name and in a block by its address, and a page's
 * language is known only once it is fetched, so that two coordinators would own one URL.
 */
import { parseAddress } from "#core/ip/address";
import { formatRange, type IpRange, parseRange, rangeCovers, rangeHolds } from "#core/ip/range";
import {
  type DomainSet,
  domainSetHolds,
  domainSetsOverlap,
  domainSetText,
  parseDomainSet,
  type SetsByName,
  setsByName,
} from "../domain-sets/domain-set.ts";

export type Claims =
  | { readonly kind: "domains"; readonly sets: readonly DomainSet[] }
  | { readonly kind: "blocks"; readonly blocks: readonly IpRange[] };

/** Names and exceptions of one coordinator, in all: whoever claims more needs fewer, higher ones, or address blocks. */
const mostClaimTerms = 5000;

/** The claims, or what is wrong with them, in words that name the value. */
export function readClaims(texts: readonly string[]): Claims | string {
  const blocks: IpRange[] = [];
  const sets: DomainSet[] = [];
  for (const text of texts) {
    const block = text.includes("/") ? parseRange(text) : null;
    if (block !== null) {
      blocks.push(block);
      continue;
    }
    const set = text.includes("/")
      ? `${JSON.stringify(text)} is not an address block: write 192.0.2.0/24`
      : parseDomainSet(text);
    if (typeof set === "string") return set;
    if (set.languages.size > 0) return languageFault(text);
    sets.push(set);
  }
  if (blocks.length > 0 && sets.length > 0) {
    return (
      `${formatRange(blocks[0]!)} is a block of addresses and ${domainSetText(sets[0]!)} a domain set: ` +
      "a coordinator owns one kind or the other, since a host can be in both"
    );
  }
  if (blocks.length > 0) return { kind: "blocks", blocks };
  const terms = sets.reduce((sum, { names }) => sum + names.size, 0);
  if (terms > mostClaimTerms) return `${terms} names are claimed: at most ${mostClaimTerms} in all`;
  return sets.length > 0
    ? { kind: "domains", sets }
    : "it names nothing: a domain set (.gr) or a block of addresses (192.0.2.0/24) at least";
}

const languageFault = (text: string) =>
  `${JSON.stringify(text)} names a language: a coordinator owns names or blocks of addresses, ` +
  "since whose a URL is must be known before it is fetched (crawlers may have languages)";

/** By which claim it is owned, as text; null: by none. */
export function claimOf(
  claims: Claims,
  { host, address }: { readonly host: string; readonly address: string | null },
): string | null {
  if (claims.kind === "domains") {
    const set = byName(claims.sets)
      .around(host)
      .find((one) => domainSetHolds(one, { host, language: null }));
    return set ? domainSetText(set) : null;
  }
  const at = parseAddress(host) ?? (address === null ? null : parseAddress(address));
  const block = at && claims.blocks.find((one) => rangeHolds(one, at));
  return block ? formatRange(block) : null;
}

/** What both own, in words; null: nothing. */
export function overlapOf(one: Claims, other: Claims): string | null {
  if (one.kind === "domains" && other.kind === "domains") {
    const shared = sharedNames(one.sets, other.sets);
    return shared.length === 0 ? null : shared.slice(0, 5).map(nameWords).join(", ");
  }
  if (one.kind === "blocks" && other.kind === "blocks") return sharedBlock(one.blocks, other.blocks);
  return "hosts whose name is in a domain set of the one and whose address in a block of the other";
}

/** Of the first two sets that share any. */
function sharedNames(ones: readonly DomainSet[], others: readonly DomainSet[]): readonly string[] {
  const { near } = byName(others);
  for (const a of ones) {
    for (const b of near(a)) {
      const shared = domainSetsOverlap(a, b);
      if (shared.length > 0) return shared;
    }
  }
  return [];
}

/** Claims are read seldom, and asked for every URL that is found. */
const indexes = new WeakMap<readonly DomainSet[], SetsByName>();

function byName(sets: readonly DomainSet[]): SetsByName {
  const known = indexes.get(sets);
  if (known !== undefined) return known;
  const made = setsByName(sets);
  indexes.set(sets, made);
  return made;
}

const nameWords = (name: string) => (name === "." ? "every name that neither mentions" : name);

function sharedBlock(ones: readonly IpRange[], others: readonly IpRange[]): string | null {
  for (const a of ones) {
    const b = others.find(
      (range) => a.family === range.family && a.first <= range.last && range.first <= a.last,
    );
    if (b !== undefined) return formatRange(rangeCovers(a, b) ? b : a);
  }
  return null;
}

/** The first claim that reaches beyond `outer`, as text; null: all are within it. */
export function claimBeyond(inner: Claims, outer: Claims): string | null {
  if (inner.kind === "blocks") {
    const covers = (block: IpRange) =>
      outer.kind === "blocks" && outer.blocks.some((one) => rangeCovers(one, block));
    const beyond = inner.blocks.find((block) => !covers(block));
    return beyond === undefined ? null : formatRange(beyond);
  }
  const beyond = inner.sets.find(
    (set) => outer.kind !== "domains" || !isWithin(set, byName(outer.sets).near(set)),
  );
  return beyond === undefined ? null : domainSetText(beyond);
}

/** Between the names that somebody mentions, and for all that nobody does (the empty name), a set is all or nothing. */
function isWithin(set: DomainSet, outer: readonly DomainSet[]): boolean {
  const mentioned = ["", ...set.names.keys(), ...outer.flatMap(({ names }) => [...names.keys()])];
  return mentioned.every((host) => {
    const at = { host, language: null };
    return !domainSetHolds(set, at) || outer.some((one) => domainSetHolds(one, at));
  });
}

// Whose a URL is, as one coordinator sees it: its child's that owns it; its own; or of somebody above or beside it,
// which is for its parent to know. The coordinator without a parent owns the rest, so that every URL has one owner
// (WEB-SAILOR section 4.4). Ownership is a tree: a child owns part of what its parent owns, and no two children own
// the same.

/** The parent's number among the related coordinators; children have the numbers above. */
export const parentId = 0;

/** `here`, or the number of the related coordinator that the URL goes to next. */
export type Owner = "here" | number;

export interface Relatives {
  /** What this coordinator owns; null: it has no parent, and owns the rest. */
  readonly own: Claims | null;
  readonly children: readonly { readonly peerId: number; readonly name: string; readonly claims: Claims }[];
}

interface Whereabouts {
  /** As in `UrlKey`. */
  readonly host: string;
  /** The first of its addresses; null: not known yet, and then nobody else has it by an address block. */
  readonly address: string | null;
}

/** After so many coordinators a URL stays where it is: settings that contradict each other pass nothing round for ever. */
export const mostHops = 8;

/** `from`: who sent it; `here` for what this coordinator found by itself. */
export function ownerOf(where: Whereabouts, { own, children }: Relatives, from: Owner): Owner {
  const child = children.find(({ claims }) => claimOf(claims, where) !== null);
  if (child !== undefined) return child.peerId;
  if (own === null || claimOf(own, where) !== null) return "here";
  // Names resolve differently by place: who is given a host by its address keeps it.
  const isKnown = where.address !== null || parseAddress(where.host) !== null;
  if (own.kind === "blocks" && (!isKnown || from === parentId)) return "here";
  return parentId;
}

/** Why `childId` may not be below a coordinator, or null. `chain`: of that coordinator, itself first, then upward. */
export function cycleFault(childId: string, chain: readonly string[]): string | null {
  const at = chain.indexOf(childId);
  if (at === 0) return "it is this coordinator itself, or runs with a copy of its database";
  if (at > 0) return `it is above this coordinator already (${at} ${at === 1 ? "step" : "steps"} up)`;
  return null;
}
