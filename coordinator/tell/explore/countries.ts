/** The totals of each country's subnets, computed in one pass in short turns. */
import { leastSamples } from "#core/format";
import { countryOf } from "../../place/subnets/subnet.ts";
import { addTo, type Counts, placesPerBlock } from "./crawler-counts.ts";
import type { CountryLine } from "./explore-api.ts";
import type { ExploredWorld } from "./explored-world.ts";
import type { WorkTurns } from "./work-turns.ts";

export interface CountryFigures
  extends Pick<CountryLine, "country" | "subnets" | "measured" | "medianRttMs" | "pagesPerDay" | "dueHosts"> {
  readonly crawlers: Counts;
}

/** Most subnets first. */
export async function countryFigures(world: ExploredWorld, turns: WorkTurns): Promise<CountryFigures[]> {
  const { labels } = world.columns;
  const byLabel = new Map<number, Counted>();
  const byCountry = new Map<string | null, Counted>();
  const countedOf = (label: number): Counted => {
    const known = byLabel.get(label);
    if (known !== undefined) return known;
    const country = countryOf(label);
    const counted = byCountry.get(country) ?? { ...none, crawlers: new Map(), rtts: [] };
    byCountry.set(country, counted);
    byLabel.set(label, counted);
    return counted;
  };
  for (let place = 0; place < labels.length; place += 1) {
    count(world, place, countedOf(labels[place] as number));
    if (place % placesPerBlock === 0) await turns.breathe();
  }
  for (const place of world.loads.places) {
    const counted = countedOf(labels[place] as number);
    counted.pagesPerDay += world.loads.pagesPerDayAt(place);
    counted.dueHosts += world.loads.dueHostsAt(place);
  }
  return [...byCountry]
    .map(([country, { rtts, pagesPerDay, ...counted }]) => ({
      ...counted,
      country,
      measured: rtts.length,
      medianRttMs: medianOf(rtts),
      pagesPerDay: Math.round(pagesPerDay),
    }))
    .sort((a, b) => b.subnets - a.subnets || (a.country ?? "").localeCompare(b.country ?? ""));
}

interface Counted {
  subnets: number;
  pagesPerDay: number;
  dueHosts: number;
  readonly crawlers: Counts;
  readonly rtts: number[];
}

const none = { subnets: 0, pagesPerDay: 0, dueHosts: 0 };

function count(world: ExploredWorld, place: number, into: Counted): void {
  into.subnets += 1;
  addTo(into.crawlers, world.crawlers.at(place), 1);
  // An inherited measurement does not count again.
  const rttMs = world.isOwn(place) ? world.rttMsAt(place) : Number.NaN;
  if (!Number.isNaN(rttMs)) into.rtts.push(rttMs);
}

/** Two digits, matching its accuracy; null below `leastSamples`. */
function medianOf(rtts: readonly number[]): number | null {
  if (rtts.length < leastSamples) return null;
  const sorted = Float64Array.from(rtts).sort();
  return Number((sorted[(sorted.length - 1) >> 1] as number).toPrecision(2));
}
