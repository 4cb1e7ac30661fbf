/** What a view shows, in words and figures: its legend and totals, and a tile's sixteen blocks as a table. */

import type { CrawlerId } from "#core/ids";
import { registries } from "../subnets/subnet.ts";
import { type Colouring, categoryLook, hexOf, nobodysColour, othersColour, stepLook } from "./colours.ts";
import type { ExploredWorld } from "./explored-tree.ts";
import type { ViewPlaces } from "./occupied.ts";
import { firstPlaceFrom } from "./places.ts";
import type { Counting, Parts } from "./roll-ups.ts";
import { blockText, cellPositions, cellsPerTile, firstPositionOf, type Tile } from "./space.ts";
import { emptyCells, mergeCells, noRtt, type TileCells } from "./tile.ts";
import type { WorkTurns } from "./time-slices.ts";

/** How many subnets of something have the same value. */
export interface SharePart {
  readonly label: string;
  /** `others`: values with fewer subnets, together; `none`: no value, nobody crawls them. */
  readonly kind: "value" | "others" | "none";
  /** `#rrggbb`. */
  readonly colour: string;
  /** Drawn as a chequered pattern: another category has the same colour plain. */
  readonly patterned: boolean;
  readonly subnets: number;
}

/** A part of the view: all of them make it up, each subnet counted once. */
export interface LegendEntry extends SharePart {
  readonly share: number;
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

/** Of the subnets in view, that the filter lets through. */
export interface ViewTotals {
  readonly subnets: number;
  /** With a crawler, by a decision of their own or by that of a less specific one. */
  readonly crawled: number;
  readonly pagesPerDay: number;
  /** Hosts with pages that are due. */
  readonly dueHosts: number;
}

/** Shares of a tile's addresses. */
export interface AddressShares {
  readonly registered: number;
  /** That the filter lets through. */
  readonly chosen: number;
  readonly crawled: number;
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

export function addressShares(cells: TileCells): AddressShares {
  return {
    registered: share(cells.registered, 0, cellsPerTile),
    chosen: share(cells.chosen, 0, cellsPerTile),
    crawled: share(cells.delegated, 0, cellsPerTile),
  };
}

/** Totals and legend of a view, from the same counts as its picture. */
export async function viewFigures(
  view: ViewPlaces,
  counting: Counting,
  { crawlerName, turns }: { readonly crawlerName: CrawlerName; readonly turns: WorkTurns },
): Promise<{ readonly totals: ViewTotals; readonly legend: LegendEntry[] }> {
  await view.prepare(counting, turns);
  const parts: Parts = [];
  view.add(parts, view, counting);
  const byCrawler: Parts = counting.colouring === "crawler" ? parts : [];
  const crawlers = { ...counting, colouring: "crawler" } as const;
  if (byCrawler !== parts) {
    await view.prepare(crawlers, turns);
    view.add(byCrawler, view, crawlers);
  }
  const totals = {
    subnets: view.count,
    crawled: view.count - (byCrawler[0] ?? 0),
    pagesPerDay: Math.round(view.pagesPerDay()),
    dueHosts: view.dueHosts(),
  };
  const named = { world: view.world, colouring: counting.colouring, crawlerName };
  const legend = shareParts(parts, named, mostCategories).map((part) => ({
    ...part,
    share: view.count === 0 ? 0 : part.subnets / view.count,
  }));
  return { totals, legend };
}

/** Most crawlers named in a legend; those with the most subnets. */
const mostCategories = 24;

interface Naming {
  readonly world: ExploredWorld;
  readonly colouring: Colouring;
  readonly crawlerName: CrawlerName;
}

/** Categories by how many subnets they have, at most so many by name; steps in their order. Only what occurs. */
export function shareParts(parts: Parts, naming: Naming, most: number): SharePart[] {
  const present = parts.flatMap((subnets, value) => (value > 0 && subnets > 0 ? [{ value, subnets }] : []));
  const isCategory = naming.colouring === "crawler" || naming.colouring === "registry";
  if (isCategory) present.sort((a, b) => b.subnets - a.subnets || a.value - b.value);
  const named = present.slice(0, most).map(({ value, subnets }): SharePart => {
    const { colour, patterned } = lookOf(value, isCategory);
    return { label: labelOfValue(value, naming), kind: "value", colour, patterned, subnets };
  });
  const rest = present.slice(most).reduce((sum, { subnets }) => sum + subnets, 0);
  const without = parts[0] ?? 0;
  const plain = { colour: hexOf(nobodysColour), patterned: false };
  if (rest > 0)
    named.push({ label: "others", kind: "others", ...plain, colour: hexOf(othersColour), subnets: rest });
  if (without > 0)
    named.push({ label: noValueLabels[naming.colouring], kind: "none", ...plain, subnets: without });
  return named;
}

/** "amsterdam: 9; brussels: 5; registered, not crawled: 2". */
export const shareWords = (parts: readonly SharePart[]): string =>
  parts.map(({ label, subnets }) => `${label}: ${subnets.toLocaleString("en-GB")}`).join("; ");

function lookOf(
  value: number,
  isCategory: boolean,
): { readonly colour: string; readonly patterned: boolean } {
  if (!isCategory) return { colour: hexOf(stepLook(value - 1)), patterned: false };
  const { colour, patterned } = categoryLook(value);
  return { colour: hexOf(colour), patterned };
}

function labelOfValue(value: number, { world, colouring, crawlerName }: Naming): string {
  if (colouring === "registry") return registries[value - 1] ?? "";
  if (colouring !== "crawler") return stepLabels[colouring][value - 1] ?? "";
  const crawlerId = world.crawlerIdOf(value);
  return (crawlerId === null ? null : crawlerName(crawlerId)) ?? removedCrawler;
}

/** What stands for a crawler that has a delegation and is in the fleet no more. */
export const removedCrawler = "removed crawler";

export const stepLabels = {
  rtt: ["under 10 ms", "10 to 30 ms", "30 to 80 ms", "80 to 150 ms", "150 ms or more"],
  age: ["under an hour", "an hour to a day", "a day to a week", "a week to 30 days", "30 days or more"],
  load: [
    "under 1 page per day",
    "1 to 10 pages per day",
    "10 to 100 pages per day",
    "100 to 1,000 pages per day",
    "1,000 pages per day or more",
  ],
} as const;

export const noValueLabels: Readonly<Record<Colouring, string>> = {
  crawler: "registered, not crawled",
  rtt: "not measured",
  age: "not delegated",
  load: "no pages to fetch",
  registry: "no registry",
};
