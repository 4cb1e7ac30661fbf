/** The reports: their data, what is cached, and the hourly count of coverage. */

import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import type { RecrawlPolicies } from "../../crawl/recrawl/recrawl-settings.ts";
import { KeptAnswer } from "../../database/cached-read.ts";
import { countCoverage, createReportReads } from "./report-store.ts";
import { organisationsReport, readCrawl } from "./reports.ts";
import { type ReportPorts, reportOperations } from "./reports-ask.ts";

interface ReportPartOptions {
  readonly pool: Pool;
  readonly config: { readonly recrawl: Pick<RecrawlPolicies, "intervalHours"> };
}

/** Answers are cached at least this long, because the data changes slowly. */
const keptMs = 10_000;

export function reportPart({ pool, config }: ReportPartOptions): WebPart {
  const reads = createReportReads(pool, () => config.recrawl.intervalHours / 24);
  const nowMs = () => performance.now();
  const crawl = new KeptAnswer(() => readCrawl(reads), nowMs, keptMs);
  const organisations = new KeptAnswer(() => organisationsReport(reads, new Date()), nowMs, keptMs);
  return addOperations<ReportPorts>(reportOperations, {
    reads,
    crawl: () => crawl.get(),
    organisations: async (now) => ({ ...(await organisations.get()), at: now }),
  });
}

interface ReportDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly log: Pick<Log, "info">;
  readonly now: () => Date;
}

const hourMs = 3_600_000;
/** The first delay, which then doubles each time, because the first hour changes most. */
const firstMs = 10_000;

export function scheduleReports({ pool, timekeeper, log, now }: ReportDutyPorts): void {
  let everyMs = firstMs;
  timekeeper.every(
    "count-coverage",
    () => everyMs,
    async () => {
      const counted = await countCoverage(pool, now());
      if (counted === null || counted.rows === 0) return;
      everyMs = Math.min(hourMs, 2 * everyMs);
      log.info({ ...counted }, "the coverage of the day was counted");
    },
  );
}
