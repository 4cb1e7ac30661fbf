/**
 * Finds when a page was published and last changed, from the most reliable source that it has: article metas, JSON-LD,
 * microdata, other metas, times in the main part, the day in its URL, a line near the headline, times in asides and footers.
 * Last-Modified is ignored, since most servers generate it for each answer.
 */

import { mark } from "./html-tags.ts";
import { languageCode } from "./language.ts";
import type { NotedTime, PageNotes, StructuredData } from "./page-metadata.ts";
import type { TextBlock } from "./text-blocks.ts";

interface PageDates {
  /** An ISO 8601 date, or null if the page does not say. */
  readonly publishedAt: string | null;
  readonly modifiedAt: string | null;
}

export function pageDates(page: {
  readonly notes: PageNotes;
  readonly structured: StructuredData | null;
  readonly blocks: readonly TextBlock[];
  readonly language: string | null;
  readonly url: string;
}): PageDates {
  const { notes, structured, language } = page;
  const read = (text: string | null | undefined) => (text == null ? null : readMoment(text, language));
  const first = (names: readonly string[], values: ReadonlyMap<string, string>) => {
    for (const name of names) {
      const moment = read(values.get(name));
      if (moment !== null) return moment;
    }
    return null;
  };
  const own = notes.times.filter(({ isInMain }) => isInMain);
  const timed = (times: readonly NotedTime[], says: RegExp) =>
    read(times.find((time) => says.test(time.says))?.value);
  return {
    publishedAt:
      first(surePublished, notes.metas) ??
      read(structured?.published) ??
      first(["datepublished", "datecreated"], notes.items) ??
      first(otherPublished, notes.metas) ??
      timed(own, publishedNames) ??
      read(firstTime(own)?.value) ??
      dayInAddress(page.url) ??
      dayInText(page.blocks, language) ??
      timed(notes.times, publishedNames) ??
      read(firstTime(notes.times)?.value),
    modifiedAt:
      first(sureModified, notes.metas) ??
      read(structured?.modified) ??
      first(["datemodified"], notes.items) ??
      first(otherModified, notes.metas) ??
      timed(own, modifiedNames),
  };
}

const surePublished = ["article:published_time", "og:published_time", "og:article:published_time"];

const sureModified = "article:modified_time og:updated_time og:modified_time og:article:modified_time".split(
  " ",
);

const otherPublished = (
  "parsely-pub-date sailthru.date article.published published_time datepublished date_published publish_date " +
  "publish-date publishdate publication_date pubdate article_date_original cxenseparse:recs:publishtime " +
  "originalpublicationdate dc.date.issued dcterms.created dc.date.created dcterms.issued dcterms.date dc.date " +
  "dcsext.articlefirstpublished citation_publication_date citation_date vr:published_time og:pubdate created " +
  "date article.created timestamp time bt:pubdate displaydate sdate"
).split(" ");

const otherModified =
  "lastmod last-modified last_modified modified_time datemodified dcterms.modified dc.date.modified modified revised".split(
    " ",
  );

const publishedNames = /pubdate|publish|posted|entry-date|post-date|dt-published/;
const modifiedNames = /updated|modified/;

/** Prefers times in the article, since teasers have times too. */
function firstTime(times: readonly NotedTime[]): NotedTime | undefined {
  const dated = times.filter(({ value, says }) => readMoment(value) !== null && !modifiedNames.test(says));
  return dated.find(({ isInArticle }) => isInArticle) ?? dated[0];
}

function dayInAddress(url: string): string | null {
  const found = /\/(\d{4})[/-]?(\d{2})[/-]?(\d{2})(?=[/_-])/.exec(url);
  return found === null ? null : readMoment(`${found[1]}-${found[2]}-${found[3]}`);
}

