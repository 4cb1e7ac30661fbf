/** An estimate with what a crawl measured in place of what the thesis assumes. */

import { assumptionFaults, type CrawlAssumptions, estimateCrawl } from "#coordinator/overview/estimate";
import type { CrawlMeasures } from "#coordinator/overview/overview-reads";
import type { MeasuredAnswer } from "./estimate-text.ts";

export function withMeasures(given: CrawlAssumptions, measures: CrawlMeasures): MeasuredAnswer {
  const assumptions = assumptionsWith(given, measures);
  const { pagesPerSecondPerCrawler: rate, bytesUpPerPage, storedBytesPerUrl } = measures;
  const inputs = {
    ...(rate ? { pagesPerSecondPerCrawler: rate } : {}),
    ...(bytesUpPerPage ? { bytesUpPerPage } : {}),
    ...(storedBytesPerUrl ? { storedBytesPerUrl } : {}),
  };
  return {
    measures,
    assumptions,
    estimate: estimateCrawl(assumptions, inputs),
    assumed: notMeasured(measures),
  };
}

/** What is stored is one copy. A web smaller than a page's links stays as assumed. */
function assumptionsWith(given: CrawlAssumptions, measures: CrawlMeasures): CrawlAssumptions {
  const replaced = {
    ...given,
    outDegree: Math.max(1, measures.outDegree ?? given.outDegree),
    ...(measures.urlBytes === null ? {} : { urlBytes: measures.urlBytes }),
    ...(measures.storedBytesPerUrl === null ? {} : { replication: 1 }),
  };
  return assumptionFaults(replaced).length === 0 ? replaced : given;
}

function notMeasured(measures: CrawlMeasures): string[] {
  return [
    ...(measures.pagesPerSecondPerCrawler ? [] : ["pages/s of a crawler"]),
    ...(measures.bytesUpPerPage ? [] : ["bytes up per page"]),
    ...(measures.outDegree === null ? ["links a page"] : []),
    ...(measures.storedBytesPerUrl === null ? ["bytes stored per URL"] : []),
    "templates and headers",
    "ranked a second",
  ];
}
