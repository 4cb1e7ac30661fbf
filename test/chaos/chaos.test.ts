/** A short chaos run (npm run chaos) against real processes, and proof that each check finds its fault. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { builtProgram } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { contradictionsIn } from "../support/database-checks.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { hastyRequests, requestsWithoutLease } from "./checks.ts";
import { growthOf } from "./growth.ts";
import { areOfOneThing, drawPlan, faultKinds } from "./plan.ts";
import { type ChaosRun, runChaos } from "./run-chaos.ts";

/** Drawn: one fault of each kind, at two coordinators on one database. */
const short: ChaosRun = {
  ...{ seed: 0, sites: 3, crawlers: 2, coordinators: 2, floorMs: 100, leaseSeconds: 5, concurrentHosts: 4 },
  ...{ lengthMs: 2500, faultsPerMinute: 170, longestMs: 500, stillMs: 60_000, settleSeconds: 0 },
  ...{ addressRestSeconds: 0, urlsPerLease: 20, fetchesBefore: 2 },
  ...{ changeEveryMs: 60_000, wantedAgain: 0 },
  kinds: ["kill-crawler", "kill-coordinator", "kill-database", "cut-link", "stop-crawler"],
};

describe.runIf(process.platform === "linux")("a short run", { timeout: 240_000 }, () => {
  it("kills crawlers, coordinator and database while they crawl, and all checks hold afterwards", async () => {
    const programs = {
      command: await builtProgram("ops/cli/main"),
      crawler: await builtProgram("migrating-crawler/main"),
    };
    const said: string[] = [];

    const outcome = await runChaos(short, programs, temporaryFolder("nearcrawl-chaos-"), (line) =>
      said.push(line),
    );

    const failed = outcome.verdicts.filter(({ rows }) => rows.length > 0);
    expect(failed, said.join("\n")).toEqual([]);
    expect(new Set(outcome.faults.map(({ kind }) => kind))).toEqual(new Set(short.kinds));
    expect(outcome.figures.fetches).toBeGreaterThan(short.sites);
  });
});

it("a plan has every kind of fault, each undone before its end, and no two at one target at once", () => {
  const size = { lengthMs: 600_000, crawlers: 5, coordinators: 2, faultsPerMinute: 8 };
  const plans = Array.from({ length: 10 }, (_, seed) => drawPlan({ ...size, seed }));

  expect(new Set(plans.flat().map(({ kind }) => kind))).toEqual(new Set(faultKinds));
  for (const plan of plans) {
    for (const [at, fault] of plan.entries()) {
      expect(fault.atMs + fault.lastsMs).toBeLessThanOrEqual(size.lengthMs);
      const meanwhile = plan.slice(at + 1).filter(({ atMs }) => atMs < fault.atMs + fault.lastsMs);
      expect(meanwhile.filter((other) => areOfOneThing(fault, other))).toEqual([]);
    }
  }
});

it.each([
  ["grows all the time", (minute: number) => 100 + minute, true],
  ["fills up first", (minute: number) => Math.min(100, 20 + 5 * minute), false],
  ["wavers", (minute: number) => 100 + ((minute * 7) % 13), false],
  ["jumps now and then", (minute: number) => (minute % 10 === 9 ? 1000 : 100), false],
  ["shrinks", (minute: number) => 200 - minute, false],
])("a process's memory that %s is told from one that does not", (_, valueAt, grows) => {
  const samples = Array.from({ length: 60 }, (_, minute) => ({ hours: minute / 60, value: valueAt(minute) }));

  expect(growthOf("athens, MB", samples) !== null).toBe(grows);
});

