/** A subnet as lists, trees and files show it. */
import { asHolderId, type CrawlerId, type HolderId, type SubnetId } from "#core/ids";
import { formatRange, type IpRange } from "#core/ip/range";
import { countryOf, registries, registryOf } from "../subnets/subnet.ts";
import { noId } from "../subnets/subnet-rows.ts";
import {
  ageStepsHours,
  type CellPaint,
  loadStepsPagesPerDay,
  rttStepsMs,
  stepOf,
  tileCorner,
} from "./colours.ts";
import type { ExploredWorld } from "./explored-tree.ts";
import { Best } from "./list.ts";
import { endPlace, familyPlaces, parentPlace, placeHolding, rangeAtPlace, sizeBits } from "./places.ts";
import type { ExploreReads, NamedHolder } from "./reads.ts";
import type { Parts } from "./roll-ups.ts";
import { cellsPerTile, indexOfCell, type Tile } from "./space.ts";
import { type CrawlerName, removedCrawler, type SharePart, shareParts, stepLabels } from "./summary.ts";
import { emptyCells, mergeCells, noRtt, type TileCells } from "./tile.ts";
import type { WorkTurns } from "./time-slices.ts";

export interface ExploredSubnet {
  readonly range: string;
  /** The registry's own name for it; may be empty. */
  readonly name: string;
  readonly holder: NamedHolder | null;
  readonly country: string | null;
  readonly registry: string;
  /** `delegated`: by a decision of its own; `inherited`: by that of `decidedFor`. */
  readonly state: "delegated" | "inherited" | "none";
  readonly crawler: string | null;
  /** The subnet whose delegation holds here. */
  readonly decidedFor: string | null;
  /** Null where nobody measured. */
  readonly rttMs: number | null;
  readonly delegatedAt: string | null;
  /** Of its own hosts; those of subnets within it are theirs. */
  readonly pagesPerDay: number;
  /** Hosts with pages that are due. */
  readonly dueHosts: number;
  /** It has due hosts and no delegation of its own. */
  readonly waiting: boolean;
  readonly anycast: boolean;
  readonly finer: boolean;
  /** Registered subnets that start within it. */
  readonly subnetsWithin: number;
}

export interface ExploredBranch extends ExploredSubnet {
  /** Who crawls it and those within it; the crawlers with most by name. */
  readonly crawledBy: readonly SharePart[];
}

/** Crawlers named in the bar of a row. */
const partsPerRow = 4;

export interface LinePorts {
  readonly reads: Pick<ExploreReads, "holders">;
  readonly crawlerName: (crawlerId: CrawlerId) => string | null;
}

/** In the order of the places. */
export async function subnetLines(
  world: ExploredWorld,
  places: readonly number[],
  { reads, crawlerName }: LinePorts,
): Promise<ExploredSubnet[]> {
  const wanted = new Set(places.map((place) => world.columns.holderIds[place] as number));
  wanted.delete(noId);
  const named = wanted.size === 0 ? [] : await reads.holders([...wanted].map(asHolderId));
  const holders = new Map<HolderId, NamedHolder>(named.map((holder) => [holder.holderId, holder]));
  return places.map((place) => lineAt(world, place, { holders, crawlerName }));
}

/** With all that is within each. */
export async function branchLines(
  world: ExploredWorld,
  places: readonly number[],
  ports: LinePorts,
): Promise<ExploredBranch[]> {
  const lines = await subnetLines(world, places, ports);
  return lines.map((line, index) => {
    const by = crawledBy(world, places[index] as number, ports.crawlerName);
    return { ...line, crawledBy: by };
  });
}

interface Naming {
  readonly holders: ReadonlyMap<HolderId, NamedHolder>;
  readonly crawlerName: LinePorts["crawlerName"];
}

