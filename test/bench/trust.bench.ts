/**
 * Who is accused by comparing pages, and after how many of them: simulated fleets on a web that changes, rotates and
 * differs by place (honest, liars, veterans, and cloaks: liars of another version, or two together), probe reports on measured and generated round trips (probes), and the
 * emulated Internet (live). Run: npm run bench -- trust [part] [fleets] [first seed]. The rules were tuned on seeds
 * below 200,000; reported are seeds from there on, which were looked at once.
 */

import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { impossibleReports, type ProbedSubnet, probeLies } from "#coordinator/trust/probe-plausibility";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { worldInstance } from "#ops/simulate/repeat-policies";
import { generateWorld } from "#ops/world/generate-world";
import { SeededRandom } from "#ops/world/seeded-random";
import { hasMatrices, measuredFleets } from "../ops/world/measured-fleets.ts";
import { catchLiveLiar } from "./trust/live-liar.ts";
import { type Lie, lies, simulateFleet } from "./trust/simulated-fleet.ts";

const [part = "all", fleetsText = "", seedText = ""] = process.argv.slice(2);
const fleetsOr = (usual: number) => (fleetsText === "" ? usual : Number(fleetsText));
const firstSeed = seedText === "" ? 200_000 : Number(seedText);
const size = { crawlers: 12, hostsEach: 120 };

if (part === "all" || part === "honest") measureHonest(fleetsOr(250));
if (part === "all" || part === "liars") for (const lie of lies) measureLiars(lie, fleetsOr(25), 0);
if (part === "all" || part === "veterans")
  for (const lie of ["mixed", "spam"] as const) measureLiars(lie, fleetsOr(10), 3000);
if (part === "all" || part === "cloaks")
  for (const lie of ["text", "mixed"] as const) measureCloaks(lie, fleetsOr(12));
if (part === "all" || part === "probes") measureProbes();
if (part === "live") for (const seed of [1, 2, 3]) await measureLive(seed);

function measureHonest(fleets: number): void {
  let [accused, checks, extra] = [0, 0, 0];
  const verdicts = new Map<string, number>();
  const highest: number[] = [];
  for (let index = 0; index < fleets; index += 1) {
    const outcome = simulateFleet({ ...size, seed: firstSeed + index, pagesEach: 4000, liars: [] });
    accused += outcome.accused.length;
    checks += outcome.checks;
    extra += outcome.extraShare / fleets;
    highest.push(...outcome.highest);
    for (const [verdict, count] of outcome.verdicts)
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + count);
  }
  highest.sort((a, b) => b - a);
  console.log(
    `honest: ${accused} of ${12 * fleets} crawlers accused over 4000 pages each; ${checks} comparisons`,
  );
  console.log(
    `  extra fetches: ${percent(extra)}; highest scores: ${highest
      .slice(0, 8)
      .map((score) => score.toFixed(1))
      .join(", ")}`,
  );
  console.log(
    `  ${[...verdicts].map(([verdict, count]) => `${verdict} ${percent(count / checks)}`).join(", ")}`,
  );
}

function measureLiars(lie: Lie, fleets: number, fromPage: number): void {
  for (const steady of [true, false]) {
    const caughtAt: number[] = [];
    let innocent = 0;
    for (let index = 0; index < fleets; index += 1) {
      const liar = { crawler: index % 12, lie, share: 0.05, steady, fromPage };
      const outcome = simulateFleet({
        ...size,
        seed: firstSeed + index,
        pagesEach: fromPage + 2000,
        liars: [liar],
      });
      const own = outcome.accused.find(({ crawler }) => crawler === liar.crawler);
      caughtAt.push(own === undefined ? Number.POSITIVE_INFINITY : own.atPage - fromPage);
      innocent += outcome.accused.length - (own === undefined ? 0 : 1);
    }
    caughtAt.sort((a, b) => a - b);
    const caught = caughtAt.filter((at) => at <= 2000).length;
    console.log(
      `${fromPage === 0 ? "newcomer" : "veteran"} | ${lie} | ${steady ? "the same pages" : "drawn anew"} | ${caught} of ${fleets} | ${at(caughtAt, 0.5)} | ${at(caughtAt, 0.9)} | ${innocent}`,
    );
  }
}

