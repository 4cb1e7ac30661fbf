/** A fleet on network namespaces, with real sockets, resolvers and addresses and no proxy (test/support/small-internet). */
import { afterEach, expect, it } from "vitest";
import { placedFleet, smallInternet, smallInternetNeeds } from "../support/small-internet/small-internet.ts";
import { until } from "../support/until.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

it.skipIf(smallInternetNeeds() !== null)(
  "an IPv6-only host waits for a crawler with IPv6 and says so; all hosts go to the crawler of their country",
  { timeout: 240_000 },
  async () => {
    const internet = await smallInternet({
      ...{ places: ["nl", "jp"], sitesPerPlace: 2, withoutV6: ["jp"] },
      hosts: { "six.example": { place: "nl", v6: "2001:67c:2::80" } },
    });
    cleanups.push(internet.close);
    const fleet = await placedFleet(internet, { coordinatorAt: "nl" });
    cleanups.push(fleet.close);
    const url = "http://six.example/";
    const fetches = async () =>
      await fleet.rows<{ outcome: string; name: string }>(
        "select f.outcome, c.name from page_fetch f join crawler c using (crawler_id) where f.url_hash = (select url_hash from frontier_url where url = $1)",
        [url],
      );
    const commands = [
      ["who", url],
      ["site", "six.example"],
      ["urls", "status", url],
    ];
    const answers = async (asked: readonly string[][]) =>
      await Promise.all(asked.map(async (words) => await fleet.run(...words)));
    const hosts = [...internet.hosts("nl"), ...internet.hosts("jp")];
    const owners = async () => await Promise.all(hosts.map(async (host) => await fleet.ownerOf(host)));
    const own = ["nl", "nl", "jp", "jp"];
    await fleet.join("jp", "jp");
    await fleet.run("urls", "add", url);
    await until(async () => (await fleet.rows("select from probe_round")).length > 0, 30_000);

    const waiting = await answers([["queue"], ...commands]);
    const before = await fetches();
    await fleet.join("nl", "nl");
    await fleet.run("urls", "add", ...hosts.map((host) => `http://${host}/`));
    await until(async () => (await fetches()).length > 0, 60_000).catch(() => {});
    // A round that begins while a crawler is joining may choose the other one; only the final owner counts.
    await until(async () => (await owners()).join() === own.join(), 60_000).catch(() => {});

    for (const words of waiting)
      expect(words).toMatch(
        /no crawler (that is online )?speaks IPv6|1 host waits for a crawler that speaks IPv6/,
      );
    expect(before).toEqual([]);
    expect(await fetches()).toEqual([{ outcome: "fetched", name: "nl" }]);
    for (const words of await answers(commands)) expect(words).not.toContain("speaks IPv6");
    expect(await owners()).toEqual(own);
  },
);
