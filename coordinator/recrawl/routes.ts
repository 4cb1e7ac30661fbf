/** /fleet/recrawl: how often pages are fetched again, and why: the plan in force and those before it. */

import { spanWords } from "#core/format";
import { type TimeRange, timeRange } from "#core/time-range";
import type { WebPart } from "../web/actions.ts";
import type { ToldOf } from "../web/api-operation.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import { column, dataTable, empty, fact, numberColumn, titleRow } from "../web/components.ts";
import { countText, instant, percentText, sentence } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import type { PlannedGroup, RecrawlPlan } from "./make-plan.ts";
import { recrawlApi, type recrawlPlan } from "./recrawl-api.ts";

const plansShown = 50;

/** How the rates went, with what changed meanwhile. */
export type RecrawlCharts = (range: TimeRange) => Promise<ChartHistory>;

export function recrawlRoutes(
  latestPlans: (most: number) => Promise<readonly RecrawlPlan[]>,
  charts: RecrawlCharts,
): WebPart {
  return ({ views }) => {
    views.describe({
      ...{ path: "/fleet/recrawl", operation: recrawlApi.recrawlPlans },
      view: async ({ query, now }) => {
        const [plans, history] = await Promise.all([
          latestPlans(plansShown),
          charts(timeRange(query, now, "30d")),
        ]);
        const value = { now: now.toISOString(), plans: plans.map(toldPlan), history };
        return {
          status: 200,
          value,
          title: "Recrawl",
          body: () => recrawlBody(value),
          csv: () => plansCsv(value),
        };
      },
    });
  };
}

const columns = [
  "madeAt",
  "strategy",
  "reason",
  "pages",
  "allowedPerDay",
  "capacityPerDay",
  "plannedPerDay",
  "achievedPerDay",
  "correction",
  "freshness",
] as const;

function plansCsv({ plans }: RecrawlAnswer): CsvTable {
  return { columns, rows: plans.map((plan) => columns.map((column) => plan[column])) };
}

type ToldPlan = ToldOf<typeof recrawlPlan>;

function toldPlan(plan: RecrawlPlan): ToldPlan {
  return {
    madeAt: plan.madeAt.toISOString(),
    strategy: plan.strategy,
    reason: plan.reason,
    since: plan.since.toISOString(),
    pages: plan.pages,
    allowedPerDay: plan.allowedPerDay,
    capacityPerDay: plan.strategy === "optimal" ? plan.capacityPerDay : null,
    plannedPerDay: plan.totalPerDay > 0 ? plan.totalPerDay : null,
    achievedPerDay: plan.achievedPerDay,
    correction: plan.correction,
    freshness: plan.freshness,
    multiplier: plan.multiplier,
    groups: plan.groups,
  };
}

// The plan in force with its groups and rates, and why each plan was made.

interface RecrawlAnswer {
  /** Newest first, the one in force too; empty: every page after the same interval. */
  readonly plans: readonly ToldPlan[];
}

function recrawlBody({ plans, history }: RecrawlAnswer & { readonly history: ChartHistory }): Html {
  const [plan] = plans;
  return html`${titleRow("Recrawl")}
<p class="lead">When a page is fetched again depends on how often it changes, how much it matters, and the fleet's capacity.
The strategy is the policy <a href="/policies">recrawl.strategy</a>.</p>
${
  plan === undefined
    ? empty(
        "No plan yet: every page is fetched again after the same interval (policy recrawl.intervalHours).",
        "iir and icr begin when half of the pages were compared often enough, with at least as many hosts and channels as recrawl.groups.",
      )
    : html`${inForce(plan)}${historySection("/fleet/recrawl", {}, history)}${planTable(plans)}`
}`;
}

function inForce(plan: ToldPlan): Html {
  const { capacityPerDay, plannedPerDay, achievedPerDay, correction, freshness } = plan;
  return html`<section><h2>Current plan: ${plan.strategy}</h2>
<p>${sentence(plan.reason)} <span class="small">Made ${instant(plan.madeAt)}; the strategy since ${instant(plan.since)}.</span></p>
<dl class="facts">
${fact("Pages whose changes are estimated", countText(plan.pages))}
${fact("Planned refetches", perDay(plannedPerDay))}
${fact("Measured refetches", perDay(achievedPerDay))}
${fact("Budget of online crawlers", perDay(plan.allowedPerDay))}
${capacityPerDay === null ? nothing : fact("Measured fleet capacity", perDay(capacityPerDay))}
${correction === 1 ? nothing : fact("Correction of the plan", `× ${correction.toFixed(2)}`)}
${freshness === null ? nothing : fact("Expected freshness, by importance", percentText(freshness))}
</dl>
${plan.groups.length === 0 ? nothing : groups(plan)}</section>`;
}

function perDay(fetches: number | null): string {
  return fetches === null ? "unknown" : `${countText(Math.round(fetches))} per day`;
}

function groups({ groups: all }: ToldPlan): Html {
  return html`<h3>Priority groups, most changing first</h3>
${dataTable<PlannedGroup>(
  "Priority groups",
  [
    column("Group", (group) => all.indexOf(group) + 1),
    numberColumn("Hosts and channels", ({ channels }) => countText(channels)),
    numberColumn("Pages", ({ pages }) => countText(pages)),
    numberColumn("A page changes every", ({ changesPerDay }) => spanWords(86_400 / changesPerDay)),
    numberColumn("First interval", ({ initialSeconds }) => spanWords(initialSeconds)),
    numberColumn("Interval", ({ intervalSeconds }) => spanWords(intervalSeconds)),
    numberColumn("Successful tasks", ({ successRate }) =>
      successRate === 0 ? "—" : percentText(successRate),
    ),
  ],
  all,
)}`;
}

function planTable(plans: readonly ToldPlan[]): Html {
  return html`<section><h2>Plans, the latest first</h2>
${dataTable<ToldPlan>(
  "Plans",
  [
    column("Made", ({ madeAt }) => instant(madeAt)),
    column("Strategy", ({ strategy }) => strategy),
    numberColumn("Planned", ({ plannedPerDay }) => perDay(plannedPerDay)),
    numberColumn("Measured before", ({ achievedPerDay }) => perDay(achievedPerDay)),
    numberColumn("Current", ({ freshness }) => (freshness === null ? "—" : percentText(freshness))),
    column("Why", ({ reason }) => sentence(reason)),
  ],
  plans,
)}</section>`;
}
