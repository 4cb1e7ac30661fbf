/** The crawlers on a world map by latitude and longitude (equirectangular, two units per degree). */
import { howMany } from "#core/format";
import { crawlerColour } from "../../web/format.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import type { FleetLine } from "./fleet-api.ts";

const northEdge = 84;
const southEdge = -57;
const unitsPerDegree = 2;
const width = 360 * unitsPerDegree;
const height = (northEdge - southEdge) * unitsPerDegree;

/** With more crawlers, names would cover each other. */
const namedLimit = 40;

/** Maximum number of crawlers with a marker of their own. The others of a larger fleet are dots, one per place. */
const linkedLimit = 300;

type PlacedCrawler = FleetLine & { readonly latitude: number; readonly longitude: number };

export function fleetMap(fleet: readonly FleetLine[]): Html {
  const placed = fleet.filter(hasPlace);
  if (placed.length === 0) return nothing;
  const bySize = [...placed].sort((a, b) => b.subnets - a.subnets);
  const most = Math.max(1, bySize[0]?.subnets ?? 1);
  return html`<svg class="map" viewBox="0 0 ${width} ${height}" role="group" aria-label="${mapLabel(placed)}">
<path class="graticule" d="${graticule}"/>
<path class="land" stroke-dasharray="0 ${landStepDegrees * unitsPerDegree}" d="${land}"/>
${otherDots(bySize.slice(linkedLimit))}
${bySize.slice(0, linkedLimit).map((crawler) => marker(crawler, most))}
<g class="names" aria-hidden="true">${nameLabels(bySize.slice(0, namedLimit))}</g>
</svg>`;
}

function hasPlace(crawler: FleetLine): crawler is PlacedCrawler {
  return crawler.latitude !== null && crawler.longitude !== null;
}

function mapLabel(placed: readonly PlacedCrawler[]): string {
  const online = placed.filter((crawler) => crawler.state === "online").length;
  return `World map with ${howMany(placed.length, "crawler")}, ${online.toLocaleString("en-GB")} of them online`;
}

const x = (longitude: number) => round((longitude + 180) * unitsPerDegree);

const y = (latitude: number) =>
  round((northEdge - Math.min(northEdge, Math.max(southEdge, latitude))) * unitsPerDegree);

const round = (value: number) => Math.round(value * 10) / 10;

function marker(crawler: PlacedCrawler, most: number): Html {
  // Each crawler is a single circle, since a page has hundreds. Its outline is the halo, which is wider for more subnets.
  const halo = round(2 + 13 * Math.sqrt(crawler.subnets / most));
  const title = `${crawler.name}${crawler.place ? `, ${crawler.place}` : ""}: ${crawler.state}, ${howMany(crawler.subnets, "subnet")}`;
  const colour = crawlerColour(crawler.crawlerId);
  return html`<a href="/crawlers/${encodeURIComponent(crawler.name)}"><title>${title}</title><circle class="at ${crawler.state}"
fill="${colour}" stroke="${colour}" cx="${x(crawler.longitude)}" cy="${y(crawler.latitude)}" r="3" stroke-width="${halo}"/></a>`;
}

