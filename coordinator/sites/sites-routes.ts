/** /sites: the list of hosts, a page of it at a time, and whole as a file. */
import { Readable } from "node:stream";
import type { WebPart } from "../web/actions.ts";
import { FileTurns, noFileTurn } from "../web/file-turns.ts";
import type { AskedView, SentFile } from "../web/views.ts";
import { sitesApi } from "./sites-api.ts";
import { sitesAsCsv } from "./sites-export.ts";
import { isUnfiltered, readSitesQuestion } from "./sites-list.ts";
import { sitesBody } from "./sites-page.ts";
import type { SitesReads } from "./sites-reads.ts";

/** Sites in one file. */
const mostInFile = 1_000_000;
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
      file: async (asked) => fileOf(asked, reads, files),
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

function fileOf({ query, now }: AskedView, reads: SitesReads, files: FileTurns): SentFile | string {
  const question = readSitesQuestion((name) => (name === "after" || name === "limit" ? "" : query(name)));
  if (typeof question === "string") return question;
  if (!files.take()) return noFileTurn;
  return {
    type: "text/csv; charset=utf-8",
    body: files.until(Readable.from(sitesAsCsv(reads.every(question, now), mostInFile))),
    headers: { "content-disposition": 'attachment; filename="nearcrawl-sites.csv"' },
  };
}
