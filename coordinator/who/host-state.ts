/** Of a host's row: robots.txt, pace, connection and budget, as a report tells them. */

import { isoOrNull } from "../database/cached-read.ts";
import { hostPageColumns } from "../frontier/admission-writes.ts";
import { type HostPages, hostBudget } from "../frontier/budgets.ts";
import type { HostReport } from "../frontier/frontier-reports.ts";

export interface HostStateRow {
  robots_state: NonNullable<HostReport["robots"]>["state"] | null;
  robots_at: Date | null;
  crawl_delay_ms: number | null;
  back_off_ms: number | null;
  backed_off_at: Date | null;
  usual_ms: number | null;
  http_version: string | null;
  tls_version: string | null;
  held_urls: number;
  left_out_urls: number;
  pages: HostPages;
}

/** SQL: the columns of frontier_host (as `h`) that make a HostStateRow. */
export const hostStateColumns = `h.robots_state, h.robots_at, h.crawl_delay_ms, h.back_off_ms, h.backed_off_at,
  h.usual_ms, h.http_version, h.tls_version, h.held_urls, h.left_out_urls::float8 as left_out_urls, json_build_object(${Object.entries(
    hostPageColumns,
  )
    .map(([figure, column]) => `'${figure}', h.${column}`)
    .join(", ")}) as pages`;

export function hostState(row: HostStateRow): Pick<HostReport, "robots" | "pace" | "connection" | "budget"> {
  const robotsAt = isoOrNull(row.robots_at);
  return {
    robots: row.robots_state === null || robotsAt === null ? null : { state: row.robots_state, at: robotsAt },
    pace: paceOf(row),
    connection: row.http_version === null ? null : { http: row.http_version, tls: row.tls_version },
    budget: {
      earnedUrls: hostBudget(row.pages, Number.POSITIVE_INFINITY),
      heldUrls: row.held_urls,
      leftOutUrls: row.left_out_urls,
      pages: row.pages,
    },
  };
}

function paceOf(row: HostStateRow): HostReport["pace"] {
  if (row.crawl_delay_ms === null && row.back_off_ms === null) return null;
  const isBackedOff = (row.back_off_ms ?? 0) > 0;
  return {
    crawlDelayMs: row.crawl_delay_ms ?? 0,
    backOffMs: isBackedOff ? row.back_off_ms : null,
    backedOffAt: isBackedOff ? isoOrNull(row.backed_off_at) : null,
    // 0 stands for: not known.
    usualMs: row.usual_ms || null,
  };
}
