/**
 * The explorer's life: it reads what is known into an explored world, keeps its tiles, follows every change, and
 * makes what is asked for. All in short turns beside the crawl. A new registry generation is a new world, made while
 * the old one serves.
 */
import type { SubnetId } from "#core/ids";
import type { CoordinatorState } from "../delegation/state.ts";
import { type CountryFigures, countryFigures } from "./countries.ts";
import { ExploredWorld } from "./explored-tree.ts";
import type { PlaceFilter } from "./filter.ts";
import { matchesOfAll } from "./list.ts";
import { collectPlaces } from "./occupied.ts";
import { lastPosition, startPosition } from "./places.ts";
import type { ExploreClock, ExploredLoad, ExploreReads } from "./reads.ts";
import { type MapSpace, spaceOf, type Tile } from "./space.ts";
import type { TileCells } from "./tile.ts";
import { KeptTiles, makeTile, RecentEntries, type TileSettings } from "./tile-cache.ts";
import { WorkTurns } from "./time-slices.ts";

export interface ExplorerPorts {
  readonly state: Pick<CoordinatorState, "tree" | "delegationTable" | "crawlers" | "watch">;
  readonly reads: Pick<ExploreReads, "eachMark" | "eachLoad" | "finerSubnets">;
  readonly clock: ExploreClock;
  /** What went wrong beside a request; the explorer serves on with what it has. */
  readonly onFault: (error: unknown, what: string) => void;
}

export interface ExplorerSettings extends TileSettings {
  readonly recrawlDays: number;
  /** Loads are read again at the earliest after so long; and never more than a fiftieth of the time. */
  readonly readLoadsEveryMs: number;
}

export const defaultExplorerSettings: Omit<ExplorerSettings, "recrawlDays"> = {
  subnetsPerTile: 50_000,
  mostTiles: 256,
  readLoadsEveryMs: 60_000,
};

/** Tiles made for somebody and kept for a while: a megabyte each. */
const mostRecentTiles = 24;

/** Maps with a filter, each with its own kept tiles. */
const mostFilteredMaps = 2;

/** Lists of what filters let through: four bytes for each subnet. */
const mostChosen = 4;

const filteredTiles: TileSettings = { subnetsPerTile: 400_000, mostTiles: 24 };

/** So long what was made for somebody may be shown again after a change: a filtered map goes over all subnets. */
const tilesGoodMs = 10_000;

const filtersGoodMs = 60_000;

/** A world with the tiles that are kept of it. */
export interface ExploredMap {
  readonly world: ExploredWorld;
  readonly tiles: { readonly [family in 4 | 6]: KeptTiles };
}

export class Explorer {
  readonly #ports: ExplorerPorts;
  readonly #settings: ExplorerSettings;
  readonly #changed = new Set<SubnetId>();
  readonly #recent = new RecentEntries<Promise<TileCells>>(mostRecentTiles);
  readonly #filtered = new RecentEntries<Promise<ExploredMap["tiles"]>>(mostFilteredMaps);
  readonly #countries = new RecentEntries<Promise<CountryFigures[]>>(1);
  readonly #chosen = new RecentEntries<Promise<Int32Array>>(mostChosen);
  #map: ExploredMap | null = null;
  #isReplaced = true;
  #started = false;
  #stopped = false;
  #working: Promise<void> | null = null;
  #stopWatching: () => void = () => {};
  #filtering: Promise<void> = Promise.resolve();
  #loadsDueMs = 0;
  /** Raised with the map itself. */
  #mapVersion = 0;
  readonly #tilesFresh: Freshness;
  readonly #filtersFresh: Freshness;
  #progress = 0;

  constructor(ports: ExplorerPorts, settings: ExplorerSettings) {
    this.#ports = ports;
    this.#settings = settings;
    this.#tilesFresh = new Freshness(tilesGoodMs, ports.clock.steadyMs);
    this.#filtersFresh = new Freshness(filtersGoodMs, ports.clock.steadyMs);
  }

  /** Null until everything was read once. */
  get map(): ExploredMap | null {
    return this.#map;
  }

  /** 0 to 1, of the first reading. */
  get progress(): number {
    return this.#map === null ? this.#progress : 1;
  }