function otherDots(crawlers: readonly PlacedCrawler[]): Html {
  if (crawlers.length === 0) return nothing;
  const spots = crawlers.map(
    ({ latitude, longitude }) => `M${Math.round(x(longitude))} ${Math.round(y(latitude))}h0`,
  );
  return html`<path class="others" d="${[...new Set(spots)].join("")}"><title>${howMany(crawlers.length, "crawler")} with fewer subnets</title></path>`;
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Places names beside, above or below their markers, and leaves out those that would cover another. */
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

/** Width of the label font's characters in map units. */
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

// A world of dots, drawn by eye: one row every three degrees of latitude, with the longitudes that have land. It is accurate
// enough to recognise countries.

/** Degrees between dots, in both directions. */
const landStepDegrees = 3;

const rows: readonly (readonly [latitude: number, stretches: string])[] = [
  [81, "-92..-64 -58..-16 50..62 92..98"],
  [78, "-112..-104 -96..-75 -70..-20 12..24 98..105"],
  [75, "-122..-116 -108..-95 -90..-80 -62..-19 56..66 98..112 138..146"],
  [72, "-126..-108 -98..-92 -90..-73 -54..-24 52..56 69..80 82..130 138..141"],
  [69, "-166..-108 -104..-94 -92..-84 -82..-68 -52..-25 15..30 31..40 48..60 66..180"],
  [66, "-165..-86 -74..-62 -53..-38 -23..-15 13..24 25..40 42..180"],
  [63, "-164..-92 -78..-70 -51..-43 8..18 21..30 31..38 40..178"],
  [60, "-164..-95 -78..-65 -47..-44 6..12 13..17 22..26 29..154 156..168"],
  [57, "-158..-154 -135..-92 -79..-62 -6..-2 9..10 13..16 22..137 156..162"],
  [54, "-130..-82 -79..-58 -9..-7 -3..0 9..140 142..143 156..160"],
  [51, "-127..-80 -79..-57 -9..-8 -5..1 3..140 142..143 156..157"],
  [48, "-124..-88 -86..-66 -57..-54 -4..38 40..47 50..139 142..143"],
  [45, "-124..-84 -80..-64 0..13 15..29 33..35 38..48 51..132 141..144"],
  [42, "-124..-84 -80..-71 -9..3 12..14 18..28 42..48 53..130 141..142"],
  [39, "-123..-76 -9..0 9..9 16..16 21..22 27..48 54..117 121..122 126..127 140..141"],
  [36, "-121..-76 -6..-5 0..10 30..51 54..120 127..129 135..140"],
  [33, "-117..-80 -8..10 36..120 130..132"],
  [30, "-114..-113 -111..-95 -92..-82 -9..19 21..34 36..48 51..121"],
  [27, "-114..-112 -109..-98 -82..-80 -12..33 36..49 54..120 128..128"],
  [24, "-111..-110 -107..-98 -15..34 39..51 53..57 69..117 120..121"],
  [21, "-158..-156 -105..-98 -90..-87 -79..-75 -16..36 40..57 71..86 93..110"],
  [18, "-102..-95 -92..-88 -77..-77 -73..-70 -66..-66 -16..37 43..54 73..83 95..106 109..110 121..121"],
  [15, "-95..-84 -61..-61 -16..38 44..50 75..79 96..107 120..121"],
  [12, "-87..-84 -72..-70 -16..42 76..79 99..99 104..108 122..124"],
  [9, "-84..-79 -76..-62 -13..49 77..77 80..80 99..99 105..105 117..117 123..125"],
  [6, "-77..-54 -10..-3 0..48 81..81 100..102 115..117 125..125"],
  [3, "-77..-52 10..46 98..99 102..103 112..117"],
  [0, "-79..-51 10..42 101..103 110..117 120..121 128..128 132..132"],
  [-3, "-80..-40 11..39 103..105 111..115 120..122 129..129 134..141"],
  [-6, "-80..-36 13..38 106..108 138..147 150..154"],
  [-9, "-78..-36 14..38 111..114 117..123 126..126 141..147 160..160"],
  [-12, "-76..-38 14..39 49..49 132..135 142..143"],
  [-15, "-75..-40 13..39 46..49 126..136 142..144"],
  [-18, "-72..-41 13..36 45..48 123..139 141..145 178..178"],
  [-21, "-69..-42 15..35 45..47 117..148 165..165"],
  [-24, "-69..-46 15..34 45..46 114..150"],
  [-27, "-70..-49 16..31 114..152"],
  [-30, "-71..-51 18..30 115..152"],
  [-33, "-71..-54 19..27 117..123 135..150"],
  [-36, "-72..-58 138..149 174..174"],
  [-39, "-73..-63 144..146 176..176"],
  [-42, "-73..-65 147..147 171..172"],
  [-45, "-73..-67 168..170"],
  [-48, "-74..-67"],
  [-51, "-73..-70 -60..-58"],
  [-54, "-71..-67"],
];

/** The dots are the round caps of dashes without length. The last one needs a tiny piece of stroke behind it. */
const land = landStretches()
  .map(({ latitude, west, east }) => `M${x(west)} ${y(latitude)}H${x(east) + 0.1}`)
  .join("");

const graticule = [
  ...[-150, -120, -90, -60, -30, 0, 30, 60, 90, 120, 150].map((longitude) => `M${x(longitude)} 0v${height}`),
  ...[60, 30, 0, -30].map((latitude) => `M0 ${y(latitude)}h${width}`),
].join("");

/** The dots of one row, from one longitude to another. */
interface LandStretch {
  readonly latitude: number;
  readonly west: number;
  readonly east: number;
}

/** Returns the stretches from north to south. One narrower than the grid still has a dot. */
function landStretches(): LandStretch[] {
  return rows.flatMap(([latitude, stretches]) =>
    stretches.split(" ").map((stretch) => {
      const [from = 0, to = 0] = stretch.split("..").map(Number);
      const west = Math.ceil((from - 1) / landStepDegrees) * landStepDegrees;
      const east = Math.max(west, Math.floor((to + 1) / landStepDegrees) * landStepDegrees);
      return { latitude, west, east };
    }),
  );
}