describe("the checks of the tables", () => {
  let database: Database;
  beforeAll(async () => {
    database = await testDatabase();
    await database.pool.query(`
      insert into crawler (name) values ('athens'), ('oslo');
      insert into subnet (first_address, last_address, registry, name, added_in)
        values ('192.0.2.0', '192.0.2.255', 'ripencc', '', 1);
      insert into delegation (subnet_id, crawler_id, cause, measured, delegated_at) values (1, 1, 'own-subnet', false, now());
      insert into delegation_history (subnet_id, changed_at, to_crawler_id, cause, reason)
        values (1, now(), 1, 'own-subnet', 'its own');
      insert into spool (crawler_id, spool_id, acknowledged_sequence)
        values (1, '00000000-0000-0000-0000-000000000001', 1);
      insert into frontier_host (host_hash, host, resolve_at, admitted_at, url_count, fetched_urls, fetches, fetched_bytes,
          good_pages, due_at)
        values (10, 'a.example', now(), now(), 1, 1, 1, 500, 1, '2030-01-01');
      insert into frontier_url (host_hash, url_hash, url, state, depth, next_fetch_at, visits, worth, digest)
        values (10, 11, 'http://a.example/', 'due', 0, '2030-01-01', 1, 'good', '\\xaa');
      insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending)
        values (1, 10, 'a.example', now() - interval '1 minute', now(), now() - interval '30 s', 1, 0, 'done');
      insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, total_ms, wire_bytes, body_bytes,
          shipped_bytes)
        values (10, 11, 1, now() - interval '40 s', 'fetched', 200, 10, 500, 400, 300);
    `);
  });
  afterAll(() => database.close());

  it("find nothing in consistent tables", async () => {
    expect(await contradictionsIn(database.pool)).toEqual([]);
  });

  const wrong: readonly (readonly [string, string, readonly string[]])[] = [
    [
      "a fetch stored twice",
      "insert into page_fetch select * from page_fetch",
      ["results-of-leases", "visits", "acknowledged-results", "fetches-of-hosts"],
    ],
    [
      "a fetch of a crawler without a lease",
      "update page_fetch set crawler_id = 2",
      ["results-of-leases", "fetches-without-lease", "acknowledged-results"],
    ],
    ["a URL missing from its host's count", "update frontier_host set url_count = 2", ["urls-of-hosts"]],
    ["a budget with missing pages", "update frontier_url set worth = 'empty'", ["budgets-of-hosts"]],
    ["a link without a source", "update frontier_url set back_links = 1", ["back-links"]],
    ["an outside link without a source", "update frontier_host set outside_links = 1", ["outside-links"]],
    [
      "a waiting link effect",
      "insert into link_outbox (crawler_id, effects, packed) values (1, 3, '')",
      ["link-outbox"],
    ],
    ["a gap in the feed", "update change_feed set last_number = 2", ["change-feed"]],
    [
      "a change of a missing page",
      `insert into page_change (change_number, noted_at, host_hash, url_hash, url, kind, seen_at)
         values (1, now(), 10, 12, 'http://a.example/b', 'changed', now());
       update change_feed set last_number = 1`,
      ["changed-pages"],
    ],
    ["a delegation without history", "update delegation set crawler_id = 2", ["delegation-history"]],
    [
      "a history with a leap",
      `insert into delegation_history (subnet_id, changed_at, from_crawler_id, to_crawler_id, cause, reason)
         values (1, now() + interval '1 s', 2, 1, 'crawler-left', 'it left')`,
      ["delegation-history"],
    ],
    [
      "a subnet decided as new twice, with overlapping parts",
      `insert into probe_round (subnet_id, cause, policy, target_url, target_address, started_at, decided_at, crawler_id, reason)
         select 1, 'new-subnet', 'nearest', '', '192.0.2.1', now(), now(), 1, '{}' from generate_series(1, 2);
       insert into finer_delegation (subnet_id, first_address, last_address, crawler_id, round_id, cause, measured, found_at,
           delegated_at, review_at)
         select 1, first::inet, '192.0.2.127', 2, (select min(round_id) from probe_round), 'split', true, now(), now(), now()
         from unnest(array['192.0.2.0', '192.0.2.64']) as first`,
      ["one-delegation", "rounds-twice"],
    ],
    [
      "a lease that stays open under another one",
      `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
         values (2, 10, 'a.example', now() - interval '45 s', now(), 1, 1)`,
      ["open-leases", "leases-overlap"],
    ],
    ["a host due too early", "update frontier_host set due_at = '2029-01-01'", ["due-hosts"]],
    [
      "a minute that counts fetches that were not stored",
      "insert into minute_figures (minute, fetches) values (now(), 2)",
      ["figures"],
    ],
    [
      "a page with another text",
      `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, text_search_config, title,
           noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes)
         values (10, 11, 'http://a.example/', 'a.example', 1, now(), 200, 'text/html', 'simple', '', false, 'bb', '', 1,
           1, 1, 1)`,
      ["texts", "documents"],
    ],
    [
      "an incident",
      `insert into incident (crawler_id, kind, hour, incidents, first_at, last_at, words)
         values (1, 'copied-folder', date_trunc('hour', now()), 1, now(), now(), 'x')`,
      ["incidents"],
    ],
  ];

  it.each(wrong)("find %s", async (_, sql, checks) => {
    const client = await database.pool.connect();
    try {
      await client.query("begin");
      await client.query(sql);

      const found = await contradictionsIn(client);

      expect(found.map(({ check }) => check)).toEqual(checks);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });
});

describe("the checks of requests to sites", () => {
  const asked = (atMs: number, crawlerIndex = 0) => ({
    ...{ host: "a.example", path: `/${atMs}`, method: "GET", status: 200, userAgent: "" },
    ...{ atMs, crawlerIndex },
  });
  const crawlerNames = ["athens", "oslo"];
  const leases = [{ host: "a.example", crawler: "athens", grantedMs: 10_000, expiresMs: 20_000 }];

  it("find requests before, after or without a lease", () => {
    const requests = [asked(9000), asked(10_500), asked(24_000), asked(26_000), asked(11_000, 1)];

    const found = requestsWithoutLease({ requests, leases, pauses: [], crawlerNames });

    expect(found).toMatchObject([
      { crawler: "athens", path: "/9000" },
      { crawler: "athens", path: "/26000" },
      { crawler: "oslo", path: "/11000" },
    ]);
  });

  it("allow a stopped process its pending requests", () => {
    const pauses = [{ name: "athens", fromMs: 19_000, toMs: 40_000 }];
    const requests = [asked(40_100), asked(46_000)];

    expect(requestsWithoutLease({ requests, leases, pauses, crawlerNames })).toMatchObject([
      { path: "/46000" },
    ]);
  });

  it("find requests in too quick succession, unless this process logged the first late", () => {
    const requests = [asked(1000), asked(1400), asked(1500), asked(1510, 1)];

    expect(hastyRequests({ requests, crawlerNames }, 400, [])).toMatchObject([{ gapMs: 100 }]);
    expect(hastyRequests({ requests, crawlerNames }, 400, [{ atMs: 1405, lateMs: 150 }])).toEqual([]);
  });
});
