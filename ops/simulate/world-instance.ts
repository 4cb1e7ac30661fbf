/**
 * A world as an instance for the simulator in which each target's RTTs are made when they are read: a hundred
 * thousand sites and a thousand crawlers need no more memory than the sites themselves.
 */
import type {
  SimulatedHost,
  SimulatedTarget,
  SimulationInstance,
} from "#coordinator/delegation/simulation/simulation";
import { instanceOf } from "../world/compare.ts";
import type { World } from "../world/model.ts";

/** The same instance as `instanceOf`, row by row. */
export function worldInstance(world: World): SimulationInstance {
  const { crawlers, crawlerRtt } = instanceOf({ ...world, sites: [] });
  const hosts = instanceOf({ ...world, crawlers: [], rttRow: () => {} }).targets;
  const targets = hosts.map((host, site) => new WorldTarget(host, world, site));
  return { crawlers, crawlerRtt, targets };
}

class WorldTarget implements SimulatedTarget {
  readonly path: readonly string[];
  readonly org: string;
  readonly cc: string;
  readonly #world: World;
  readonly #site: number;

  constructor(host: SimulatedHost, world: World, site: number) {
    this.path = host.path;
    this.org = host.org;
    this.cc = host.cc;
    this.#world = world;
    this.#site = site;
  }

  get rtt(): Float64Array {
    const row = new Float64Array(this.#world.crawlers.length);
    this.#world.rttRow(this.#site, row);
    return row;
  }
}
