/** Which country is crawled by whom, from how far: the answer behind the map of countries, its table and the command. */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorState } from "../delegation/state.ts";
import { rttStepsMs, stepOf } from "./colours.ts";
import type { CountryFigures } from "./countries.ts";
import type { ExploredMap, Explorer } from "./explorer.ts";
import { addTo, type Parts } from "./roll-ups.ts";
import { type SharePart, shareParts, stepLabels } from "./summary.ts";

/** `few`: crawled, and too few measurements for a median. `nobody`: registered, not crawled. */
export type CountryState = "measured" | "few" | "nobody";

export interface CountryLine {
  /** ISO 3166-1; null: subnets that are registered without one. */
  readonly country: string | null;
  readonly name: string;
  readonly subnets: number;
  readonly crawled: number;
  readonly crawledBy: readonly SharePart[];
  readonly measured: number;
  /** Of subnets that are assigned directly; null under thirty of them. */
  readonly medianRttMs: number | null;
  readonly state: CountryState;
  readonly pagesPerDay: number;
  readonly dueHosts: number;
}

/** `country`: it states no coordinates and stands in the middle of its country; `nothing`: it states neither. */
export type CrawlerPlacing = "coordinates" | "country" | "nothing";

export interface MapCrawler {
  readonly name: string;
  readonly state: "online" | "offline" | "draining";
  readonly place: string | null;
  readonly country: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  readonly placedBy: CrawlerPlacing;
  readonly subnets: number;
}

export interface CountryMapAnswer {
  readonly countries: readonly CountryLine[];
  /** Those with most subnets first. */
  readonly crawlers: readonly MapCrawler[];
  /** More than are listed, in a large fleet. */
  readonly crawlerCount: number;
  readonly totals: { readonly countries: number; readonly subnets: number; readonly crawled: number };
  /** The country that was picked. */
  readonly picked: CountryLine | null;
}

export interface CountryMapPorts {
  readonly explorer: Explorer;
  readonly state: Pick<CoordinatorState, "crawlers">;
  /** Whether a crawler of this country can be placed by it. */
  readonly hasOutline: (country: string) => boolean;
}

const mostCrawlers = 300;
const partsPerCountry = 4;

export async function showCountries(
  ports: CountryMapPorts,
  map: ExploredMap,
  picked: string | null,
): Promise<CountryMapAnswer> {
  const figures = await ports.explorer.countries(map);
  const names = new Map(ports.state.crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
  const crawlerName = (crawlerId: CrawlerId) => names.get(crawlerId) ?? null;
  const naming = { world: map.world, colouring: "crawler", crawlerName } as const;
  const countries = figures.map((one) => lineOf(one, shareParts(one.byCrawler, naming, partsPerCountry)));
  const sum = (value: (line: CountryLine) => number) => countries.reduce((all, one) => all + value(one), 0);
  return {
    countries,
    crawlers: crawlersOf(ports, map, figures),
    crawlerCount: ports.state.crawlers.length,
    totals: {
      countries: countries.filter(({ country }) => country !== null).length,
      subnets: sum(({ subnets }) => subnets),
      crawled: sum(({ crawled }) => crawled),
    },
    picked: countries.find(({ country }) => country !== null && country === picked) ?? null,
  };
}

function lineOf(figures: CountryFigures, crawledBy: readonly SharePart[]): CountryLine {
  const { country, subnets, byCrawler, measured, medianRttMs, pagesPerDay, dueHosts } = figures;
  const crawled = subnets - (byCrawler[0] ?? 0);
  const state = crawled === 0 ? "nobody" : medianRttMs === null ? "few" : "measured";
  return {
    ...{ country, name: countryName(country), subnets, crawled, crawledBy, measured, medianRttMs },
    ...{ state, pagesPerDay, dueHosts },
  };
}

function crawlersOf(
  { state, hasOutline }: CountryMapPorts,
  { world }: ExploredMap,
  figures: readonly CountryFigures[],
): MapCrawler[] {
  const subnets: Parts = [];
  for (const { byCrawler } of figures)
    for (const [number, count] of byCrawler.entries()) addTo(subnets, number, count);
  return state.crawlers
    .map(({ crawlerId, name, state: isNow, place, country, latitude, longitude }): MapCrawler => {
      const stated = latitude !== null && longitude !== null;
      const placedBy = stated
        ? "coordinates"
        : country !== null && hasOutline(country)
          ? "country"
          : "nothing";
      const has = subnets[world.numberOf(crawlerId)] ?? 0;
      return { name, state: isNow, place, country, latitude, longitude, placedBy, subnets: has };
    })
    .sort((a, b) => b.subnets - a.subnets || (a.name < b.name ? -1 : 1))
    .slice(0, mostCrawlers);
}

const english = new Intl.DisplayNames("en", { type: "region", fallback: "code" });

export function countryName(country: string | null): string {
  if (country === null) return "no country";
  return /^[A-Z]{2}$/.test(country) ? (english.of(country) ?? country) : country;
}

/** In words, as legend, table and command have it. */
export function rttWords({ state, medianRttMs }: Pick<CountryLine, "state" | "medianRttMs">): string {
  if (state === "nobody") return "not crawled";
  return medianRttMs === null ? "too few yet" : `${medianRttMs} ms`;
}

/** Its step of `rttStepsMs`; null where there is no median. */
export const rttStep = ({ medianRttMs }: Pick<CountryLine, "medianRttMs">): number | null =>
  medianRttMs === null ? null : stepOf(medianRttMs, rttStepsMs);

export const rttStepLabels = stepLabels.rtt;
