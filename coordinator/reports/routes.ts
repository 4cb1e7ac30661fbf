/** /reports/…: coverage, organisations, subnets, crawlers, placement; each a page, JSON and CSV. */
import type { WebPart } from "../web/actions.ts";
import type { Html } from "../web/html.ts";
import { timeRange } from "../web/time-chart.ts";
import type { AskedView } from "../web/views.ts";
import { readCoverageQuestion } from "./coverage.ts";
import {
  countryColumns,
  farColumns,
  missedColumns,
  organisationColumns,
  placementColumns,
  type ReportColumn,
} from "./report-columns.ts";
import type { ReportReads } from "./report-reads.ts";
import {
  type CrawlFacts,
  coverageReport,
  crawlersReport,
  placementReport,
  subnetsReport,
} from "./reports.ts";
import { type OrganisationsReport, reportsApi } from "./reports-api.ts";
import {
  coverageReportBody,
  crawlersReportBody,
  organisationsReportBody,
  placementReportBody,
  reportCsv,
  subnetsReportBody,
} from "./reports-page.ts";

export interface ReportRoutePorts {
  readonly reads: ReportReads;
  /** Costly answers, kept for a while. */
  readonly crawl: () => Promise<CrawlFacts>;
  readonly organisations: (now: Date) => Promise<OrganisationsReport>;
}

export function reportRoutes({ reads, crawl, organisations }: ReportRoutePorts): WebPart {
  return ({ views }) => {
    views.describe({
      ...{ path: "/reports/coverage", operation: reportsApi.coverageReport },
      view: async (asked) => await coverageView(asked, reads),
    });
    views.describe({
      ...{ path: "/reports/organisations", operation: reportsApi.organisationsReport },
      ...report("Organisations", organisationColumns, organisations, organisationsReportBody),
    });
    const far = async (now: Date) => await subnetsReport(await crawl(), reads, now);
    views.describe({
      ...{ path: "/reports/subnets", operation: reportsApi.subnetsReport },
      ...report("Subnets served badly", farColumns, far, subnetsReportBody),
    });
    const missed = async (now: Date) => crawlersReport(await crawl(), now);
    views.describe({
      ...{ path: "/reports/crawlers", operation: reportsApi.crawlersReport },
      ...report("Crawlers that would be missed", missedColumns, missed, crawlersReportBody),
    });
    const advised = async (now: Date) => await placementReport(await crawl(), reads, { now });
    views.describe({
      ...{ path: "/reports/placement", operation: reportsApi.placementReport },
      ...report("Where the next crawlers should stand", placementColumns, advised, placementReportBody),
    });
  };
}

function report<Line, Value extends { readonly lines: readonly Line[] }>(
  title: string,
  columns: readonly ReportColumn<Line>[],
  read: (now: Date) => Promise<Value>,
  body: (value: Value) => Html,
) {
  return {
    titleWhileSlow: title,
    view: async ({ now }: AskedView) => {
      const value = await read(now);
      const csv = () => reportCsv(columns, value.lines);
      return { status: 200, value, title, body: () => body(value), csv };
    },
  };
}

async function coverageView({ query, now }: AskedView, reads: ReportReads) {
  const question = readCoverageQuestion(query);
  if (typeof question === "string") return question;
  const range = timeRange(query, now, "90d");
  const value = await coverageReport(reads, { ...question, since: range.since, until: range.until }, now);
  const shown = Object.fromEntries(
    ["day", "country", "language", "range", "since", "until"].map((name) => [name, query(name) || null]),
  );
  return {
    ...{ status: 200, value, title: "Coverage" },
    body: () => coverageReportBody({ report: value, range, query: shown }),
    csv: () => reportCsv(countryColumns, value.countries),
  };
}
