/**
 * Who is accused by comparing pages, and after how many of them: simulated fleets on a web that changes, rotates and
 * differs by place (honest, liars, veterans, and cloaks: liars of another version, or two together), probe reports on measured and generated round trips (probes), and liars of few
 * chosen subnets (chosen). Run: npm run bench -- trust [part] [fleets] [first seed]. The rules were tuned on seeds
 * below 200,000; reported are seeds from there on, which were looked at once.
 */

import type { SimulationInstance } from "#coordinator/delegation/simulation/simulation";
import { type ProbedSubnet, probeLies } from "#coordinator/trust/probe-plausibility";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { worldInstance } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { SeededRandom } from "#ops/world/seeded-random";
import { familyOf } from "./simulate/instances/named-instance.ts";
import { hasMatrices, measuredFleets, planetlabMatrix } from "./simulate/measured-fleets.ts";
import { type LiarFigures, simulateLiars } from "./trust/probe-liars.ts";
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
if (part === "all" || part === "chosen") measureChosen(fleetsOr(2));

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
}

/** Liars of few chosen subnets, where the winner's word is taken and where it is held against others, on the same seeds. */
function measureChosen(fleets: number): void {
  const names = ["world", "delay-space", ...(hasMatrices ? ["planetlab-9", "planetlab-1-loose"] : [])];
  const fleetsOf = [
    { crawlers: 12, liars: 1, sites: 300, seeds: 4 * fleets },
    { crawlers: 12, liars: 2, sites: 300, seeds: 4 * fleets, colluding: true },
    { crawlers: 12, liars: 1, sites: 300, seeds: 4 * fleets, halfIpv6: true },
    { crawlers: 200, liars: 20, sites: 400, seeds: fleets },
    { crawlers: 200, liars: 0, sites: 400, seeds: fleets },
    { crawlers: 12, liars: 0, sites: 300, seeds: 4 * fleets },
  ];
  for (const name of names) for (const fleet of fleetsOf) tellChosen(name, fleet);
}

interface ChosenFleet {
  readonly crawlers: number;
  readonly liars: number;
  readonly sites: number;
  readonly seeds: number;
  readonly colluding?: boolean;
  readonly halfIpv6?: boolean;
}

function tellChosen(name: string, fleet: ChosenFleet): void {
  const { crawlers, liars, sites, seeds, colluding = false, halfIpv6 = false } = fleet;
  const family = familyOf(name)!;
  const matrix = family.matrix === null ? null : planetlabMatrix(family.matrix);
  const source = family.source({ crawlers, sites }, matrix);
  const told = Array.from({ length: seeds }, (_, index) => {
    const seed = firstSeed + index;
    const instance = source.instance(seed);
    const settings = { seed, liars, chosenEach: 10, claimMs: 5, colluding, halfIpv6 };
    return [false, true].map((hasWitnesses) => simulateLiars(instance, { ...settings, hasWitnesses }));
  });
  const shown = ([0, 1] as const).map((at) => {
    const runs = told.map((sides) => sides[at]!);
    const sum = (of: keyof LiarFigures) => runs.reduce((total, run) => total + run[of], 0);
    const shares = runs.flatMap(({ kept, chosen }) => (chosen === 0 ? [] : [(100 * kept) / chosen]));
    const spread =
      shares.length === 0
        ? "none chosen"
        : `keeps ${sum("kept")} of ${sum("chosen")} (${Math.round(median(shares))} %, ${Math.round(Math.min(...shares))} to ${Math.round(Math.max(...shares))}), ${mean(sum("keptMs"), sum("kept"))} ms farther`;
    return `${at === 0 ? "base" : "now"}: ${spread}; ${(sum("probes") / sum("targets")).toFixed(2)} probes; ${mean(sum("honestExcessMs"), sum("honestTargets"))} ms off the nearest; accused ${sum("accusedLiars")} liars, ${sum("accusedHonest")} of ${seeds * (crawlers - liars)} honest`;
  });
  const kind = `${liars} of ${crawlers}${colluding ? ", vouching" : ""}${halfIpv6 ? ", half IPv6" : ""}`;
  console.log(`${name} | ${kind} | ${shown.join(" | ")}`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

function mean(sum: number, count: number): string {
  return count === 0 ? "0" : (sum / count).toFixed(1);
}

/** Honest fleets; then one in each is beside everything. */
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
  const fast = run((crawler, rttMs) => (crawler === 0 ? Math.min(rttMs, 5) : rttMs));
  const caught = fast.filter((ids) => ids.includes(1)).length;
  const innocent = fast.flat().filter((id) => id !== 1).length;
  console.log(
    `${name}: ${honest} of ${12 * fleets.length} honest accused; too fast caught in ${caught} of ${fleets.length}; ${innocent} innocent beside them`,
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

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
