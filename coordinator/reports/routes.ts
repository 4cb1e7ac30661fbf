/** /reports/…: coverage, organisations, subnets, crawlers, placement; each a page, JSON and CSV. */
import type { WebPart } from "../web/actions.ts";
import { timeRange } from "../web/time-chart.ts";
import type { AskedView } from "../web/views.ts";
import { readCoverageQuestion } from "./coverage.ts";
import {
  countryColumns,
  farColumns,
  missedColumns,
  organisationColumns,
  placementColumns,
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
      titleWhileSlow: "Organisations",
      view: async ({ now }) => {
        const value = await organisations(now);
        return {
          ...{ status: 200, value, title: "Organisations" },
          body: () => organisationsReportBody(value),
          csv: () => reportCsv(organisationColumns, value.lines),
        };
      },
    });
    views.describe({
      ...{ path: "/reports/subnets", operation: reportsApi.subnetsReport },
      titleWhileSlow: "Subnets served badly",
      view: async ({ now }) => {
        const value = await subnetsReport(await crawl(), reads, now);
        return {
          ...{ status: 200, value, title: "Subnets served badly" },
          body: () => subnetsReportBody(value),
          csv: () => reportCsv(farColumns, value.lines),
        };
      },
    });
    views.describe({
      ...{ path: "/reports/crawlers", operation: reportsApi.crawlersReport },
      titleWhileSlow: "Crawlers that would be missed",
      view: async ({ now }) => {
        const value = crawlersReport(await crawl(), now);
        return {
          ...{ status: 200, value, title: "Crawlers that would be missed" },
          body: () => crawlersReportBody(value),
          csv: () => reportCsv(missedColumns, value.lines),
        };
      },
    });
    views.describe({
      ...{ path: "/reports/placement", operation: reportsApi.placementReport },
      titleWhileSlow: "Where the next crawlers should stand",
      view: async ({ now }) => {
        const value = await placementReport(await crawl(), reads, { now });
        return {
          ...{ status: 200, value, title: "Where the next crawlers should stand" },
          body: () => placementReportBody(value),
          csv: () => reportCsv(placementColumns, value.lines),
        };
      },
    });
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
