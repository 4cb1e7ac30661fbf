/** Reports on leased URLs, whose rows are unchanged: the lease lists them. */
import { expect, test } from "vitest";
import { urlPlace } from "#coordinator/crawl/frontier/report-reads";
import { createSubmissionStore } from "#coordinator/crawl/submissions/submission-store";
import { crawlTotals } from "#coordinator/tell/overview/overview-reads";
import { urlsOf } from "#coordinator/tell/sites/site-reads";
import { hostReport, urlReport } from "#coordinator/tell/who/url-reads";
import { hostHashOf } from "#core/url-key";
import { forThisFile } from "../support/for-this-file.ts";
import {
  arrivedResult,
  keyOf,
  newWorld,
  noon,
  scope,
  secondsAfterNoon,
  seeds,
} from "../support/store-world.ts";

const urls = ["http://a.example/", "http://a.example/1", "http://a.example/2"] as const;

const free = urls[2];

const world = await forThisFile(newWorld());

const states = async () =>
  await Promise.all(urls.map(async (url) => (await urlReport(world.pool, keyOf(url), noon))?.state));
const totals = async () => {
  const { urlsLeased, urlsDue, urlsPending } = await crawlTotals(world.pool);
  return { urlsLeased, urlsDue, urlsPending };
};

test("reports show leased URLs and their crawler until their results arrive", async () => {
  const athens = await world.delegatedHost("athens", ...urls);
  // Two of them for longer, which go first.
  await world.rows(
    `update frontier_url set next_fetch_at = '${secondsAfterNoon(-9).toISOString()}' where url <> '${free}';
     update frontier_host set due_at = '${secondsAfterNoon(-9).toISOString()}'`,
  );
  const [lease] = await world.lease(athens, noon, { hosts: 1, urlsPerHost: 2 });
  const held = lease!.urls.map(({ url }) => url);
  const places = await Promise.all(
    urls.map(
      async (url) =>
        (await urlPlace(world.pool, keyOf(url), { strategy: "breadth-first", now: noon }))?.place,
    ),
  );
  const host = await hostReport(world.pool, hostHashOf("a.example"), noon);

  expect(held).toHaveLength(2);
  expect(await states()).toEqual(urls.map((url) => (url === free ? "due" : "in-progress")));
  expect(places).toEqual(urls.map((url) => (url === free ? 1 : null)));
  expect(host).toMatchObject({
    urlStates: { "in-progress": 2, due: 1 },
    dueAt: noon.toISOString(),
    lease: { crawler: "athens", openUrls: 2 },
  });
  expect(host!.nextUrls.map(({ url }) => url)).toEqual([free]);
  expect(await totals()).toEqual({ urlsLeased: 2, urlsDue: 1, urlsPending: 3 });

  await world.take(athens, [arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: held[0]! })]);

  expect(await states()).toEqual(["scheduled", "in-progress", "due"]);
  expect(await totals()).toEqual({ urlsLeased: 1, urlsDue: 2, urlsPending: 2 });
});

test("who, the status of URLs and a site's list agree whether a URL is scheduled, due, blocked or in progress", async () => {
  const url = "http://turns.example/";
  await world.frontier.admit(seeds(url), scope, noon);
  await world.pool.query("update frontier_host set state = 'resolved' where host = 'turns.example'");
  const key = keyOf(url);
  const told = async (now: Date) => {
    const listed = await urlsOf(
      world.pool,
      { hostHash: key.hostHash, host: "turns.example", urls: 1 },
      { filter: "all", outcome: null, status: null, after: "" },
      now,
    );
    const followed = await createSubmissionStore(world.pool).statusOf(
      [{ place: 1, url, key, fault: null }],
      now,
    );
    return [
      (await urlReport(world.pool, key, now))?.state,
      Object.keys((await hostReport(world.pool, key.hostHash, now))!.urlStates)[0],
      listed.urls[0]?.state,
      followed[0]?.state,
    ];
  };
  const everywhere = (state: string) => [state, state, state, state];
  // The status of a URL says that it waits for a crawler; only with one does its turn come.
  const before = (await told(secondsAfterNoon(-60))).slice(0, 3);

  expect(before).toEqual(everywhere("scheduled").slice(0, 3));
  await world.pool.query(
    "update frontier_host set subnet_id = (select subnet_id from delegation limit 1) where host = 'turns.example'",
  );
  expect(await told(secondsAfterNoon(-60))).toEqual(everywhere("scheduled"));
  expect(await told(noon)).toEqual(everywhere("due"));
  await world.pool.query(
    "update frontier_url set state = 'refused', last_outcome = 'refused-by-robots' where url = $1",
    [url],
  );
  expect(await told(noon)).toEqual(everywhere("blocked-by-robots"));
});
