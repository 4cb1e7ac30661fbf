/** What reports say of URLs that a crawler has in hand: their rows are as they were, the lease has their list. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { urlPlace } from "#coordinator/frontier/report-reads";
import { crawlTotals } from "#coordinator/overview/overview-reads";
import { hostReport, urlReport } from "#coordinator/who/url-reads";
import { hostHashOf } from "#core/url-key";
import {
  arrivedResult,
  keyOf,
  newWorld,
  noon,
  secondsAfterNoon,
  type World,
} from "../support/store-world.ts";

const urls = ["http://a.example/", "http://a.example/1", "http://a.example/2"] as const;

const free = urls[2];

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
afterAll(async () => await world?.close());

const states = async () =>
  await Promise.all(urls.map(async (url) => (await urlReport(world.pool, keyOf(url)))?.state));
const totals = async () => {
  const { urlsLeased, urlsDue, urlsPending } = await crawlTotals(world.pool);
  return { urlsLeased, urlsDue, urlsPending };
};

test("reports say which URLs a crawler has in hand, and whose they are, until their results come", async () => {
  const athens = await world.delegatedHost("athens", ...urls);
  // Two of them for longer, which go first.
  await world.rows(
    `update frontier_url set next_fetch_at = '${secondsAfterNoon(-9).toISOString()}' where url <> '${free}';
     update frontier_host set due_at = '${secondsAfterNoon(-9).toISOString()}'`,
  );
  const [lease] = await world.frontier.leaseHosts({
    crawlerId: athens,
    hosts: 1,
    urlsPerHost: 2,
    leaseSeconds: 60,
    now: noon,
  });
  const held = lease!.urls.map(({ url }) => url);
  const places = await Promise.all(
    urls.map(
      async (url) =>
        (await urlPlace(world.pool, keyOf(url), { strategy: "breadth-first", now: noon }))?.place,
    ),
  );
  const host = await hostReport(world.pool, hostHashOf("a.example"));

  expect(held).toHaveLength(2);
  expect(await states()).toEqual(urls.map((url) => (url === free ? "due" : "leased")));
  expect(places).toEqual(urls.map((url) => (url === free ? 1 : null)));
  expect(host).toMatchObject({
    urlStates: { leased: 2, due: 1 },
    dueAt: noon.toISOString(),
    lease: { crawler: "athens", openUrls: 2 },
  });
  expect(host!.nextUrls.map(({ url }) => url)).toEqual([free]);
  expect(await totals()).toEqual({ urlsLeased: 2, urlsDue: 1, urlsPending: 3 });

  await world.take(athens, [arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: held[0]! })]);

  expect(await states()).toEqual(urls.map((url) => (url === held[1] ? "leased" : "due")));
  expect(await totals()).toEqual({ urlsLeased: 1, urlsDue: 2, urlsPending: 2 });
});
