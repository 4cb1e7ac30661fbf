/**
 * Leasing by two coordinators at once, at random, against a model in memory (lease-model.ts): admissions, leases, results,
 * returns, crawlers that begin anew, and expiry.
 */
import { beforeAll, expect, test } from "vitest";
import { createFrontierStore } from "#coordinator/crawl/frontier/frontier-store";
import { createResultStore } from "#coordinator/crawl/results/result-store";
import { asLeaseId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { forThisFile } from "../support/for-this-file.ts";
import { arrivedResult, newWorld, noon, scope, seeds, spoolOf, type World } from "../support/store-world.ts";
import { type Deed, type Found, LeaseModel } from "./lease-model.ts";

const hosts = ["a", "b", "c", "d", "e", "f"].map((name) => `${name}.example`);
const urlsOfHost = 12;
const leaseSeconds = 60;
const rounds = 50;
const seed = 20261122;

const world = await forThisFile(newWorld());
let crawlers: readonly CrawlerId[];
beforeAll(async () => {
  crawlers = [await world.crawler("north"), await world.crawler("south")];
  // Each host at an address of its own, which nobody else has the turn of.
  for (const [index, crawlerId] of crawlers.entries()) {
    const subnetId = await world.subnet(`5.1.${index}.0`, `5.1.${index}.255`);
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    const own = hosts.filter((_, place) => place % crawlers.length === index);
    await world.frontier.admit(seeds(...own.map((host) => `http://${host}/`)), scope, noon);
    for (const [place, host] of own.entries())
      await world.resolve(host, `5.1.${index}.${place + 1}`, subnetId);
  }
});

/** What the database holds; and that hosts, leases and URLs say the same of it. */
async function look(): Promise<Found> {
  const { rows: urls } = await world.pool.query<{ url: string; due: Date; visits: number; state: string }>(
    "select url, next_fetch_at as due, visits, state from frontier_url",
  );
  expect(new Set(urls.map(({ state }) => state))).toEqual(new Set(["due"]));
  const { rows: leases } = await world.pool.query<{ lease_id: string; urls: string[]; agrees: boolean }>(
    `select l.lease_id, array_agg(u.url order by u.url) as urls,
       bool_and(h.lease_id is not distinct from l.lease_id) and count(u.url) = min(l.open_urls) as agrees
     from lease l
     join frontier_host h using (host_hash)
     cross join unnest(l.open_url_hashes) as one (url_hash)
     left join frontier_url u on u.host_hash = l.host_hash and u.url_hash = one.url_hash
     where l.closed_at is null
     group by l.lease_id`,
  );
  expect(leases.filter(({ agrees }) => !agrees)).toEqual([]);
  const lost = await world.rows(
    `select h.host
     from frontier_host h
     where h.lease_id is distinct from (
         select l.lease_id from lease l where l.host_hash = h.host_hash and l.closed_at is null)
       or (h.lease_id is null
         and h.due_at is distinct from (select min(next_fetch_at) from frontier_url u where u.host_hash = h.host_hash))`,
  );
  expect(lost).toEqual([]);
  return {
    leases: new Map(leases.map((row) => [row.lease_id, row.urls])),
    urls: new Map(urls.map(({ url, due, visits }) => [url, { dueMs: due.getTime(), visits }])),
  };
}

test(`two coordinators at once lease each URL to one crawler and lose none (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  const some = <T>(of: readonly T[], share: number) => of.filter(() => random() < share);
  const model = new LeaseModel(leaseSeconds * 1000);
  const first = await look();
  for (const [url, row] of first.urls) model.urls.set(url, { ...row });
  const coordinators = [0, 1].map((number) => ({
    frontier: createFrontierStore(world.pool),
    results: createResultStore(world.pool),
    spoolId: spoolOf(number + 1),
    sequence: 0,
  }));

  type Coordinator = (typeof coordinators)[number];
  type Doing = (by: Coordinator, now: Date) => Promise<Deed>;
  const admit: Doing = async ({ frontier }, now) => {
    const urls = Array.from({ length: 4 }, () => `http://${hosts[below(hosts.length)]}/${below(urlsOfHost)}`);
    const { newUrls } = await frontier.admit(seeds(...urls), scope, now);
    return { type: "admitted", urls, count: newUrls };
  };
  const begin: Doing = async ({ frontier }, now) =>
    await lease(frontier, crawlers[below(2)]!, now, 1 + below(6));
  const ship: Doing = async (by, now) => {
    const [leaseId, held] = [...model.open][below(model.open.size)] ?? [];
    if (leaseId === undefined || held === undefined) return { type: "admitted", urls: [], count: 0 };
    const urls = [...some([...held.urls], 0.7), `http://${held.host}/${below(urlsOfHost)}`];
    const again = { at: new Date(now.getTime() + 600_000), isGone: false };
    const results = urls.map((url) => {
      by.sequence += 1;
      const result = { address: null, fetchedAt: now.toISOString(), hostDelayMs: 0 };
      return arrivedResult({
        sequence: by.sequence,
        leaseId,
        url,
        outcome: { type: "fetched", status: 404, truncated: false },
        result: { ...result, page: null },
        again: () => again,
      });
    });
    const { spoolId, sequence: lastSequence } = by;
    const { crawlerId } = held;
    const taken = await by.results.take({ crawlerId, spoolId, results, scope, now, lastSequence });
    return { type: "taken", leaseId, urls, count: taken.stored };
  };
  const giveBack: Doing = async ({ frontier }, now) => {
    const [leaseId, held] = [...model.open][below(model.open.size)] ?? [];
    if (leaseId === undefined || held === undefined) return { type: "returned", leaseIds: [], count: 0 };
    const given = { leaseId: asLeaseId(leaseId), crawlerId: held.crawlerId };
    const isReturned = await frontier.returnLease(given, now);
    return { type: "returned", leaseIds: [leaseId], count: isReturned ? 1 : 0 };
  };
  const beginAnew: Doing = async ({ frontier }, now) => {
    const crawlerId = crawlers[below(2)]!;
    const held = some([...model.open.keys()], 0.8).map(asLeaseId);
    return { type: "left", crawlerId, held, count: await frontier.returnLeasesOf(crawlerId, now, held) };
  };
  const expire: Doing = async ({ frontier }, now) => ({
    type: "expired",
    count: await frontier.returnExpired(now),
  });
  const deeds = [admit, begin, begin, ship, ship, ship, giveBack, beginAnew, expire];
  const counts = { leased: 0, taken: 0, ended: 0 };
  let now = noon;

  for (let round = 0; round < rounds; round++) {
    now = new Date(now.getTime() + below(15_000));
    const chosen = coordinators.map((by) => ({ by, deed: deeds[below(deeds.length)]! }));
    const done = await Promise.all(chosen.map(async ({ by, deed }) => await deed(by, now)));
    const found = await look();
    model.apply(done, found, now.getTime());

    expect(openUrls(model)).toEqual(found.leases);
    expect(model.urls).toEqual(found.urls);
    for (const deed of done) {
      if (deed.type === "leased") counts.leased += deed.leases.length;
      else if (deed.type === "taken") counts.taken += deed.count;
      else if (deed.type !== "admitted") counts.ended += deed.count;
    }
  }

  expect(Math.min(counts.leased, counts.taken, counts.ended)).toBeGreaterThan(5);
  // Everything that is left comes to a crawler.
  now = new Date(now.getTime() + 3_600_000);
  await world.frontier.returnExpired(now);
  const last = await Promise.all(crawlers.map(async (id) => await lease(world.frontier, id, now, 1000)));
  const leased = last.flatMap((deed) => deed.leases.flatMap(({ urls }) => urls.map(({ url }) => url)));
  expect(leased.toSorted()).toEqual([...model.urls.keys()].toSorted());
});

async function lease(frontier: World["frontier"], crawlerId: CrawlerId, now: Date, urlsPerHost: number) {
  const request = { crawlerId, hosts: 3, urlsPerHost, leaseSeconds, addressRestSeconds: 0, now };
  return { type: "leased", crawlerId, leases: await frontier.leaseHosts(request) } as const;
}

const openUrls = ({ open }: LeaseModel) =>
  new Map([...open].map(([leaseId, { urls }]) => [leaseId, [...urls].toSorted()]));
