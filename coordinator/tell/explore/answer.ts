/**
 * Validates a URL's, form's or command's question to the explorer, and answers it: a map, a level of the tree, a list,
 * countries.
 */
import type { z } from "zod";
import { countryName } from "#core/country-names";
import { UsageError } from "#core/errors";
import { asHolderId, type SubnetId } from "#core/ids";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { mostInFile } from "../../ask/whole-list.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import { countryOf, registryOf } from "../../place/subnets/subnet.ts";
import { noId } from "../../place/subnets/tree-columns.ts";
import type {
  CountriesAnswer,
  ExploreAnswer,
  ExploredBranch,
  ExploredSubnet,
  exploreInput,
  ListAnswer,
  MapAnswer,
  SubnetFilter,
  TreeAnswer,
} from "./explore-api.ts";
import { type ExploredWorld, nobody, WorkTurns } from "./explored-world.ts";
import type { Explorer } from "./explorer.ts";
import { blocksOf, blockText, drawMap, spanWithin, squareHolding, squaresAbove } from "./hilbert-map.ts";
import {
  everyMatch,
  filterPlaces,
  type LevelAsked,
  listPlaces,
  type PlaceFilter,
  treeLevel,
} from "./list.ts";
import { rangeAtPlace, spanOfPlace } from "./places.ts";
import type { ExploreClock, ExploreReads, NamedHolder } from "./reads.ts";
import { type CrawlerName, crawledIn, ranked, shareParts } from "./shares.ts";

export interface ExplorePorts {
  readonly explorer: Explorer;
  readonly state: Pick<CoordinatorState, "crawlers">;
  readonly reads: Pick<ExploreReads, "holders" | "holdersCalled" | "delegatedAt">;
  readonly clock: ExploreClock;
}

interface ExploreQuestion extends LevelAsked {
  readonly view: ExploreAnswer["view"];
  readonly filter: SubnetFilter;
}

/** Throws a UsageError if the question is invalid. */
export function exploreQuestion(asked: z.output<typeof exploreInput>): ExploreQuestion {
  const { view, at: place, after: behind, sort, limit, ...filter } = asked;
  const at = readPlace(place);
  if (at === null)
    throw new UsageError(`at: ${place} is not an address, a block such as 192.0.2.0/24, or a range.`);
  const after = behind === undefined ? null : parseRange(behind);
  if (behind !== undefined && after === null) throw new UsageError(`after: ${behind} is not a range.`);
  return { view: view ?? (isEmptyFilter(filter) ? "map" : "list"), at, after, sort, limit, filter };
}

/** Reads a range as people write it; `IPv4` and `IPv6` name whole families. */
function readPlace(text: string): IpRange | null {
  const asked = text.toLowerCase();
  return parseRange(asked === "ipv4" ? "0.0.0.0/0" : asked === "ipv6" ? "::/0" : asked);
}

const isEmptyFilter = (filter: SubnetFilter): boolean =>
  Object.values(filter).every((value) => value === undefined);

export async function showExplore(
  ports: ExplorePorts,
  world: ExploredWorld,
  question: ExploreQuestion,
): Promise<ExploreAnswer> {
  if (question.view === "countries") return await showCountries(ports, world);
  if (question.view === "map") return await showMap(ports, world, question);
  return question.view === "tree"
    ? await showTree(ports, world, question)
    : await showList(ports, world, question);
}

/** Maximum number of crawlers named in a legend and in a row's bar. */
const [mostInLegend, mostInRow] = [24, 4];

