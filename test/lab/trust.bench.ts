/**
 * Liars of few chosen subnets, where the winner's word is taken and where it is held against others, on the same seeds.
 * Run: npm run bench -- trust [fleets] [first seed]. The rule was tuned on seeds below 200,000; reported are seeds from
 * there on, which were looked at once (test/bench/results/trust.md).
 */
import { sharedFile } from "#ops/cli/shared-data";
import { familyOf, matrixFile, readLatencyMatrix } from "./simulate/instances/named-instance.ts";
import { type LiarFigures, simulateLiars } from "./trust/probe-liars.ts";

const [fleetsText = "2", seedText = "200000"] = process.argv.slice(2);
const fleets = Number(fleetsText);
const firstSeed = Number(seedText);

interface ChosenFleet {
  readonly crawlers: number;
  readonly liars: number;
  readonly sites: number;
  readonly seeds: number;
  readonly colluding?: boolean;
  readonly halfIpv6?: boolean;
}

const fleetsOf: readonly ChosenFleet[] = [
  { crawlers: 12, liars: 1, sites: 300, seeds: 4 * fleets },
  { crawlers: 12, liars: 2, sites: 300, seeds: 4 * fleets, colluding: true },
  { crawlers: 12, liars: 1, sites: 300, seeds: 4 * fleets, halfIpv6: true },
  { crawlers: 200, liars: 20, sites: 400, seeds: fleets },
  { crawlers: 200, liars: 0, sites: 400, seeds: fleets },
  { crawlers: 12, liars: 0, sites: 300, seeds: 4 * fleets },
];

for (const name of ["world", "delay-space", "planetlab-9", "planetlab-1-loose"]) {
  const family = familyOf(name)!;
  const file = family.matrix === null ? null : sharedFile(matrixFile(family.matrix));
  if (file !== null && !file.isThere) console.log(`${name}: left out: ${file.absence}`);
  else {
    const matrix = file === null ? null : await readLatencyMatrix(file.path);
    for (const fleet of fleetsOf)
      console.log(`${name} | ${fleetWords(fleet)} | ${chosen(fleet, family.source(fleet, matrix))}`);
  }
}

function chosen(fleet: ChosenFleet, source: { instance(seed: number): Parameters<typeof simulateLiars>[0] }) {
  const { crawlers, liars, seeds, colluding = false, halfIpv6 = false } = fleet;
  const told = Array.from({ length: seeds }, (_, index) => {
    const seed = firstSeed + index;
    const settings = { seed, liars, chosenEach: 10, claimMs: 5, colluding, halfIpv6 };
    const instance = source.instance(seed);
    return [false, true].map((hasWitnesses) => simulateLiars(instance, { ...settings, hasWitnesses }));
  });
  return ([0, 1] as const)
    .map((side) => {
      const runs = told.map((sides) => sides[side]!);
      const sum = (of: keyof LiarFigures) => runs.reduce((total, run) => total + run[of], 0);
      return (
        `${side === 0 ? "base" : "now"}: keeps ${sum("kept")} of ${sum("chosen")}, ${mean(sum("keptMs"), sum("kept"))} ms ` +
        `farther; ${mean(sum("probes"), sum("targets"))} probes; ${mean(sum("honestExcessMs"), sum("honestTargets"))} ms ` +
        `off the nearest; accused ${sum("accusedLiars")} liars, ${sum("accusedHonest")} of ${seeds * (crawlers - liars)} ` +
        "honest"
      );
    })
    .join(" | ");
}

function fleetWords({ crawlers, liars, colluding, halfIpv6 }: ChosenFleet): string {
  return `${liars} of ${crawlers}${colluding ? ", vouching" : ""}${halfIpv6 ? ", half IPv6" : ""}`;
}

function mean(sum: number, count: number): string {
  return count === 0 ? "0" : (sum / count).toFixed(2);
}
