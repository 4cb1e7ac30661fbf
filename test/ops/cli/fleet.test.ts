/** `nearcrawl fleet` over a real database: output and exit codes. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { FleetEntry } from "#coordinator/tell/fleet/fleet-api";
import { createIncidentStore } from "#coordinator/tell/fleet/incident-store";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { type FlowWorld, newFlowWorld } from "../../support/flow-world.ts";
import { roundOf } from "../../support/store-world.ts";

let world: FlowWorld;
beforeAll(async () => {
  world = await newFlowWorld();
});
beforeEach(async () => await world.reset());
afterAll(async () => await world.close());

const fleet = (...args: readonly string[]) => {
  const { url, schema } = world.database;
  return inProcess(commandNamed("fleet"), [...args, "--database-url", url, "--schema", schema]);
};

describe("nearcrawl fleet", { timeout: 120_000 }, () => {
  it("drains a crawler, shows the progress, and resumes it", async () => {
    const north = await world.arrived("north");
    const south = await world.arrived("south");
    const subnets = [await world.site(1), await world.site(2)];
    for (const subnetId of subnets) await world.delegations.saveRound(roundOf(subnetId, [[north, 10]]));

    const drained = await fleet("drain", "north");
    const move = { subnetId: subnets[0]!, from: north, to: south, cause: "drained", reason: "", rttMs: 12 };
    await world.delegations.move([{ ...move, cause: "drained" }], new Date());
    const listed = await fleet("list", "--json");
    const resumed = await fleet("resume", "north", "--json");

    expect([drained.code, resumed.code]).toEqual([0, 0]);
    expect(drained.out).toContain("its subnets go to others");
    const [entry] = JSON.parse(listed.out).crawlers as FleetEntry[];
    expect(entry).toMatchObject({
      name: "north",
      state: "draining",
      subnets: 1,
      draining: { askedBy: "operator", subnets: 2 },
    });
    expect(JSON.parse(resumed.out)).toMatchObject({ name: "north", draining: false });
  });

  it("grants a budget and domain sets that apply at once, and refuses impossible ones with the reason", async () => {
    await world.crawler("north");
    await fleet("budget", "north", "--pages-per-day", "700", "--bytes-per-day", "9");
    const granted = await fleet("budget", "north", "--bytes-per-day", "none", "--json");
    const given = await fleet("domain-sets", "north", ".gr not shop.gr", "LANG:el", "--json");
    await world.rows("update crawler set partner_domain_sets = '{.gr}'");
    const refused = await fleet("domain-sets", "north", ".com");
    const cleared = await fleet("domain-sets", "north", "none");

    expect(JSON.parse(granted.out)).toMatchObject({ granted: { pagesPerDay: 700, bytesPerDay: null } });
    expect(JSON.parse(given.out)).toMatchObject({ operator: [".gr not shop.gr", "lang:el"], partner: [] });
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining(".com has nothing in common") });
    expect(cleared.out).toContain("north is given hosts of every domain");
  });

  it("lists what crawlers and strangers did that they should not have done, without their escape sequences", async () => {
    const north = await world.crawler("north");
    const flood = { crawlerId: north, kind: "flood", remoteAddress: "192.0.2.1", count: 7 };
    await createIncidentStore(world.pool).recordAll([
      { ...flood, words: "too much\u001b[31m", at: new Date() },
      { ...flood, words: "long ago", at: new Date(Date.now() - 30 * 86_400_000) },
    ]);

    const { out } = await fleet("incidents", "--name", "north", "--since", "24h");

    expect(out).toMatch(/north +flood +7 +192\.0\.2\.1 +too much/);
    expect(out).not.toContain("long ago");
    expect(out).not.toContain("\u001b");
  });
});