async function showMap(
  ports: ExplorePorts,
  world: ExploredWorld,
  { at }: ExploreQuestion,
): Promise<MapAnswer> {
  const turns = new WorkTurns(ports.clock);
  const square = squareHolding(at);
  const span = spanWithin(world, square);
  const counts = await world.crawlers.of(span, turns);
  const paths = await drawMap(world, square, turns);
  const { named, rest } = ranked(counts, mostInLegend);
  const pathOf = {
    crawler: (index: number) => paths.get(named[index]?.[0] ?? nobody) ?? "",
    others: () => rest.map(([crawlerId]) => paths.get(crawlerId) ?? "").join(""),
    none: () => paths.get(nobody) ?? "",
  };
  const name = crawlerNames(ports);
  return {
    view: "map",
    at: blockText(square),
    family: square.family,
    above: squaresAbove(square).map(blockText),
    totals: {
      subnets: span.to - span.from,
      crawled: crawledIn(counts),
      pagesPerDay: Math.round(world.loads.pagesPerDay(span)),
      dueHosts: world.loads.dueHosts(span),
    },
    legend: shareParts(counts, name, mostInLegend).map((part, index) => ({
      ...part,
      path: pathOf[part.kind](index),
    })),
    blocks: blocksOf(square).map(({ block, x, y }) => {
      const inBlock = spanWithin(world, block);
      const within = world.crawlers.known(inBlock);
      return {
        range: blockText(block),
        x,
        y,
        subnets: inBlock.to - inBlock.from,
        crawled: crawledIn(within),
        crawledBy: shareParts(within, name, mostInRow),
      };
    }),
  };
}

async function showTree(
  ports: ExplorePorts,
  world: ExploredWorld,
  question: ExploreQuestion,
): Promise<TreeAnswer> {
  const turns = new WorkTurns(ports.clock);
  const { above, node, children, childCount, next } = await treeLevel(world, question, turns);
  const here = node < 0 ? [] : [node];
  const lines = await branchLines(ports, world, [...above, ...here, ...children]);
  return {
    view: "tree",
    at: formatRange(question.at),
    family: question.at.family,
    sort: question.sort,
    above: lines.slice(0, above.length),
    subnet: node < 0 ? null : (lines[above.length] ?? null),
    children: lines.slice(above.length + here.length),
    childCount,
    next,
  };
}

async function showList(
  ports: ExplorePorts,
  world: ExploredWorld,
  question: ExploreQuestion,
): Promise<ListAnswer> {
  const filter = await placeFilter(ports, world, question.filter);
  const asked = { ...question, filter };
  const { places, ...listed } = await listPlaces(world, asked, new WorkTurns(ports.clock));
  const subnets = await subnetLines(ports, world, places);
  const { at, sort } = question;
  return { view: "list", at: formatRange(at), family: at.family, sort, subnets, ...listed };
}

async function showCountries(ports: ExplorePorts, world: ExploredWorld): Promise<CountriesAnswer> {
  const figures = await ports.explorer.countries(world);
  const name = crawlerNames(ports);
  const countries = figures.map(({ crawlers, ...figure }) => ({
    ...figure,
    name: figure.country === null ? "no country" : countryName(figure.country),
    crawled: crawledIn(crawlers),
    crawledBy: shareParts(crawlers, name, mostInRow),
  }));
  return {
    view: "countries",
    countries,
    totals: {
      countries: countries.filter(({ country }) => country !== null).length,
      subnets: countries.reduce((sum, { subnets }) => sum + subnets, 0),
      crawled: countries.reduce((sum, { crawled }) => sum + crawled, 0),
    },
  };
}

async function placeFilter(
  { state, reads }: ExplorePorts,
  world: ExploredWorld,
  filter: SubnetFilter,
): Promise<PlaceFilter> {
  const crawler = state.crawlers.find(({ name }) => name === filter.crawler);
  const holders = filter.holder === undefined ? [] : await reads.holdersCalled(filter.holder);
  return filterPlaces(world, filter, {
    crawlerId: crawler?.crawlerId ?? null,
    holderIds: holders.map(({ holderId }) => holderId),
  });
}

