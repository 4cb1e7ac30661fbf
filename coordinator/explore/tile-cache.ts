/**
 * The tiles that are kept: those over so many subnets that to make one anew would take long, the first tile always.
 * What lies above a kept tile is kept too. Each is made once, from the deepest up: a quarter with a kept tile of its
 * own is put together from that, any other from its subnets; so all of it takes one pass over all subnets. A change
 * goes the same way, over the cells that it touches.
 *
 * Memory: a megabyte a tile; of n subnets at most n / `subnetsPerTile` tiles of each zoom. Ten million registry-like
 * subnets take about a hundred and fifty.
 */

import type { Colouring } from "./colours.ts";
import type { ExploredWorld } from "./explored-tree.ts";
import { addLoads } from "./place-loads.ts";
import { firstPlaceFrom, PlaceSweep, parentPlace, placeOver } from "./places.ts";
import {
  cellPositions,
  cellsPerTile,
  childTile,
  firstPositionOf,
  type MapSpace,
  rootTile,
  type Tile,
  tilePositions,
} from "./space.ts";
import { bytesPerTile, CellFill, emptyCells, mergeCells, type TileCells } from "./tile.ts";
import type { WorkTurns } from "./time-slices.ts";

export type Matches = ((place: number) => boolean) | null;

export interface TileSettings {
  /** A tile over more subnets is kept. */
  readonly subnetsPerTile: number;
  /** No more than so many are kept, those of the smallest zoom first. */
  readonly mostTiles: number;
}

const stretchesPerPiece = 2048;
const cellsPerQuarter = cellsPerTile / 4;

export class KeptTiles {
  readonly #world: ExploredWorld;
  readonly #space: MapSpace;
  readonly #matches: Matches;
  readonly #settings: TileSettings;
  readonly #kept = new Map<string, TileCells>();

  constructor(
    world: ExploredWorld,
    of: { readonly space: MapSpace; readonly matches: Matches; readonly settings: TileSettings },
  ) {
    this.#world = world;
    this.#space = of.space;
    this.#matches = of.matches;
    this.#settings = of.settings;
  }

  get count(): number {
    return this.#kept.size;
  }

  get bytes(): number {
    return this.#kept.size * bytesPerTile;
  }

  /** Null: not kept, and to be made with `makeTile`. */
  get(tile: Tile): TileCells | null {
    return this.#kept.get(keyOf(tile)) ?? null;
  }

  async build(turns: WorkTurns, onTile: (done: number, of: number) => void = () => {}): Promise<void> {
    const tiles = this.#tilesToKeep();
    for (const tile of tiles) {
      this.#kept.set(keyOf(tile), emptyCells());
      await turns.breathe();
    }
    let done = 0;
    for (const tile of tiles.reverse()) {
      for (let quarter = 0; quarter < 4; quarter += 1) {
        await this.#fillQuarter(tile, { quarter, from: 0, to: cellsPerQuarter - 1 }, turns);
      }
      done += 1;
      onTile(done, tiles.length);
    }
  }

