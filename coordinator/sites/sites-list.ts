/** The list of sites: which hosts are meant and in what order, as an address, a form or a command's options say, checked. */
import { domainToASCII } from "node:url";
import { howMany, spanWords, whenWords } from "#core/format";

/**
 * scheduled: something of it is to be fetched, not yet. due: now. in-progress: a crawler has it. blocked: nothing of it may
 * be fetched (`blockReasons`). unresolved: its address is not known. left-out: all that is known of it is gone, refused or
 * outside what is crawled.
 */
export const siteStates = ["scheduled", "due", "in-progress", "blocked", "unresolved", "left-out"] as const;
export type SiteState = (typeof siteStates)[number];

export const blockReasons = ["opted-out", "bot-gate", "robots", "payment", "address"] as const;
export type BlockReason = (typeof blockReasons)[number];

/** As table site has it (migration 0078). */
export type Standing = "ready" | "nothing-due" | "unresolved" | "unresolvable" | BlockReason;

export const siteSorts = ["host", "pages", "due", "failures", "fetched", "added", "rtt", "bytes"] as const;
export type SiteSort = (typeof siteSorts)[number];

/** Which end of an order people look for first. */
export const usualDirection: Readonly<Record<SiteSort, Direction>> = {
  host: "up",
  pages: "down",
  due: "down",
  failures: "down",
  fetched: "up",
  added: "down",
  rtt: "down",
  bytes: "down",
};
export type Direction = "up" | "down";

export const siteFilters = [
  "crawler",
  "state",
  "language",
  "country",
  "organisation",
  "tld",
  "channel",
  "host",
  "under",
] as const;
export type SiteFilterName = (typeof siteFilters)[number];

export interface SiteFilter {
  /** By name. */
  readonly crawler: string | null;
  readonly state: SiteState | null;
  readonly language: string | null;
  readonly country: string | null;
  /** A handle, or a name in full. */
  readonly organisation: string | null;
  readonly tld: string | null;
  readonly channel: "with" | "without" | null;
  /** What the host's name begins with. */
  readonly host: string | null;
  /** A name: it and all names below it. */
  readonly under: string | null;
}

/** Where a page of the list ends: the next goes on behind it. */
export interface SitePlace {
  /** Of the order's column, as text; null: the host has none, and stands behind those that have. */
  readonly value: string | null;
  readonly hostHash: string;
}

export interface SitesQuestion {
  readonly filter: SiteFilter;
  readonly sort: SiteSort;
  readonly direction: Direction;
  readonly after: SitePlace | null;
  readonly limit: number;
}

/** Sites of a page unless asked otherwise, and at most. */
export const sitesLimit = { usual: 50, most: 1000 } as const;

export type SitesParameter = SiteFilterName | "sort" | "order" | "after" | "limit";

const longestText = 300;

/** A string: why this cannot be asked, in words. */
export function readSitesQuestion(given: (name: SitesParameter) => string): SitesQuestion | string {
  const faults: string[] = [];
  const text = (name: SitesParameter, most = longestText) => {
    const value = given(name).trim();
    if (value.length > most) faults.push(`${name} is longer than ${most} characters`);
    return value === "" || value.length > most ? null : value;
  };
  const oneOf = <Value extends string>(name: SitesParameter, values: readonly Value[]): Value | null => {
    const value = text(name);
    if (value !== null && !values.includes(value as Value))
      faults.push(`${name}: ${value} is not one of ${values.join(", ")}`);
    return value as Value | null;
  };
  const checked = (name: SitesParameter, means: (value: string) => string | null, what: string) => {
    const value = text(name);
    const meant = value === null ? null : means(value);
    if (value !== null && meant === null) faults.push(`${name}: ${value} is ${what}`);
    return meant;
  };
  const sort = oneOf("sort", siteSorts) ?? "host";
  const direction = oneOf("order", ["up", "down"]) ?? usualDirection[sort];
  const filter: SiteFilter = {
    crawler: text("crawler"),
    state: oneOf("state", siteStates),
    language: checked("language", languageOf, "no language code, such as el"),
    country: checked("country", countryOf, "no country code of two letters"),
    organisation: text("organisation"),
    tld: checked("tld", tldOf, "no top-level domain, such as gr"),
    channel: oneOf("channel", ["with", "without"]),
    host: text("host")?.toLowerCase() ?? null,
    under: checked("under", domainOf, "no domain, such as example.org"),
  };
  const limit = text("limit", 9);
  const isLimit =
    limit === null || (/^\d{1,9}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= sitesLimit.most);
  if (!isLimit) faults.push(`limit: ${limit} is not a whole number from 1 to ${sitesLimit.most}`);
  const place = text("after");
  const after = place === null ? null : readPlace(place, sort);
  if (place !== null && after === null)
    faults.push(`after: this is no place in the order by ${sort}; begin without it`);
  if (faults.length > 0) return `${faults.join("; ")}.`;
  return { filter, sort, direction, after, limit: limit === null ? sitesLimit.usual : Number(limit) };
}

