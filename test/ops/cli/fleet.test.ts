/** `nearcrawl fleet` over a real database, once in its own process as people run it: what is printed, exit codes. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FleetEntry } from "#coordinator/fleet/fleet-entry";
import { fleetCommand } from "#ops/cli/commands/fleet";
import { nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { type FlowWorld, newFlowWorld } from "../../support/flow-world.ts";
import { arrivedResult, roundOf, secondsAfterNoon } from "../../support/store-world.ts";

let world: FlowWorld;
beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const fleet = (...args: readonly string[]) => {
  const { url, schema } = world.database;
  return inProcess(fleetCommand(), [...args, "--database-url", url, "--schema", schema]);
};

describe("nearcrawl fleet", { timeout: 120_000 }, () => {
  it("lists who is there and what each has", async () => {
    const north = await world.arrived("north", 500);
    const south = await world.arrived("south");
    await world.crawlers.hasJoined(north);
    await world.crawlers.leave({ crawlerId: south, reason: "its power failed\u001b[31m", now: new Date() });
    await world.delegations.saveRound(roundOf(await world.site(1), [[north, 10]]));
    await world.lease(north);

    const { code, out } = await nearcrawl(["fleet", "list"], { database: world.database });

    expect(code).toBe(0);
    expect(out).toMatch(/north +online +1 +0 +500 +0 B +1 TB +1\n/);
    expect(out).toMatch(/north +0 B +not compared yet/);
    expect(out).toMatch(/south +offline +0 +0 .* its power failed/);
    expect(out).not.toContain("\u001b[31m");
    expect(out).toContain("2 crawlers, 1 connected");
  });

  it("drains a crawler, shows how far that is, and takes it back", async () => {
    const north = await world.arrived("north");
    const south = await world.arrived("south");
    const subnets = [await world.site(1), await world.site(2)];
    for (const subnetId of subnets) await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));

    const drained = await fleet("drain", "north");
    const move = { subnetId: subnets[0]!, from: north, to: south, cause: "drained", reason: "", rttMs: 12 };
    await world.delegations.move([{ ...move, cause: "drained" }], new Date());
    const listed = await fleet("list", "--json");
    const text = await fleet("list");
    const resumed = await fleet("resume", "north", "--json");

    expect([drained.code, resumed.code]).toEqual([0, 0]);
    expect(drained.out).toContain("its subnets go to others");
    const [entry] = JSON.parse(listed.out) as FleetEntry[];
    expect(entry).toMatchObject({
      name: "north",
      state: "draining",
      subnets: 1,
      draining: { askedBy: "operator", subnets: 2 },
    });
    expect(text.out).toContain("draining: 1 of 2 subnets handed over, 0 leases open");
    expect(JSON.parse(resumed.out)).toMatchObject({ name: "north", state: "online", draining: null });
  });

  it("tells what was fetched today and what it took on the wire", async () => {
    const north = await world.arrived("north");
    await world.delegations.saveRound(roundOf(await world.site(1), [[north, 10]]));
    const [lease] = await world.lease(north);
    const given = { sequence: 1, leaseId: lease!.leaseId, url: "http://s1.example/" };
    await world.take(north, [arrivedResult(given)], secondsAfterNoon(1));
    // The command's clock is the system's, the world's stands still.
    await world.pool.query("update page_fetch set fetched_at = now()");

    const { out } = await fleet("list", "--json");
    const [entry] = JSON.parse(out) as FleetEntry[];

    expect(entry).toMatchObject({
      pagesToday: 1,
      bytesToday: 1000,
      bodyBytesToday: 3000,
      shippedBytesToday: 100,
    });
  });

  it("says so with code 3 where there is no such crawler", async () => {
    for (const verb of ["drain", "resume"]) {
      const { code, err } = await fleet(verb, "nobody");

      expect([code, err]).toEqual([3, 'nearcrawl: there is no crawler "nobody": nearcrawl fleet list\n']);
    }
  });

  it("says what to do where nobody is registered", async () => {
    const { code, out } = await fleet("list");

    expect([code, out]).toEqual([0, "there is no crawler yet: nearcrawl fleet invite --name NAME\n"]);
  });
});