  /** Besides the tree and the delegations. */
  get bytes(): number {
    if (this.#map === null) return 0;
    const { world, tiles } = this.#map;
    return world.bytes + tiles[4].bytes + tiles[6].bytes;
  }

  /** Begins with the first question, or when the coordinator has started: from then on it follows. */
  start(): void {
    if (this.#started || this.#stopped) return;
    this.#started = true;
    this.#stopWatching = this.#ports.state.watch((subnetId) => {
      if (subnetId === null) this.#isReplaced = true;
      else this.#changed.add(subnetId);
      this.#wake();
    });
    this.#wake();
  }

  /** Resolves when what goes on has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopWatching();
    await this.#working;
  }

  /** Reads loads again when it is time to, and all of it where that failed; to be called now and then. */
  review(): void {
    if (!this.#started) return;
    if (this.#map === null || this.#isReplaced || this.#ports.clock.steadyMs() >= this.#loadsDueMs)
      this.#wake();
  }

  /** Resolves when all that was known when it was asked is in the map. */
  async settled(): Promise<void> {
    this.start();
    while (this.#working !== null) await this.#working;
  }

  /** The tile's cells; `filter` with its key: only what matches counts. */
  async cells(
    { world, tiles }: ExploredMap,
    tile: Tile,
    filter: { readonly key: string; readonly places: PlaceFilter } | null,
  ): Promise<TileCells> {
    const kept = filter === null ? tiles : await this.#filteredTiles(world, filter);
    const cells = kept[tile.space.family].get(tile);
    if (cells !== null) return cells;
    const key = `${this.#mapVersion}.${this.#tilesFresh.version} ${tile.space.family}/${tile.zoom}/${tile.index} ${filter?.key ?? ""}`;
    const turns = new WorkTurns(this.#ports.clock);
    const matches = filter === null ? null : filter.places.matches;
    return await this.#recent.get(key, async () => await makeTile(world, tile, { matches, turns }));
  }

  /** The places that the filter lets through, in order. */
  async places(
    { world }: ExploredMap,
    filter: { readonly key: string; readonly places: PlaceFilter },
  ): Promise<Int32Array> {
    const key = `${this.#mapVersion}.${this.#filtersFresh.version} ${filter.key}`;
    return await this.#chosen.get(key, async () => {
      const turns = new WorkTurns(this.#ports.clock);
      return await collectPlaces(matchesOfAll(world, filter.places, turns), turns);
    });
  }

  /** What each country comes to, as it was within the last minute. */
  async countries({ world }: ExploredMap): Promise<CountryFigures[]> {
    const key = `${this.#mapVersion}.${this.#filtersFresh.version}`;
    return await this.#countries.get(
      key,
      async () => await countryFigures(world, new WorkTurns(this.#ports.clock)),
    );
  }

  async #filteredTiles(
    world: ExploredWorld,
    { key, places }: { readonly key: string; readonly places: PlaceFilter },
  ): Promise<ExploredMap["tiles"]> {
    return await this.#filtered.get(`${this.#mapVersion}.${this.#filtersFresh.version} ${key}`, async () => {
      // One after the other: each goes over all subnets.
      const before = this.#filtering;
      let done = () => {};
      this.#filtering = new Promise((resolve) => {
        done = resolve;
      });
      await before;
      const turns = new WorkTurns(this.#ports.clock);
      return await buildTiles(world, { matches: places.matches, settings: filteredTiles, turns }).finally(
        done,
      );
    });
  }

