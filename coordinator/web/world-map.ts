/**
 * The world in outlines: Natural Earth's countries (1:50 million, public domain) in its own projection, as paths for
 * pictures that the server draws. Made once, at the first question: lines are thinned out to what a picture of
 * 960 units across can show, along the borders that neighbours share, so that none comes apart from the other.
 * Borders are Natural Earth's; a territory without a code of ISO 3166-1 there is drawn and belongs to no country.
 */
import { type GeoProjection, geoNaturalEarth1, geoPath } from "d3-geo";
import type { MultiPolygon, Polygon, Position } from "geojson";
import { feature } from "topojson-client";
import type { Topology, Transform } from "topojson-specification";

export interface WorldMap {
  readonly width: number;
  readonly height: number;
  /** By its ISO 3166-1 code of two letters. */
  readonly countries: ReadonlyMap<string, CountryShape>;
  /** Land without such a code. */
  readonly otherLand: string;
  /** Null where the picture does not reach. */
  place(latitude: number, longitude: number): MapPoint | null;
}

export interface MapPoint {
  readonly x: number;
  readonly y: number;
}

export interface CountryShape {
  readonly path: string;
  /** The middle of its largest part. */
  readonly middle: MapPoint;
  /** Too small to be seen or hit: a dot is drawn at its middle, too. */
  readonly isSmall: boolean;
}

const width = 960;

/** The picture ends there: beyond is ice. */
const [northernmost, southernmost] = [84, -57];

/** Points nearer to the one before are left out, in degrees. */
const thinning = 0.75;

/** Parts of a country smaller than so many square degrees are left out but for the largest. */
const leastPart = 0.3;

/** A country smaller than so many square units gets a dot. */
const leastCountry = 12;

/** The ice is nobody's to crawl. */
const antarctica = "AQ";

let made: Promise<WorldMap> | null = null;

/** `breathe`: lets others have their turn, now and then. */
export function worldMap(breathe: () => Promise<void>): Promise<WorldMap> {
  made ??= makeWorldMap(breathe);
  return made;
}

async function makeWorldMap(breathe: () => Promise<void>): Promise<WorldMap> {
  const { default: atlas } = await import("world-atlas/countries-50m.json", { with: { type: "json" } });
  const thinned = thinnedOut(atlas);
  const shapes = feature(thinned, thinned.objects.countries).features;
  const known = shapes.flatMap(({ id, geometry }) => {
    const code = alpha2(id);
    return code === antarctica ? [] : [{ code, parts: partsOf(geometry as Polygon | MultiPolygon) }];
  });
  // Lines are short enough to stay straight.
  const projection = geoNaturalEarth1().rotate([-11, 0]).precision(0).fitWidth(width, { type: "Sphere" });
  const [across] = projection.translate();
  const down = (latitude: number) => projection([11, latitude])?.[1] ?? 0;
  const height = Math.ceil(down(southernmost) - down(northernmost));
  projection.translate([across, (projection.translate()[1] as number) - down(northernmost)]);
  const countries = new Map<string, CountryShape>();
  const other: string[] = [];
  for (const { code, parts } of known) {
    await breathe();
    const shape = shapeOf(parts, projection);
    if (shape === null) continue;
    if (code === null || countries.has(code)) other.push(shape.path);
    else countries.set(code, shape);
  }
  const place = (latitude: number, longitude: number): MapPoint | null => {
    const [x = Number.NaN, y = Number.NaN] = projection([longitude, latitude]) ?? [];
    const isIn = x >= 0 && x <= width && y >= 0 && y <= height;
    return isIn ? { x: rounded(x), y: rounded(y) } : null;
  };
  return { width, height, countries, otherLand: other.join(""), place };
}

/** ISO 3166-1's number as its two letters, as Unicode's aliases of territories have it. */
export function alpha2(number: string | number | undefined): string | null {
  if (!/^\d{3}$/.test(String(number))) return null;
  const [locale = ""] = Intl.getCanonicalLocales(`und-${number}`);
  return /^und-([A-Z]{2})$/.exec(locale)?.[1] ?? null;
}

function thinnedOut<Objects extends Topology>(atlas: Objects): Objects {
  const { scale, translate }: Transform = atlas.transform ?? { scale: [1, 1], translate: [0, 0] };
  const arcs = atlas.arcs.map((arc) => {
    let [x, y] = [0, 0];
    return thinnedArc(
      arc.map(([right = 0, up = 0]): Position => {
        x += right;
        y += up;
        return [x * scale[0] + translate[0], y * scale[1] + translate[1]];
      }),
    );
  });
  const { transform: _, ...rest } = atlas;
  return { ...rest, arcs } as unknown as Objects;
}

function thinnedArc(arc: Position[]): Position[] {
  const last = arc.length - 1;
  let before = arc[0] as Position;
  return arc.filter((point, index) => {
    const isKept = index === 0 || index === last || distance(before, point) >= thinning;
    if (isKept) before = point;
    return isKept;
  });
}

const distance = ([x0 = 0, y0 = 0]: Position, [x1 = 0, y1 = 0]: Position) =>
  // A degree of longitude is shorter the further from the equator.
  Math.hypot((x1 - x0) * Math.cos((y0 * Math.PI) / 180), y1 - y0);

/** The largest first, and those that can be seen. */
function partsOf(geometry: Polygon | MultiPolygon): Polygon[] {
  const parts = geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates;
  return parts
    .map((coordinates) => ({ coordinates, area: areaOf(coordinates[0] ?? []) }))
    .sort((one, other) => other.area - one.area)
    .filter(({ area }, index) => index === 0 || area >= leastPart)
    .map(({ coordinates }): Polygon => ({ type: "Polygon", coordinates }));
}

/** In square degrees as they are at the equator. */
function areaOf(ring: readonly Position[]): number {
  let sum = 0;
  for (let at = 1; at < ring.length; at += 1) {
    const [[x0 = 0, y0 = 0], [x1 = 0, y1 = 0]] = [ring[at - 1] as Position, ring[at] as Position];
    sum += (x1 - x0) * (y0 + y1);
  }
  const [, latitude = 0] = ring[0] ?? [];
  return (Math.abs(sum) / 2) * Math.cos((latitude * Math.PI) / 180);
}

function shapeOf(parts: readonly Polygon[], projection: GeoProjection): CountryShape | null {
  const draw = geoPath(projection).digits(1);
  const [largest] = parts;
  if (largest === undefined) return null;
  const [x, y] = draw.centroid(largest);
  const middle = { x: rounded(x), y: rounded(y) };
  if (Number.isNaN(middle.x)) return null;
  const path = inSteps(
    draw({ type: "MultiPolygon", coordinates: parts.map(({ coordinates }) => coordinates) }) ?? "",
  );
  return { path, middle, isSmall: draw.area(largest) < leastCountry };
}

/** The same path by steps from point to point, which take half the digits that places do. */
function inSteps(path: string): string {
  let [x, y] = [0, 0];
  return path.replace(/([ML])([-\d.]+),([-\d.]+)/g, (_, command: string, right: string, down: string) => {
    const [stepX, stepY] = [rounded(Number(right) - x), rounded(Number(down) - y)];
    [x, y] = [Number(right), Number(down)];
    return command === "M" ? `M${x} ${y}` : `l${stepX} ${stepY}`;
  });
}

const rounded = (value: number) => Math.round(10 * value) / 10;
