/** /fleet/recrawl: how often pages are fetched again, and why: the plan in force and those before it. */

import { spanWords } from "#core/format";
import { type TimeRange, timeRange } from "#core/time-range";
import type { WebPart } from "../web/actions.ts";
import type { ToldOf } from "../web/api-operation.ts";
import type { ChartHistory } from "../web/chart-history.ts";
import { empty, fact, titleRow } from "../web/components.ts";
import { countText, instant, percentText, sentence } from "../web/format.ts";
import { type CsvTable, type Html, html, nothing } from "../web/html.ts";
import { historySection } from "../web/time-chart.ts";
import type { RecrawlPlan, RecrawlPlanStore } from "./make-plan.ts";
import type { recrawlPlan } from "./recrawl-api.ts";
import { recrawlApi } from "./recrawl-api.ts";

const plansShown = 50;

/** How the rates went, with what changed meanwhile. */
export type RecrawlCharts = (range: TimeRange) => Promise<ChartHistory>;

export function recrawlRoutes(store: Pick<RecrawlPlanStore, "history">, charts: RecrawlCharts): WebPart {
  return ({ views }) => {
    views.describe({
      ...{ path: "/fleet/recrawl", operation: recrawlApi.recrawlPlans },
      view: async ({ query, now }) => {
        const [answer, history] = await Promise.all([
          recrawlAnswer(store, plansShown, now),
          charts(timeRange(query, now, "30d")),
        ]);
        const value = { ...answer, history };
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

// How often pages are fetched again, for pages, programs and the command: the plan in force, and those before it.

export type ToldPlan = ToldOf<typeof recrawlPlan>;

export interface RecrawlAnswer {
  readonly now: string;
  /** Newest first, the one in force too; empty: every page after the same interval. */
  readonly plans: readonly ToldPlan[];
}

export async function recrawlAnswer(
  store: Pick<RecrawlPlanStore, "history">,
  limit: number,
  now: Date,
): Promise<RecrawlAnswer> {
  return { now: now.toISOString(), plans: (await store.history(limit)).map(toldPlan) };
}

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

/** What happens where no plan was ever made. */
export const noPlan = {
  what: "No plan yet: every page is fetched again after the same interval (policy recrawl.intervalHours).",
  next: "iir and icr begin when half of the pages were compared often enough, with at least as many hosts and channels as recrawl.groups.",
} as const;

// How often pages are fetched again: the plan in force with its groups and rates, and why each plan was made.

function recrawlBody({ plans, history }: RecrawlAnswer & { readonly history: ChartHistory }): Html {
  const [plan] = plans;
  return html`${titleRow("Recrawl")}
<p class="lead">When a page is fetched again depends on how often it changes, how much it matters, and the fleet's capacity. The strategy is the policy <a href="/policies">recrawl.strategy</a>.</p>
${plan === undefined ? empty(noPlan.what, noPlan.next) : html`${inForce(plan)}${historySection("/fleet/recrawl", {}, history)}${planTable(plans)}`}`;
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
<div class="table-scroll"><table><thead><tr><th scope="col">Group</th><th scope="col" class="number">Hosts and channels</th><th scope="col" class="number">Pages</th><th scope="col" class="number">A page changes every</th><th scope="col" class="number">First interval</th><th scope="col" class="number">Interval</th><th scope="col" class="number">Successful tasks</th></tr></thead><tbody>
${all.map(
  (group, index) =>
    html`<tr><th scope="row">${index + 1}</th><td class="number">${countText(group.channels)}</td><td class="number">${countText(group.pages)}</td><td class="number">${spanWords(86_400 / group.changesPerDay)}</td><td class="number">${spanWords(group.initialSeconds)}</td><td class="number">${spanWords(group.intervalSeconds)}</td><td class="number">${group.successRate === 0 ? "—" : percentText(group.successRate)}</td></tr>`,
)}
</tbody></table></div>`;
}

function planTable(plans: readonly ToldPlan[]): Html {
  return html`<section><h2>Plans, the latest first</h2>
<div class="table-scroll"><table><thead><tr><th scope="col">Made</th><th scope="col">Strategy</th><th scope="col" class="number">Planned</th><th scope="col" class="number">Measured before</th><th scope="col" class="number">Current</th><th scope="col">Why</th></tr></thead><tbody>
${plans.map(
  (plan) =>
    html`<tr><td>${instant(plan.madeAt)}</td><td>${plan.strategy}</td><td class="number">${perDay(plan.plannedPerDay)}</td><td class="number">${perDay(plan.achievedPerDay)}</td><td class="number">${plan.freshness === null ? "—" : percentText(plan.freshness)}</td><td>${sentence(plan.reason)}</td></tr>`,
)}
</tbody></table></div></section>`;
}
