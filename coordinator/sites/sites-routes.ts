/** /sites: the list of hosts, a page of it at a time, and whole as a file. */
import { Readable } from "node:stream";
import type { WebPart } from "../web/actions.ts";
import { FileTurns, noFileTurn } from "../web/file-turns.ts";
import type { AskedView, SentFile } from "../web/views.ts";
import { sitesApi } from "./sites-api.ts";
import { sitesAsCsv, sitesAsJson } from "./sites-export.ts";
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
    const shared = { needs: "read", boundedElsewhere: true } as const;
    for (const kind of ["csv", "json"] as const)
      views.addFile({
        ...{ path: `/sites.${kind}`, ...shared },
        file: async (asked) => fileOf(asked, reads, { files, kind }),
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

function fileOf(
  { query, now }: AskedView,
  reads: SitesReads,
  { files, kind }: { readonly files: FileTurns; readonly kind: "csv" | "json" },
): SentFile | string {
  const question = readSitesQuestion((name) => (name === "after" || name === "limit" ? "" : query(name)));
  if (typeof question === "string") return question;
  if (!files.take()) return noFileTurn;
  const sites = reads.every(question, now);
  const text = kind === "csv" ? sitesAsCsv(sites, mostInFile) : sitesAsJson(sites, mostInFile);
  const body = files.until(Readable.from(text));
  if (kind === "json") return { type: "application/json; charset=utf-8", body };
  const headers = { "content-disposition": 'attachment; filename="nearcrawl-sites.csv"' };
  return { type: "text/csv; charset=utf-8", body, headers };
}
