/** Answers of the explorer: a map's figures, a level of the tree, a list of subnets. */
import type { CrawlerId } from "#core/ids";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import type { CoordinatorState } from "../delegation/state.ts";
import { type Colouring, colourings, tileCorner } from "./colours.ts";
import type { ExploredMap, Explorer } from "./explorer.ts";
import {
  filterKey,
  filterPlaces,
  filterQuery,
  isEmptyFilter,
  type KnownNames,
  type PlaceFilter,
  readFilter,
  readPlace,
  type SubnetFilter,
} from "./filter.ts";
import { everyMatch, type ListOrder, listOrders, listPlaces } from "./list.ts";
import type { ExploreClock, ExploreReads } from "./reads.ts";
import { cellPositions, rootTile, spaceOf, type Tile, tileHolding, tileText } from "./space.ts";
import { type ChildOrder, childOrders, type ExploredSubnet, subnetLines, treeLevel } from "./subnet-view.ts";
import {
  type LegendEntry,
  type MapBlock,
  type MapTotals,
  mapBlocks,
  mapLegend,
  mapTotals,
} from "./summary.ts";
import type { TileCells } from "./tile.ts";
import { WorkTurns } from "./time-slices.ts";

export interface ExplorePorts {
  readonly explorer: Explorer;
  readonly state: Pick<CoordinatorState, "crawlers" | "subnetsOf">;
  readonly reads: Pick<ExploreReads, "holders" | "holdersCalled">;
  readonly clock: ExploreClock;
}

interface Asked {
  /** The block or range that is shown. */
  readonly at: string;
  readonly family: 4 | 6;
  readonly filter: ReturnType<typeof filterQuery>;
}

export interface MapAnswer extends Asked {
  readonly view: "map";
  readonly colour: string;
  readonly zoom: number;
  readonly tileIndex: number;
  /** Where the tile lies on the whole map of its zoom, in tiles from the top left. */
  readonly corner: { readonly x: number; readonly y: number };
  readonly addressesPerCell: string;
  readonly totals: MapTotals;
  readonly legend: readonly LegendEntry[];
  readonly blocks: readonly MapBlock[];
}

export interface TreeAnswer extends Asked {
  readonly view: "tree";
  readonly sort: ChildOrder;
  /** From the largest down. */
  readonly above: readonly ExploredSubnet[];
  /** Null: the whole family. */
  readonly subnet: ExploredSubnet | null;
  readonly children: readonly ExploredSubnet[];
  /** Null: more than were counted. */
  readonly childCount: number | null;
  readonly next: string | null;
}

export interface ListAnswer extends Asked {
  readonly view: "list";
  readonly sort: ListOrder;
  readonly subnets: readonly ExploredSubnet[];
  readonly count: number;
  /** False: there are more than `count`, or some came on pages before. */
  readonly isWholeCount: boolean;
  readonly next: string | null;
}

export type ExploreAnswer = MapAnswer | TreeAnswer | ListAnswer;

export async function showExplore(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion,
): Promise<ExploreAnswer> {
  const asked = {
    at: question.view === "map" ? tileText(question.tile) : formatRange(question.at),
    family: question.at.family,
    filter: filterQuery(question.filter),
  };
  if (question.view === "map") return { ...asked, ...(await showMap(ports, map, question)) };
  if (question.view === "tree") return { ...asked, ...(await showTree(ports, map, question)) };
  return { ...asked, ...(await showList(ports, map, question)) };
}

/** The cells of the tile that is asked for, with its filter. */
export async function askedCells(
  ports: ExplorePorts,
  map: ExploredMap,
  { tile, filter }: Pick<ExploreQuestion, "tile" | "filter">,
): Promise<TileCells> {
  if (isEmptyFilter(filter)) return await ports.explorer.cells(map, tile, null);
  const places = await placeFilter(ports, map, filter);
  return await ports.explorer.cells(map, tile, { key: filterKey(filter), places });
}

async function showMap(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion,
): Promise<Omit<MapAnswer, keyof Asked>> {
  const { tile, colouring } = question;
  const cells = await askedCells(ports, map, question);
  const drawn = { tile, cells, crawlerName: crawlerNames(ports) };
  const perCell = cellPositions(tile) * (tile.space.family === 4 ? 1 : 2 ** 73);
  return {
    view: "map",
    colour: colouring,
    zoom: tile.zoom,
    tileIndex: tile.index,
    corner: tileCorner(tile),
    addressesPerCell: String(BigInt(perCell)),
    totals: mapTotals(map.world, tile, cells),
    legend: mapLegend(map.world, drawn, { colouring, nowSeconds: nowSeconds(ports) }),
    blocks: mapBlocks(map.world, drawn),
  };
}

