/** The /fleet/recrawl page: how often pages are fetched again, and why, by the plan in force and those before it. */
import { z } from "zod";
import { spanWords } from "#core/format";
import { type TimeRange, timeRange } from "#core/time-range";
import {
  aside,
  column,
  facts,
  history,
  lead,
  member,
  plain,
  present,
  recordColumns,
  section,
  table,
} from "../../ask/document.ts";
import { type Document, operationsOf } from "../../ask/operation.ts";
import { htmlOf } from "../../ask/words.ts";
import type { ToldOf } from "../../web/api-operation.ts";
import { type ChartHistory, rangeParameters } from "../../web/chart-history.ts";
import { countText, instant, percentText, sentence } from "../../web/format.ts";
import { html } from "../../web/html.ts";
import type { PlannedGroup, RecrawlPlan } from "./make-plan.ts";
import { recrawlAnswer, type recrawlPlan } from "./recrawl-api.ts";

export interface RecrawlPorts {
  readonly latestPlans: (most: number) => Promise<readonly RecrawlPlan[]>;
  /** Reads the history of the rates, with the policy changes in that time. */
  readonly charts: (range: TimeRange) => Promise<ChartHistory>;
}

const { get } = operationsOf<RecrawlPorts>();

const plansShown = 50;

export const recrawlOperations = {
  recrawlPlans: get({
    ...{ path: "/api/fleet/recrawl", needs: "fleet-read" },
    navigation: { group: "Crawl", order: 43, entry: "Queue", tab: "Recrawl" },
    summary: "How often pages are fetched again: the current plan and earlier ones, latest first",
    description: "An empty list: every page is fetched again after the same interval.",
    input: z.object(rangeParameters),
    output: recrawlAnswer,
    answer: { description: "The same as its page" },
    command: {
      name: "recrawl",
      says: "when pages are fetched again: groups, intervals, planned and achieved rates, and why",
      help: "\n\nExample:\n  nearcrawl policy set recrawl.strategy=optimal",
    },
    run: async ({ input, ports, now }) => {
      const range = timeRange(input, now, "30d");
      const [plans, history] = await Promise.all([ports.latestPlans(plansShown), ports.charts(range)]);
      return { now: now.toISOString(), plans: plans.map(toldPlan), history };
    },
    view: recrawlDocument,
  }),
};

type ToldPlan = ToldOf<typeof recrawlPlan>;

function toldPlan(plan: RecrawlPlan): ToldPlan {
  const { strategy, reason, pages, allowedPerDay, capacityPerDay, totalPerDay } = plan;
  const { achievedPerDay, correction, freshness, multiplier, groups } = plan;
  return {
    ...{ madeAt: plan.madeAt.toISOString(), since: plan.since.toISOString() },
    ...{ strategy, reason, pages, allowedPerDay, achievedPerDay, correction, freshness, multiplier, groups },
    capacityPerDay: strategy === "optimal" ? capacityPerDay : null,
    plannedPerDay: totalPerDay > 0 ? totalPerDay : null,
  };
}

const perDay = { unit: (fetches: number) => `${countText(fetches)} per day`, none: "unknown" };

function recrawlDocument({ plans, history: past }: ToldOf<typeof recrawlAnswer>): Document {
  const [plan] = plans;
  const all = table<ToldPlan>({
    ...{ label: "Plans", rows: plans },
    empty: [
      "No plan yet: every page is fetched again after the same interval (policy recrawl.intervalHours).",
      "iir and icr begin when half of the pages were compared often enough, with at least as many hosts and channels as recrawl.groups.",
    ],
    columns: [
      column("", "Made", ({ madeAt }) => instant(madeAt)),
      member("strategy", "Strategy"),
      member("plannedPerDay", "Planned", perDay),
      member("achievedPerDay", "Measured before", perDay),
      member("freshness", "Current", { unit: "share" }),
      column("", "Why", ({ reason }) => sentence(reason)),
    ],
  });
  return {
    title: "Recrawl",
    nodes: present([
      lead(html`When a page is fetched again depends on how often it changes, how much it matters, and the fleet's capacity.
The strategy is the policy <a href="/policies">recrawl.strategy</a>.`),
      plan !== undefined && inForce(plan),
      plan !== undefined && history(past),
      plan === undefined ? all : section("Plans, the latest first", [all]),
    ]),
    csv: { columns: inCsv, rows: plans },
  };
}

const inCsv = recordColumns<ToldPlan>([
  ...(["madeAt", "strategy", "reason", "pages", "allowedPerDay", "capacityPerDay"] as const),
  ...(["plannedPerDay", "achievedPerDay", "correction", "freshness"] as const),
]);

function inForce(plan: ToldPlan) {
  const { capacityPerDay, correction, freshness, groups } = plan;
  return section(`Current plan: ${plan.strategy}`, [
    plain(sentence(plan.reason)),
    aside(html`Made ${instant(plan.madeAt)}; the strategy since ${instant(plan.since)}.`),
    facts(
      ["Pages whose changes are estimated", countText(plan.pages)],
      ["Planned refetches", htmlOf(plan.plannedPerDay, perDay)],
      ["Measured refetches", htmlOf(plan.achievedPerDay, perDay)],
      ["Budget of online crawlers", htmlOf(plan.allowedPerDay, perDay)],
      capacityPerDay !== null && ["Measured fleet capacity", htmlOf(capacityPerDay, perDay)],
      correction !== 1 && ["Correction of the plan", `× ${correction.toFixed(2)}`],
      freshness !== null && ["Expected freshness, by importance", percentText(freshness)],
    ),
    groups.length > 0 &&
      section("Priority groups, most changing first", [
        table<PlannedGroup>({
          ...{ label: "Priority groups", rows: groups },
          columns: [
            column("", "Group", (group) => groups.indexOf(group) + 1),
            member("channels", "Hosts and channels", { unit: "count" }),
            member("pages", "Pages", { unit: "count" }),
            column("", "A page changes every", ({ changesPerDay }) => spanWords(86_400 / changesPerDay), {
              kind: "number",
            }),
            member("initialSeconds", "First interval", { unit: "seconds" }),
            member("intervalSeconds", "Interval", { unit: "seconds" }),
            column("", "Successful tasks", ({ successRate }) => successRate || null, { unit: "share" }),
          ],
        }),
      ]),
  ]);
}
