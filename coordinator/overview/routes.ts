/** The overview and what stands behind its numbers: alerts, the queue, samples of how near the delegations are. */
import { accuracyEstimate } from "../delegation/accuracy.ts";
import { accuracyBody, accuracyCsv } from "../delegation/accuracy-page.ts";
import type { AskedView, Shown, Views } from "../web/views.ts";
import { alertReader } from "./alerts-page.ts";
import {
  type HistoryRange,
  historyRanges,
  type OperationReads,
  type WaitReason,
  waitReasons,
} from "./operation-types.ts";
import type { Overview } from "./overview.ts";
import { overviewBody } from "./overview-page.ts";
import { queueBody, queueCsv } from "./queue-page.ts";
import { showAlerts } from "./show-alerts.ts";
import { alertsBody } from "./web-alerts-page.ts";

export interface OverviewViewPorts {
  readonly reads: OperationReads;
  readonly overview: (range: HistoryRange) => Promise<Overview>;
}

/** Rows of a table, at most; programs may have more. */
export const rowsShown = 100;
const rowsInCsv = 1000;

export function addOverviewViews(views: Views, ports: OverviewViewPorts): void {
  views.add({
    path: "/",
    api: "/api/overview",
    section: "/",
    needs: "read",
    view: async (asked) => await overviewView(asked, ports),
  });
  views.add({
    path: "/alerts",
    api: "/api/alerts",
    section: "/",
    needs: "read",
    view: async (asked) => await alertsView(asked, ports),
  });
  views.add({
    path: "/fleet/queue",
    api: "/api/fleet/queue",
    section: "/fleet",
    needs: "read",
    view: async (asked) => await queueView(asked, ports),
  });
  views.add({
    path: "/accuracy",
    api: "/api/accuracy",
    section: "/",
    needs: "read",
    view: async (asked) => await accuracyView(asked, ports),
  });
}

async function overviewView({ query }: AskedView, { overview }: OverviewViewPorts): Promise<Shown | string> {
  const range = query("range") || "1h";
  if (!isRange(range)) return `range: must be one of ${Object.keys(historyRanges).join(", ")}`;
  const value = await overview(range);
  return {
    status: 200,
    value,
    title: titleOf(value),
    body: ({ actor }) => overviewBody(value, alertReader(actor)),
  };
}

/** A tab that is not looked at tells by its title that something is the matter. */
function titleOf({ alerts }: Overview): string {
  return alerts.length === 0 ? "Overview" : `(${alerts.length}) Overview`;
}

async function alertsView({ now }: AskedView, { reads }: OverviewViewPorts): Promise<Shown> {
  const value = await showAlerts(reads, now);
  return { status: 200, value, title: "Alerts", body: ({ actor }) => alertsBody(value, alertReader(actor)) };
}

/** Of the hosts at their bounds. */
const leftOutShown = 10;

async function queueView(asked: AskedView, { reads }: OverviewViewPorts): Promise<Shown | string> {
  const reason = asked.query("reason");
  if (reason !== "" && !isReason(reason)) return `reason: must be one of ${waitReasons.join(", ")}`;
  const most = asked.query("format") === "csv" ? rowsInCsv : rowsShown;
  const [ages, leftOut, hosts] = await Promise.all([
    reads.queueAges(asked.now),
    reads.leftOutUrls(leftOutShown),
    reads.longestWaiting({ reason: reason === "" ? null : reason, most }, asked.now),
  ]);
  const value = { at: asked.now.toISOString(), reason: reason === "" ? null : reason, ages, hosts, leftOut };
  return {
    status: 200,
    value,
    title: "What waits",
    body: (visit) => queueBody(value, visit),
    csv: () => queueCsv(value),
  };
}

async function accuracyView(asked: AskedView, { reads }: OverviewViewPorts): Promise<Shown> {
  const farOnly = asked.query("only") === "far";
  const most = asked.query("format") === "csv" ? rowsInCsv : rowsShown;
  const [counts, samples] = await Promise.all([
    reads.accuracyCounts(asked.now),
    reads.accuracySamples({ most, farOnly }, asked.now),
  ]);
  const value = { at: asked.now.toISOString(), estimate: accuracyEstimate(counts), farOnly, samples };
  return {
    status: 200,
    value,
    title: "How near the delegations are",
    body: () => accuracyBody(value),
    csv: () => accuracyCsv(value),
  };
}

function isRange(text: string): text is HistoryRange {
  return Object.hasOwn(historyRanges, text);
}

function isReason(text: string): text is WaitReason {
  return (waitReasons as readonly string[]).includes(text);
}
