/**
 * Domain sets (DSets, WEB-SAILOR section 3.1): which hosts belong to a crawler or coordinator, by name and by language. One
 * set is terms with spaces or commas between them: `.gr` a top-level domain, `example.org` a domain and everything below it,
 * `lang:el` a language (ISO 639), each with `not` before it for all others. A host is in the set if both its name and its
 * language are. If several names fit, the longest decides: `.com not blog.com my.blog.com`. This goes beyond the paper, whose
 * sets are top-level domains only.
 */
import { canParseUrl } from "#core/ip/url-host";

/** True includes, and false excludes. A dimension without terms includes everything. */
export interface DomainSet {
  /** ASCII, lower case, without a leading dot: `gr`, `xn--qxam`, `example.org`. */
  readonly names: ReadonlyMap<string, boolean>;
  /** ISO 639 codes: `el`. */
  readonly languages: ReadonlyMap<string, boolean>;
}

export interface HostToHold {
  /** Lower-case ASCII as returned by `urlHost`. Hosts that are addresses belong to no domain. */
  readonly host: string;
  /** ISO 639 code of most of its pages. Null if unknown. */
  readonly language: string | null;
}

/** Maximum characters and terms. */
export const mostSetCharacters = 4096;

const mostSetTerms = 64;

/** Returns the set, or a message that names the invalid value. */
export function parseDomainSet(text: string): DomainSet | string {
  if (text.length > mostSetCharacters) {
    return `the domain set is ${text.length} characters long: at most ${mostSetCharacters}`;
  }
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (words.length > 2 * mostSetTerms) return `the domain set has too many terms: at most ${mostSetTerms}`;
  const names = new Map<string, boolean>();
  const languages = new Map<string, boolean>();
  for (let at = 0; at < words.length; at++) {
    const held = words[at]!.toLowerCase() !== "not";
    if (!held) at++;
    const fault = takeTerm(words[at], held, { names, languages });
    if (fault !== null) return fault;
  }
  if (names.size + languages.size === 0) {
    return "the domain set is empty: name a top-level domain (.gr), a domain (example.org) or a language (lang:el)";
  }
  if (names.size + languages.size > mostSetTerms) {
    return `the domain set has ${names.size + languages.size} terms: at most ${mostSetTerms}`;
  }
  return shadowedName(names) ?? { names: withoutIdle(names), languages: languagesThatCount(languages) };
}

/** The canonical text: equal sets have equal texts. */
export function domainSetText({ names, languages }: DomainSet): string {
  return [
    ...termTexts(names, (name) => (name.includes(".") ? name : `.${name}`)),
    ...termTexts(languages, (language) => `lang:${language}`),
  ].join(" ");
}

/** While a host's language is unknown, every language's set may hold it, because a page must be fetched to find out. */
export function domainSetHolds(set: DomainSet, { host, language }: HostToHold): boolean {
  return holdsName(set.names, host) && (language === null || holdsLanguage(set.languages, language));
}

/** Whether the set includes names that no term mentions. */
function holdsUnmentioned({ names }: DomainSet): boolean {
  return holdsByDefault(names);
}

/** Whether any set holds the host. If there are no sets, every host is held. */
export function someDomainSetHolds(sets: readonly DomainSet[], host: HostToHold): boolean {
  return sets.length === 0 || sets.some((set) => domainSetHolds(set, host));
}

/**
 * Names that both claim, outermost only: `.gr`, `example.org`, or `.` for names that neither mentions. Empty if no host of a
 * known language is in both.
 */
export function domainSetsOverlap(a: DomainSet, b: DomainSet): string[] {
  if (!shareLanguage(a.languages, b.languages)) return [];
  const mentioned = ["", ...new Set([...a.names.keys(), ...b.names.keys()])];
  const shared = mentioned.filter((name) => holdsName(a.names, name) && holdsName(b.names, name));
  if (shared.includes("")) return ["."];
  return shared
    .filter((name) => !shared.some((outer) => outer !== name && name.endsWith(`.${outer}`)))
    .map((name) => (name.includes(".") ? name : `.${name}`))
    .sort();
}