function crawlerNames({ state }: ExplorePorts): CrawlerName {
  const names = new Map(state.crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
  return (crawlerId) => names.get(crawlerId) ?? null;
}

// Subnets in the form of lists, trees and files.

/** Returns the lines in the order of the places. */
async function subnetLines(
  ports: ExplorePorts,
  world: ExploredWorld,
  places: readonly number[],
): Promise<ExploredSubnet[]> {
  const { columns, table } = world;
  const rows = places.map((place) => world.rowAt(place));
  const owners = rows.filter((row) => row >= 0).map((row) => table.subnetAt(row));
  const since =
    owners.length === 0 ? new Map<SubnetId, string>() : await ports.reads.delegatedAt([...new Set(owners)]);
  const holders = await holdersOf(ports, world, places);
  const crawlerName = crawlerNames(ports);
  return places.map((place, index) => {
    const row = rows[index] as number;
    const label = columns.labels[place] as number;
    const subnetId = columns.ids[place] as SubnetId;
    const owner = row < 0 ? null : table.subnetAt(row);
    const isOwn = owner === subnetId;
    const rttMs = row < 0 ? Number.NaN : table.rttMsAt(row);
    const dueHosts = world.loads.dueHostsAt(place);
    const ownerPlace = owner === null ? -1 : world.placeOf(owner);
    const { from, to } = spanOfPlace(columns, place);
    return {
      range: formatRange(rangeAtPlace(columns, place)),
      name: columns.names.textAt(columns.nameIds[place] as number),
      holder: holders.get(columns.holderIds[place] as number) ?? null,
      country: countryOf(label),
      registry: registryOf(label),
      state: row < 0 ? "none" : isOwn ? "delegated" : "inherited",
      crawler: row < 0 ? null : crawlerName(table.crawlerAt(row)),
      decidedFor: ownerPlace < 0 ? null : formatRange(rangeAtPlace(columns, ownerPlace)),
      rttMs: Number.isNaN(rttMs) ? null : Math.round(100 * rttMs) / 100,
      delegatedAt: owner === null ? null : (since.get(owner) ?? null),
      pagesPerDay: Math.round(10 * world.loads.pagesPerDayAt(place)) / 10,
      dueHosts,
      waiting: !isOwn && dueHosts > 0,
      anycast: world.anycast.has(subnetId),
      finer: world.finer.has(subnetId),
      subnetsWithin: to - from - 1,
    };
  });
}

async function holdersOf(
  { reads }: ExplorePorts,
  { columns }: ExploredWorld,
  places: readonly number[],
): Promise<ReadonlyMap<number, NamedHolder>> {
  const wanted = new Set(places.map((place) => columns.holderIds[place] as number));
  wanted.delete(noId);
  const named = wanted.size === 0 ? [] : await reads.holders([...wanted].map(asHolderId));
  return new Map(named.map((holder) => [holder.holderId, holder]));
}

/** Each line includes everything within its subnet. */
async function branchLines(
  ports: ExplorePorts,
  world: ExploredWorld,
  places: readonly number[],
): Promise<ExploredBranch[]> {
  const turns = new WorkTurns(ports.clock);
  const lines = await subnetLines(ports, world, places);
  const branches: ExploredBranch[] = [];
  for (const [index, line] of lines.entries()) {
    const counts = await world.crawlers.of(spanOfPlace(world.columns, places[index] as number), turns);
    branches.push({ ...line, crawledBy: shareParts(counts, crawlerNames(ports), mostInRow) });
  }
  return branches;
}

/** Yields the whole list in pieces, for a file. */
export async function* everySubnet(
  ports: ExplorePorts,
  world: ExploredWorld,
  { at, filter }: ExploreQuestion,
): AsyncGenerator<ExploredSubnet[]> {
  const asked = { at, filter: await placeFilter(ports, world, filter), limit: mostInFile + 1 };
  for await (const places of everyMatch(world, asked, new WorkTurns(ports.clock)))
    yield await subnetLines(ports, world, places);
}
