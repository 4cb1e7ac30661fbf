/** Answers of the explorer: a map's figures, a level of the tree, a list of subnets. */
import { formatRange, type IpRange, parseRange, rangeAsWritten } from "#core/ip/range";
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
import {
  blockText,
  type Measure,
  measures,
  type OccupiedGroup,
  type Rectangle,
  treemap,
  ViewPlaces,
} from "./occupied.ts";
import { placeHolding, rangeAtPlace } from "./places.ts";
import type { ExploreClock, ExploreReads } from "./reads.ts";
import type { Counting, Parts } from "./roll-ups.ts";
import { cellPositions, rootTile, spaceOf, type Tile, tileHolding, tileText } from "./space.ts";
import {
  branchLines,
  type ChildOrder,
  childOrders,
  type ExploredBranch,
  type ExploredSubnet,
  subnetLines,
  treeLevel,
} from "./subnet-view.ts";
import {
  type AddressShares,
  addressShares,
  type CrawlerName,
  type LegendEntry,
  type MapBlock,
  mapBlocks,
  type SharePart,
  shareParts,
  type ViewTotals,
  viewFigures,
} from "./summary.ts";
import type { TileCells } from "./tile.ts";
import { heaviestDrawn, placesOfCell } from "./tile-cache.ts";
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

interface MapShown extends Asked {
  readonly view: "map";
  readonly colour: string;
  /** Of what is in view, and of nothing else. */
  readonly totals: ViewTotals;
  readonly legend: readonly LegendEntry[];
  /** The subnet that was picked; null: none, or there is none. */
  readonly picked: ExploredBranch | null;
}

/** What is registered, by itself (`occupied.ts`). */
export interface OccupiedAnswer extends MapShown {
  readonly layout: "occupied";
  readonly measure: Measure;
  readonly width: number;
  readonly height: number;
  readonly groups: readonly DrawnGroup[];
}

/** A rectangle, and what is in it: one subnet, or a block with those that start in it. */
export interface DrawnGroup extends Rectangle {
  readonly range: string;
  readonly isSubnet: boolean;
  readonly subnets: number;
  readonly parts: readonly SharePart[];
}

/** A tile of the whole address space, empty parts included (`space.ts`). */
export interface WholeAnswer extends MapShown {
  readonly layout: "whole";
  readonly zoom: number;
  readonly tileIndex: number;
  /** Where the tile lies on the whole map of its zoom, in tiles from the top left. */
  readonly corner: { readonly x: number; readonly y: number };
  readonly addressesPerCell: string;
  readonly addresses: AddressShares;
  readonly blocks: readonly MapBlock[];
}

export type MapAnswer = OccupiedAnswer | WholeAnswer;

