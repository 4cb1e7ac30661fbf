/**
 * Decides whether a link looks like part of an endless URL space, judging by the link and its page. The rules are narrow, so
 * that hardly any link of a real page is caught. Most links pass by their shape alone, without being split.
 */

import type { PageExtract } from "#protocol/result";
import { type UrlParts, urlParts } from "./host-memory.ts";

/**
 * too-deep         more path segments than real sites have
 * repeating        the same segments three times in a row, or a few repeated often
 * growing          the page's own path extended by segments that it already has
 * far-date         a calendar's view of distant years
 * long-query       a query longer than those of pages
 * many-parameters  more parameters than pages have
 * facets           the page's own query of many filters with one more
 */
type LinkTrap =
  | "too-deep"
  | "repeating"
  | "growing"
  | "far-date"
  | "long-query"
  | "many-parameters"
  | "facets";

/** Heritrix uses the same value (TooManyPathSegments). */
const maxSegments = 20;

const maxQueryCharacters = 1024;
const maxParameters = 24;

/** Another filter is a trap if there are at least this many parameters, or this many of one name. */
const manyFacets = 6;

const manyOfOneName = 4;

/** If this many segments are repeated, in any order, the URL is a trap. */
const manyRepeated = 5;

interface LinkedFrom {
  readonly parts: UrlParts;
  readonly thisYear: number;
}

/** `url` is canonical. Returns null for an ordinary link. */
export function linkTrap(url: string, from: LinkedFrom): LinkTrap | null {
  const isFar = mayHaveFarDate(url, from.thisYear);
  const queryAt = url.indexOf("?");
  if (!isFar && !hasManyParameters(url, queryAt) && !mayRepeat(url, queryAt)) return null;
  const link = urlParts(url);
  if (link.segments.length > maxSegments) return "too-deep";
  if (link.query.length > maxQueryCharacters) return "long-query";
  return (
    pathTrap(link, from) ?? (isFar && hasFarDate(link, from.thisYear) ? "far-date" : queryTrap(link, from))
  );
}

function hasManyParameters(url: string, queryAt: number): boolean {
  if (queryAt < 0) return false;
  return (
    url.length - queryAt > maxQueryCharacters || countOf(url, "&", manyOfOneName - 1) >= manyOfOneName - 1
  );
}

/** The hashes of the segments of the path that is being checked. */
const seen = new Int32Array(maxSegments + 1);

/** Whether a path may have two equal segments, or too many segments. False positives are possible. */
function mayRepeat(url: string, queryAt: number): boolean {
  const end = queryAt < 0 ? url.length : queryAt;
  let count = 0;
  let repeated = 0;
  let hash = 0;
  for (let at = url.indexOf("/", 8) + 1; at <= end; at++) {
    const code = at < end ? url.charCodeAt(at) : slash;
    if (code !== slash) {
      hash = (Math.imul(hash, 31) + code) | 0;
      continue;
    }
    for (let before = 0; before < count; before++) if (seen[before] === hash) repeated++;
    if (repeated >= 2 || count >= maxSegments) return true;
    seen[count++] = hash;
    hash = 0;
  }
  return false;
}

const slash = 0x2f;

function pathTrap(link: UrlParts, from: LinkedFrom): LinkTrap | null {
  const repeated = repeatedWords(link.segments);
  if (repeated < 2) return null;
  if (repeated >= manyRepeated || hasTriple(link.segments)) return "repeating";
  const isOwn = link.origin === from.parts.origin;
  return isOwn && grows(link.segments, from.parts.segments) ? "growing" : null;
}

/** Counts repeated segments. Numbers do not count, because they repeat in ordinary paths (`/0/0/0/`). */
function repeatedWords(segments: readonly string[]): number {
  let count = 0;
  for (let at = 1; at < segments.length; at++) {
    const segment = segments[at]!;
    if (segments.indexOf(segment) < at && isWord(segment)) count++;
  }
  return count;
}

const isWord = (segment: string): boolean => !/^[\d.,_-]*$/.test(segment);

/** Finds a sequence three times in a row (`/a/b/a/b/a/b`), like Heritrix' PathologicalPath. */
function hasTriple(segments: readonly string[]): boolean {
  for (let length = 1; length * 3 <= segments.length; length++) {
    let same = 0;
    let words = 0;
    for (let at = 0; at + length < segments.length; at++) {
      const isSame = segments[at] === segments[at + length];
      same = isSame ? same + 1 : 0;
      words = isSame ? words + Number(isWord(segments[at]!)) : 0;
      if (same >= 2 * length && words > 0) return true;
    }
  }
  return false;
}

/** Detects a relative link appended to the page's own path: `about/` on `/about/news/` gives `/about/news/about/`. */
function grows(link: readonly string[], page: readonly string[]): boolean {
  if (link.length < 4 || link.length < page.length) return false;
  // A relative link replaces the last segment of a page and extends that of a folder.
  const isFolder = page.length > 0 && link[page.length - 1] === page.at(-1);
  const kept = isFolder ? page.length : page.length - 1;
  for (let index = 0; index < kept; index++) if (link[index] !== page[index]) return false;
  return kept < link.length && page.includes(link[kept]!);
}

