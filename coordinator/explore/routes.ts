/** The explorer's addresses: pages and their JSON, pictures of tiles, what lies under a point, whole lists as files. */

import { Readable } from "node:stream";
import { formatAddress } from "#core/ip/address";
import type { WebPart } from "../web/actions.ts";
import { FileTurns, noFileTurn } from "../web/file-turns.ts";
import { indexedPng } from "../web/indexed-png.ts";
import type { AskedView, SentFile } from "../web/views.ts";
import { worldMap } from "../web/world-map.ts";
import {
  askedCells,
  drawnCell,
  type ExplorePorts,
  everySubnet,
  readQuestion,
  showExplore,
} from "./answer.ts";
import { paletteOf, tilePicture, tileSide } from "./colours.ts";
import { showCountries } from "./country-map.ts";
import { countryMapBody } from "./country-page.ts";
import { exploreApi } from "./explore-api.ts";
import type { ExploredMap } from "./explorer.ts";
import { exploreBody, exploreTitle, notReadyBody } from "./page.ts";
import {
  addressAt,
  cellPositions,
  cellsPerTile,
  deepestOrder,
  indexOfCell,
  spaceOf,
  type Tile,
  tileAt,
  tileOrder,
  tileText,
} from "./space.ts";
import { subnetsAsCsv, subnetsAsJson } from "./subnet-export.ts";
import { WorkTurns } from "./time-slices.ts";

export interface ExploreRoutePorts extends ExplorePorts {
  /** Resolves when the explorer is ready, or after a moment. */
  readonly whenReady: () => Promise<void>;
}

/** Subnets in one file. */
const mostInFile = 1_000_000;
/** A browser may show a tile again for so long. */
const tileSeconds = 20;
const notReady = "The explorer is still reading what is known. Try again in a moment.";

export function exploreRoutes(ports: ExploreRoutePorts): WebPart {
  return ({ app, views }) => {
    app.addHook("onReady", async () => ports.explorer.start());
    views.describe({
      path: "/explore",
      operation: exploreApi.explore,
      view: async (asked) => await exploreView(asked, ports),
    });
    views.describe({
      path: "/explore/map",
      operation: exploreApi.exploreCountries,
      view: async (asked) => await countryView(asked, ports),
    });
    const shared = { needs: "read" } as const;
    views.addFile({
      path: "/explore/tile.png",
      ...shared,
      file: async (asked) => await tileFile(asked, ports),
    });
    views.addFile({
      path: "/api/explore/point",
      ...shared,
      file: async (asked) => await pointFile(asked, ports),
    });
    const files = new FileTurns();
    const csv = async (asked: AskedView) => await listFile(asked, ports, { files, kind: "csv" });
    const json = async (asked: AskedView) => await listFile(asked, ports, { files, kind: "json" });
    views.addFile({ path: "/explore/subnets.csv", ...shared, boundedElsewhere: true, file: csv });
    views.addFile({ path: "/api/explore/subnets", ...shared, boundedElsewhere: true, file: json });
  };
}

async function exploreView({ query, now }: AskedView, ports: ExploreRoutePorts) {
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const map = await readyMap(ports);
  if (map === null) return notReadyView(ports);
  const value = await showExplore(ports, map, question);
  const crawlers = ports.state.crawlers.map(({ name }) => name).sort();
  return {
    status: 200,
    value,
    title: exploreTitle(value),
    body: () => exploreBody(value, { question, crawlers, now: now.toISOString() }),
  };
}

async function countryView({ query }: AskedView, ports: ExploreRoutePorts) {
  const country = query("country").trim().toUpperCase();
  if (country !== "" && !/^[A-Z]{2}$/.test(country))
    return `country: ${query("country").slice(0, 60)} is not a country code of two letters.`;
  const map = await readyMap(ports);
  if (map === null) return notReadyView(ports);
  const turns = new WorkTurns(ports.clock);
  const world = await worldMap(() => turns.breathe());
  const hasOutline = (one: string) => world.countries.has(one);
  const value = await showCountries({ ...ports, hasOutline }, map, country === "" ? null : country);
  const title = `${value.picked === null ? "" : `${value.picked.name} · `}Map of countries`;
  return { status: 200, value, title, body: () => countryMapBody(value, world) };
}

