/**
 * Recalibration and the crawlers' RTTs to each other: false alarms and delays over many host-days, what watching
 * a fetch costs beside checking its result against the schema, and what it costs `nearest` that a large fleet
 * does not know all its distances. Run: npm run bench -- calibration; parts: alarms, cpu, peers, ageing (a
 * simulated year of moves, with re-checks spent in several ways).
 */

import { FetchWatch } from "#coordinator/delegation/recalibration/fetch-watch";
import { defaultRecalibrationRule } from "#coordinator/delegation/recalibration/rule";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { formatTable } from "#ops/cli/output";
import { worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { fetchResultSchema } from "#protocol/result";
import { generatedResults } from "../protocol/generated-results.ts";
import { quietModel } from "../support/calibration-model.ts";
import { MeasuredFleet } from "./calibration/measured-fleet.ts";
import {
  type AgeingResult,
  checkRules,
  equalKinds,
  simulateAgeing,
  usualKinds,
} from "./simulate/calibration/ageing.ts";
import { type CalibrationOptions, simulateCalibration } from "./simulate/calibration/calibration.ts";

const part = process.argv[2] ?? "all";
const rule = defaultRecalibrationRule;

const models: Readonly<Record<string, Partial<CalibrationOptions>>> = {
  "noise 4 ms": {},
  "a connection each fetch": { fetchesPerConnection: 1 },
  "spikes 1 %": { spikeShare: 0.01 },
  "loss 1 %": { lossShare: 0.01 },
  "daily wave 20 %": { dailyWave: 0.2 },
  "pages (30 ms, sigma 0.5)": { serverMs: 30, pageSpread: 0.5 },
  "all of it": { spikeShare: 0.01, lossShare: 0.01, dailyWave: 0.2, serverMs: 30, pageSpread: 0.5 },
};

const changes = [
  ["×1.3", { changeFactor: 1.3 }],
  ["×1.5", { changeFactor: 1.5 }],
  ["×2", { changeFactor: 2 }],
  ["+30 ms", { changeFactor: 1, changeMs: 30 }],
] as const;

if (part === "all" || part === "alarms") measureAlarms();
if (part === "all" || part === "cpu") measureCpu();
if (part === "all" || part === "ageing") measureAgeing();
if (part === "all" || part === "peers") for (const crawlers of [200, 1000]) measurePeers(crawlers);

function measureAlarms(): void {
  console.log("false alarms, % of host-days (alarms / host-days): at 24 fetches a day | at 240");
  for (const [name, model] of Object.entries(models)) {
    const rates = [
      { fetchesPerDay: 24, hosts: 250, days: 24 },
      { fetchesPerDay: 240, hosts: 250, days: 6 },
    ].map((size) => {
      const { falseAlarmPct, falseAlarms, hostDays } = simulateCalibration(
        { ...quietModel, ...model, ...size },
        rule,
      );
      return `${falseAlarmPct.toFixed(3)} (${falseAlarms} / ${hostDays})`;
    });
    console.log(`${name} | ${rates.join(" | ")}`);
  }
  console.log(
    "\nfound within 10 fetches, %, of all and of those by 10 ms or more (median, 95th percentile in fetches)",
  );
  for (const [name, model] of Object.entries(models)) {
    const found = changes.map(([change, options]) => {
      const size = { fetchesPerDay: 240, hosts: 500, days: 1 };
      const result = simulateCalibration({ ...quietModel, ...model, ...size, ...options }, rule);
      const delays = `${result.medianDelay ?? "–"}, ${result.p95Delay ?? "–"}`;
      return `${change} ${result.foundWithin10Pct.toFixed(0)}, ${result.foundWithin10Of10msPct.toFixed(0)} (${delays})`;
    });
    console.log(`${name} | ${found.join(" | ")}`);
  }
}

function measureCpu(): void {
  const results = generatedResults({ count: 200, seed: 20_260_101, hosts: 60 }).map(({ result }): unknown =>
    JSON.parse(JSON.stringify(result)),
  );
  const draw = seededRandom(1);
  const watch = new FetchWatch(rule, 50_000);
  const hosts = 20_000;
  let atMs = 0;
  const watched = (count: number) => {
    for (let fetch = 0; fetch < count; fetch++) {
      const host = fetch % hosts;
      atMs += 10;
      const firstByteMs = 20 + (host % 100) - 4 * Math.log(1 - draw());
      const connectMs = fetch % 10 === 0 ? firstByteMs : null;
      watch.note({
        hostKey: String(host),
        crawlerId: asCrawlerId(1 + (host % 50)),
        atMs,
        connectMs,
        firstByteMs,
      });
    }
  };
  watched(20 * hosts);
  const ratios: number[] = [];
  const perFetchUs: number[] = [];
  for (let run = 0; run < 7; run++) {
    const watchUs = cpuUs(() => watched(50_000)) / 50_000;
    const checkUs = cpuUs(() => checkAll(results)) / results.length;
    perFetchUs.push(watchUs);
    ratios.push(watchUs / checkUs);
  }
  const sorted = ratios.toSorted((a, b) => a - b);
  const us = perFetchUs.toSorted((a, b) => a - b)[3]!.toFixed(1);
  console.log(
    `\nwatching a fetch, over checking its result: ${sorted[3]!.toFixed(3)} (${sorted[0]!.toFixed(3)} to ${sorted[6]!.toFixed(3)}); ${us} µs`,
  );
}

function checkAll(results: readonly unknown[]): void {
  for (const result of results) fetchResultSchema.parse(result);
}

function measurePeers(crawlers: number): void {
  const instance = worldInstance(generateWorld({ seed: 1, crawlers, sites: 1500 }));
  const fleet = new MeasuredFleet(instance);
  const line = (name: string, figures: ReturnType<MeasuredFleet["fullFigures"]>, more = "") =>
    console.log(
      `${name} | ${figures.within5msPct.toFixed(1)} | ${figures.probesPerUrl.toFixed(2)} | ${figures.meanExcessMs.toFixed(2)} | ${more}`,
    );
  console.log(
    `\n${crawlers} crawlers, 1500 sites | within 5 ms % | probes per URL | mean excess ms | measured`,
  );
  line("every pair measured", fleet.fullFigures(1), `each measures ${crawlers - 1}`);
  let turns = 0;
  for (const until of [1, 2, 4, 8]) {
    let most = 0;
    const planUs = cpuUs(() => {
      for (; turns < until; turns++) most = Math.max(most, fleet.turn());
    });
    const share = `${(100 * fleet.knownShare()).toFixed(0)} % of pairs, ${most} each at most, plan ${(planUs / 1000).toFixed(0)} ms`;
    line(`after ${until * 10} minutes`, fleet.figures(1), share);
  }
}

function cpuUs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function measureAgeing(): void {
  const seeds = [1, 2, 3];
  const worlds = [
    ["four kinds of network", { kinds: usualKinds, alarmShare: 0 }],
    ["four kinds, fetch times show half of the moves", { kinds: usualKinds, alarmShare: 0.5 }],
    ["all networks alike", { kinds: equalKinds, alarmShare: 0 }],
  ] as const;
  for (const [name, world] of worlds) {
    for (const meanDays of [30, 90]) {
      const options = { subnets: 3000, days: 365, meanDays, ...world };
      console.log(
        `\n${name}; each checked once in ${meanDays} days on average; ${options.subnets} subnets, a year, seeds 1 to 3`,
      );
      const rows = checkRules.map((rule) => {
        const results = seeds.map((seed) => simulateAgeing({ ...options, seed }, rule));
        const mean = (of: (result: AgeingResult) => number) =>
          results.reduce((sum, result) => sum + of(result), 0) / results.length;
        return [
          rule,
          mean(({ meanExcessMs }) => meanExcessMs).toFixed(2),
          mean(({ meanExcessMsLater }) => meanExcessMsLater).toFixed(2),
          `${(100 * mean(({ farOffShare }) => farOffShare)).toFixed(1)} %`,
          mean(({ checksPerDay }) => checksPerDay).toFixed(1),
          `${(100 * mean(({ foundShare }) => foundShare)).toFixed(1)} %`,
        ];
      });
      const titles = [
        "checks",
        "mean excess ms per page",
        "second half",
        "subnets off by > 5 ms",
        "checks a day",
        "found a move",
      ];
      console.log(
        formatTable(
          titles.map((title, at) => ({ title, ...(at > 0 && { align: "right" as const }) })),
          rows,
        ),
      );
    }
  }
}
