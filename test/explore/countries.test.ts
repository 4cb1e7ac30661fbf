/** The figures of a country's subnets, with a median only from thirty measurements on. */
import { expect, it } from "vitest";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { ExploredWorld, WorkTurns } from "#coordinator/tell/explore/explored-world";
import { countryFigures } from "#coordinator/tell/explore/explorer";
import { asCrawlerId, asSubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";

const clock = { steadyMs: () => 0, yieldTurn: async () => {} };

/** Forty blocks of Greece of 1 to 40 ms, twenty-nine of Cyprus, two of Malta that nobody crawls, one of no country. */
function exploredWorld(): ExploredWorld {
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
  for (let index = 0; index < 69; index += 1)
    state.setDelegation({
      ...{ subnetId: asSubnetId(index + 1), crawlerId: asCrawlerId(index < 40 ? 1 : 2), rttMs: index + 1 },
      ...{ measured: true, runnerUpId: null, runnerUpRttMs: null },
    });
  return new ExploredWorld(state);
}

it("has a median from thirty measurements on, and says who crawls how many", async () => {
  const figures = await countryFigures(exploredWorld(), new WorkTurns(clock));

  expect(
    figures.map(({ country, subnets, measured, crawlers }) => [country, subnets, measured, [...crawlers]]),
  ).toEqual([
    ["GR", 40, 40, [[1, 40]]],
    ["CY", 29, 29, [[2, 29]]],
    ["MT", 2, 0, [[0, 2]]],
    [null, 1, 0, [[0, 1]]],
  ]);
  expect(figures[0]?.medianRttMs).toBe(20);
  expect(figures[1]?.medianRttMs).toBeNull();
});