/** Looks for a line that contains little more than a date, near the first heading or else anywhere. */
function dayInText(blocks: readonly TextBlock[], language: string | null): string | null {
  const heading = Math.max(
    0,
    blocks.findIndex(({ headingLevel }) => headingLevel === 1),
  );
  const near = blocks.slice(Math.max(0, heading - 4), heading + 10);
  return dayIn(near, 120, language) ?? dayIn(blocks.slice(0, maxDatedBlocks), 40, language);
}

const maxDatedBlocks = 500;

function dayIn(blocks: readonly TextBlock[], most: number, language: string | null): string | null {
  for (const { text, marks } of blocks) {
    const isLine = text.length >= 6 && text.length <= most && /\d{4}|\d\.\d\d?\.\d\d/.test(text);
    const moment =
      isLine && (marks & (mark.hidden | mark.furniture)) === 0 ? readMoment(text, language) : null;
    if (moment !== null) return moment;
  }
  return null;
}

// Provides the long and short month names of a language from CLDR.

/** Languages to try after the one that a page declares, which may be wrong. */
const common = ["en", "de", "fr", "es", "it", "pt", "nl", "ru"];

/** Maximum number of languages whose names are cached, since each takes about 5 ms to compute. */
const maxKept = 50;

const kept = new Map<string, ReadonlyMap<string, number>>();

/** Returns 1 to 12, or 0 if the word is not the name of a month. `language` is the page's declaration (BCP 47). */
function monthOf(name: string, language: string | null): number {
  const stated = languageCode(language);
  const lower = name.toLowerCase();
  for (const locale of stated === null ? common : [stated, ...common]) {
    const month = namesIn(locale).get(lower);
    if (month !== undefined) return month;
  }
  return 0;
}

function namesIn(locale: string): ReadonlyMap<string, number> {
  const known = kept.get(locale);
  if (known !== undefined) return known;
  const names = monthNames(locale);
  if (kept.size >= maxKept) kept.clear();
  kept.set(locale, names);
  return names;
}

function monthNames(locale: string): Map<string, number> {
  const names = new Map<string, number>(locale === "en" ? [["sept", 9]] : []);
  for (const month of ["long", "short"] as const) {
    // Together with a day, the name may be in another case: "3 мая", not "май".
    for (const day of [{}, { day: "numeric" }] as const) {
      const format = new Intl.DateTimeFormat(locale, { month, ...day, timeZone: "UTC" });
      for (let index = 0; index < 12; index++) {
        const parts = format.formatToParts(Date.UTC(2020, index, 3));
        const name = parts.find(({ type }) => type === "month")?.value ?? "";
        if (/^\p{L}{3,}\.?$/u.test(name)) names.set(name.replace(".", "").toLowerCase(), index + 1);
      }
    }
  }
  return names;
}

// Converts dates as written on pages to ISO 8601 (a day, or a time with its zone): ISO 8601 and loose forms of it, RFC 5322,
// days with dots or slashes, and month names in the page's language or a common one. Ambiguous dates (03/04/2020) are read as
// is usual in the page's language.

export function readMoment(text: string, language: string | null = null): string | null {
  const part = text.slice(0, maxCharacters);
  return (
    fromIso(part) ??
    fromCompact(part) ??
    fromName(part, language) ??
    fromNumbers(part, language) ??
    fromEpoch(part)
  );
}

const maxCharacters = 200;

const iso =
  /(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)(?:[T\s]{1,3}(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?\s?(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?)?/i;

const compact = /^\s*(\d{4})(\d\d)(\d\d)(?:T?(\d\d)(\d\d)(\d\d)?(Z|[+-]\d\d:?\d\d)?)?\s*$/;
const numbers = /(?<!\d)(\d{1,2})([./-])\s?(\d{1,2})\2\s?(\d{4}|\d{2}(?!\d))/;

const dayFirst =
  /(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|º|\.)?[\s-]+(?:de\s+|di\s+|of\s+)?(\p{L}{3,12})\.?,?[\s-]+(?:de[l]?\s+)?(\d{4})/iu;

const monthFirst = /(\p{L}{3,12})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})/iu;