function lineAt(world: ExploredWorld, place: number, { holders, crawlerName }: Naming): ExploredSubnet {
  const { columns, loads } = world;
  const label = columns.labels[place] as number;
  const subnetId = columns.ids[place] as SubnetId;
  const isOwn = world.isOwn(place);
  const dueHosts = loads.dueHostsAt(place);
  return {
    range: formatRange(rangeAtPlace(columns, place)),
    name: columns.names.textAt(columns.nameIds[place] as number),
    holder: holders.get(columns.holderIds[place] as HolderId) ?? null,
    country: countryOf(label),
    registry: registryOf(label),
    ...delegationAt(world, place, { isOwn, crawlerName }),
    pagesPerDay: Math.round(10 * loads.pagesPerDayAt(place)) / 10,
    dueHosts,
    waiting: !isOwn && dueHosts > 0,
    anycast: world.anycast.has(subnetId),
    finer: world.finer.has(subnetId),
    subnetsWithin: endPlace(columns, place) - place - 1,
  };
}

function crawledBy(world: ExploredWorld, place: number, crawlerName: CrawlerName): SharePart[] {
  const parts: Parts = [];
  const span = { from: place, to: endPlace(world.columns, place) };
  world.rollUps.add(parts, span, { colouring: "crawler", nowSeconds: 0 });
  return shareParts(parts, { world, colouring: "crawler", crawlerName }, partsPerRow);
}

type LineDelegation = Pick<ExploredSubnet, "state" | "crawler" | "decidedFor" | "rttMs" | "delegatedAt">;

function delegationAt(
  world: ExploredWorld,
  place: number,
  { isOwn, crawlerName }: { readonly isOwn: boolean; readonly crawlerName: LinePorts["crawlerName"] },
): LineDelegation {
  const row = world.rows[place] as number;
  if (row < 0) return { state: "none", crawler: null, decidedFor: null, rttMs: null, delegatedAt: null };
  const owner = world.ownerPlace(place);
  const rttMs = world.rttMsAt(row);
  const since = world.sinceAt(row);
  return {
    state: isOwn ? "delegated" : "inherited",
    crawler: crawlerName(world.crawlerIdAt(row)),
    decidedFor: owner < 0 ? null : formatRange(rangeAtPlace(world.columns, owner)),
    rttMs: Number.isNaN(rttMs) ? null : Math.round(100 * rttMs) / 100,
    delegatedAt: since === 0 ? null : new Date(1000 * since).toISOString(),
  };
}

// A tile in few cells, each with its value in words: what a terminal can draw.

/** A value in words; an empty text: registered, and no value; null: not registered. */
export type CoarseCell = string | null;

interface CoarseAsked {
  readonly tile: Tile;
  readonly cells: TileCells;
  readonly paint: CellPaint;
  readonly crawlerName: CrawlerName;
  /** 2^order cells to a side, 8 at most. */
  readonly order: number;
}

/** Row by row from the top. */
export function coarseMap(world: ExploredWorld, asked: CoarseAsked): CoarseCell[][] {
  const side = 2 ** asked.order;
  const count = cellsPerTile / side ** 2;
  const merged = emptyCells(side ** 2);
  for (let cell = 0; cell < side ** 2; cell += 1)
    mergeCells({ from: asked.cells, at: cell * count, count }, merged, cell);
  const corner = tileCorner(asked.tile);
  const before = asked.tile.index * side ** 2;
  return Array.from({ length: side }, (_, y) =>
    Array.from({ length: side }, (_, x) => {
      const at = { x: corner.x * side + x, y: corner.y * side + y };
      return labelOf(world, merged, {
        ...asked,
        cell: indexOfCell(at, asked.tile.zoom + asked.order) - before,
      });
    }),
  );
}

function labelOf(
  world: ExploredWorld,
  merged: TileCells,
  { cell, paint, crawlerName }: CoarseAsked & { readonly cell: number },
): CoarseCell {
  if (merged.registered[cell] === 0) return null;
  if (merged.chosen[cell] === 0) return "";
  const [rtt, since, load] = [
    merged.rtts[cell] as number,
    merged.since[cell] as number,
    merged.loads[cell] as number,
  ];
  const hours = Math.max(0, paint.nowSeconds - since) / 3600;
  const crawlerId = world.crawlerIdOf(merged.crawlers[cell] as number);
  const labels: Record<typeof paint.colouring, string | undefined> = {
    crawler: crawlerId === null ? undefined : (crawlerName(crawlerId) ?? removedCrawler),
    registry: registries[(merged.registries[cell] as number) - 1],
    rtt: rtt === noRtt ? undefined : stepLabels.rtt[stepOf(rtt / 10, rttStepsMs)],
    age: since === 0 ? undefined : stepLabels.age[stepOf(hours, ageStepsHours)],
    load: load <= 0 ? undefined : stepLabels.load[stepOf(load, loadStepsPagesPerDay)],
  };
  return labels[paint.colouring] ?? "";
}