function queryTrap(link: UrlParts, from: LinkedFrom): LinkTrap | null {
  if (link.query === "" || countOf(link.query, "&", manyOfOneName - 1) < manyOfOneName - 1) return null;
  if (link.parameters.length > maxParameters) return "many-parameters";
  return hasManyFacets(link, from.parts) ? "facets" : null;
}

function hasManyFacets(link: UrlParts, page: UrlParts): boolean {
  const { parameters } = link;
  if (link.origin !== page.origin || link.segments.join("/") !== page.segments.join("/")) return false;
  if (mostOfOneName(link) >= manyOfOneName) return true;
  if (parameters.length < manyFacets || parameters.length <= page.parameters.length) return false;
  const has = new Set(parameters.map(textOf));
  if (page.parameters.length === 0 || !page.parameters.every((known) => has.has(textOf(known)))) return false;
  const had = new Set(page.parameters.map(textOf));
  return parameters.some((added) => !had.has(textOf(added)) && !pager.test(added.name));
}

/** Parameters for the next page of a list are not filters. */
const pager =
  /^(?:.*[^a-z])?(?:p|pg|page|paged|pageno|pagenum(?:ber)?|start|offset|from|skip|limitstart|seite|pagina|sida)\]?$/i;

const textOf = ({ name, value }: UrlParts["parameters"][number]): string => `${name}=${value}`;

/** `f[]`, `f[3]` and `f%5B3%5D` are one name. */
function mostOfOneName({ parameters }: UrlParts): number {
  const counts = new Map<string, number>();
  for (const { name } of parameters) {
    const plain = name.replace(/(?:\[|%5b)\d{0,4}(?:\]|%5d)$/i, "[]");
    if (plain !== "") counts.set(plain, (counts.get(plain) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

/** Stops counting at `most`. */
function countOf(text: string, character: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0 && count < most; at = text.indexOf(character, at + 1))
    count++;
  return count;
}

// Detects dates in URLs that are unlikely to have a page, as from endless calendars. A calendar may reach three years ahead
// and back to 1900. A full date in any other URL may reach ten years ahead and any number of years back, because archives do.

const calendarYearsAhead = 3;
const yearsAhead = 10;
const calendarFirstYear = 1900;

const calendarWords =
  "[ck]alend[a-z]*|cal|agenda|events?|eventos?|veranstaltung(?:en)?|termine|schedule|months?|monat|mois|week|availability|booking|tribe";
const calendarWord = new RegExp(`(?:^|[^a-z])(?:${calendarWords})(?:[^a-z]|$)`, "i");

/** A year and month, with an optional day, in one piece: 2031-05, 2031_05_17, 203105, 20310517. */
const joined = /(?<!\d)(\d{4})([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01]))?(?!\d)/;

const yearName = /^(?:.*[^a-z])?(?:y|yr|year|jahr|annee|anno|ano|cal_?year|cyear)\]?$/i;
const monthName = /^(?:.*[^a-z])?(?:m|mo|mon|month|monat|mois|mes|mese|cal_?month|cmonth)\]?$/i;

const fourDigits = /\d{4}/;

const dateName =
  /(?:^|[^a-z])(?:date|datum|day|month|from|to|start|end|since|until|von|bis)(?:[^a-z]|$)|date$/i;

/** A cheap test for every link: whether four digits may be a year beyond what a calendar may show. */
function mayHaveFarDate(url: string, thisYear: number): boolean {
  if (!fourDigits.test(url)) return false;
  let run = 0;
  let number = 0;
  for (let at = 8; at <= url.length; at++) {
    const digit = at < url.length ? url.charCodeAt(at) - 48 : -1;
    if (digit >= 0 && digit <= 9) {
      if (run < 4) number = number * 10 + digit;
      run++;
    } else if (run > 0) {
      const isYear = run === 4 || run === 5 || run === 6 || run === 8;
      if (isYear && (number > thisYear + calendarYearsAhead || number < calendarFirstYear)) return true;
      run = 0;
      number = 0;
    }
  }
  return false;
}

/** Must only be called if `mayHaveFarDate` is true. */
function hasFarDate(url: UrlParts, thisYear: number): boolean {
  const date = dateOf(url);
  if (date === null) return false;
  const names = url.parameters.map(({ name }) => name);
  const isCalendar = date.named || [...url.segments, ...names].some((text) => calendarWord.test(text));
  if (isCalendar) return date.year > thisYear + calendarYearsAhead || date.year < calendarFirstYear;
  return date.hasDay && date.year > thisYear + yearsAhead;
}

interface UrlDate {
  readonly year: number;
  readonly hasDay: boolean;
  /** True if year and month are separate parameters, which only calendars have. */
  readonly named: boolean;
}

const dateOf = (url: UrlParts): UrlDate | null => dateInParameters(url) ?? dateInPath(url.segments);