function notReadyView({ explorer }: ExploreRoutePorts) {
  const value = { error: { status: 503, message: notReady } };
  return {
    status: 503,
    value,
    title: "Explore",
    refreshSeconds: 2,
    body: () => notReadyBody(explorer.progress),
  };
}

async function readyMap({ explorer, whenReady }: ExploreRoutePorts): Promise<ExploredMap | null> {
  explorer.start();
  if (explorer.map === null) await whenReady();
  return explorer.map;
}

/** `family`, `zoom` and the tile's place on the map: `x` to the right, `y` downwards. */
function tileOf(query: AskedView["query"]): Tile | null {
  const [zoom, x, y] = ["zoom", "x", "y"].map((name) => wholeNumber(query(name)));
  const space = spaceOf(query("family") === "6" ? 6 : 4);
  if (zoom === undefined || x === undefined || y === undefined) return null;
  if (zoom > space.deepestZoom || x >= 2 ** zoom || y >= 2 ** zoom) return null;
  return tileAt(space, zoom, indexOfCell({ x, y }, zoom));
}

/** At most `deepestOrder` bits. */
function wholeNumber(text: string): number | undefined {
  const number = /^\d{1,8}$/.test(text) ? Number(text) : Number.NaN;
  return number < 2 ** deepestOrder ? number : undefined;
}

async function tileFile({ query, now }: AskedView, ports: ExploreRoutePorts): Promise<SentFile | string> {
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const tile = tileOf(query);
  if (tile === null) return "There is no tile of this family, zoom, x and y.";
  const map = await readyMap(ports);
  if (map === null) return notReady;
  const cells = await askedCells(ports, map, { tile, filter: question.filter });
  const paint = { colouring: question.colouring, nowSeconds: now.getTime() / 1000 };
  const pixels = tilePicture(tile, cells, paint);
  const palette = paletteOf(question.colouring);
  return {
    type: "image/png",
    body: indexedPng({ width: tileSide, height: tileSide, pixels, palette }),
    headers: { "cache-control": `private, max-age=${tileSeconds}` },
  };
}

/** What is drawn at a cell of the whole map, so many bits deep: `order` bits of x and of y. */
async function pointFile({ query }: AskedView, ports: ExploreRoutePorts): Promise<SentFile | string> {
  const space = spaceOf(query("family") === "6" ? 6 : 4);
  const [order, x, y] = ["order", "x", "y"].map((name) => wholeNumber(query(name)));
  const isThere = order !== undefined && order >= tileOrder && order <= space.positionBits / 2;
  if (!isThere || x === undefined || y === undefined || x >= 2 ** order || y >= 2 ** order)
    return "There is no such point: order is 8 to 16 (IPv6: 26), x and y below 2 to the order.";
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const map = await readyMap(ports);
  if (map === null) return notReady;
  const zoom = order - tileOrder;
  const index = indexOfCell({ x, y }, order);
  const tile = tileAt(space, zoom, Math.floor(index / cellsPerTile)) as Tile;
  const drawn = await drawnCell(ports, map, { ...question, tile, cell: index % cellsPerTile });
  const address = formatAddress(addressAt(space, index * cellPositions(tile)));
  const value = { address, tile: tileText(tile), ...drawn };
  return { type: "application/json; charset=utf-8", body: Buffer.from(JSON.stringify(value)) };
}

async function listFile(
  { query }: AskedView,
  ports: ExploreRoutePorts,
  { files, kind }: { readonly files: FileTurns; readonly kind: "csv" | "json" },
): Promise<SentFile | string> {
  const question = readQuestion(query);
  if (typeof question === "string") return question;
  const map = await readyMap(ports);
  if (map === null) return notReady;
  if (!files.take()) return noFileTurn;
  const subnets = everySubnet(ports, map, { ...question, most: mostInFile + 1 });
  const text = kind === "csv" ? subnetsAsCsv(subnets, mostInFile) : subnetsAsJson(subnets, mostInFile);
  const body = files.until(Readable.from(text));
  if (kind === "json") return { type: "application/json; charset=utf-8", body };
  const headers = { "content-disposition": 'attachment; filename="nearcrawl-subnets.csv"' };
  return { type: "text/csv; charset=utf-8", body, headers };
}