const clock =
  /(?<!\d)(\d{1,2}):(\d{2})(?::(\d{2}))?\s?(?:(am|pm|a\.m\.|p\.m\.))?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?/i;

const asian = /(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]/;

function fromIso(text: string): string | null {
  const found = iso.exec(text);
  if (found === null) {
    const east = asian.exec(text);
    return east === null ? null : day(east[1]!, east[2]!, east[3]!);
  }
  const [, year, month, date, hours, minutes, seconds, zone] = found;
  return withTime(day(year!, month!, date!), { hours, minutes, seconds, zone });
}

function fromCompact(text: string): string | null {
  const found = compact.exec(text);
  if (found === null) return null;
  const [, year, month, date, hours, minutes, seconds, zone] = found;
  return withTime(day(year!, month!, date!), { hours, minutes, seconds, zone });
}

function fromName(text: string, language: string | null): string | null {
  const first = dayFirst.exec(text);
  const found = first ?? monthFirst.exec(text);
  if (found === null) return null;
  const [date, name] = first === null ? [found[2]!, found[1]!] : [found[1]!, found[2]!];
  const month = monthOf(name, language);
  if (month === 0)
    return first === null ? null : fromName(text.slice(first.index + first[0].length - 4), language);
  const rest = text.slice(found.index + found[0].length, found.index + found[0].length + 30);
  const time = /^[\s,]+(?:at |um |à |a las |alle )?\d{1,2}:/i.test(rest) ? clock.exec(rest) : null;
  return withTime(day(found[3]!, `${month}`, date), timeOf(time));
}

function timeOf(found: RegExpExecArray | null): Partial<Time> {
  if (found === null) return {};
  const half = found[4]?.[0]?.toLowerCase();
  const hours = half === undefined ? found[1]! : `${(Number(found[1]) % 12) + (half === "p" ? 12 : 0)}`;
  return { hours, minutes: found[2], seconds: found[3], zone: found[5] };
}

function fromNumbers(text: string, language: string | null): string | null {
  const found = numbers.exec(text);
  if (found === null) return null;
  const [, one, separator, two, written] = found;
  const year = written!.length === 2 ? `20${written}` : written!;
  const isMonthFirst = separator === "/" && /^en(?:-us)?$/i.test(language ?? "en");
  const [date, month] = isMonthFirst ? [two!, one!] : [one!, two!];
  return day(year, month, date) ?? day(year, date, month);
}

function fromEpoch(text: string): string | null {
  const found = /^\s*(1\d{9})(\d{3})?\s*$/.exec(text);
  return found === null ? null : `${new Date(Number(found[1]) * 1000).toISOString().slice(0, 19)}Z`;
}

interface Time {
  readonly hours: string | undefined;
  readonly minutes: string | undefined;
  readonly seconds: string | undefined;
  readonly zone: string | undefined;
}

/** Accepts existing days from 1990 to 2099, since other dates on the web are errors. */
function day(year: string, month: string, date: string): string | null {
  const [y, m, d] = [Number(year), Number(month), Number(date)];
  if (y < 1990 || y > 2099 || m < 1 || m > 12 || d < 1) return null;
  if (d > new Date(Date.UTC(y, m, 0)).getUTCDate()) return null;
  return `${year}-${two(m)}-${two(d)}`;
}

function withTime(date: string | null, time: Partial<Time>): string | null {
  if (date === null || time.hours === undefined || time.minutes === undefined) return date;
  if (Number(time.hours) > 23 || Number(time.minutes) > 59 || Number(time.seconds ?? 0) > 59) return date;
  const seconds = time.seconds === undefined ? "" : `:${time.seconds}`;
  return `${date}T${two(Number(time.hours))}:${time.minutes}${seconds}${zoneOf(time.zone)}`;
}

function zoneOf(zone: string | undefined): string {
  if (zone === undefined || zone === "") return "";
  if (/^[a-z]/i.test(zone)) return "Z";
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}

const two = (number: number) => `${number}`.padStart(2, "0");
