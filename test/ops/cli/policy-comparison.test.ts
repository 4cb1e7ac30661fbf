/**
 * The table at the end of a run, over the world of three places: athens, berlin and tokyo, six sites in
 * subnets of their own. Best crawlers: athens for a1 and a2, berlin for b1 and b2, tokyo for t1, and for a3
 * athens and berlin alike (7 ms).
 */

import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { comparePolicies, nearness, policyTable, worldParameters } from "#ops/cli/up/policy-comparison";
import type { World } from "#ops/world/model";
import { type Fixture, measuredWorld, parseFixture } from "../../lab/simulate/measured.ts";
import { newWorld, noon, roundOf, scope, seeds } from "../../support/store-world.ts";

let fixture: Fixture;
let world: World;
beforeAll(() => {
  const file = new URL("../../fixtures/latency/three-places.json", import.meta.url);
  fixture = parseFixture(readFileSync(file, "utf8"), file.pathname);
  world = measuredWorld(fixture);
});

const [athens, berlin, tokyo] = [0, 1, 2] as const;

describe("the quality of the choices", () => {
  it.each([
    [
      "all of it where every subnet went to its best, a tie too",
      [athens, athens, berlin, berlin, tokyo, berlin],
      100,
    ],
    ["without a subnet that nobody has", [athens, athens, berlin, null, null, null], 50],
    ["a sixth where all went far off, but for one", Array(6).fill(tokyo), 100 / 6],
    ["nothing where nothing was chosen", Array(6).fill(null), 0],
  ])("is %s", (_what, crawlerOfSite, pct) => {
    const near = nearness(world, { crawlerOfSite, probes: 12 });

    expect([near.bestPct, near.within5msPct]).toEqual([pct, pct]);
    expect(near.probesPerUrl).toBe(2);
  });

  it("has the mean RTT of the choices", () => {
    const meanOf = (crawlerOfSite: (number | null)[]) =>
      nearness(world, { crawlerOfSite, probes: 0 }).meanRttMs;

    expect(meanOf([athens, athens, berlin, berlin, tokyo, berlin])).toBeCloseTo((4 + 6 + 3 + 3 + 9 + 7) / 6);
    expect(meanOf([athens, athens, berlin, null, null, null])).toBeCloseTo((4 + 6 + 3) / 3);
    expect(meanOf([null])).toBe(0);
  });

  it("distinguishes the best, a near and a far choice", () => {
    const rttsMs = [4, 8, 10];
    const targets = rttsMs.map(() => ({ ...fixture.targets[0]!, rtt: rttsMs }));

    const near = nearness(measuredWorld({ ...fixture, targets }), {
      crawlerOfSite: [athens, berlin, tokyo],
      probes: 3,
    });

    expect(near.subnets).toBe(3);
    expect(near.bestPct).toBeCloseTo(100 / 3);
    expect(near.within5msPct).toBeCloseTo(200 / 3);
  });
});

describe("the comparison", () => {
  it("reads the run's own policy from the database and computes all of them, in one order", async () => {
    const stores = await newWorld();
    try {
      const ids = [];
      for (const { name } of world.crawlers) ids.push(await stores.crawler(name));
      await stores.frontier.admit(seeds(...world.sites.map(({ host }) => `http://${host}/`)), scope, noon);
      const chosen = [athens, athens, berlin, berlin, berlin, athens];
      for (const [index, site] of world.sites.entries()) {
        const subnetId = await stores.subnet(site.address, site.address);
        await stores.resolve(site.host, site.address, subnetId);
        await stores.delegations.saveRound(
          roundOf(subnetId, [
            [ids[chosen[index]!]!, 5],
            [ids[tokyo]!, 200],
          ]),
        );
      }
      const run = {
        pool: stores.pool,
        world,
        parameters: worldParameters({ policy: "nearest" }),
      };

      const rows = await comparePolicies(run);

      expect(rows.map(({ policy, source }) => `${policy} ${source}`)).toEqual([
        "random computed",
        "ipmicra computed",
        "nearest live",
        "nearest computed",
        "exhaustive computed",
      ]);
      expect(rows[4]).toMatchObject({ bestPct: 100, within5msPct: 100, probesPerUrl: 3 });
      expect(rows[2]).toMatchObject({ probesPerUrl: 2, meanDownloadMs: null });
      expect(rows[2]!.bestPct).toBeLessThan(100);
      expect(rows[2]!.meanRttMs).toBeCloseTo((4 + 6 + 3 + 3 + 245 + 7) / 6);
      expect(policyTable(rows).split("\n")).toHaveLength(7);
    } finally {
      await stores.close();
    }
  });

  it("prints figures with their units, and a dash where no page was fetched", () => {
    const row = { subnets: 6, bestPct: 83.333, within5msPct: 100, probesPerUrl: 2.345, meanRttMs: 5.25 };

    const table = policyTable([
      { policy: "nearest", source: "live", ...row, meanDownloadMs: 123.4 },
      { policy: "random", source: "computed", ...row, meanDownloadMs: null },
    ]);

    expect(table).toMatch(/nearest +live +83\.3 % +100\.0 % +2\.35 +5\.3 ms +123 ms/);
    expect(table).toMatch(/random +computed .* –$/);
  });
});
