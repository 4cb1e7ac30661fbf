/** What each country's subnets come to: one pass over all of them, in short turns, good for a while. */
import { leastSamples } from "#core/format";
import { countryOf } from "../subnets/subnet.ts";
import type { ExploredWorld } from "./explored-tree.ts";
import { addOne, type Parts } from "./roll-ups.ts";
import type { WorkTurns } from "./time-slices.ts";

export interface CountryFigures {
  /** ISO 3166-1; null: registered without one. */
  readonly country: string | null;
  readonly subnets: number;
  /** By their crawler's number; 0 is nobody. */
  readonly byCrawler: Parts;
  /** Assigned directly, with a round-trip time. */
  readonly measured: number;
  /** Of those; null under `leastSamples`, of which a median says too little. */
  readonly medianRttMs: number | null;
  readonly pagesPerDay: number;
  readonly dueHosts: number;
}

const placesPerPiece = 4096;

/** Most subnets first. */
export async function countryFigures(world: ExploredWorld, turns: WorkTurns): Promise<CountryFigures[]> {
  const { labels } = world.columns;
  const byLabel: (Counted | undefined)[] = [];
  const byCountry = new Map<string | null, Counted>();
  const countedOf = (label: number): Counted => {
    const known = byLabel[label];
    if (known !== undefined) return known;
    const country = countryOf(label);
    const counted = byCountry.get(country) ?? emptyCounted();
    byCountry.set(country, counted);
    byLabel[label] = counted;
    return counted;
  };
  for (let place = 0; place < labels.length; place += 1) {
    count(world, place, countedOf(labels[place] as number));
    if (place % placesPerPiece === 0) await turns.breathe();
  }
  for (const place of world.loads.places) {
    const counted = countedOf(labels[place] as number);
    counted.pagesPerDay += world.loads.pagesPerDayAt(place);
    counted.dueHosts += world.loads.dueHostsAt(place);
  }
  return [...byCountry]
    .map(([country, { rtts, pagesPerDay, ...counted }]) => ({
      ...{ country, ...counted },
      pagesPerDay: Math.round(pagesPerDay),
      medianRttMs: counted.measured < leastSamples ? null : medianOf(rtts, counted.measured),
    }))
    .sort((a, b) => b.subnets - a.subnets || (a.country ?? "").localeCompare(b.country ?? ""));
}

interface Counted {
  subnets: number;
  measured: number;
  pagesPerDay: number;
  dueHosts: number;
  readonly byCrawler: Parts;
  /** How many have an RTT of each bin. */
  readonly rtts: Uint32Array;
}

const emptyCounted = (): Counted => ({
  ...{ subnets: 0, measured: 0, pagesPerDay: 0, dueHosts: 0 },
  byCrawler: [],
  rtts: new Uint32Array(binCount),
});

function count(world: ExploredWorld, place: number, into: Counted): void {
  const row = world.rows[place] as number;
  into.subnets += 1;
  addOne(into.byCrawler, row < 0 ? 0 : world.crawlerAt(row));
  // What inherits a measurement is not another one.
  if (row < 0 || !world.isOwn(place)) return;
  const rttMs = world.rttMsAt(row);
  if (Number.isNaN(rttMs)) return;
  into.measured += 1;
  into.rtts[binOf(rttMs)] = (into.rtts[binOf(rttMs)] as number) + 1;
}

// Millions of values in bins a hundredth wide, from 0.05 ms to over 100 s: a median is right to half of that.

const lowestMs = 0.05;
const binWidth = Math.log(1.01);
const binCount = 1500;

const binOf = (rttMs: number): number =>
  Math.max(0, Math.min(binCount - 1, Math.floor(Math.log(Math.max(rttMs, lowestMs) / lowestMs) / binWidth)));

function medianOf(bins: Uint32Array, all: number): number {
  let before = 0;
  let bin = 0;
  while (bin < binCount - 1 && before + (bins[bin] as number) <= (all - 1) / 2) {
    before += bins[bin] as number;
    bin += 1;
  }
  const ms = lowestMs * Math.exp((bin + 0.5) * binWidth);
  return Number(ms.toPrecision(2));
}