async function showTree(
  ports: ExplorePorts,
  { world }: ExploredMap,
  question: ExploreQuestion,
): Promise<Omit<TreeAnswer, keyof Asked>> {
  const asked = { ...question, order: question.childOrder };
  const level = await treeLevel(world, asked, new WorkTurns(ports.clock));
  const node = level.node < 0 ? [] : [level.node];
  const lines = await subnetLines(world, [...level.above, ...node, ...level.children], linePorts(ports));
  const before = level.above.length;
  return {
    view: "tree",
    sort: question.childOrder,
    above: lines.slice(0, before),
    subnet: level.node < 0 ? null : (lines[before] ?? null),
    children: lines.slice(before + node.length),
    childCount: level.childCount,
    next: level.next,
  };
}

async function showList(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion,
): Promise<Omit<ListAnswer, keyof Asked>> {
  const filter = await placeFilter(ports, map, question.filter);
  const asked = { ...question, filter, within: question.at, order: question.listOrder };
  const { places, ...listed } = await listPlaces(map.world, asked, new WorkTurns(ports.clock));
  const subnets = await subnetLines(map.world, places, linePorts(ports));
  return { view: "list", sort: question.listOrder, subnets, ...listed };
}

/** Every subnet of a list, some at a time and at most `limit`. */
export async function* everySubnet(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion & { readonly most: number },
): AsyncGenerator<ExploredSubnet[]> {
  const filter = await placeFilter(ports, map, question.filter);
  const asked = { filter, within: question.at, limit: question.most };
  for await (const places of everyMatch(map.world, asked, new WorkTurns(ports.clock)))
    yield await subnetLines(map.world, places, linePorts(ports));
}

async function placeFilter(
  ports: ExplorePorts,
  { world }: ExploredMap,
  filter: ExploreQuestion["filter"],
): Promise<PlaceFilter> {
  const crawler = ports.state.crawlers.find(({ name }) => name === filter.crawler);
  const holders = filter.holder === null ? [] : await ports.reads.holdersCalled(filter.holder);
  const names: KnownNames = {
    crawlerId: crawler?.crawlerId ?? null,
    subnetsOfCrawler: (crawlerId) => ports.state.subnetsOf(crawlerId),
    holderIds: holders.map(({ holderId }) => holderId),
    nowSeconds: nowSeconds(ports),
  };
  return filterPlaces(world, filter, names);
}

const nowSeconds = ({ clock }: ExplorePorts) => clock.now().getTime() / 1000;

const linePorts = (ports: ExplorePorts) => ({ reads: ports.reads, crawlerName: crawlerNames(ports) });

function crawlerNames({ state }: ExplorePorts): (crawlerId: CrawlerId) => string | null {
  const names = new Map(state.crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
  return (crawlerId) => names.get(crawlerId) ?? null;
}

// What an address, a form or a command asks of the explorer, checked: which view, where, coloured by what, which subnets.

export const exploreViews = ["map", "tree", "list"] as const;
export type ExploreView = (typeof exploreViews)[number];

export interface ExploreQuestion {
  readonly view: ExploreView;
  /** As it was asked for; the whole of IPv4 where nothing was. */
  readonly at: IpRange;
  readonly tile: Tile;
  readonly colouring: Colouring;
  readonly filter: SubnetFilter;
  readonly listOrder: ListOrder;
  readonly childOrder: ChildOrder;
  /** Go on behind this range. */
  readonly after: IpRange | null;
  readonly limit: number;
}

export const defaultLimit = 50;
export const mostLimit = 200;

/** A string: why it cannot be asked. `given`: the value of a name, empty when there is none. */
export function readQuestion(given: (name: string) => string): ExploreQuestion | string {
  const filter = readFilter(given);
  if (typeof filter === "string") return filter;
  const at = readPlace(given("at"));
  if (at === null)
    return `at: ${shortened(given("at"))} is not an address, a block such as 192.0.2.0/24, or a range.`;
  const after = given("after") === "" ? null : parseRange(given("after").slice(0, 100));
  if (given("after") !== "" && after === null) return `after: ${shortened(given("after"))} is not a range.`;
  const view = oneOf(exploreViews, given("view"), isEmptyFilter(filter) ? "map" : "list");
  if (view === null) return `view: ${shortened(given("view"))} is not one of ${exploreViews.join(", ")}.`;
  const colouring = oneOf(colourings, given("colour"), "crawler");
  if (colouring === null)
    return `colour: ${shortened(given("colour"))} is not one of ${colourings.join(", ")}.`;
  const sort = given("sort");
  const listOrder = oneOf(listOrders, sort, "address");
  if (listOrder === null) return `sort: ${shortened(sort)} is not one of ${listOrders.join(", ")}.`;
  const limit = given("limit") === "" ? defaultLimit : Number(given("limit"));
  if (!Number.isInteger(limit) || limit < 1 || limit > mostLimit)
    return `limit: ${shortened(given("limit"))} is not a whole number from 1 to ${mostLimit}.`;
  return {
    ...{ view, at, colouring, filter, listOrder, after, limit },
    tile: tileHolding(at) ?? rootTile(spaceOf(at.family)),
    childOrder: childOrders.find((order) => order === sort) ?? "address",
  };
}

function oneOf<Value extends string>(
  values: readonly Value[],
  given: string,
  otherwise: Value,
): Value | null {
  return given === "" ? otherwise : (values.find((value) => value === given) ?? null);
}

const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