  #wake(): void {
    if (this.#working !== null || this.#stopped) return;
    this.#working = this.#work()
      .catch((error: unknown) => this.#ports.onFault(error, "the explorer could not be brought up to date"))
      .finally(() => {
        this.#working = null;
      });
  }

  async #work(): Promise<void> {
    // Not within the flow that told of a change.
    await this.#ports.clock.yieldTurn();
    const turns = new WorkTurns(this.#ports.clock);
    while (!this.#stopped) {
      if (this.#isReplaced || this.#map === null) await this.#makeMap(turns);
      else if (this.#changed.size > 0) await this.#followChanges(turns);
      else if (this.#ports.clock.steadyMs() >= this.#loadsDueMs) await this.#readLoads(turns);
      else return;
    }
  }

  async #makeMap(turns: WorkTurns): Promise<void> {
    this.#isReplaced = false;
    const before = new Set(this.#changed);
    const world = new ExploredWorld(this.#ports.state);
    // Colours follow the order in which crawlers were added.
    world.nameCrawlers(this.#ports.state.crawlers.map(({ crawlerId }) => crawlerId).sort((a, b) => a - b));
    await this.#readMarks(world);
    this.#progress = 0.2;
    await world.readRows(turns);
    this.#progress = 0.5;
    await world.setLoads(await this.#loads(), turns);
    const onTile = (done: number, of: number) => {
      this.#progress = 0.5 + (0.5 * done) / of;
    };
    const tiles = await buildTiles(world, { matches: null, settings: this.#settings, turns, onTile });
    if (this.#isReplaced || this.#stopped) return;
    for (const subnetId of before) this.#changed.delete(subnetId);
    this.#map = { world, tiles };
    this.#mapVersion += 1;
  }

  async #readMarks(world: ExploredWorld): Promise<void> {
    const anycast = new Set<SubnetId>();
    await this.#ports.reads.eachMark((mark) => {
      world.setSince(mark.subnetId, mark.since);
      if (mark.anycast) anycast.add(mark.subnetId);
    });
    world.setMarks({ anycast, finer: new Set(await this.#ports.reads.finerSubnets()) });
  }

  async #followChanges(turns: WorkTurns): Promise<void> {
    const { world, tiles } = this.#map as ExploredMap;
    const changed = [...this.#changed];
    this.#changed.clear();
    const since = Math.floor(this.#ports.clock.now().getTime() / 1000);
    for (const subnetId of changed) {
      if (this.#isReplaced || this.#stopped) return;
      world.setSince(subnetId, since);
      const place = await world.follow(subnetId, turns);
      if (place >= 0) await refreshPlace(world, tiles, { place, turns });
      await turns.breathe();
    }
    this.#touch();
  }

  #touch(): void {
    this.#tilesFresh.touch();
    this.#filtersFresh.touch();
  }

  async #loads(): Promise<ExploredLoad[]> {
    const { clock, reads } = this.#ports;
    const startedMs = clock.steadyMs();
    const loads: ExploredLoad[] = [];
    await reads.eachLoad(this.#settings.recrawlDays, (load) => loads.push(load));
    const tookMs = clock.steadyMs() - startedMs;
    this.#loadsDueMs = clock.steadyMs() + Math.max(this.#settings.readLoadsEveryMs, 50 * tookMs);
    return loads;
  }

  async #readLoads(turns: WorkTurns): Promise<void> {
    const { world, tiles } = this.#map as ExploredMap;
    // Also where the reading fails: it is not tried again at once.
    this.#loadsDueMs = this.#ports.clock.steadyMs() + this.#settings.readLoadsEveryMs;
    await world.setLoads(await this.#loads(), turns);
    world.setMarks({ anycast: world.anycast, finer: new Set(await this.#ports.reads.finerSubnets()) });
    await tiles[4].refreshLoads(turns);
    await tiles[6].refreshLoads(turns);
    this.#touch();
  }
}

async function buildTiles(
  world: ExploredWorld,
  how: {
    readonly matches: ((place: number) => boolean) | null;
    readonly settings: TileSettings;
    readonly turns: WorkTurns;
    readonly onTile?: (done: number, of: number) => void;
  },
): Promise<ExploredMap["tiles"]> {
  const of = (space: MapSpace) => new KeptTiles(world, { ...how, space });
  const tiles = { 4: of(spaceOf(4)), 6: of(spaceOf(6)) };
  await tiles[4].build(how.turns, how.onTile);
  await tiles[6].build(how.turns);
  return tiles;
}

async function refreshPlace(
  world: ExploredWorld,
  tiles: ExploredMap["tiles"],
  { place, turns }: { readonly place: number; readonly turns: WorkTurns },
): Promise<void> {
  const family = place < world.columns.ipv6Base ? 4 : 6;
  const space = spaceOf(family);
  const first = Math.max(0, startPosition(world.columns, space, place));
  const last = Math.min(2 ** space.positionBits - 1, lastPosition(world.columns, space, place));
  if (first <= last) await tiles[family].refresh(first, last, turns);
}

/**
 * A number that goes up after something changed, but not too often: what was made from it under the number before is
 * good enough until then.
 */
class Freshness {
  readonly #everyMs: number;
  readonly #steadyMs: () => number;
  #version = 0;
  #changed = false;
  #raisedMs = Number.NEGATIVE_INFINITY;

  constructor(everyMs: number, steadyMs: () => number) {
    this.#everyMs = everyMs;
    this.#steadyMs = steadyMs;
  }

  touch(): void {
    this.#changed = true;
  }

  get version(): number {
    const nowMs = this.#steadyMs();
    if (this.#changed && nowMs - this.#raisedMs >= this.#everyMs) {
      this.#version += 1;
      this.#changed = false;
      this.#raisedMs = nowMs;
    }
    return this.#version;
  }
}
