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
    await until(async () => (await owners()).every((owner) => owner !== null), 60_000).catch(() => {});

    expect(await owners()).toEqual(["nl", "nl", "nl", "jp", "jp", "jp"]);
  });
});
