/** One level of the tree: a subnet (or the root of a family), what is around it, and its children a page at a time. */

import { formatRange, type IpRange } from "#core/ip/range";
import { Best } from "./list.ts";
import { endPlace, familyPlaces, parentPlace, placeHolding, rangeAtPlace, sizeBits } from "./places.ts";
import type { WorkTurns } from "./work-turns.ts";
import type { ExploredWorld } from "./world.ts";

export const childOrders = ["address", "size", "load"] as const;
export type ChildOrder = (typeof childOrders)[number];

export interface TreeAsked {
  readonly at: IpRange;
  /** Go on behind this child, by address; null: from the first. */
  readonly after: IpRange | null;
  readonly order: ChildOrder;
  readonly limit: number;
}

export interface TreeLevel {
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
