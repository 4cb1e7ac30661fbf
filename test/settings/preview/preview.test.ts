/**
 * What a change would come to, over a world whose numbers can be followed in the head. Athens and tokyo are connected;
 * athens has the subnet of www.example.org (70 of its 100 URLs were fetched, 40 more are held), berlin is offline.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { policiesOf } from "#coordinator/live-config";
import { type PolicyValue, withChanges } from "#coordinator/settings/catalogue";
import { previewPolicies } from "#coordinator/settings/preview/preview";
import type { PreviewPorts } from "#coordinator/settings/preview/types";
import type { PolicyName } from "#coordinator/settings/schema";
import { previewPorts } from "#coordinator/settings/start";
import { systemClock } from "#core/clock";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../../support/database.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";

let database: Database;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(whatHappened);
});
afterAll(async () => await database.close());

const whatHappened = `
  update probe_round set method = 'head' where round_id = 1;
  update crawler set pages_per_day = case name when 'athens' then 8 else 192 end;
  insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
    values (3, 1, 'probe-round', true, 12.5, '2026-02-20T12:00:00Z');
  update frontier_host
    set url_count = 100, fetched_urls = 70, held_urls = 40, good_pages = 100, fetched_bytes = 0, fetches = 0
    where host = 'www.example.org';
  update frontier_host set url_count = 0, fetched_urls = 0 where host <> 'www.example.org';
  insert into crawler_trust (crawler_id, pages, score, distrusted_at) values (1, 9000, 5, null), (2, 9000, 9, '2026-03-01');
  insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, first_byte_ms, wire_bytes, body_bytes, shipped_bytes)
    select host_hash, at, 1, '2026-03-01T11:59:00Z'::timestamptz - at * interval '1 minute', 'fetched', 40, 40, 1, 1, 1
    from frontier_host, generate_series(0, 47) as at where host = 'www.example.org';
  insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows, anchors)
    select host_hash, 1, 1, '2026-03-01', 0, 1, '{1,2,3,4}', '{1,2,3}', '{1,2,3}', '{3}', repeat(e'\\n', 3)
    from frontier_host where host = 'www.example.org';
  insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending)
    select 1, 1, 'www.example.org', '2026-03-01T11:00:00Z', '2026-03-01T11:05:00Z',
      '2026-03-01T11:00:00Z'::timestamptz + seconds * interval '1 second', urls, 0, ending
    from (values (10, 20, 'done'), (100, 5, 'done'), (300, 20, 'expired')) as l (seconds, urls, ending);`;

type Changes = Partial<Record<PolicyName, PolicyValue>>;

async function preview(changes: Changes, base: object = {}, changed: Partial<PreviewPorts> = {}) {
  const before = policiesOf(readCoordinatorConfig(base));
  const entries = Object.entries(changes) as [PolicyName, PolicyValue][];
  const after = withChanges(before, new Map(entries));
  const names = new Set(entries.map(([name]) => name));
  const ports = previewPorts(database.pool, silentLog, () => worldNow);
  return await previewPolicies({ before, after, names }, { ...ports, ...changed });
}

/** By name: before and after. */
async function figures(changes: Changes, base?: object) {
  const effects = await preview(changes, base);
  const all = effects.flatMap((effect) => effect.figures);
  return Object.fromEntries(all.map(({ name, before, after }) => [name, [before, after]]));
}

it("a policy: the stored round is played again, tokyo's answer is predicted, and that is said", async () => {
  const base = { delegation: { policy: "ipmicra" }, trust: { witnesses: false } };
  const witnessed = await figures({ "trust.witnesses": true }, base);

  expect(witnessed.probesPerRound).toEqual([1, 2]);
  const [effect, ...others] = await preview({ "delegation.policy": "exhaustive" }, base);

  expect(others).toEqual([]);
  expect(effect?.figures.map(({ name, before, after }) => [name, before, after])).toEqual([
    ["probesPerRound", 1, 3],
    ["changedDelegations", 0, 0],
    ["extraRttMs", 0, 0],
  ]);
  expect(effect?.basis).toContain("1 decided round (the latest) and 3 crawlers");
  expect(effect?.basis).toContain("25 % went to crawlers that were not asked then");
  expect(effect?.limits[0]).toContain("as they were run, they took 2.0 probes each");
});

it("a probe method: who can measure so, what was, and that the rest is kept apart", async () => {
  const [effect, ...others] = await preview({ "probe.method": "head" });

  expect(others).toEqual([]);
  expect(effect?.figures.map(({ name, before, after }) => [name, before, after])).toEqual([
    ["able", 1, 2],
    ["delegations", 0, 1],
    ["rounds", 0, 1],
  ]);
  expect(effect?.limits[0]).toContain("0 subnets measured by connect keep crawler and RTT");
  expect(effect?.limits.join()).toContain("No subnet is fetched first");
});

it("a recrawl interval: 70 URLs once a week are 10 pages per day, and once a day 70 of the 200 that are allowed", async () => {
  const found = await figures({ "recrawl.intervalHours": 24 });

  expect(found.pagesDuePerDay).toEqual([10, 70]);
  expect(found.ofCapacity).toEqual([5, 35]);
});

