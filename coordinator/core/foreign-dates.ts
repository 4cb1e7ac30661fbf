/**
 * Dates in others' text: HTTP fields (RFC 9110 section 5.6.7: IMF-fixdate, RFC 850, asctime), mail dates of feeds (RFC 5322
 * section 3.3, with obsolete zones), ISO 8601 as profiled by W3C-DTF and RFC 3339. `Date.parse` is not used: it reads a date
 * without a zone in the machine's zone, "May" as 2001 and 31 February as 2 March. Here a date without a zone is UTC on every
 * machine, and text with an impossible day is rejected.
 */

/** Returns milliseconds since 1970, or null when the text is no date. */
export function foreignDateMs(text: string): number | null {
  const written = text.trim();
  return written.length > maxCharacters ? null : (isoDateMs(written) ?? httpDateMs(written));
}

const maxCharacters = 60;

const iso =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,3})\d{0,17})?)?)? ?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

function isoDateMs(text: string): number | null {
  const [, year = "", month = "", day = "", hours, minutes, seconds, fraction = "", zone] =
    iso.exec(text) ?? [];
  if (hours === undefined && zone !== undefined) return null;
  return momentMs(
    { year: Number(year), month: Number(month), day: Number(day) },
    [hours, minutes, seconds],
    zone,
    fraction,
  );
}

/** IMF-fixdate, RFC 850 and RFC 5322 put the day first. */
const dayFirst =
  /^(?:[a-z]{3,9},?\s+)?(\d{1,2})[\s-]+([a-z]{3,9})[\s-]+(\d{4}|\d\d)\s+(\d{1,2}):(\d\d)(?::(\d\d))?\s*([a-z]{1,3}|[+-]\d\d:?\d\d)?(?:\s*\([^()]*\))?$/i;

const asctime = /^[a-z]{3}\s+([a-z]{3})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(\d{4})$/i;

/** Reads an HTTP or mail date. Two-digit years from 50 on belong to the last century (RFC 5322 section 4.3). */
function httpDateMs(text: string): number | null {
  const [, name, day, hours, minutes, seconds, year] = asctime.exec(text) ?? [];
  if (name !== undefined)
    return momentMs(
      { year: Number(year), month: monthOf(name), day: Number(day) },
      [hours, minutes, seconds],
      "Z",
    );
  const found = dayFirst.exec(text);
  if (found === null) return null;
  const written = Number(found[3]);
  const century = found[3]!.length > 2 ? 0 : written < 50 ? 2000 : 1900;
  const date = { year: written + century, month: monthOf(found[2]!), day: Number(found[1]) };
  return momentMs(date, found.slice(4, 7), found[7]);
}

const months = "january february march april may june july august september october november december".split(
  " ",
);

const monthOf = (name: string) => months.findIndex((month) => month.startsWith(name.toLowerCase())) + 1;

interface CalendarDay {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

function momentMs(
  { year, month, day }: CalendarDay,
  [hours = "0", minutes = "0", seconds = "0"]: readonly (string | undefined)[],
  zone: string | undefined,
  fraction = "",
): number | null {
  const offsetMinutes = zoneMinutes(zone);
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)];
  // 24:00 is the end of the day, and second 60 is a leap second.
  const isTime = m <= 59 && s <= 60 && (h <= 23 || (h === 24 && m === 0 && s === 0));
  const ms = Date.UTC(year, month - 1, day);
  const isDay = year >= 1900 && month >= 1 && month <= 12 && new Date(ms).getUTCDate() === day;
  if (!isDay || !isTime || offsetMinutes === null) return null;
  return ms + ((h * 60 + m - offsetMinutes) * 60 + s) * 1000 + Number(fraction.padEnd(3, "0"));
}

/** Hours east of Greenwich of the zones in RFC 5322 section 4.3. */
const namedZones: ReadonlyMap<string, number> = new Map([
  ...["Z", "UT", "UTC", "GMT"].map((name) => [name, 0] as const),
  ...(["E", "C", "M", "P"] as const).flatMap((letter, index) => [
    [`${letter}ST`, -5 - index] as const,
    [`${letter}DT`, -4 - index] as const,
  ]),
]);

/** Returns minutes east of Greenwich, or null for an unknown zone. */
function zoneMinutes(zone = "Z"): number | null {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (sign === undefined) {
    const named = namedZones.get(zone.toUpperCase());
    return named === undefined ? null : named * 60;
  }
  const east = Number(hours) * 60 + Number(minutes);
  return Number(minutes) > 59 || east > 18 * 60 ? null : sign === "-" ? -east : east;
}

/** One year. A longer wait cannot be meant, or would be capped anyway. */
const longestRetryAfterSeconds = 31_536_000;

/**
 * Reads Retry-After (RFC 9110 section 10.2.3) as seconds or an HTTP date; returns null when it is neither. Many servers send
 * the Unix time at which to return, in seconds or milliseconds. Read as seconds from now, it would mean decades.
 */
export function retryAfterSeconds(header: string | readonly string[] | undefined, now: Date): number | null {
  const text = [header ?? []].flat()[0]?.trim() ?? "";
  if (text.length > maxCharacters) return null;
  const number = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : null;
  if (number !== null && !isUnixSeconds(number) && !isUnixSeconds(number / 1000))
    return Math.min(longestRetryAfterSeconds, Math.ceil(number));
  const at = number === null ? foreignDateMs(text) : isUnixSeconds(number) ? number * 1000 : number;
  if (at === null) return null;
  return Math.min(longestRetryAfterSeconds, Math.max(0, Math.ceil((at - now.getTime()) / 1000)));
}

const isUnixSeconds = (number: number) => number >= 1e9 && number < 4_102_444_800;
