/**
 * How fresh the index is under each recrawl strategy, live in the emulated Internet with pages that change by a known
 * process and crawlers that come and go, beside one interval for all pages with as many fetches, over several seeds.
 * Run: npm run bench -- recrawl [strategies] [seconds] [seeds] [folder] [sites,warm-up]; the picture is drawn in the
 * folder, of the first seed. It takes twelve minutes. Before it, how long the rates of a million pages take.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { optimalPlan } from "#coordinator/recrawl/optimal-rates";
import { axisFor } from "#ops/evaluate/pictures/document";
import { drawLines } from "#ops/evaluate/pictures/line-picture";
import { SeededRandom } from "#ops/world/seeded-random";
import { doubts, runTable, summaryTable } from "./recrawl/freshness-tables.ts";
import { type LiveFreshness, measureFreshness, type SeedFreshness } from "./recrawl/live-freshness.ts";

const [strategiesText = "", secondsText = "", seedsText = "", folder = "", sizeText = ""] =
  process.argv.slice(2);
const strategies = (["iir", "icr", "optimal"] as const).filter(
  (name) => strategiesText === "" || strategiesText.split(",").includes(name),
);
const measuredSeconds = secondsText === "" ? 75 : Number(secondsText);
const seeds = seedsText === "" ? [11, 12, 13] : seedsText.split(",").map(Number);
const [sites = 24, warmUpSeconds = 130] = sizeText === "" ? [] : sizeText.split(",").map(Number);
const fixedSeconds = [11, 15, 21];
const size = {
  fixedSeconds,
  sites,
  crawlers: 2,
  pagesPerHost: 4,
  intervalSeconds: 15,
  warmUpSeconds,
  measuredSeconds,
};

measureRates();
const found: SeedFreshness[] = [];
for (const seed of seeds) {
  console.log(`seed ${seed}, load of the machine ${loadavg()[0]!.toFixed(1)}`);
  const one = await measureFreshness({ seed, strategies, ...size });
  found.push(one);
  console.log(runTable(one));
  for (const doubt of doubts(one, size.intervalSeconds)) console.log(`doubtful: ${doubt}`);
}
console.log(summaryTable(found));
console.log(`load of the machine at the end ${loadavg()[0]!.toFixed(1)}`);
if (folder !== "") writeFileSync(join(folder, "recrawl-freshness.svg"), picture(found[0]!));

function picture({ strategies: chosen, fixed }: SeedFreshness): string {
  const roles = {
    fixed: "random",
    iir: "ipmicra",
    icr: "ipmicra-strict",
    optimal: "nearest",
    ncis: "get-first",
  } as const;
  const line = (
    { strategy, samples, fetchesPerSecond }: LiveFreshness,
    of: "weighted" | "expectedWeighted",
  ) => ({
    name: `${strategy}, ${fetchesPerSecond.toFixed(1)}/s`,
    role: roles[strategy],
    style: strategy === "fixed" ? ("dashed" as const) : ("line" as const),
    points: samples.map((sample) => ({ x: sample.second, y: 100 * sample[of] })),
  });
  const panel = (title: string, of: "weighted" | "expectedWeighted") => ({
    title,
    x: axisFor("seconds", [], { to: measuredSeconds }),
    y: axisFor("% of pages, by importance", [], { to: 100 }),
    lines: [...chosen, ...fixed].map((run) => line(run, of)),
  });
  return drawLines({
    title: "Pages whose stored copy is the current one",
    description:
      "Share of fresh pages over time under each strategy, and under one interval for all pages of three lengths.",
    panels: [panel("as found", "weighted"), panel("as expected of the fetches", "expectedWeighted")],
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
