/** Leases of a crawler that was restarted: what it no longer holds is due again at once. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { asLeaseId } from "#core/ids";
import { newWorld, noon } from "../support/store-world.ts";

type World = Awaited<ReturnType<typeof newWorld>>;
let world: World;

beforeEach(async () => {
  world = await newWorld();
});
afterEach(async () => {
  await world.close();
});

describe("a crawler that comes back", () => {
  it("keeps the leases that it still holds; the others are due again", async () => {
    const athens = await world.delegatedHost("athens", "http://a.example/", "http://b.example/");
    const leases = await world.lease(athens);
    const held = leases.find(({ host }) => host === "a.example")!;

    const returned = await world.frontier.returnLeasesOf(athens, noon, [asLeaseId(held.leaseId)]);
    const again = await world.lease(athens);

    expect(leases).toHaveLength(2);
    expect(returned).toBe(1);
    expect(again.map(({ host }) => host)).toEqual(["b.example"]);
  });

  it("keeps none when it lists none", async () => {
    const athens = await world.delegatedHost("athens", "http://a.example/", "http://b.example/");
    await world.lease(athens);

    expect(await world.frontier.returnLeasesOf(athens, noon)).toBe(2);
    expect(await world.lease(athens)).toHaveLength(2);
  });
});
