/** Fleets on network namespaces: real sockets, resolvers and addresses, and no proxy (test/support/small-internet). */
import { afterEach, describe, expect, it } from "vitest";
import { placedFleet, smallInternet, smallInternetNeeds } from "../support/small-internet/small-internet.ts";
import { until } from "../support/until.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function fleetOn(...[options]: Parameters<typeof smallInternet>) {
  const internet = await smallInternet(options);
  cleanups.push(internet.close);
  const fleet = await placedFleet(internet, { coordinatorAt: options.places[0]! });
  cleanups.push(fleet.close);
  return { internet, fleet };
}

describe.skipIf(smallInternetNeeds() !== null)("on network namespaces", () => {
  it("hosts go to the crawler of their own country", { timeout: 180_000 }, async () => {
    const { internet, fleet } = await fleetOn({ places: ["nl", "jp"], sitesPerPlace: 3 });
    for (const place of ["nl", "jp"] as const) await fleet.join(place, place);
    const hosts = [...internet.hosts("nl"), ...internet.hosts("jp")];
    await fleet.run("urls", "add", ...hosts.map((host) => `http://${host}/`));

    const owners = async () => await Promise.all(hosts.map(async (host) => await fleet.ownerOf(host)));
    const own = ["nl", "nl", "nl", "jp", "jp", "jp"];
    // A round that begins while a crawler is still joining may choose the other one; what counts is where each host ends.
    await until(async () => (await owners()).join() === own.join(), 60_000).catch(() => {});

    expect(await owners()).toEqual(own);
  });

  it("a host with IPv6 addresses alone waits for a crawler that has IPv6, says so, and is crawled once one is there", {
    timeout: 180_000,
  }, async () => {
    const { fleet } = await fleetOn({
      ...{ places: ["nl", "jp"], sitesPerPlace: 1, withoutV6: ["jp"] },
      hosts: { "six.example": { place: "nl", v6: "2001:67c:2::80" } },
    });
    const url = "http://six.example/";
    const fetches = async () =>
      await fleet.rows<{ outcome: string; name: string }>(
        "select f.outcome, c.name from page_fetch f join crawler c using (crawler_id) where f.url_hash = (select url_hash from frontier_url where url = $1)",
        [url],
      );
    const told = [
      ["who", url],
      ["site", "six.example"],
      ["urls", "status", url],
    ];
    const said = async (asked: readonly string[][]) =>
      await Promise.all(asked.map(async (words) => await fleet.run(...words)));
    await fleet.join("jp", "jp");
    await fleet.run("urls", "add", url);
    await until(async () => (await fleet.rows("select from probe_round")).length > 0, 30_000);

    const waiting = await said([["queue"], ...told]);
    const before = await fetches();
    await fleet.join("nl", "nl");
    await until(async () => (await fetches()).length > 0, 60_000).catch(() => {});

    for (const words of waiting)
      expect(words).toMatch(
        /no crawler (that is online )?speaks IPv6|1 host waits for a crawler that speaks IPv6/,
      );
    expect(before).toEqual([]);
    expect(await fetches()).toEqual([{ outcome: "fetched", name: "nl" }]);
    for (const words of await said(told)) expect(words).not.toContain("speaks IPv6");
  });
});
