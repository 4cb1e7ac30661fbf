/** What was measured, as tables in Markdown: each seed's fleets, and over the seeds how far a strategy is before one interval. */
import type { FreshShares } from "./changing-web.ts";
import type { LiveFreshness, SeedFreshness } from "./live-freshness.ts";

type Share = Exclude<keyof FreshShares, "pages">;

export function runTable({ strategies, fixed }: SeedFreshness): string {
  const head =
    "| strategy | pages | fetches/s | fresh | expected | by importance | expected | found a change | plans before, while measured | seconds behind | crawlers swapped |";
  const rows = [...strategies, ...fixed].map((run) => runRow(run.strategy, run));
  return [head, rule(head), ...rows].join("\n");
}

function runRow(name: string, run: LiveFreshness): string {
  return row([
    name,
    run.samples.at(-1)?.pages ?? 0,
    run.fetchesPerSecond.toFixed(2),
    ...(["plain", "expected", "weighted", "expectedWeighted"] as const).map((of) => percent(mean(run, of))),
    percent(run.changedShare),
    run.plans.join(", "),
    run.lateSeconds.toFixed(1),
    run.swaps,
  ]);
}

/** One entry a seed. */
export function summaryTable(seeds: readonly SeedFreshness[]): string {
  const head =
    "| strategy | fetches/s | by importance | of one interval with as many fetches | points more | points more, expected | all pages alike, expected |";
  const rows = (seeds[0]?.strategies ?? []).map(({ strategy }) => {
    const pairs = seeds.flatMap(({ strategies, fixed }) =>
      strategies.filter((live) => live.strategy === strategy).map((live) => ({ live, fixed })),
    );
    const more = (of: Share) =>
      pairs.map(({ live, fixed }) => 100 * (mean(live, of) - fixedAt(fixed, live.fetchesPerSecond, of)));
    return row([
      strategy,
      spread(
        pairs.map(({ live }) => live.fetchesPerSecond),
        2,
      ),
      spread(
        pairs.map(({ live }) => 100 * mean(live, "weighted")),
        1,
      ),
      spread(
        pairs.map(({ live, fixed }) => 100 * fixedAt(fixed, live.fetchesPerSecond, "weighted")),
        1,
      ),
      spread(more("weighted"), 1),
      spread(more("expectedWeighted"), 1),
      spread(more("expected"), 1),
    ]);
  });
  return [head, rule(head), ...rows].join("\n");
}

/** What one interval with so many fetches would keep fresh: on the straight line between the two fleets beside it. */
function fixedAt(fixed: readonly LiveFreshness[], fetchesPerSecond: number, of: Share): number {
  const above = fixed.findIndex((run) => run.fetchesPerSecond >= fetchesPerSecond);
  const right = Math.max(1, above === -1 ? fixed.length - 1 : above);
  const [low, high] = [fixed[right - 1]!, fixed[right]!];
  const along = (fetchesPerSecond - low.fetchesPerSecond) / (high.fetchesPerSecond - low.fetchesPerSecond);
  return mean(low, of) + along * (mean(high, of) - mean(low, of));
}

/** Why a seed's figures say little of a strategy; empty: nothing does. */
export function doubts({ strategies, fixed }: SeedFreshness, intervalSeconds: number): string[] {
  const least = fixed[0]!.fetchesPerSecond;
  const most = fixed.at(-1)!.fetchesPerSecond;
  return [
    ...strategies
      .filter(({ fetchesPerSecond }) => fetchesPerSecond < 0.9 * least || fetchesPerSecond > 1.1 * most)
      .map(
        ({ strategy, fetchesPerSecond }) =>
          `${strategy}: ${fetchesPerSecond.toFixed(2)} fetches a second, the fleets with one interval made ${least.toFixed(2)} to ${most.toFixed(2)}`,
      ),
    ...[...strategies, ...fixed]
      .filter(({ lateSeconds }) => lateSeconds > intervalSeconds / 5)
      .map(
        ({ strategy, lateSeconds }) =>
          `${strategy}: ${lateSeconds.toFixed(1)} s behind, the machine was too busy`,
      ),
    ...strategies
      .filter(({ strategy, plans }) => strategy !== "optimal" && plans[0] < 2)
      .map(({ strategy }) => `${strategy}: no groups were reassigned before the measurement`),
  ];
}

function mean({ samples }: LiveFreshness, of: Share): number {
  return samples.reduce((sum, sample) => sum + sample[of], 0) / Math.max(1, samples.length);
}

/** The median, with the least and the most. */
function spread(values: readonly number[], digits: number): string {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
  const [least, most] = [sorted[0]!, sorted.at(-1)!].map((value) => value.toFixed(digits));
  return `${middle.toFixed(digits)} (${least} to ${most})`;
}

const row = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
const rule = (head: string) => head.replace(/[^|]+/g, "---");
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
