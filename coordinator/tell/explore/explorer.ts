/**
 * The explorer's data: the coordinator's tree and delegations, and what only the database knows, which is read when it is
 * needed and the last reading is old.
 */

import { leastSamples } from "#core/format";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import { countryOf } from "../../place/subnets/subnet.ts";
import type { CountryLine } from "./explore-api.ts";
import {
  addTo,
  type Counts,
  ExploredWorld,
  PlaceLoads,
  placesPerBlock,
  WorkTurns,
} from "./explored-world.ts";
import type { ExploreClock, ExploreReads } from "./reads.ts";

interface ExplorerPorts {
  readonly state: Pick<CoordinatorState, "tree" | "delegationTable" | "watch">;
  readonly reads: Pick<ExploreReads, "anycastSubnets" | "finerSubnets" | "eachLoad">;
  readonly clock: ExploreClock;
  readonly recrawlDays: () => number;
  /** Reports a failure outside a request. The explorer then continues with its current data. */
  readonly onFault: (error: unknown, what: string) => void;
}

/** A reading is valid this long. Readings never take more than a fiftieth of the time. */
const readEveryMs = 60_000;
const timesTheReading = 50;

export class Explorer {
  readonly #ports: ExplorerPorts;
  #world: ExploredWorld | null = null;
  #reading: Promise<ExploredWorld> | null = null;
  #readAgainMs = 0;
  #countries: { readonly untilMs: number; readonly figures: Promise<CountryFigures[]> } | null = null;

  constructor(ports: ExplorerPorts) {
    this.#ports = ports;
    ports.state.watch((subnetId) => {
      if (subnetId !== null) this.#world?.follow(subnetId);
      else {
        this.#world = null;
        this.#countries = null;
      }
    });
  }

  /** Waits for the first reading. Later ones run in the background. */
  async world(): Promise<ExploredWorld> {
    const world = this.#world;
    if (world === null) return await this.#read(new ExploredWorld(this.#ports.state));
    if (this.#reading === null && this.#ports.clock.steadyMs() >= this.#readAgainMs)
      this.#read(world).catch((error: unknown) =>
        this.#ports.onFault(error, "the explorer could not be brought up to date"),
      );
    return world;
  }

  /** Returns the figures of each country, at most a minute old. */
  async countries(world: ExploredWorld): Promise<CountryFigures[]> {
    const { clock } = this.#ports;
    if (this.#countries === null || clock.steadyMs() >= this.#countries.untilMs) {
      const figures = countryFigures(world, new WorkTurns(clock));
      this.#countries = { untilMs: clock.steadyMs() + readEveryMs, figures };
    }
    return await this.#countries.figures;
  }

  #read(world: ExploredWorld): Promise<ExploredWorld> {
    this.#reading ??= this.#readInto(world).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readInto(world: ExploredWorld): Promise<ExploredWorld> {
    const { clock, reads, state, recrawlDays } = this.#ports;
    const startedMs = clock.steadyMs();
    // Even a failed reading is not repeated at once.
    this.#readAgainMs = startedMs + readEveryMs;
    const loads = { places: [] as number[], pagesPerDay: [] as number[], dueHosts: [] as number[] };
    await reads.eachLoad(recrawlDays(), ({ subnetId, pagesPerDay, dueHosts }) => {
      const place = world.placeOf(subnetId);
      if (place < 0) return;
      loads.places.push(place);
      loads.pagesPerDay.push(pagesPerDay);
      loads.dueHosts.push(dueHosts);
    });
    world.loads = new PlaceLoads(loads);
    world.anycast = new Set(await reads.anycastSubnets());
    world.finer = new Set(await reads.finerSubnets());
    const endedMs = clock.steadyMs();
    this.#readAgainMs = endedMs + Math.max(readEveryMs, timesTheReading * (endedMs - startedMs));
    const isCurrent = world.columns === state.tree.columns && world.table === state.delegationTable;
    if (!isCurrent) return await this.#readInto(new ExploredWorld(state));
    this.#world = world;
    return world;
  }
}

// The totals of each country's subnets, computed in one pass that is split into short turns.

interface CountryFigures
  extends Pick<CountryLine, "country" | "subnets" | "measured" | "medianRttMs" | "pagesPerDay" | "dueHosts"> {
  readonly crawlers: Counts;
}

/** Returns the countries with the most subnets first. */
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

/** Returns two significant digits, which match its accuracy, or null below `leastSamples`. */
function medianOf(rtts: readonly number[]): number | null {
  if (rtts.length < leastSamples) return null;
  const sorted = Float64Array.from(rtts).sort();
  return Number((sorted[(sorted.length - 1) >> 1] as number).toPrecision(2));
}
