/** Texts and numbers of crawlers as columns can hold them. */

/** NUL is the one character that Postgres' text cannot hold; half of a surrogate pair is no character, and breaks its JSON. */
export function clean(text: string): string {
  return text.replaceAll("\0", "").replace(/\p{Cs}/gu, "\ufffd");
}

/** The largest number that Postgres' integer holds. */
const maxInteger = 2_147_483_647;

export function asInteger(value: number): number {
  return Math.min(Math.round(value), maxInteger);
}

/** The first web page is of 1991; what is dated earlier, or later than tomorrow, is no date of a page. */
const earliestMs = Date.UTC(1990, 0, 1);
const dayMs = 86_400_000;

/** A day or time of ISO 8601 (without a zone: UTC); null where it is none, or cannot be a page's. */
export function pageDate(text: string | undefined, now: Date): Date | null {
  if (text === undefined) return null;
  const hasZone = /T.*(Z|[+-]\d\d:\d\d)$/.test(text);
  const date = new Date(text.includes("T") && !hasZone ? `${text}Z` : text);
  const atMs = date.getTime();
  if (Number.isNaN(atMs) || atMs < earliestMs || atMs > now.getTime() + dayMs) return null;
  return isOfTheCalendar(text) ? date : null;
}

/** JavaScript takes 31 February for 2 March. */
function isOfTheCalendar(text: string): boolean {
  const day = text.slice(0, 10);
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}
