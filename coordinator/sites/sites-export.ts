/** Sites as a file, made while it is sent. One that had to be cut says so at its end. */
import { csvText } from "../web/html.ts";
import type { ListedSite } from "./sites-api.ts";

interface SiteColumn {
  readonly name: string;
  readonly of: (site: ListedSite) => string | number | null;
}

const date = (of: (site: ListedSite) => Date | null) => (site: ListedSite) => of(site)?.toISOString() ?? null;

const siteColumns: readonly SiteColumn[] = [
  { name: "host", of: ({ host }) => host },
  { name: "name", of: ({ name }) => name },
  { name: "state", of: ({ state }) => state },
  { name: "reason", of: ({ reason }) => reason },
  { name: "due_at", of: date(({ dueAt }) => dueAt) },
  { name: "crawler", of: ({ crawler }) => crawler },
  { name: "in_progress_by", of: ({ inProgressBy }) => inProgressBy },
  { name: "subnet", of: ({ subnet }) => subnet },
  { name: "language", of: ({ language }) => language },
  { name: "country", of: ({ country }) => country },
  { name: "organisation", of: ({ organisation }) => organisation },
  { name: "tld", of: ({ tld }) => tld },
  { name: "channels", of: ({ channels }) => channels },
  { name: "pages", of: ({ pages }) => pages },
  { name: "urls", of: ({ urls }) => urls },
  { name: "due_urls", of: ({ dueUrls }) => dueUrls },
  { name: "failures_7_days", of: ({ failures }) => failures },
  { name: "fetches_7_days", of: ({ fetches }) => fetches },
  { name: "fetched_at", of: date(({ fetchedAt }) => fetchedAt) },
  { name: "added_at", of: date(({ addedAt }) => addedAt) },
  { name: "rtt_ms", of: ({ rttMs }) => rttMs },
  { name: "bytes", of: ({ bytes }) => bytes },
];

/** At most `most` rows; a last line with a word in it where there were more. */
export async function* sitesAsCsv(
  pieces: AsyncIterable<readonly ListedSite[]>,
  most: number,
): AsyncGenerator<string> {
  yield csvText({ columns: siteColumns.map(({ name }) => name), rows: [] });
  let left = most;
  for await (const piece of pieces) {
    const rows = piece.slice(0, left).map((site) => siteColumns.map(({ of }) => of(site)));
    yield csvText({ columns: [], rows }).slice(2);
    left -= rows.length;
    if (rows.length === piece.length) continue;
    yield `more than ${most} sites: the rest is left out\r\n`;
    return;
  }
}
