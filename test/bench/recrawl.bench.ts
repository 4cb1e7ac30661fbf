/**
 * How fresh the index is under each recrawl strategy, live in the emulated Internet with pages that change by a known
 * process and crawlers that come and go. Run: npm run bench -- recrawl [strategies] [seconds] [seed] [folder]; with a
 * folder, the picture is drawn there. Beside it, how long the rates of a million pages take.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { optimalPlan } from "#core/recrawl/optimal-rates";
import { type RecrawlStrategy, recrawlStrategies } from "#core/recrawl/recrawl-plan";
import { axisFor } from "#ops/evaluate/pictures/axis";
import { drawLines } from "#ops/evaluate/pictures/line-picture";
import { SeededRandom } from "#ops/world/seeded-random";
import { type LiveFreshness, measureFreshness } from "./recrawl/live-freshness.ts";

const [strategiesText = "", secondsText = "", seedText = "", folder = ""] = process.argv.slice(2);
const strategies = recrawlStrategies.filter(
  (name) => strategiesText === "" || strategiesText.split(",").includes(name),
);
const measuredSeconds = secondsText === "" ? 90 : Number(secondsText);
const seed = seedText === "" ? 11 : Number(seedText);

measureRates();
const size = { sites: 10, crawlers: 2, pagesPerHost: 6, warmUpSeconds: 120, intervalSeconds: 30 };
// At once, each with a database, an Internet and a fleet of its own: what else the machine does is the same for all.
const found = await Promise.all(
  strategies.map(async (strategy) => await measureFreshness({ strategy, seed, measuredSeconds, ...size })),
);
console.log("| strategy | fresh | by importance | fetches/s | found a change | plans | crawlers swapped |");
console.log("|---|---|---|---|---|---|---|");
for (const run of found) console.log(line(run));
if (folder !== "") writeFileSync(join(folder, "recrawl-freshness.svg"), picture(found));

function line(run: LiveFreshness): string {
  const mean = (of: "plain" | "weighted") =>
    percent(run.samples.reduce((sum, sample) => sum + sample[of], 0) / run.samples.length);
  const { strategy, fetchesPerSecond, changedShare, plans, swaps } = run;
  return `| ${strategy} | ${mean("plain")} | ${mean("weighted")} | ${fetchesPerSecond.toFixed(1)} | ${percent(changedShare)} | ${plans} | ${swaps} |`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function picture(runs: readonly LiveFreshness[]): string {
  const roles = { fixed: "random", iir: "ipmicra", icr: "ipmicra-strict", optimal: "nearest" } as const;
  const panel = (title: string, of: "plain" | "weighted") => ({
    title,
    x: axisFor("seconds", [], { to: measuredSeconds }),
    y: axisFor("% of pages", [], { to: 100 }),
    lines: runs.map(({ strategy, samples }) => ({
      name: strategy,
      role: roles[strategy satisfies RecrawlStrategy],
      style: "line" as const,
      points: samples.map((sample) => ({ x: sample.second, y: 100 * sample[of] })),
    })),
  });
  return drawLines({
    title: "Pages whose stored copy is the current one",
    description: "Share of fresh pages over time under each recrawl strategy, plain and by importance.",
    panels: [panel("all pages alike", "plain"), panel("by importance", "weighted")],
  });
}

/** A million pages whose changes are spread over seven orders of magnitude; on 50,000 hosts with bounds, too. */
function measureRates(): void {
  const count = 1_000_000;
  const random = new SeededRandom(1);
  const pages = {
    changesPerDay: Float64Array.from({ length: count }, () => 10 ** (7 * random.next() - 5)),
    importance: Float64Array.from({ length: count }, () => random.next() ** 3),
    mostPerDay: new Float64Array(count).fill(24),
  };
  const hosts = {
    hostOf: Uint32Array.from({ length: count }, () => Math.floor(random.next() ** 2 * 50_000)),
    mostPerDay: new Float64Array(50_000).fill(40),
  };
  for (const [name, asked] of [
    ["a million pages", pages],
    ["the same on 50,000 hosts with bounds", { ...pages, hosts }],
  ] as const) {
    const times = [1, 2, 3].map(() => {
      const startMs = performance.now();
      optimalPlan(asked, count / 7);
      return performance.now() - startMs;
    });
    console.log(`optimal rates of ${name}: ${times.map((ms) => `${Math.round(ms)} ms`).join(", ")}`);
  }
}