function languageOf(value: string): string | null {
  return /^[a-z]{2,3}$/i.test(value) ? value.toLowerCase() : null;
}

function countryOf(value: string): string | null {
  return /^[a-z]{2}$/i.test(value) ? value.toUpperCase() : null;
}

function domainOf(value: string): string | null {
  const domain = domainToASCII(value.replace(/^(\*?\.)|\.$/g, ""));
  return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(domain) ? domain : null;
}

function tldOf(value: string): string | null {
  const domain = domainOf(value);
  return domain === null || domain.includes(".") || /^\d/.test(domain) ? null : domain;
}

const wholeNumber = /^\d{1,16}$/;
const valueForms: Readonly<Record<SiteSort, RegExp>> = {
  host: /^[\w.:[\]-]{1,255}$/,
  pages: wholeNumber,
  due: wholeNumber,
  failures: wholeNumber,
  bytes: wholeNumber,
  // Microseconds.
  fetched: /^-?\d{1,17}$/,
  added: /^-?\d{1,17}$/,
  rtt: /^\d{1,9}(\.\d{1,9})?(e-\d{1,2})?$/,
};

/** `~` and the key of a host; before it the value, or nothing. */
function readPlace(text: string, sort: SiteSort): SitePlace | null {
  const [, value = "", hostHash = ""] = /^(.*)~(-?\d{1,19})$/.exec(text) ?? [];
  const isKey = hostHash !== "" && BigInt.asIntN(64, BigInt(hostHash)) === BigInt(hostHash);
  if (!isKey || (value !== "" && !valueForms[sort].test(value))) return null;
  return { value: value === "" ? null : value, hostHash };
}

export function placeText({ value, hostHash }: SitePlace): string {
  return `${value ?? ""}~${hostHash}`;
}

/** As it stands in an address; null where nothing is asked. */
export function sitesQuery({
  filter,
  sort,
  direction,
}: Pick<SitesQuestion, "filter" | "sort" | "direction">): Readonly<Record<string, string | null>> {
  return {
    ...filter,
    sort: sort === "host" ? null : sort,
    order: direction === usualDirection[sort] ? null : direction,
  };
}

export const isUnfiltered = (filter: SiteFilter): boolean =>
  Object.values(filter).every((value) => value === null);

export interface ListedSite {
  readonly host: string;
  /** As people read it; where it is Punycode, another than `host`. */
  readonly name: string;
  readonly state: SiteState;
  /** Of what is blocked or unresolved: why; null: nothing has to be said. */
  readonly reason: string | null;
  /** When something of it is next to be fetched; null: nothing is. */
  readonly dueAt: Date | null;
  readonly crawler: string | null;
  /** Who has it in hand now; null: nobody. */
  readonly inProgressBy: string | null;
  readonly subnet: string | null;
  readonly language: string | null;
  readonly country: string | null;
  readonly organisation: string | null;
  readonly tld: string | null;
  readonly channels: number;
  readonly pages: number;
  readonly urls: number;
  readonly dueUrls: number;
  /** There are more than `dueUrls`. */
  readonly moreDueUrls: boolean;
  /** Of the last seven days, today among them. */
  readonly failures: number;
  readonly fetches: number;
  readonly fetchedAt: Date | null;
  readonly addedAt: Date;
  readonly rttMs: number | null;
  readonly bytes: number;
}