// One level of the tree: a subnet (or the root of a family), what is around it, and its children a page at a time.

export const childOrders = ["address", "size", "load"] as const;
export type ChildOrder = (typeof childOrders)[number];

interface TreeAsked {
  readonly at: IpRange;
  /** Go on behind this child, by address; null: from the first. */
  readonly after: IpRange | null;
  readonly order: ChildOrder;
  readonly limit: number;
}

interface TreeLevel {
  /** The smallest subnet that holds what was asked for; −1: the root of the family. */
  readonly node: number;
  /** From the largest down to the node's parent. */
  readonly above: readonly number[];
  readonly children: readonly number[];
  /** Null while there are more than were counted. */
  readonly childCount: number | null;
  readonly next: string | null;
}

const placesPerPiece = 16_384;

/** Past a full page the counting of children goes on over so many places. */
const mostLookedAt = 2_000_000;

export async function treeLevel(
  world: ExploredWorld,
  asked: TreeAsked,
  turns: WorkTurns,
): Promise<TreeLevel> {
  const { columns } = world;
  const node = isWhole(asked.at) ? -1 : placeHolding(columns, asked.at);
  const above: number[] = [];
  for (
    let place = node < 0 ? -1 : parentPlace(columns, node);
    place >= 0;
    place = parentPlace(columns, place)
  )
    above.unshift(place);
  const [from, to] = node < 0 ? familyPlaces(columns, asked.at.family) : [node + 1, endPlace(columns, node)];
  const found = await childrenOf(world, asked, { node, from, to, turns });
  return { node, above, ...found };
}

const isWhole = (range: IpRange): boolean =>
  range.family === 4
    ? range.first === 0 && range.last === 0xffffffff
    : range.first === 0n && range.last === 2n ** 128n - 1n;

interface Within {
  readonly node: number;
  readonly from: number;
  readonly to: number;
  readonly turns: WorkTurns;
}

type Children = Pick<TreeLevel, "children" | "childCount" | "next">;

async function childrenOf(world: ExploredWorld, asked: TreeAsked, within: Within): Promise<Children> {
  const { node, from, to, turns } = within;
  const { after, limit, order } = asked;
  const best = order === "address" ? null : new Best(limit);
  const children: number[] = [];
  let [count, looked] = [0, 0];
  for (let start = from; start < to; start += placesPerPiece) {
    const end = Math.min(to, start + placesPerPiece);
    for (let place = start; place < end; place += 1) {
      if (parentPlace(world.columns, place) !== node) continue;
      count += 1;
      if (best !== null) best.offer(place, weightOf(world, place, order));
      else if (children.length <= limit && isBehind(world, place, after)) children.push(place);
    }
    looked += end - start;
    await turns.breathe();
    const isFull = best === null && children.length > limit && looked >= mostLookedAt;
    if (isFull && end < to) return page(world, children, { limit, count: null });
  }
  return best === null
    ? page(world, children, { limit, count })
    : { children: best.places(), childCount: count, next: null };
}

function page(
  world: ExploredWorld,
  children: readonly number[],
  { limit, count }: { readonly limit: number; readonly count: number | null },
): Children {
  const shown = children.slice(0, limit);
  const last = shown.at(-1);
  const next =
    children.length > limit && last !== undefined ? formatRange(rangeAtPlace(world.columns, last)) : null;
  return { children: shown, childCount: count, next };
}

function weightOf(world: ExploredWorld, place: number, order: ChildOrder): number {
  if (order === "size") return sizeBits(world.columns, place);
  return world.loads.pagesPerDayWithin(place, endPlace(world.columns, place));
}

/** In the order of places: by first address, the widest first. */
function isBehind(world: ExploredWorld, place: number, after: IpRange | null): boolean {
  if (after === null) return true;
  const range = rangeAtPlace(world.columns, place);
  return range.first > after.first || (range.first === after.first && range.last < after.last);
}
