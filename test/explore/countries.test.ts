/** A country by its subnets: who has them, and a median that waits for thirty measurements. */
import { expect, it } from "vitest";
import { CoordinatorState } from "#coordinator/delegation/state";
import { countryFigures } from "#coordinator/explore/countries";
import { showCountries } from "#coordinator/explore/country-map";
import { countryMapBody } from "#coordinator/explore/country-page";
import { type ExploredMap, Explorer } from "#coordinator/explore/explorer";
import { WorkTurns } from "#coordinator/explore/time-slices";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { alpha2, worldMap } from "#coordinator/web/world-map";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";

const clock = { now: () => new Date(1e11), steadyMs: () => 0, yieldTurn: async () => {} };
const reads = {
  ...{ eachMark: async () => {}, finerSubnets: async () => [], holders: async () => [] },
  ...{ eachLoad: async () => {}, holdersCalled: async () => [] },
};
const stated = { place: null, latitude: null, longitude: null, country: null, state: "online" };
const fleet = [
  { ...stated, crawlerId: asCrawlerId(1), name: "athens", latitude: 37.98, longitude: 23.73 },
  { ...stated, crawlerId: asCrawlerId(2), name: "<b>nicosia</b>", country: "CY" },
  { ...stated, crawlerId: asCrawlerId(3), name: "nowhere" },
];

/** Forty blocks of Greece of 1 to 40 ms, twenty-nine of Cyprus, two of Malta that nobody crawls, one of no country. */
async function exploredWorld() {
  const countries = [...Array<string>(40).fill("GR"), ...Array<string>(29).fill("CY"), "MT", "MT", null];
  const subnets = countries.map((country, index) => ({
    ...{
      id: asSubnetId(index + 1),
      range: parseRange(`10.${index}.0.0/16`)!,
      parentId: null,
      holderId: null,
    },
    ...{ country, registry: "ripencc" as const, name: "" },
  }));
  const state = new CoordinatorState();
  state.setTree(buildSubnetTree(subnets), 1);
  state.setCrawlers(fleet as never);
  for (let index = 0; index < 69; index += 1)
    state.setDelegation({
      ...{ subnetId: asSubnetId(index + 1), crawlerId: asCrawlerId(index < 40 ? 1 : 2), rttMs: index + 1 },
      ...{ measured: true, runnerUpId: null, runnerUpRttMs: null },
    });
  const explorer = new Explorer(
    { state, reads, clock, onFault: (error) => expect.fail(String(error)) },
    { subnetsPerTile: 1e9, mostTiles: 1, readLoadsEveryMs: 1e9, recrawlDays: 30 },
  );
  await explorer.settled();
  return { explorer, state, map: explorer.map as ExploredMap };
}

it("has a median once thirty are measured, and says who crawls how many", async () => {
  const { map } = await exploredWorld();

  const figures = await countryFigures(map.world, new WorkTurns(clock));

  expect(
    figures.map(({ country, subnets, measured, byCrawler }) => [country, subnets, measured, byCrawler]),
  ).toEqual([
    ["GR", 40, 40, [0, 40]],
    ["CY", 29, 29, [0, 0, 29]],
    ["MT", 2, 0, [2]],
    [null, 1, 0, [1]],
  ]);
  expect(figures[0]?.medianRttMs).toBeGreaterThan(19);
  expect(figures[0]?.medianRttMs).toBeLessThan(22);
  expect(figures[1]?.medianRttMs).toBeNull();
});

it("draws countries and crawlers, places those without coordinates by country, and lists the rest", async () => {
  const { explorer, state, map } = await exploredWorld();
  const outlines = await worldMap(async () => {});
  const hasOutline = (country: string) => outlines.countries.has(country);

  const answer = await showCountries({ explorer, state, hasOutline }, map, "CY");
  const { markup } = countryMapBody(answer, outlines);

  expect(answer.countries.map(({ name, state: is }) => [name, is])).toEqual([
    ["Greece", "measured"],
    ["Cyprus", "few"],
    ["Malta", "nobody"],
    ["no country", "nobody"],
  ]);
  expect(answer.crawlers.map(({ placedBy, subnets }) => [placedBy, subnets])).toEqual([
    ["coordinates", 40],
    ["country", 29],
    ["nothing", 0],
  ]);
  expect(answer.picked?.name).toBe("Cyprus");
  expect(markup).toContain("Cyprus: too few yet; 29 of 29 subnets crawled");
  expect(markup).toContain("not on the map: it states neither coordinates nor a country");
  expect(markup).not.toContain("<b>nicosia");
  expect(markup.length).toBeLessThan(150_000);
});

it("knows countries by their number, and where on the picture a place is", async () => {
  const outlines = await worldMap(async () => {});
  const [athens, sydney] = [outlines.place(37.98, 23.73)!, outlines.place(-33.87, 151.2)!];

  expect(["196", "840", "004", "010", undefined].map(alpha2)).toEqual(["CY", "US", "AF", "AQ", null]);
  expect(sydney.x).toBeGreaterThan(athens.x);
  expect(sydney.y).toBeGreaterThan(athens.y);
  expect(outlines.place(-89, 0)).toBeNull();
  for (const [, { path, middle }] of outlines.countries) {
    expect(path).toMatch(/^(M[\d.]+ [\d.]+(l-?[\d.]+ -?[\d.]+)+Z?)+$/);
    expect(middle.x >= 0 && middle.x <= outlines.width && middle.y <= outlines.height).toBe(true);
  }
});
