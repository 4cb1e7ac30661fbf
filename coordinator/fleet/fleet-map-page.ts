/** The crawlers on the world, by latitude and longitude (equirectangular, two units per degree). */

import { howMany } from "#core/format";
import type { FleetLine } from "../overview/overview.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { landStepDegrees, landStretches } from "./land-dots.ts";

const northEdge = 84;
const southEdge = -57;
const unitsPerDegree = 2;
const width = 360 * unitsPerDegree;
const height = (northEdge - southEdge) * unitsPerDegree;
/** More names than this would only cover each other. */
const namedLimit = 40;

type PlacedCrawler = FleetLine & { readonly latitude: number; readonly longitude: number };

/** Empty when no crawler has stated a place. */
export function fleetMap(fleet: readonly FleetLine[]): Html {
  const placed = fleet.filter(hasPlace);
  if (placed.length === 0) return nothing;
  const bySize = [...placed].sort((a, b) => b.subnets - a.subnets);
  const most = Math.max(1, bySize[0]?.subnets ?? 1);
  return html`<svg class="map" viewBox="0 0 ${width} ${height}" role="group" aria-label="${mapLabel(placed)}">
<path class="graticule" d="${graticule}"/>
<path class="land" stroke-dasharray="0 ${landStepDegrees * unitsPerDegree}" d="${land}"/>
${bySize.map((crawler) => marker(crawler, most))}
<g class="names" aria-hidden="true">${nameLabels(placed.slice(0, namedLimit))}</g>
</svg>`;
}

function hasPlace(crawler: FleetLine): crawler is PlacedCrawler {
  return crawler.latitude !== null && crawler.longitude !== null;
}

function mapLabel(placed: readonly PlacedCrawler[]): string {
  const online = placed.filter((crawler) => crawler.state === "online").length;
  return `World map with ${howMany(placed.length, "crawler")}, ${online} of them online`;
}

const x = (longitude: number) => round((longitude + 180) * unitsPerDegree);
const y = (latitude: number) =>
  round((northEdge - Math.min(northEdge, Math.max(southEdge, latitude))) * unitsPerDegree);
const round = (value: number) => Math.round(value * 10) / 10;

function marker(crawler: PlacedCrawler, most: number): Html {
  // One circle, since a page has hundreds: its outline is the halo, the wider the more subnets the crawler has.
  const halo = round(2 + 13 * Math.sqrt(crawler.subnets / most));
  const title = `${crawler.name}${crawler.place ? `, ${crawler.place}` : ""}: ${crawler.state}, ${howMany(crawler.subnets, "subnet")}`;
  return html`<a href="/crawlers/${encodeURIComponent(crawler.name)}"><title>${title}</title><circle class="at ${crawler.state}" cx="${x(crawler.longitude)}" cy="${y(crawler.latitude)}" r="3" stroke-width="${halo}"/></a>`;
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Names to the right or left of their spots, above or below; left out where they would cover another. */
function nameLabels(placed: readonly PlacedCrawler[]): Html[] {
  const taken: Box[] = placed.map((crawler) => boxAround(x(crawler.longitude), y(crawler.latitude), 4));
  return placed.flatMap((crawler) => {
    const spotX = x(crawler.longitude);
    const spotY = y(crawler.latitude);
    const length = crawler.name.length * characterWidth;
    const free = [
      { left: spotX + 7, baseline: spotY + 3.5 },
      { left: spotX - 7 - length, baseline: spotY + 3.5 },
      { left: spotX - length / 2, baseline: spotY - 8 },
      { left: spotX - length / 2, baseline: spotY + 16 },
    ].find((place) => fits(boxOf(place, length), taken));
    if (!free) return [];
    taken.push(boxOf(free, length));
    return [html`<text x="${round(free.left)}" y="${round(free.baseline)}">${crawler.name}</text>`];
  });
}

/** Of the label's font, in map units. */
const characterWidth = 5.6;
const lineHeight = 11;

function boxOf(place: { readonly left: number; readonly baseline: number }, length: number): Box {
  return {
    left: place.left,
    right: place.left + length,
    top: place.baseline - lineHeight + 2,
    bottom: place.baseline + 2,
  };
}

function boxAround(centreX: number, centreY: number, reach: number): Box {
  return { left: centreX - reach, right: centreX + reach, top: centreY - reach, bottom: centreY + reach };
}

function fits(box: Box, taken: readonly Box[]): boolean {
  if (box.left < 0 || box.right > width || box.top < 0 || box.bottom > height) return false;
  return taken.every(
    (other) =>
      box.right <= other.left ||
      box.left >= other.right ||
      box.bottom <= other.top ||
      box.top >= other.bottom,
  );
}

/** One path of dashes without length, whose round caps are the dots; the last one needs a hair of stroke behind it. */
const land = landStretches()
  .map(({ latitude, west, east }) => `M${x(west)} ${y(latitude)}H${x(east) + 0.1}`)
  .join("");

const graticule = [
  ...[-150, -120, -90, -60, -30, 0, 30, 60, 90, 120, 150].map((longitude) => `M${x(longitude)} 0v${height}`),
  ...[60, 30, 0, -30].map((latitude) => `M0 ${y(latitude)}h${width}`),
].join("");
