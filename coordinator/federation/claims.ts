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
export const mostClaimTerms = 5000;

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
      ? `${JSON.stringify(text)} is no block of addresses: write 192.0.2.0/24`
      : parseDomainSet(text);
    if (typeof set === "string") return set;
    if (set.languages.size > 0) return languageFault(text);
    sets.push(set);
  }
  if (blocks.length > 0 && sets.length > 0) {
    return `${formatRange(blocks[0]!)} is a block of addresses and ${domainSetText(sets[0]!)} a domain set: a coordinator owns one kind or the other, since a host can be in both`;
  }
  if (blocks.length > 0) return { kind: "blocks", blocks };
  const terms = sets.reduce((sum, { names }) => sum + names.size, 0);
  if (terms > mostClaimTerms) return `${terms} names are claimed: at most ${mostClaimTerms} in all`;
  return sets.length > 0
    ? { kind: "domains", sets }
    : "it names nothing: a domain set (.gr) or a block of addresses (192.0.2.0/24) at least";
}

const languageFault = (text: string) =>
  `${JSON.stringify(text)} names a language: a coordinator owns names or blocks of addresses, since whose a URL is must be known before it is fetched (crawlers may have languages)`;

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

/** In one form of words, however they were written. */
export function claimTexts(claims: Claims): string[] {
  return claims.kind === "blocks" ? claims.blocks.map(formatRange) : claims.sets.map(domainSetText);
}