function at(sorted: readonly number[], share: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** The same liar under a version of its own, and with a second one that tells the same. */
function measureCloaks(lie: Lie, fleets: number): void {
  const plain = { lie, share: 0.05, steady: true, fromPage: 0 };
  const ways = [
    ["alone", [{}]],
    ["alone, a made-up version", [{ states: "made-up" }]],
    ["alone, another release that was offered", [{ states: "offered" }]],
    ["two that tell the same", [{}, {}]],
    ["two that tell the same, one made-up version", [{ states: "made-up" }, { states: "made-up" }]],
  ] as const;
  for (const [words, states] of ways) {
    let [caught, innocent] = [0, 0];
    for (let index = 0; index < fleets; index += 1) {
      const liars = states.map((stated, at) => ({ ...plain, ...stated, crawler: (index + 5 * at) % 12 }));
      const { accused } = simulateFleet({ ...size, seed: firstSeed + index, pagesEach: 2000, liars });
      const guilty = accused.filter(({ crawler }) => liars.some((liar) => liar.crawler === crawler)).length;
      caught += guilty;
      innocent += accused.length - guilty;
    }
    console.log(`${lie} | ${words} | ${caught} of ${fleets * states.length} | ${innocent}`);
  }
}

function measureProbes(): void {
  if (hasMatrices) tellProbes("measured (PlanetLab), 12 crawlers", measuredFleets(12, 20));
  const worlds = Array.from({ length: 20 }, (_, seed) =>
    worldInstance(generateWorld({ seed: seed + 1, sites: 300, crawlers: 12 })),
  );
  tellProbes("generated worlds, 12 crawlers", worlds);
  if (hasMatrices) tellChosen("measured (PlanetLab), 12 crawlers", measuredFleets(12, 20));
  tellChosen("generated worlds, 12 crawlers", worlds);
}

/** One in each fleet is beside a few chosen targets: what it wins by that, and what honest ones lose by the rule. */
function tellChosen(name: string, fleets: readonly SimulationInstance[]): void {
  for (const chosen of [0, 3, 9, 30, 90]) {
    const sums = { wins: 0, winsMs: 0, kept: 0, keptMs: 0, accused: 0, honestWins: 0, honestLost: 0 };
    for (const fleet of fleets) {
      const crawlerRtt = {
        crawlers: fleet.crawlers.map((_, index) => asCrawlerId(index + 1)),
        rttMs: (from: number, to: number) => fleet.crawlerRtt[from - 1]![to - 1]!,
        placeOf: () => null,
      };
      const honest = roundsOf(fleet, (_, rttMs) => rttMs);
      // Of those where it was asked and is not the nearest, spread over all.
      const possible = honest.filter(
        ({ probes }) => winnerOf(probes) !== 1 && probes.some(({ crawlerId }) => crawlerId === 1),
      );
      const every = Math.max(1, Math.floor(possible.length / Math.max(1, chosen)));
      const targets = new Set(
        possible
          .filter((_, at) => at % every === 0)
          .slice(0, chosen)
          .map(({ subnetId }) => subnetId),
      );
      const told = honest.map(({ subnetId, probes }) => ({
        subnetId,
        probes: probes.map((probe) =>
          probe.crawlerId === 1 && targets.has(subnetId)
            ? { ...probe, rttMs: Math.min(5, probe.rttMs) }
            : probe,
        ),
      }));
      const isAccused = probeLies(told, crawlerRtt).some(({ crawlerId }) => crawlerId === 1);
      const impossible = new Set(
        impossibleReports(told, crawlerRtt).map(({ crawlerId, subnetId }) => `${crawlerId} ${subnetId}`),
      );
      sums.accused += isAccused ? 1 : 0;
      for (const { subnetId, probes } of told) {
        const winner = winnerOf(probes);
        const isLost = impossible.has(`${winner} ${subnetId}`);
        if (targets.has(subnetId)) {
          const costMs = costOf(honest.find((one) => one.subnetId === subnetId)!.probes);
          sums.wins += winner === 1 ? 1 : 0;
          sums.winsMs += winner === 1 ? costMs : 0;
          const isKept = winner === 1 && !isLost && !isAccused;
          sums.kept += isKept ? 1 : 0;
          sums.keptMs += isKept ? costMs : 0;
        } else {
          sums.honestWins += 1;
          sums.honestLost += isLost ? 1 : 0;
        }
      }
    }
    console.log(
      `${name}: a liar of ${chosen} chosen subnets: accused in ${sums.accused} of ${fleets.length}; won ${sums.wins}, ${mean(sums.winsMs, sums.wins)} ms farther than the nearest asked; keeps ${sums.kept}, ${mean(sums.keptMs, sums.kept)} ms; of ${sums.honestWins} honest wins ${sums.honestLost} are probed again`,
    );
  }
}

/** By how much the liar is farther than the nearest that was asked. */
function costOf(probes: ProbedSubnet["probes"]): number {
  const own = probes.find(({ crawlerId }) => crawlerId === 1)?.rttMs ?? 0;
  return own - Math.min(...probes.map(({ rttMs }) => rttMs));
}

function mean(sum: number, count: number): string {
  return count === 0 ? "0" : (sum / count).toFixed(1);
}

function winnerOf(probes: ProbedSubnet["probes"]): number {
  return probes.reduce((best, probe) => (probe.rttMs < best.rttMs ? probe : best)).crawlerId;
}

/** One in each fleet is beside everything; then one that adds 100 ms to three times what it measured. */
function tellProbes(name: string, fleets: readonly SimulationInstance[]): void {
  const run = (report: (crawler: number, rttMs: number) => number) =>
    fleets.map((fleet) =>
      probeLies(roundsOf(fleet, report), {
        crawlers: fleet.crawlers.map((_, index) => asCrawlerId(index + 1)),
        rttMs: (from, to) => fleet.crawlerRtt[from - 1]![to - 1]!,
        placeOf: () => null,
      }).map(({ crawlerId }) => crawlerId as number),
    );
  const honest = run((_, rttMs) => rttMs).flat().length;
  const [fast, slow] = [
    run((crawler, rttMs) => (crawler === 0 ? Math.min(rttMs, 5) : rttMs)),
    run((crawler, rttMs) => (crawler === 0 ? 3 * rttMs + 100 : rttMs)),
  ];
  const caught = (accused: readonly (readonly number[])[]) => accused.filter((ids) => ids.includes(1)).length;
  const innocent = [...fast, ...slow].flat().filter((id) => id !== 1).length;
  console.log(
    `${name}: ${honest} of ${12 * fleets.length} honest accused; too fast caught in ${caught(fast)} of ${fleets.length}, too slow in ${caught(slow)}; ${innocent} innocent beside them`,
  );
}

/** As rounds are: three of the six nearest are asked. */
function roundsOf(
  { targets }: SimulationInstance,
  report: (crawler: number, rttMs: number) => number,
): ProbedSubnet[] {
  const random = new SeededRandom(5);
  return targets.map((site, target) => {
    const rtt = Array.from(site.rtt);
    const nearest = rtt
      .map((rttMs, crawler) => ({ rttMs, crawler }))
      .sort((a, b) => a.rttMs - b.rttMs)
      .slice(0, 6);
    const asked = nearest
      .map((one) => ({ ...one, order: random.next() }))
      .sort((a, b) => a.order - b.order)
      .slice(0, 3);
    if (target % 3 === 0 && !asked.some(({ crawler }) => crawler === 0))
      asked.push({ crawler: 0, rttMs: rtt[0]!, order: 0 });
    return {
      subnetId: asSubnetId(target + 1),
      probes: asked.map(({ crawler, rttMs }) => ({
        crawlerId: asCrawlerId(crawler + 1),
        rttMs: report(crawler, rttMs),
      })),
    };
  });
}

async function measureLive(seed: number): Promise<void> {
  const figures = await catchLiveLiar({ seed, crawlers: 12, sites: 240, share: 0.05, mostSeconds: 240 });
  console.log(JSON.stringify({ seed, ...figures }));
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