/** Returns null on success, otherwise the fault. */
function takeTerm(
  word: string | undefined,
  held: boolean,
  { names, languages }: { readonly names: Map<string, boolean>; readonly languages: Map<string, boolean> },
): string | null {
  if (word === undefined) return "nothing follows the last `not` of the domain set";
  const term = parseNameTerm(word);
  if ("fault" in term) return term.fault;
  const terms = term.kind === "language" ? languages : names;
  if (terms.get(term.value) === !held) {
    return `the domain set has both ${term.text} and not ${term.text}: it can hold neither`;
  }
  terms.set(term.value, held);
  return null;
}

/** A name both included and excluded is ambiguous. */
function shadowedName(names: ReadonlyMap<string, boolean>): string | null {
  for (const [name, held] of names) {
    const around = held && !holdsByDefault(names) ? nearestAround(names, name) : undefined;
    if (around !== undefined && names.get(around) === false && !holdsName(names, parentOf(around))) {
      return `the domain set has ${name} and, around it, not ${around.includes(".") ? around : `.${around}`}: it can hold neither`;
    }
  }
  return null;
}

/** Removes terms that repeat the decision of the surrounding term or of the default. */
function withoutIdle(names: ReadonlyMap<string, boolean>): Map<string, boolean> {
  return new Map([...names].filter(([name, held]) => held !== holdsName(names, parentOf(name))));
}

/** If languages are included, excluded ones have no effect. */
function languagesThatCount(languages: ReadonlyMap<string, boolean>): ReadonlyMap<string, boolean> {
  return holdsByDefault(languages) ? languages : new Map([...languages].filter(([, held]) => held));
}

function holdsName(names: ReadonlyMap<string, boolean>, host: string): boolean {
  const nearest = names.has(host) ? host : nearestAround(names, host);
  return nearest === undefined ? holdsByDefault(names) : names.get(nearest)!;
}

function holdsLanguage(languages: ReadonlyMap<string, boolean>, language: string): boolean {
  return languages.get(language) ?? holdsByDefault(languages);
}

/** Unmentioned names are included if all terms exclude. */
function holdsByDefault(terms: ReadonlyMap<string, boolean>): boolean {
  for (const held of terms.values()) if (held) return false;
  return true;
}

/** Longest name that contains the host. */
function nearestAround(names: ReadonlyMap<string, boolean>, host: string): string | undefined {
  for (let name = parentOf(host); name !== ""; name = parentOf(name)) {
    if (names.has(name)) return name;
  }
  return undefined;
}

/** `example.org` of `www.example.org`. Empty above a top-level domain. */
function parentOf(name: string): string {
  const dot = name.indexOf(".");
  return dot === -1 ? "" : name.slice(dot + 1);
}

function shareLanguage(a: ReadonlyMap<string, boolean>, b: ReadonlyMap<string, boolean>): boolean {
  if (holdsByDefault(a) && holdsByDefault(b)) return true;
  return [...a.keys(), ...b.keys()].some(
    (language) => holdsLanguage(a, language) && holdsLanguage(b, language),
  );
}

function termTexts(terms: ReadonlyMap<string, boolean>, textOf: (term: string) => string): string[] {
  const texts = [...terms].map(([term, held]) => ({ held, text: textOf(term) }));
  texts.sort((a, b) => Number(b.held) - Number(a.held) || (a.text < b.text ? -1 : 1));
  return texts.map(({ held, text }) => (held ? text : `not ${text}`));
}

// One term of a domain set: a top-level domain, a domain or a language, in its canonical form. Names are parsed like the
// hosts of URLs (WHATWG URL section 3.5: IDN to ASCII, lower case), so that a term and a host can always be compared.

type NameTerm =
  | { readonly kind: "domain" | "language"; readonly value: string; readonly text: string }
  | { readonly fault: string };

