/** What a tile shows, in words and figures: a legend with shares, and its sixteen blocks as a table. */

import type { CrawlerId } from "#core/ids";
import { registries } from "../subnets/subnet.ts";
import {
  ageStepsHours,
  type CellPaint,
  categoryLook,
  hexOf,
  loadStepsPagesPerDay,
  rttStepsMs,
  stepLook,
  stepOf,
} from "./colours.ts";
import type { ExploredWorld } from "./explored-tree.ts";
import { firstPlaceFrom } from "./places.ts";
import { blockText, cellPositions, cellsPerTile, firstPositionOf, type Tile } from "./space.ts";
import { emptyCells, mergeCells, noRtt, type TileCells } from "./tile.ts";

export interface LegendEntry {
  readonly label: string;
  /** `#rrggbb`. */
  readonly colour: string;
  /** Drawn as a chequered pattern: another category has the same colour plain. */
  readonly patterned: boolean;
  /** Of the view's cells that have a value, the share with this one. */
  readonly share: number;
  readonly cells: number;
}

export interface MapBlock {
  readonly range: string;
  readonly subnets: number;
  /** Shares of its addresses. */
  readonly registeredShare: number;
  readonly delegatedShare: number;
  /** Who has most of what is delegated. */
  readonly crawler: string | null;
  readonly registry: string | null;
  readonly meanRttMs: number | null;
  readonly meanDelegatedAt: string | null;
  readonly pagesPerDay: number;
}

export interface MapTotals {
  readonly subnets: number;
  readonly registeredShare: number;
  /** Of the addresses that the filter lets through. */
  readonly chosenShare: number;
  readonly delegatedShare: number;
  readonly pagesPerDay: number;
}

const blocksPerTile = 16;
const cellsPerBlock = cellsPerTile / blocksPerTile;

export type CrawlerName = (crawlerId: CrawlerId) => string | null;

interface Drawn {
  readonly tile: Tile;
  readonly cells: TileCells;
  readonly crawlerName: CrawlerName;
}

/** In the order of addresses. */
export function mapBlocks(world: ExploredWorld, { tile, cells, crawlerName }: Drawn): MapBlock[] {
  const merged = emptyCells(blocksPerTile);
  const positions = cellPositions(tile) * cellsPerBlock;
  return Array.from({ length: blocksPerTile }, (_, block) => {
    mergeCells({ from: cells, at: block * cellsPerBlock, count: cellsPerBlock }, merged, block);
    const first = firstPositionOf(tile) + block * positions;
    const crawlerId = world.crawlerIdOf(merged.crawlers[block] as number);
    const rtt = merged.rtts[block] as number;
    const since = merged.since[block] as number;
    return {
      range: blockText(tile.space, first, positions),
      subnets:
        firstPlaceFrom(world.columns, tile.space, first + positions) -
        firstPlaceFrom(world.columns, tile.space, first),
      registeredShare: share(cells.registered, block * cellsPerBlock, cellsPerBlock),
      delegatedShare: share(cells.delegated, block * cellsPerBlock, cellsPerBlock),
      crawler: crawlerId === null ? null : crawlerName(crawlerId),
      registry: registries[(merged.registries[block] as number) - 1] ?? null,
      meanRttMs: rtt === noRtt ? null : rtt / 10,
      meanDelegatedAt: since === 0 ? null : new Date(1000 * since).toISOString(),
      pagesPerDay: Math.round(merged.loads[block] as number),
    };
  });
}

/** Of so many cells together; a cell that was rounded up counts as it was rounded. */
function share(packed: Uint8Array, at: number, count: number): number {
  let sum = 0;
  for (let cell = at; cell < at + count; cell += 1) sum += packed[cell] as number;
  return Math.round((1e6 * sum) / (255 * count)) / 1e6;
}

export function mapTotals(world: ExploredWorld, tile: Tile, cells: TileCells): MapTotals {
  const first = firstPositionOf(tile);
  const end = first + cellPositions(tile) * cellsPerTile;
  return {
    subnets:
      firstPlaceFrom(world.columns, tile.space, end) - firstPlaceFrom(world.columns, tile.space, first),
    registeredShare: share(cells.registered, 0, cellsPerTile),
    chosenShare: share(cells.chosen, 0, cellsPerTile),
    delegatedShare: share(cells.delegated, 0, cellsPerTile),
    pagesPerDay: Math.round(cells.loads.reduce((sum, load) => sum + load, 0)),
  };
}

/** Most crawlers named in a legend; those with the most cells. */
const mostCategories = 24;

/** Only what occurs, categories by how many cells they have, steps in their order. */
export function mapLegend(
  world: ExploredWorld,
  { cells, crawlerName }: Omit<Drawn, "tile">,
  { colouring, nowSeconds }: CellPaint,
): LegendEntry[] {
  if (colouring === "crawler") {
    const nameOf = (number: number) => {
      const crawlerId = world.crawlerIdOf(number);
      return (crawlerId === null ? null : crawlerName(crawlerId)) ?? "a crawler that left";
    };
    return categories(
      counted(cells.crawlers, (number) => number),
      nameOf,
    );
  }
  if (colouring === "registry")
    return categories(
      counted(cells.registries, (number) => number),
      (number) => registries[number - 1] ?? "",
    );
  if (colouring === "rtt")
    return steps(
      counted(cells.rtts, (rtt) => (rtt === noRtt ? 0 : 1 + stepOf(rtt / 10, rttStepsMs))),
      rttLabels,
    );
  if (colouring === "age") {
    const hours = (since: number) => Math.max(0, nowSeconds - since) / 3600;
    return steps(
      counted(cells.since, (since) => (since === 0 ? 0 : 1 + stepOf(hours(since), ageStepsHours))),
      ageLabels,
    );
  }
  return steps(
    counted(cells.loads, (load) => (load <= 0 ? 0 : 1 + stepOf(load, loadStepsPagesPerDay))),
    loadLabels,
  );
}

export const rttLabels = ["under 10 ms", "10 to 30 ms", "30 to 80 ms", "80 to 150 ms", "150 ms or more"];
export const ageLabels = [
  "under an hour",
  "an hour to a day",
  "a day to a week",
  "a week to 30 days",
  "30 days or more",
];
export const loadLabels = [
  "under 1 page a day",
  "1 to 10 pages per day",
  "10 to 100 pages per day",
  "100 to 1,000 pages per day",
  "1,000 pages per day or more",
];

/** How many cells have which number; 0 is none. */
function counted(
  values: Uint8Array | Uint16Array | Uint32Array | Float32Array,
  numberOf: (value: number) => number,
): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) {
    const number = numberOf(value);
    if (number > 0) counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  return counts;
}

const sumOf = (counts: ReadonlyMap<number, number>) =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

function categories(counts: ReadonlyMap<number, number>, nameOf: (number: number) => string): LegendEntry[] {
  const total = sumOf(counts);
  return [...counts]
    .sort(([a, cellsOfA], [b, cellsOfB]) => cellsOfB - cellsOfA || a - b)
    .slice(0, mostCategories)
    .map(([number, cells]) => {
      const { colour, patterned } = categoryLook(number);
      return { label: nameOf(number), colour: hexOf(colour), patterned, share: cells / total, cells };
    });
}

function steps(counts: ReadonlyMap<number, number>, labels: readonly string[]): LegendEntry[] {
  const total = sumOf(counts);
  return labels.map((label, step) => {
    const cells = counts.get(step + 1) ?? 0;
    const colour = hexOf(stepLook(step));
    return { label, colour, patterned: false, share: total === 0 ? 0 : cells / total, cells };
  });
}
