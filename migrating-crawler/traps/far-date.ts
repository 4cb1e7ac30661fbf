/**
 * Dates in URLs that no page is likely to be about: the endless calendars' months. What a calendar shows is
 * believed for three years ahead and back to 1900; a full date in any other URL for ten years ahead, as
 * archives reach far back but not forward.
 */
import type { UrlParts } from "./url-parts.ts";

const calendarYearsAhead = 3;
const yearsAhead = 10;
const calendarFirstYear = 1900;

const calendarWord =
  /(?:^|[^a-z])(?:calend[a-z]*|kalend[a-z]*|cal|agenda|events?|eventos?|veranstaltung(?:en)?|termine|schedule|months?|monat|mois|week|availability|booking|tribe)(?:[^a-z]|$)/i;
/** A year and month, perhaps with a day, in one piece: 2031-05, 2031_05_17, 203105, 20310517. */
const joined = /(?<!\d)(\d{4})([-_.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01]))?(?!\d)/;
const yearName = /^(?:.*[^a-z])?(?:y|yr|year|jahr|annee|anno|ano|cal_?year|cyear)\]?$/i;
const monthName = /^(?:.*[^a-z])?(?:m|mo|mon|month|monat|mois|mes|mese|cal_?month|cmonth)\]?$/i;

const fourDigits = /\d{4}/;

const dateName =
  /(?:^|[^a-z])(?:date|datum|day|month|from|to|start|end|since|until|von|bis)(?:[^a-z]|$)|date$/i;

/** Whether four digits of the URL may be a year beyond what a calendar is believed: cheap, for every link. */
export function mayHaveFarDate(url: string, thisYear: number): boolean {
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

/** `url` may have one (`mayHaveFarDate`). */
export function hasFarDate(url: UrlParts, thisYear: number): boolean {
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
  /** Year and month are parameters of their own: only calendars have these. */
  readonly named: boolean;
}

function dateOf(url: UrlParts): UrlDate | null {
  return dateInParameters(url) ?? dateInPath(url.segments);
}

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
    // Without a separator it is a date only where the name says so.
    if (found && (found[2] !== "" || dateName.test(name))) return dateFrom(found);
  }
  return null;
}

/** `/2031/05/17/`, `/2031/05/` or a segment that begins with a date. */
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