export interface SitesFound {
  readonly sites: readonly ListedSite[];
  /** Of all that match, on this page and others, as far as they were counted. */
  readonly count: number;
  /** False: there are more than `count`. */
  readonly isWholeCount: boolean;
  /** Where there are more, about how many; null: not known. */
  readonly estimate: number | null;
  /** Null: these are the last. */
  readonly next: SitePlace | null;
}

/** How far the list follows the crawl. */
export interface SitesProgress {
  /** The first round is under way: hosts are missing. */
  readonly isFirstRound: boolean;
  /** How long the round before took: what nobody tells of reaches the list within it. Null: not known. */
  readonly roundSeconds: number | null;
  /** Hosts that the crawl knows, about. */
  readonly knownHosts: number;
}

export const stateNames: Readonly<Record<SiteState, string>> = {
  scheduled: "scheduled",
  due: "due",
  "in-progress": "in progress",
  blocked: "blocked",
  unresolved: "unresolved",
  "left-out": "skipped",
};

export const reasonWords: Readonly<Partial<Record<Standing, string>>> = {
  "opted-out": "the site opted out",
  robots: "robots.txt could not be read, or answered with an error: everything is disallowed",
  "bot-gate": "it is behind a bot gate, and rests",
  payment: "it asks to be paid",
  address: "its address is not public",
  unresolved: "not looked up yet",
  unresolvable: "its name does not resolve",
  "nothing-due": "all its known URLs are gone, refused or outside what is crawled",
};

/** What page, JSON and command say. */
export interface SitesAnswer extends Omit<SitesFound, "next"> {
  readonly at: Date;
  readonly filter: SiteFilter;
  readonly sort: SiteSort;
  readonly order: Direction;
  readonly next: string | null;
  readonly progress: SitesProgress;
}

export function countWords({ count, isWholeCount, estimate }: Omit<SitesFound, "sites" | "next">): string {
  if (isWholeCount) return howMany(count, "site");
  return estimate === null ? `More than ${howMany(count, "site")}` : `About ${howMany(estimate, "site")}`;
}

/** The state, and what is to be said beside it; null: nothing. */
export function stateWords(
  { state, reason, dueAt, crawler, inProgressBy }: ListedSite,
  now: Date,
): [string, string | null] {
  const when = dueAt === null ? null : whenWords(dueAt.toISOString(), now);
  const words = stateNames[state];
  switch (state) {
    case "scheduled":
      return [words, when];
    case "due":
      return [
        words,
        dueAt === null ? null : `for ${spanWords(Math.max(0, now.getTime() - dueAt.getTime()) / 1000)}`,
      ];
    case "in-progress":
      // An override or a move since: who has it is not who gets it next.
      return [words, inProgressBy === crawler || inProgressBy === "" ? null : `by ${inProgressBy}`];
    case "blocked":
    case "unresolved":
    case "left-out":
      return [words, reason];
  }
}

/** "5 min ago"; of a clock that is off, that it is: nothing was done in the future. */
export function sinceWords(date: Date, now: Date, whose: string): string {
  const ahead = date.getTime() - now.getTime() >= 1000;
  return ahead ? `in the future by ${whose} clock` : whenWords(date.toISOString(), now);
}

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** The code itself where it is none. */
export function languageName(code: string): string {
  return /^[a-z]{2,3}$/.test(code) ? (languageNames.of(code) ?? code) : code;
}