function parseNameTerm(word: string): NameTerm {
  return /^lang:/i.test(word) ? languageTerm(word) : domainTerm(word);
}

function languageTerm(word: string): NameTerm {
  const value = word.slice("lang:".length).toLowerCase();
  if (/^[a-z]{2,3}$/.test(value)) return { kind: "language", value, text: `lang:${value}` };
  return { fault: `${shown(word)} is no language: write its code of two or three letters, such as lang:el` };
}

/** A leading dot or `*.` has no effect. A single label needs the dot, since it may be a typing error. */
function domainTerm(word: string): NameTerm {
  const dotted = /^(?:\*?\.)/.test(word);
  const name = asciiName(word.replace(/^\*?\./, "").replace(/\.$/, ""));
  if (name === null) {
    return {
      fault: `${shown(word)} is no domain: write .gr for a top-level domain, example.org for a domain and all below it`,
    };
  }
  if (/(?:^|\.)\d+$/.test(name)) {
    return {
      fault: `${shown(word)} is an address: addresses are delegated by subnet, domain sets are of names`,
    };
  }
  if (!dotted && !name.includes(".")) {
    return {
      fault: `${shown(word)} is one word: write .${name} for the top-level domain, lang:CODE for a language`,
    };
  }
  return { kind: "domain", value: name, text: name.includes(".") ? name : `.${name}` };
}

/** RFC 1035 section 2.3.4: labels of 1 to 63 characters, names of at most 253. Underscores occur in real names. */
function asciiName(text: string): string | null {
  if (text === "" || text.length > 253 || /[\p{Cc}/@:?#%\\[\]<>^|*]/u.test(text)) return null;
  if (!canParseUrl(`http://${text}/`)) return null;
  const name = new URL(`http://${text}/`).hostname;
  const isName = name.split(".").every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  return isName && name.length <= 253 ? name : null;
}

/** Enough of a word to identify it, on one line. */
function shown(word: string): string {
  return JSON.stringify(word.length > 60 ? `${word.slice(0, 60)}…` : word);
}

// Indexes domain sets by name, so that of a thousand sets only those that may hold a host or overlap a set are checked. A set
// that only excludes (`not .com`) holds what it does not mention, so it is always checked.

export interface SetsByName {
  /** Sets that may hold the host, in order. */
  around(host: string): readonly DomainSet[];
  /** Sets that may share a name with the set. */
  near(set: DomainSet): readonly DomainSet[];
}

export function setsByName(sets: readonly DomainSet[]): SetsByName {
  const always = new Set(sets.filter(holdsUnmentioned));
  const holding = new Map<string, DomainSet[]>();
  const below = new Map<string, DomainSet[]>();
  for (const set of sets) {
    if (always.has(set)) continue;
    for (const name of heldNames(set)) {
      noted(holding, name, set);
      for (const outer of namesAround(name).slice(1)) noted(below, outer, set);
    }
  }
  const place = new Map(sets.map((set, at) => [set, at]));
  const inOrder = (found: Iterable<DomainSet>) =>
    [...new Set([...always, ...found])].sort((a, b) => place.get(a)! - place.get(b)!);
  const around = (host: string) => namesAround(host).flatMap((name) => holding.get(name) ?? []);
  return {
    around: (host) => inOrder(around(host)),
    near: (set) =>
      holdsUnmentioned(set)
        ? sets
        : inOrder(heldNames(set).flatMap((name) => [...around(name), ...(below.get(name) ?? [])])),
  };
}

function noted(index: Map<string, DomainSet[]>, name: string, set: DomainSet): void {
  const sets = index.get(name);
  if (sets === undefined) index.set(name, [set]);
  else if (sets.at(-1) !== set) sets.push(set);
}

const heldNames = ({ names }: DomainSet) => [...names].flatMap(([name, held]) => (held ? [name] : []));

/** `www.uoa.gr`, `uoa.gr`, `gr`. */
function namesAround(host: string): string[] {
  const labels = host.split(".");
  return labels.map((_, at) => labels.slice(at).join("."));
}