  /** From the smallest zoom on, so that what is above a kept tile is kept. */
  #tilesToKeep(): Tile[] {
    const tiles = [rootTile(this.#space)];
    for (let at = 0; at < tiles.length && tiles.length < this.#settings.mostTiles; at += 1) {
      const tile = tiles[at] as Tile;
      if (tile.zoom === this.#space.deepestZoom) continue;
      for (let quarter = 0; quarter < 4; quarter += 1) {
        const child = childTile(tile, quarter);
        if (subnetsStartingIn(this.#world, child) > this.#settings.subnetsPerTile) tiles.push(child);
      }
    }
    return tiles.slice(0, this.#settings.mostTiles);
  }

  /** Makes anew what positions from `first` to `last` touch. */
  async refresh(first: number, last: number, turns: WorkTurns): Promise<void> {
    await this.#refreshTile(rootTile(this.#space), { first, last }, turns);
  }

  /** After other loads were read: every tile's own, at once in each tile. */
  async refreshLoads(turns: WorkTurns): Promise<void> {
    for (const [key, cells] of this.#kept) {
      const [zoom = 0, index = 0] = key.split("/").map(Number);
      const tile = { space: this.#space, zoom, index };
      const into = { ...cells, loads: new Float32Array(cellsPerTile) };
      await fillLoads(
        this.#world,
        { tile, target: 0, count: cellsPerTile },
        { into, matches: this.#matches, turns },
      );
      cells.loads.set(into.loads);
    }
  }

  async #refreshTile(
    tile: Tile,
    span: { readonly first: number; readonly last: number },
    turns: WorkTurns,
  ): Promise<void> {
    const start = firstPositionOf(tile);
    const size = cellPositions(tile);
    const from = Math.max(0, Math.floor((span.first - start) / size));
    const to = Math.min(cellsPerTile - 1, Math.floor((span.last - start) / size));
    for (let quarter = Math.floor(from / cellsPerQuarter); quarter * cellsPerQuarter <= to; quarter += 1) {
      const child = childTile(tile, quarter);
      if (this.#kept.has(keyOf(child))) await this.#refreshTile(child, span, turns);
      const before = quarter * cellsPerQuarter;
      const touched = {
        quarter,
        from: Math.max(0, from - before),
        to: Math.min(cellsPerQuarter - 1, to - before),
      };
      await this.#fillQuarter(tile, touched, turns);
    }
  }

  async #fillQuarter(
    tile: Tile,
    { quarter, from, to }: { readonly quarter: number; readonly from: number; readonly to: number },
    turns: WorkTurns,
  ): Promise<void> {
    const into = this.#kept.get(keyOf(tile)) as TileCells;
    const target = quarter * cellsPerQuarter + from;
    const child = this.#kept.get(keyOf(childTile(tile, quarter)));
    if (child === undefined) {
      const span = { tile, target, count: to - from + 1 };
      await fillCells(this.#world, span, { into, matches: this.#matches, turns });
      return;
    }
    for (let cell = from; cell <= to; cell += 1) {
      mergeCells({ from: child, at: 4 * cell, count: 4 }, into, quarter * cellsPerQuarter + cell);
      if (cell % 1024 === 0) await turns.breathe();
    }
  }
}

/** A tile by itself, from its subnets: for those that are not kept. */
export async function makeTile(
  world: ExploredWorld,
  tile: Tile,
  { matches, turns }: { readonly matches: Matches; readonly turns: WorkTurns },
): Promise<TileCells> {
  const into = emptyCells();
  await fillCells(world, { tile, target: 0, count: cellsPerTile }, { into, matches, turns });
  return into;
}

interface FillHow {
  readonly into: TileCells;
  readonly matches: Matches;
  readonly turns: WorkTurns;
}

interface TileSpan {
  readonly tile: Tile;
  readonly target: number;
  readonly count: number;
}

async function fillCells(
  world: ExploredWorld,
  { tile, target, count }: TileSpan,
  how: FillHow,
): Promise<void> {
  const size = cellPositions(tile);
  const from = firstPositionOf(tile) + target * size;
  const span = { space: tile.space, from, cellPositions: size, count, target };
  const fill = new CellFill(world, span, how);
  while (!fill.step(stretchesPerPiece)) await how.turns.breathe();
  await fillLoads(world, { tile, target, count }, how);
}

const loadsPerPiece = 4096;

async function fillLoads(
  world: ExploredWorld,
  { tile, target, count }: TileSpan,
  { into, matches, turns }: FillHow,
): Promise<void> {
  const size = cellPositions(tile);
  const span = {
    space: tile.space,
    from: firstPositionOf(tile) + target * size,
    cellPositions: size,
    count,
    target,
  };
  into.loads.fill(0, target, target + count);
  let piece: (readonly [number, number])[] = [];
  for (const load of loadsOver(world, span, matches)) {
    piece.push(load);
    if (piece.length < loadsPerPiece) continue;
    addLoads(into, { ...span, columns: world.columns }, piece);
    piece = [];
    await turns.breathe();
  }
  addLoads(into, { ...span, columns: world.columns }, piece);
}

/** What has a load and lies in the span, or around it. */
function* loadsOver(
  { columns, loads }: ExploredWorld,
  {
    space,
    from,
    cellPositions: size,
    count,
  }: { space: MapSpace; from: number; cellPositions: number; count: number },
  matches: Matches,
): Generator<readonly [place: number, pagesPerDay: number]> {
  if (loads.count === 0) return;
  const firstPlace = firstPlaceFrom(columns, space, from);
  const endPlace = firstPlaceFrom(columns, space, from + count * size);
  const last = firstPlace - 1;
  const isBefore = last >= (space.family === 4 ? 0 : columns.ipv6Base);
  let around = isBefore ? placeOver(columns, space, { position: from, last }) : -1;
  // What starts here comes below; only what began before is climbed.
  for (; around >= 0; around = parentPlace(columns, around)) {
    const pagesPerDay = around < firstPlace ? loads.pagesPerDayAt(around) : 0;
    if (pagesPerDay > 0 && (matches === null || matches(around))) yield [around, pagesPerDay];
  }
  const end = loads.indexFrom(endPlace);
  for (let index = loads.indexFrom(firstPlace); index < end; index += 1) {
    const place = loads.places[index] as number;
    if (matches === null || matches(place)) yield [place, loads.pagesPerDayAt(place)];
  }
}

function subnetsStartingIn({ columns }: ExploredWorld, tile: Tile): number {
  const first = firstPositionOf(tile);
  return (
    firstPlaceFrom(columns, tile.space, first + tilePositions(tile)) -
    firstPlaceFrom(columns, tile.space, first)
  );
}

/** How many positions of a cell the most specific subnets there have, of those that match. */
export async function placesOfCell(
  { columns }: ExploredWorld,
  of: { readonly tile: Tile; readonly cell: number; readonly matches: (place: number) => boolean },
  turns: WorkTurns,
): Promise<ReadonlyMap<number, number>> {
  const size = cellPositions(of.tile);
  const from = firstPositionOf(of.tile) + of.cell * size;
  const sweep = new PlaceSweep(columns, { space: of.tile.space, from, to: from + size - 1 });
  const weights = new Map<number, number>();
  for (let stretch = 1; sweep.next(); stretch += 1) {
    const { place, first, last } = sweep;
    if (place >= 0 && of.matches(place)) weights.set(place, (weights.get(place) ?? 0) + last - first + 1);
    if (stretch % stretchesPerPiece === 0) await turns.breathe();
  }
  return weights;
}

/** Of the places of a cell, the one with most of it that has the value which the cell shows; −1 for none. */
export function heaviestDrawn(
  world: ExploredWorld,
  weights: ReadonlyMap<number, number>,
  {
    cells,
    cell,
    colouring,
  }: { readonly cells: TileCells; readonly cell: number; readonly colouring: Colouring },
): number {
  const byRegistry = colouring === "registry";
  const shown = (byRegistry ? cells.registries[cell] : cells.crawlers[cell]) as number;
  const counting = { colouring: byRegistry ? "registry" : "crawler", nowSeconds: 0 } as const;
  let [best, most] = [-1, 0];
  for (const [place, weight] of weights) {
    if (weight <= most || world.rollUps.valueAt(place, counting) !== shown) continue;
    [best, most] = [place, weight];
  }
  return best;
}

const keyOf = ({ zoom, index }: Tile): string => `${zoom}/${index}`;

/** What was made lately and may be asked for again: as many as there is room for, those longest unused make way. */
export class RecentEntries<Value> {
  readonly #room: number;
  readonly #entries = new Map<string, Value>();

  constructor(room: number) {
    this.#room = room;
  }

  /** The one of this key; made when there is none. A promise that rejects is not kept. */
  get(key: string, make: () => Value): Value {
    const known = this.#entries.get(key);
    const value = known ?? make();
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (value instanceof Promise) value.catch(() => this.#entries.delete(key));
    const oldest = this.#entries.keys().next();
    if (this.#entries.size > this.#room && !oldest.done) this.#entries.delete(oldest.value);
    return value;
  }
}