function dateInParameters({ parameters }: UrlParts): UrlDate | null {
  const year = parameters.find(({ name, value }) => yearName.test(name) && /^\d{4,5}$/.test(value));
  if (
    year !== undefined &&
    parameters.some(({ name, value }) => monthName.test(name) && /^\d{1,2}$/.test(value))
  ) {
    return { year: Number(year.value), hasDay: false, named: true };
  }
  for (const { name, value } of parameters) {
    const found = value.length > 40 ? null : joined.exec(value);
    // Digits without a separator are a date only if the name says so.
    if (found && (found[2] !== "" || dateName.test(name))) return dateFrom(found);
  }
  return null;
}

/** Recognises `/2031/05/17/`, `/2031/05/` or a segment that starts with a date. */
function dateInPath(segments: readonly string[]): UrlDate | null {
  for (const [index, segment] of segments.entries()) {
    const month = segments[index + 1] ?? "";
    if (/^\d{4}$/.test(segment) && /^(?:0?[1-9]|1[0-2])$/.test(month)) {
      const hasDay = /^(?:0?[1-9]|[12]\d|3[01])$/.test(segments[index + 2] ?? "");
      return { year: Number(segment), hasDay, named: false };
    }
    const found = joined.exec(segment.slice(0, 10));
    if (found?.index === 0 && found[2] !== "") return dateFrom(found);
  }
  return null;
}

function dateFrom(found: RegExpExecArray): UrlDate {
  return { year: Number(found[1]), hasDay: found[4] !== undefined, named: false };
}

// Selects the links to send: without sessions, duplicates and apparent traps.

type Link = PageExtract["links"][number];

interface ShippedLinks {
  readonly links: Link[];
  readonly trapped: number;
}

/** Expects `links` without duplicates, and the URL of their page. */
export function shipLinks(links: readonly Link[], page: string, now: Date): ShippedLinks {
  const from = { parts: urlParts(withoutSession(page)), thisYear: now.getUTCFullYear() };
  const all = links.some(({ url }) => withoutSession(url) !== url) ? withoutSessions(links) : links;
  const shipped = all.filter(({ url }) => linkTrap(url, from) === null);
  return { links: shipped, trapped: all.length - shipped.length };
}

/** Links that differ only in their session become one. */
function withoutSessions(links: readonly Link[]): Link[] {
  const found = new Map<string, Link>();
  for (const link of links) {
    const url = withoutSession(link.url);
    const known = found.get(url);
    found.set(url, known === undefined ? { ...link, url } : merged(known, link));
  }
  return [...found.values()];
}

function merged(known: Link, again: Link): Link {
  return {
    ...known,
    anchor: known.anchor === "" ? again.anchor : known.anchor,
    nofollow: known.nofollow && again.nofollow,
  };
}

// Removes sessions from links, which gives the page's public URL. Sites add sessions for visitors without cookies (Servlet
// specification section 7.1.3, PHP's session.use_trans_sid, ASP.NET's cookieless sessions, ColdFusion), so a crawler would see
// new URLs for the same pages forever. Names with no other meaning lose any value. Ambiguous names (`sid` may be a story's
// number) lose only values that look like tokens, as in the Internet Archive's rules.

/** A session in a path follows a semicolon. */
const pathSession = /;(?:jsessionid|phpsessid|sessionid|session|sid)(?:=|%3d)[^/?#;&]*/gi;

/** ASP.NET uses a separate segment, `(S(24 letters and digits))`, alone or with others of its kind. */
const aspSession = /\/\((?:[AFSX]\([A-Za-z0-9_-]{10,}\))+\)(?=\/|$|\?)/g;

const sessionName =
  /^(?:jsessionid|phpsessid|aspsessionid[a-z]{0,8}|cftoken|cfid|oscsid|zenid|xtcsid|mosessionid)$/i;

const perhapsSessionName = /^(?:sid|s|ses|sess|session|session_?id|sessid|sess_?id|sessionkey|phpsess)$/i;

/** A random number in hex or letters (at least 20 characters, including digits, no words), or a UUID. */
const token = /^(?:(?=[^/]*\d)[A-Za-z0-9]{20,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

const hint = /[;(]|s(?:ess|id)|zenid|cf(?:id|token)|[?&]s(?:es)?=|sid=/i;

/** `url` is canonical. If it has no session, the same text is returned. */
export function withoutSession(url: string): string {
  const mark = url.indexOf("?");
  if (mark < 0 && !url.includes(";") && !url.includes("(")) return url;
  if (!hint.test(url)) return url;
  const path = (mark < 0 ? url : url.slice(0, mark)).replace(pathSession, "").replace(aspSession, "");
  if (mark < 0) return path;
  const kept = url
    .slice(mark + 1)
    .split("&")
    .map((parameter) => parameter.replace(pathSession, ""))
    .filter((parameter) => !isSession(parameter));
  return kept.length === 0 ? path : `${path}?${kept.join("&")}`;
}

function isSession(parameter: string): boolean {
  const at = parameter.indexOf("=");
  if (at < 0) return false;
  const name = parameter.slice(0, at).replace(/^amp;/, "");
  return sessionName.test(name) || (perhapsSessionName.test(name) && token.test(parameter.slice(at + 1)));
}