it("a recrawl strategy with a plan of its own counts by what the plan comes to, and one without says when it will be known", async () => {
  const plan = { strategy: "icr", pages: 70, totalPerDay: 20, capacityPerDay: 0 } as const;
  const due = async (strategy: string) => {
    const effects = await preview(
      { "recrawl.strategy": strategy },
      { recrawl: { strategy: "icr" } },
      { recrawlPlan: async () => plan },
    );
    return effects.find(({ figures: [first] }) => first?.name === "pagesDuePerDay");
  };

  const [fixed, optimal] = [await due("fixed"), await due("optimal")];

  expect(fixed?.figures[0]).toMatchObject({ before: 20, after: 10 });
  expect(fixed?.limits.join()).not.toContain("first plan");
  expect(optimal?.limits.join()).toContain("What optimal comes to is known when its first plan is made");
});

it("pages per host: of 40 held URLs 20 have room when a host of 100 may have 120", async () => {
  expect(await figures({ "scope.pagesPerHost": 120 })).toMatchObject({
    releasable: [0, 20],
    held: [40, 20],
    hostsOver: [0, 0],
  });
  expect(await figures({ "scope.pagesPerHost": 90 })).toMatchObject({ hostsOver: [0, 1] });
});

it("balance: athens has more than its 8 pages per day, and its subnet would go to tokyo", async () => {
  const found = await figures({ "balance.policy": "min-cost-flow" }, { balance: { policy: "none" } });

  expect(found).toMatchObject({
    moves: [0, 1],
    overloadsNow: [1, 1],
    overloadsLeft: [1, 0],
    minutes: [0, 1],
  });
  // Half way between |212.5 - 12.5| and 212.5 + 12.5 ms, and athens has 12.5 ms.
  expect(found.extraRttMs?.[1]).toBeCloseTo(200, 0);
});

it("trust: of 48 fetches per day one in twenty, then one in ten; evidence of 5 is enough at 4", async () => {
  expect(await figures({ "trust.share": 0.1 })).toEqual({
    secondFetchesPerDay: [expect.closeTo(2.4), expect.closeTo(4.8)],
    ofAllPages: [expect.closeTo(5), expect.closeTo(10)],
  });
  const [effect] = await preview({ "trust.threshold": 4 });
  expect(effect?.figures.map(({ before, after }) => [before, after])).toEqual([
    [1, 2],
    [0, 1],
  ]);
  expect(effect?.basis).toContain("newly distrusted would be: athens");
});

it("pace: the one subnet that waits takes two probes, and the two crawlers that are connected bound it", async () => {
  const found = await preview({ "probe.pace.perCrawlerPerSecond": 1 });

  const [effect] = found;
  expect(effect?.basis).toContain("bounds it is probe.pace.perCrawlerPerSecond now");
  expect(effect?.figures.map(({ name, before, after }) => [name, before, after])).toEqual([
    ["probesPerSecond", 40, 2],
    ["minutes", 2 / 40 / 60, 2 / 2 / 60],
  ]);
});

it("leases: of those that were done one took longer than a minute", async () => {
  expect(await figures({ "lease.seconds": 60 })).toMatchObject({ late: [0, 1] });
  expect(await figures({ "lease.urlsPerHost": 5 })).toMatchObject({ full: [2, 3] });
});

it("scope: of four links one is nofollow, and three of the hosts that they lead to are not crawled", async () => {
  const scope = {
    "scope.followNofollow": true,
    "scope.admitNewHosts": true,
    "scope.maxDepth": 0,
  } as const;

  expect(await figures(scope)).toEqual({ followed: [75, 100], newHosts: [0, 3], atDepth: [0, 100] });
});

it("get-first: the one subnet that waits has no URL due for a first fetch, and 5 when its host has", async () => {
  await database.pool.query("update frontier_host set url_count = 5 where host = 'empty.example.net'");

  const found = await figures({ "delegation.getFirstFromUrls": 3 });

  expect(found).toEqual({ firstFetches: [0, 1] });
});

it("recalibration: steady fetches lead to no round, and two decisions are probed again once a week each", async () => {
  const found = await figures({ "recalibration.slowerThanFactor": 3, "recalibration.refreshDays": 7 });

  expect(found).toEqual({ slowRoundsPerDay: [0, 0], recheckRoundsPerDay: [2 / 30, 2 / 7] });
});

it("says that it does not know what takes too long, what fails, and what nothing stored tells of", async () => {
  const at = previewPorts(database.pool, silentLog, () => worldNow);
  const never = { ...at.samples, leases: async () => await new Promise<never>(() => {}) };
  const broken = { ...at.samples, leases: async () => await Promise.reject(new Error("no")) };
  const noWaiting = {
    ...systemClock,
    wake: (_: number, callback: () => void) => systemClock.wake(0, callback),
  };

  const [late] = await preview({ "lease.seconds": 60 }, {}, { samples: never, clock: noWaiting });
  const [failed] = await preview({ "lease.seconds": 60 }, {}, { samples: broken });
  const [untold] = await preview({ "probe.pace.perTargetPerSecond": 2 });

  expect(late?.basis).toContain("took longer than 2 s");
  expect(failed?.basis).toContain("Not told: the database");
  expect(untold?.basis).toContain("Nothing that is stored tells what probe.pace.perTargetPerSecond");
});
