/**
 * The explorer's data: the coordinator's tree and delegations, and what only the database knows, which is read on demand when
 * the last reading is old.
 */
import type { CoordinatorState } from "../../place/delegation/state.ts";
import { type CountryFigures, countryFigures } from "./countries.ts";
import { ExploredWorld } from "./explored-world.ts";
import { PlaceLoads } from "./place-loads.ts";
import type { ExploreClock, ExploreReads } from "./reads.ts";
import { WorkTurns } from "./work-turns.ts";

interface ExplorerPorts {
  readonly state: Pick<CoordinatorState, "tree" | "delegationTable" | "watch">;
  readonly reads: Pick<ExploreReads, "anycastSubnets" | "finerSubnets" | "eachLoad">;
  readonly clock: ExploreClock;
  readonly recrawlDays: () => number;
  /** Reports a failure beside a request; the explorer continues with its current data. */
  readonly onFault: (error: unknown, what: string) => void;
}

/** A reading stays valid this long, and readings never take more than a fiftieth of the time. */
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

  /** Waits for the first reading; later ones run in the background. */
  async world(): Promise<ExploredWorld> {
    const world = this.#world;
    if (world === null) return await this.#read(new ExploredWorld(this.#ports.state));
    if (this.#reading === null && this.#ports.clock.steadyMs() >= this.#readAgainMs)
      this.#read(world).catch((error: unknown) =>
        this.#ports.onFault(error, "the explorer could not be brought up to date"),
      );
    return world;
  }

  /** The figures of each country, at most a minute old. */
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
    // A failed reading is not repeated at once either.
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
