/** /sites: the list of hosts, a page of it at a time, and whole as a file. */
import type { WebPart } from "../web/actions.ts";
import { type CsvColumn, FileTurns } from "../web/file-turns.ts";
import type { AskedView } from "../web/views.ts";
import { type ListedSite, sitesApi } from "./sites-api.ts";
import { isUnfiltered, readSitesQuestion } from "./sites-list.ts";
import { sitesBody } from "./sites-page.ts";
import type { SitesReads } from "./sites-reads.ts";

/** Of crawlers that the form offers: of more, people type the name. */
const crawlersOffered = 200;

export function sitesRoutes(reads: SitesReads): WebPart {
  return ({ views }) => {
    views.describe({
      path: "/sites",
      operation: sitesApi.sites,
      view: async (asked) => await sitesView(asked, reads),
    });
    const files = new FileTurns();
    views.addFile({
      path: "/sites.csv",
      needs: "read",
      boundedElsewhere: true,
      file: async ({ query, now }) => {
        const question = readSitesQuestion((name) =>
          name === "after" || name === "limit" ? "" : query(name),
        );
        if (typeof question === "string") return question;
        return files.csv({ name: "sites", columns: siteColumns, pieces: reads.every(question, now) });
      },
    });
  };
}

async function sitesView({ query, now }: AskedView, reads: SitesReads) {
  const question = readSitesQuestion(query);
  if (typeof question === "string") return question;
  const [value, crawlers] = await Promise.all([
    reads.answer(question, now),
    reads.crawlerNames(crawlersOffered),
  ]);
  return {
    status: 200,
    value,
    title: isUnfiltered(question.filter) ? "Sites" : "Sites, filtered",
    body: () => sitesBody({ answer: value, question, crawlers }),
  };
}

const date = (of: (site: ListedSite) => Date | null) => (site: ListedSite) => of(site)?.toISOString() ?? null;

const siteColumns: readonly CsvColumn<ListedSite>[] = [
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
