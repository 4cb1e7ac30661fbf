/**
 * The order of an evening with partners, on network namespaces: hosts are there, one crawler joins and works, and a second one joins far
 * away. Later its machine is moved. Distances are those of packets, and nothing is told to anybody.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type PlacedFleet,
  placedFleet,
  type SmallInternet,
  smallInternet,
  smallInternetNeeds,
} from "../support/small-internet/small-internet.ts";
import { until } from "../support/until.ts";

describe.skipIf(smallInternetNeeds() !== null)("a second partner", { timeout: 180_000 }, () => {
  let internet: SmallInternet;
  let fleet: PlacedFleet;
  let hosts: string[];
  beforeAll(async () => {
    internet = await smallInternet({ places: ["nl", "jp"], sitesPerPlace: 3 });
    fleet = await placedFleet(internet, { coordinatorAt: "nl" });
    hosts = [...internet.hosts("nl"), ...internet.hosts("jp")];
    await fleet.run("urls", "add", ...hosts.map((host) => `http://${host}/`));
    await fleet.join("amsterdam", "nl");
    const fetched = "select from frontier_host where fetched_urls > 0";
    await until(async () => (await fleet.rows(fetched)).length === hosts.length, 60_000);
  });
  afterAll(async () => {
    await internet?.close();
    await fleet?.close();
  });

  const owners = async () => await Promise.all(hosts.map(async (host) => await fleet.ownerOf(host)));

  it("has the hosts of its own country within two minutes, and the first keeps those of its", async () => {
    expect(new Set(await owners())).toEqual(new Set(["amsterdam"]));

    const tokyo = await fleet.join("tokyo", "jp");
    const theirs = ["amsterdam", "amsterdam", "amsterdam", "tokyo", "tokyo", "tokyo"];
    await until(async () => String(await owners()) === String(theirs), 120_000).catch(() => {});

    expect(await owners()).toEqual(theirs);
    // Its fetches had told how far the first is.
    expect(
      await fleet.rows(
        "select distinct how from probe join crawler using (crawler_id) where name = 'amsterdam'",
      ),
    ).toContainEqual({ how: "get" });
    await tokyo.stop();
  });

  it("whose machine is moved is measured from there, and not believed what it measured before", async () => {
    const japan = `
      select d.rtt_ms from delegation d join subnet s using (subnet_id) where s.country = 'JP' and d.rtt_ms is not null`;
    const measured = async () => (await fleet.rows<{ rtt_ms: number }>(japan)).map(({ rtt_ms }) => rtt_ms);
    expect(Math.max(...(await measured()))).toBeLessThan(100);

    await fleet.startCrawler("tokyo", "nl");
    await until(async () => (await measured()).filter((rttMs) => rttMs > 200).length === 3, 60_000).catch(
      () => {},
    );

    expect(await measured()).toHaveLength(3);
    expect(Math.min(...(await measured()))).toBeGreaterThan(200);
  });
});
