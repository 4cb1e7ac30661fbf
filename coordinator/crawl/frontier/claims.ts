/**
 * What a coordinator owns: domain sets by name (`.gr`, `example.org not blog.example.org`; WEB-SAILOR's DSets).
 * Languages cannot be claimed: they are known only after a fetch, so two coordinators would own one URL.
 */
import {
  type DomainSet,
  domainSetHolds,
  domainSetsOverlap,
  domainSetText,
  parseDomainSet,
  type SetsByName,
  setsByName,
} from "../../place/domain-sets/domain-set.ts";

export type Claims = readonly DomainSet[];

/** Maximum names and exceptions of one coordinator. Larger claims should use higher domains. */
const mostClaimTerms = 5000;

export function readClaims(texts: readonly string[]): Claims | string {
  const sets: DomainSet[] = [];
  for (const text of texts) {
    const set = parseDomainSet(text);
    if (typeof set === "string") return set;
    if (set.languages.size > 0) return languageFault(text);
    sets.push(set);
  }
  const terms = sets.reduce((sum, { names }) => sum + names.size, 0);
  if (terms > mostClaimTerms) return `${terms} names are claimed: at most ${mostClaimTerms} in all`;
  return sets.length > 0 ? sets : "it names nothing: a domain set (.gr) at least";
}

const languageFault = (text: string) =>
  `${JSON.stringify(text)} names a language: a coordinator owns names, ` +
  "since whose a URL is must be known before it is fetched (crawlers may have languages)";

export function claimOf(claims: Claims, host: string): string | null {
  const set = byName(claims)
    .around(host)
    .find((one) => domainSetHolds(one, { host, language: null }));
  return set ? domainSetText(set) : null;
}

export function overlapOf(ones: Claims, others: Claims): string | null {
  const { near } = byName(others);
  for (const a of ones) {
    for (const b of near(a)) {
      const shared = domainSetsOverlap(a, b);
      if (shared.length > 0) return shared.slice(0, 5).map(nameWords).join(", ");
    }
  }
  return null;
}

/** Claims are read rarely but checked for every URL found. */
const indexes = new WeakMap<Claims, SetsByName>();

function byName(sets: Claims): SetsByName {
  const known = indexes.get(sets);
  if (known !== undefined) return known;
  const made = setsByName(sets);
  indexes.set(sets, made);
  return made;
}

const nameWords = (name: string) => (name === "." ? "every name that neither mentions" : name);

/** The text of the first claim that exceeds `outer`, or null when all are within it. */
export function claimBeyond(inner: Claims, outer: Claims): string | null {
  const beyond = inner.find((set) => !isWithin(set, byName(outer).near(set)));
  return beyond === undefined ? null : domainSetText(beyond);
}

/** Between mentioned names, and for all others (the empty name), a set is all or nothing, so checking those suffices. */
function isWithin(set: DomainSet, outer: readonly DomainSet[]): boolean {
  const mentioned = ["", ...set.names.keys(), ...outer.flatMap(({ names }) => [...names.keys()])];
  return mentioned.every((host) => {
    const at = { host, language: null };
    return !domainSetHolds(set, at) || outer.some((one) => domainSetHolds(one, at));
  });
}

// Decides which coordinator owns a URL: this one, the child that owns it, or one above or beside this one, which the
// parent knows. The root owns the rest, so every URL has one owner (WEB-SAILOR section 4.4). Ownership is a tree: a
// child owns part of what its parent owns, and no two children own the same.

/** The parent's number among the related coordinators. Children have higher numbers. */
export const parentId = 0;

/** `here`, or the number of the related coordinator that the URL goes to next. */
type Owner = "here" | number;

export interface Relatives {
  /** What this coordinator owns. Null for the root, which owns the rest. */
  readonly own: Claims | null;
  readonly children: readonly { readonly peerId: number; readonly name: string; readonly claims: Claims }[];
}

/** Maximum coordinators that pass a URL on. The last one keeps it, or contradictory settings could pass it on for ever. */
export const mostHops = 8;

/** `host` is written as in `UrlKey`. */
export function ownerOf(host: string, { own, children }: Relatives): Owner {
  const child = children.find(({ claims }) => claimOf(claims, host) !== null);
  if (child !== undefined) return child.peerId;
  return own === null || claimOf(own, host) !== null ? "here" : parentId;
}

/** Why `childId` may not be below a coordinator, or null. `chain` lists that coordinator and its ancestors. */
export function cycleFault(childId: string, chain: readonly string[]): string | null {
  const at = chain.indexOf(childId);
  if (at === 0) return "it is this coordinator itself, or runs with a copy of its database";
  if (at > 0) return `it is above this coordinator already (${at} ${at === 1 ? "step" : "steps"} up)`;
  return null;
}
