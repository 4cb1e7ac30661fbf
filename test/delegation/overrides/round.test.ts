/** A round for something finer than a subnet: whom it asks. */
import { expect, it } from "vitest";
import { DeniedTargets } from "#coordinator/place/delegation/denied-targets";
import { finerRound } from "#coordinator/place/delegation/overrides/round";
import { flowWorld, TableFleet } from "../../support/flow-world.ts";
import { noon } from "../../support/store-world.ts";
import { finerWorld } from "./override-world.ts";

const world = flowWorld();

it("asks nobody whose partner denies the target, even who is to be held against", async () => {
  const [north, south, west, east] = [
    await world.arrived("north"),
    await world.arrived("south"),
    await world.arrived("west"),
    await world.arrived("east"),
  ];
  const address = "5.1.1.7";
  const answers = new Map(
    [north, south, west, east].map((crawlerId, index) => [crawlerId, 10 + index] as const),
  );
  const fleet = new TableFleet([north, south, west, east], { [address]: answers });
  const { host, delegated, ports } = await finerWorld(world);
  const withinSubnetId = await host("a.example", address);
  await delegated(withinSubnetId, north, 10);
  const denied = new DeniedTargets();
  denied.noteRefusal(north, withinSubnetId, noon.getTime());
  denied.setList(south, { networks: ["5.1.1.0/24"], domains: [] });
  const target = { url: "http://a.example/", host: "a.example", address };

  const outcome = await finerRound(
    { target, withinSubnetId, cause: "measures-apart", first: [north], byName: false },
    { ...(await ports(fleet)), denied },
  );

  expect(fleet.asked.map(({ crawlerId }) => crawlerId)).toEqual([west, east]);
  expect(outcome?.decision?.crawlerId).toBe(west);
});
