/**
 * Dates as pages write them to ISO 8601 (a day, or a time with its zone): ISO 8601 itself and its loose forms, RFC
 * 5322, days with dots or slashes, and days with the month's name in the page's language or English. What could be read in two
 * ways (03/04/2020) is read the way the page's language does.
 */
import { monthOf } from "./month-names.ts";

/** The first date in the text, as the protocol has it; null when there is none. */
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

/** A day that exists, from 1990 to 2099: nothing on the web is older, and what is younger is a mistake. */
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
  return `${date}T${two(Number(time.hours))}:${time.minutes}${seconds}${seconds === "" ? "" : zoneOf(time.zone)}`;
}

function zoneOf(zone: string | undefined): string {
  if (zone === undefined || zone === "") return "";
  if (/^[a-z]/i.test(zone)) return "Z";
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  return `${zone[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}

const two = (number: number) => `${number}`.padStart(2, "0");