export interface TreeAnswer extends Asked {
  readonly view: "tree";
  readonly sort: ChildOrder;
  /** From the largest down. */
  readonly above: readonly ExploredBranch[];
  /** Null: the whole family. */
  readonly subnet: ExploredBranch | null;
  readonly children: readonly ExploredBranch[];
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
  const asked = { family: question.at.family, filter: filterQuery(question.filter) };
  if (question.view === "map") return { ...asked, ...(await showMap(ports, map, question)) };
  const at = formatRange(question.at);
  if (question.view === "tree") return { ...asked, at, ...(await showTree(ports, map, question)) };
  return { ...asked, at, ...(await showList(ports, map, question)) };
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

type MapPart<Answer> = Omit<Answer, "family" | "filter">;

/** Rectangles of the occupied space: each is wide enough to be hit, and a page of them light enough. */
const mostGroups = 200;
const mapSide = 720;

/** Of a rectangle's parts, as many are drawn by themselves. */
const partsPerGroup = 5;

async function showMap(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion,
): Promise<MapPart<OccupiedAnswer> | MapPart<WholeAnswer>> {
  const { tile, colouring, measure, layout } = question;
  const { world } = map;
  const isWhole = layout === "whole";
  const chosen = await chosenPlaces(ports, map, question.filter);
  const at = isWhole ? tileRange(tile) : question.at;
  const view = new ViewPlaces(world, { at, chosen, measure: isWhole ? "subnets" : measure });
  const crawlerName = crawlerNames(ports);
  const counting = { colouring, nowSeconds: nowSeconds(ports) };
  const turns = new WorkTurns(ports.clock);
  const shown = {
    view: "map",
    colour: colouring,
    ...(await viewFigures(view, counting, { crawlerName, turns })),
    picked: await pickedSubnet(ports, map, question.pick),
  } as const;
  if (isWhole) return { ...shown, ...(await showTile(ports, map, question)) };
  const groups = view.groups(mostGroups);
  const area = { x: 0, y: 0, width: mapSide, height: mapSide };
  const weights = groups.map(({ weight }) => weight);
  const rectangles = treemap(weights, area);
  return {
    ...shown,
    layout: "occupied",
    at: blockText(view.block),
    measure,
    width: mapSide,
    height: mapSide,
    groups: groups.map((group, index) => ({
      ...(rectangles[index] as Rectangle),
      range: groupRange(map, group),
      isSubnet: group.place >= 0,
      subnets: group.to - group.from,
      parts: shareParts(partsOf(view, group, counting), { world, colouring, crawlerName }, partsPerGroup),
    })),
  };
}

function partsOf(view: ViewPlaces, group: OccupiedGroup, counting: Counting): Parts {
  const parts: Parts = [];
  view.add(parts, group, counting);
  return parts;
}

const groupRange = ({ world }: ExploredMap, { place, block }: OccupiedGroup): string =>
  place >= 0 ? formatRange(rangeAtPlace(world.columns, place)) : blockText(block);

/** Null: all of them. */
async function chosenPlaces(
  ports: ExplorePorts,
  map: ExploredMap,
  filter: SubnetFilter,
): Promise<Int32Array | null> {
  if (isEmptyFilter(filter)) return null;
  const places = await placeFilter(ports, map, filter);
  return await ports.explorer.places(map, { key: filterKey(filter), places });
}

async function pickedSubnet(
  ports: ExplorePorts,
  { world }: ExploredMap,
  pick: IpRange | null,
): Promise<ExploredBranch | null> {
  const place = pick === null ? -1 : placeHolding(world.columns, pick);
  return place < 0 ? null : ((await branchLines(world, [place], linePorts(ports)))[0] ?? null);
}

async function showTile(
  ports: ExplorePorts,
  map: ExploredMap,
  question: ExploreQuestion,
): Promise<Omit<WholeAnswer, "family" | "filter" | keyof MapShown> & { readonly at: string }> {
  const { tile } = question;
  const cells = await askedCells(ports, map, question);
  const perCell = cellPositions(tile) * (tile.space.family === 4 ? 1 : 2 ** 73);
  return {
    layout: "whole",
    at: tileText(tile),
    zoom: tile.zoom,
    tileIndex: tile.index,
    corner: tileCorner(tile),
    addressesPerCell: String(BigInt(perCell)),
    addresses: addressShares(cells),
    blocks: mapBlocks(map.world, { tile, cells, crawlerName: crawlerNames(ports) }),
  };
}

/** What a cell of a tile is drawn by. */
export interface DrawnCell {
  /** The subnet that has most of the cell, of those that gave it its colour; null: none is registered there. */
  readonly subnet: ExploredSubnet | null;
  /** With addresses in the cell. */
  readonly subnets: number;
}

/** Asked of the tile itself, so that what is named is what was drawn. */
export async function drawnCell(
  ports: ExplorePorts,
  map: ExploredMap,
  question: Pick<ExploreQuestion, "tile" | "filter" | "colouring"> & { readonly cell: number },
): Promise<DrawnCell> {
  const { tile, filter, cell } = question;
  const isEmpty = isEmptyFilter(filter);
  const matches = isEmpty ? () => true : (await placeFilter(ports, map, filter)).matches;
  const cells = await askedCells(ports, map, question);
  const turns = new WorkTurns(ports.clock);
  const weights = await placesOfCell(map.world, { tile, cell, matches }, turns);
  const place = heaviestDrawn(map.world, weights, { cells, cell, colouring: question.colouring });
  const [subnet = null] = place < 0 ? [] : await subnetLines(map.world, [place], linePorts(ports));
  return { subnet, subnets: weights.size };
}

const tileRange = (tile: Tile): IpRange => rangeAsWritten(tileText(tile)) as IpRange;

async function showTree(
  ports: ExplorePorts,
  { world }: ExploredMap,
  question: ExploreQuestion,
): Promise<Omit<TreeAnswer, keyof Asked>> {
  const asked = { ...question, order: question.childOrder };
  const level = await treeLevel(world, asked, new WorkTurns(ports.clock));
  const node = level.node < 0 ? [] : [level.node];
  const lines = await branchLines(world, [...level.above, ...node, ...level.children], linePorts(ports));
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

function crawlerNames({ state }: ExplorePorts): CrawlerName {
  const names = new Map(state.crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
  return (crawlerId) => names.get(crawlerId) ?? null;
}

// What an address, a form or a command asks of the explorer, checked: which view, where, coloured by what, which subnets.

export const exploreViews = ["map", "tree", "list"] as const;
export type ExploreView = (typeof exploreViews)[number];

export const mapLayouts = ["occupied", "whole"] as const;
export type MapLayout = (typeof mapLayouts)[number];

export interface ExploreQuestion {
  readonly view: ExploreView;
  /** As it was asked for; the whole of IPv4 where nothing was. */
  readonly at: IpRange;
  readonly tile: Tile;
  /** A map of what is registered alone, or of the whole address space. */
  readonly layout: MapLayout;
  readonly measure: Measure;
  /** The subnet that the map's panel tells of. */
  readonly pick: IpRange | null;
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
  const layout = oneOf(mapLayouts, given("layout"), "occupied");
  if (layout === null) return `layout: ${shortened(given("layout"))} is not one of ${mapLayouts.join(", ")}.`;
  const measure = oneOf(measures, given("measure"), "subnets");
  if (measure === null)
    return `measure: ${shortened(given("measure"))} is not one of ${measures.join(", ")}.`;
  const pick = given("pick") === "" ? null : parseRange(given("pick").slice(0, 100));
  if (given("pick") !== "" && pick === null)
    return `pick: ${shortened(given("pick"))} is not an address or a range.`;
  const sort = given("sort");
  const listOrder = oneOf(listOrders, sort, "address");
  if (listOrder === null) return `sort: ${shortened(sort)} is not one of ${listOrders.join(", ")}.`;
  const limit = given("limit") === "" ? defaultLimit : Number(given("limit"));
  if (!Number.isInteger(limit) || limit < 1 || limit > mostLimit)
    return `limit: ${shortened(given("limit"))} is not a whole number from 1 to ${mostLimit}.`;
  return {
    ...{ view, at, layout, measure, pick, colouring, filter, listOrder, after, limit },
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
