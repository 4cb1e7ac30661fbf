/** `nearcrawl recrawl`: how often pages are fetched again, what the fleet manages of it, and why. */
import { Command } from "commander";
import { createRecrawlPlanStore } from "#coordinator/recrawl/plan-store";
import { noPlan, type RecrawlAnswer, recrawlAnswer, type ToldPlan } from "#coordinator/recrawl/routes";
import { createReports } from "#coordinator/who/reads";
import { spanWords, whenWords } from "#core/format";
import type { Database } from "#db/server-database";
import { boundedInteger } from "../bounded-number.ts";
import { exitCodes } from "../exit-codes.ts";
import { printWatched, type WatchedOptions, withWatch } from "../fleet/watched.ts";
import { askedRange, type RangeOptions, withHistory, withRange } from "../history-text.ts";
import { formatTable, printable } from "../output.ts";
import { withDatabaseOptions } from "../read-database.ts";

interface RecrawlOptions extends WatchedOptions, RangeOptions {
  readonly limit: number;
}

export function recrawlCommand(): Command {
  return withRange(withWatch(withDatabaseOptions(new Command("recrawl"))))
    .description("when pages are fetched again: groups, intervals, planned and achieved rates, and why")
    .option("--limit <n>", "plans at most, the latest first", boundedInteger(1, 1000), 10)
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 no plan yet (every page after the same interval), 130 interrupted.\n\nExamples:\n  nearcrawl recrawl\n  nearcrawl policy set recrawl.strategy=optimal",
    )
    .action(async (options: RecrawlOptions) => await recrawl(options));
}

async function recrawl(options: RecrawlOptions): Promise<void> {
  const read = async ({ pool }: Database) => {
    const now = new Date();
    const range = askedRange(options, now);
    const [answer, history] = await Promise.all([
      recrawlAnswer(createRecrawlPlanStore(pool), options.limit, now),
      range === null ? null : createReports(pool, () => performance.now()).charts("recrawl", range),
    ]);
    if (!options.watch && answer.plans.length === 0) process.exitCode = exitCodes.notFound;
    return history === null ? answer : { ...answer, history };
  };
  await printWatched(options, read, (answer) =>
    withHistory(recrawlText(answer), "history" in answer ? answer.history : null),
  );
}

export function recrawlText({ plans, now }: RecrawlAnswer): string {
  const [plan] = plans;
  if (plan === undefined) return `${noPlan.what} ${noPlan.next}`;
  const parts = [planText(plan, new Date(now))];
  if (plan.groups.length > 0) parts.push(groupsText(plan));
  parts.push(historyText(plans, new Date(now)));
  return parts.join("\n\n");
}

function planText(plan: ToldPlan, now: Date): string {
  const { capacityPerDay, plannedPerDay, achievedPerDay, correction, freshness } = plan;
  const lines: (readonly [string, string])[] = [
    ["strategy", `${plan.strategy}, ${whenWords(plan.madeAt, now)}: ${printable(plan.reason, 200)}`],
    ["pages", plan.pages.toLocaleString("en-GB")],
    ["planned", perDay(plannedPerDay)],
    ["measured", perDay(achievedPerDay)],
    ["allowed", perDay(plan.allowedPerDay)],
    ...(capacityPerDay === null ? [] : [["managed", perDay(capacityPerDay)] as const]),
    ...(correction === 1 ? [] : [["corrected", `${correction.toFixed(2)} times`] as const]),
    ...(freshness === null
      ? []
      : [["current", `${(100 * freshness).toFixed(1)} % expected, by importance`] as const]),
  ];
  return lines.map(([name, value]) => `${name.padEnd(10)}${value}`).join("\n");
}

const perDay = (fetches: number | null) =>
  fetches === null ? "unknown" : `${Math.round(fetches).toLocaleString("en-GB")} fetches per day`;

function groupsText({ groups }: ToldPlan): string {
  return formatTable(
    ["group", "channels", "pages", "changes every", "first interval", "interval", "succeed"].map(right),
    groups.map((group, index) => [
      String(index + 1),
      group.channels.toLocaleString("en-GB"),
      group.pages.toLocaleString("en-GB"),
      spanWords(86_400 / group.changesPerDay),
      spanWords(group.initialSeconds),
      spanWords(group.intervalSeconds),
      group.successRate === 0 ? "" : `${Math.round(100 * group.successRate)} %`,
    ]),
  );
}

function historyText(plans: readonly ToldPlan[], now: Date): string {
  return formatTable(
    [
      { title: "made" },
      { title: "strategy" },
      right("planned/day"),
      right("measured/day"),
      right("current"),
      { title: "why" },
    ],
    plans.map((plan) => [
      whenWords(plan.madeAt, now),
      plan.strategy,
      rounded(plan.plannedPerDay),
      rounded(plan.achievedPerDay),
      plan.freshness === null ? "" : `${(100 * plan.freshness).toFixed(1)} %`,
      printable(plan.reason, 100),
    ]),
  );
}

const rounded = (value: number | null) => (value === null ? "" : Math.round(value).toLocaleString("en-GB"));
const right = (title: string) => ({ title, align: "right" as const });
