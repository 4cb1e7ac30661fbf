/**
 * Flows that name hosts of any slice, on three slices of two servers: slice 0 and 2 beside the shared tables, slice 1 on a
 * server that has a replica of them, which is held back where a flow must not wait for it.
 */
import { createHmac } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseUrlPattern } from "#coordinator/channels/channel";
import { createChannelStore } from "#coordinator/channels/channel-store";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { BucketOwners, type OpenSlice, type Slices } from "#coordinator/database/slices";
import { createMisplacedHostStore } from "#coordinator/delegation/overrides/misplaced-host-store";
import { createFinerDelegationStore } from "#coordinator/delegation/overrides/override-store";
import { createDelegationStore } from "#coordinator/delegation/store";
import { createDomainSetStore } from "#coordinator/domain-sets/domain-set-store";
import { partitionOf } from "#coordinator/domain-sets/partition";
import { forgetClosedLeases, reportClosedLeases } from "#coordinator/frontier/closed-lease-store";
import { createHintStore } from "#coordinator/hints/hint-store";
import {
  createSubscriptionStore,
  dueSubscriptions,
  withoutStoppedHubs,
} from "#coordinator/hints/subscription-store";
import { deedsOf } from "#coordinator/opt-outs/complaint-store";
import { createOptOutMarks } from "#coordinator/opt-outs/mark-writes";
import { createOptOutStore } from "#coordinator/opt-outs/store";
import { createReleaseFleetStore } from "#coordinator/releases/fleet-store";
import { countCoverage } from "#coordinator/reports/coverage-store";
import { createSiteCapStore } from "#coordinator/site-caps/site-cap-store";
import { createSubmissionStore } from "#coordinator/submissions/submission-store";
import { createTrustStore } from "#coordinator/trust/trust-store";
import { asSubnetId, type CrawlerId, type HostHash, type LeaseId } from "#core/ids";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { sliceOfNumber } from "#db/slice-numbers";
import { createReplica, createSliceSchema, publishShared } from "#db/slice-schema";
import { sliceTables } from "#db/table-sets";
import { inUseOfRollback } from "#rir-import/database/subnets-in-use";
import { SliceServers } from "../support/slice-servers.ts";
import { until } from "../support/until.ts";

const noon = new Date("2030-01-01T12:00:00Z");
const secondsAfter = (seconds: number) => new Date(noon.getTime() + seconds * 1000);
const subscription = "nearcrawl_web";

let servers: SliceServers;
let replica: Database;
let slices: Slices;
let shared: Pool;

/** By hash: a third of the hosts for each. */
const owners = new BucketOwners([
  { first: 0, end: 1365, slice: 0 },
  { first: 1365, end: 2731, slice: 1 },
  { first: 2731, end: 4096, slice: 2 },
]);

beforeAll(async () => {
  servers = await SliceServers.begin();
  shared = servers.shared.pool;
  replica = await servers.open(1, { schema: servers.shared.schema });
  await publishShared(servers.shared);
  await createReplica(replica, servers.shared, { sharedUrl: servers.url(0), subscription });
  const open: OpenSlice[] = [{ number: 0, pool: shared }];
  for (const [number, server] of [
    [1, 1],
    [2, 0],
  ] as const) {
    const slice = await servers.open(server, {
      schema: `web_${number}`,
      sharedSchema: servers.shared.schema,
    });
    await createSliceSchema(slice, number);
    // What follows needs no turns at addresses, which are taken in the shared tables.
    await slice.pool.query("alter table lease disable trigger user");
    // Its third of the buckets, for whoever adds hosts.
    const held = number === 1 ? "{[1365,2731)}" : "{[2731,4096)}";
    await slice.pool.query("update slice_self set held = $1", [held]);
    open.push({ number, pool: slice.pool });
  }
  await shared.query("update slice_self set held = '{[0,1365)}'");
  slices = {
    ...{ shared, open, down: [] },
    ofHost: (hostHash) => open[owners.ofHost(hostHash)]!,
    ofNumber: (number) => open[sliceOfNumber(number)] ?? open[0]!,
  };
}, 120_000);
afterAll(async () => await servers?.close());

beforeEach(async () => {
  for (const { pool } of slices.open)
    for (const table of sliceTables)
      if (!["slice_self", "change_feed", "closed_lease_report"].includes(table))
        await pool.query(`delete from ${table}`);
  await shared.query(
    `delete from finer_delegation; delete from delegation; delete from delegation_history; delete from probe; delete from probe_round;
     delete from opt_out; delete from crawler_trust; delete from day_figures; delete from coverage_day; delete from channel;
     delete from site_cap; delete from submission_url; delete from submission; delete from rejected_url;
     delete from crawler; delete from subnet`,
  );
  await caughtUp();
});

/** All that was committed until now is on the other server as well. */
async function caughtUp(): Promise<void> {
  const { rows } = await shared.query<{ at: string }>("select pg_current_wal_lsn()::text as at");
  await until(async () => {
    const { rows: far } = await shared.query<{ isThere: boolean }>(
      `select replay_lsn >= $1::pg_lsn as "isThere" from pg_stat_replication where application_name = '${subscription}'`,
      [rows[0]!.at],
    );
    return far[0]?.isThere === true;
  }, 20_000);
}

/** The replica hears of nothing meanwhile. */
async function withReplicaBehind(work: () => Promise<void>): Promise<void> {
  await replica.pool.query(`alter subscription ${subscription} disable`);
  await until(
    async () =>
      (await shared.query(`select from pg_stat_replication where application_name = '${subscription}'`))
        .rowCount === 0,
    20_000,
  );
  try {
    await work();
  } finally {
    await replica.pool.query(`alter subscription ${subscription} enable`);
    await caughtUp();
  }
}

function keyOf(url: string): UrlKey {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

/** A host of that slice, one for each name; below `site` where one is given. */
function hostOf(slice: number, name: string, site = "example"): string {
  for (let at = 0; ; at++) {
    const host = `${name}${at}.${site}`;
    if (owners.ofHost(keyOf(`https://${host}/`).hostHash) === slice) return host;
  }
}

const hashOf = (host: string): HostHash => keyOf(`https://${host}/`).hostHash;

/** In its slice: resolved, with due URLs. */
async function addHost(
  host: string,
  given: { subnetId?: number; address?: string; urls?: number; admittedAt?: Date; language?: string } = {},
): Promise<HostHash> {
  const { subnetId = null, address = "198.51.100.7", urls = 1, admittedAt = noon, language = null } = given;
  const hostHash = hashOf(host);
  const { pool } = slices.ofHost(hostHash);
  await pool.query(
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, admitted_at, due_at, url_count, language)
     values ($1, $2, 'resolved', array[$3::inet], $4, $5, $5, $6, $7)`,
    [hostHash, host, address, subnetId, admittedAt, urls, language],
  );
  for (let at = 0; at < urls; at++) {
    const { urlHash, url } = keyOf(`https://${host}/${at}`);
    await pool.query(
      "insert into frontier_url (host_hash, url_hash, url, discovered_at, next_fetch_at) values ($1, $2, $3, $4, $4)",
      [hostHash, urlHash, url, noon],
    );
  }
  return hostHash;
}

async function ofHost<Row extends object>(host: string, columns: string): Promise<Row> {
  const hostHash = hashOf(host);
  const { rows } = await slices
    .ofHost(hostHash)
    .pool.query<Row>(`select ${columns} from frontier_host where host_hash = $1`, [hostHash]);
  return rows[0]!;
}

const register = async (name: string): Promise<CrawlerId> =>
  await createCrawlerStore(shared).register({ name, keyHash: `key of ${name}` });

async function addSubnet(first: string, last: string): Promise<number> {
  const { rows } = await shared.query<{ subnet_id: number }>(
    "insert into subnet (first_address, last_address, registry, name, added_in) values ($1, $2, 'ripencc', '', 1) returning subnet_id",
    [first, last],
  );
  return rows[0]!.subnet_id;
}

async function delegate(subnetId: number, crawlerId: CrawlerId): Promise<void> {
  await createDelegationStore(shared).delegateOwnSubnet(asSubnetId(subnetId), crawlerId, noon);
}

describe("closed leases", () => {
  const turn = { nowMs: () => performance.now(), turnMs: 60_000 };
  const figures = async () =>
    (
      await shared.query(
        "select leases_done::int as done, leases_expired::int as expired, leased_urls::int as urls from day_figures",
      )
    ).rows;

  async function closed(pool: Pool, ending: string): Promise<void> {
    await pool.query(
      `insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending, addresses)
       values ($1, 1, 'a.example', $2, $2, $2, 3, 0, $3, '{}')`,
      [await register(`crawler ${Math.random()}`), noon, ending],
    );
  }

  it("are counted by the day in the shared tables, wherever they were, and once", async () => {
    for (const { pool } of slices.open) {
      await closed(pool, "done");
      await forgetClosedLeases(pool, secondsAfter(60), turn, shared);
      await forgetClosedLeases(pool, secondsAfter(60), turn, shared);
    }
    await closed(slices.open[1]!.pool, "expired");
    await forgetClosedLeases(slices.open[1]!.pool, secondsAfter(60), turn, shared);

    expect(await figures()).toEqual([{ done: 3, expired: 1, urls: 12 }]);
  });

  it("are counted once by whoever goes on after somebody who was ended in between", async () => {
    const { pool } = slices.open[1]!;
    await closed(pool, "done");
    const ended = new Error("ended");
    /** Whose statements fail that hold these words, as though its process were ended before. */
    const failingAt = (of: Pool, words: string) =>
      new Proxy(of, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name);
          if (name === "query")
            return async (text: string, values: unknown[]) => {
              if (text.includes(words)) throw ended;
              return await target.query(text, values);
            };
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    const unreached = new Proxy(shared, {
      get: (target, name) => {
        if (name === "connect") throw ended;
        return Reflect.get(target, name) as unknown;
      },
    });

    await expect(forgetClosedLeases(pool, secondsAfter(60), turn, unreached)).rejects.toThrow("ended");
    const before = await figures();
    await expect(reportClosedLeases(failingAt(pool, "set days = null"), shared)).rejects.toThrow("ended");
    const between = await figures();
    await closed(pool, "done");
    await forgetClosedLeases(pool, secondsAfter(60), turn, shared);

    expect([before, between]).toEqual([[], [{ done: 1, expired: 0, urls: 3 }]]);
    expect(await figures()).toEqual([{ done: 2, expired: 0, urls: 6 }]);
  });
});

describe("subnets to be probed", () => {
  it("are named once, however many slices have hosts of them, by their first host", async () => {
    const [wide, narrow] = [
      await addSubnet("198.51.100.0", "198.51.100.255"),
      await addSubnet("203.0.113.0", "203.0.113.255"),
    ];
    await addHost(hostOf(0, "b"), { subnetId: wide, urls: 2, admittedAt: secondsAfter(20) });
    await addHost(hostOf(1, "b"), { subnetId: wide, urls: 3, admittedAt: secondsAfter(10) });
    await addHost(hostOf(2, "b"), { subnetId: wide, urls: 4, admittedAt: secondsAfter(30) });
    await addHost(hostOf(2, "c"), { subnetId: narrow, admittedAt: noon });
    const store = createDelegationStore(slices);

    const waiting = await store.waiting(10, []);
    const [target] = await store.targetsFor([asSubnetId(wide)]);
    const first = await store.waiting(1, []);
    const subnets = await store.subnetsOfHosts([hashOf(hostOf(0, "b")), hashOf(hostOf(2, "c"))]);

    expect(waiting.map(({ subnetId, host, dueUrls }) => [subnetId, host, dueUrls])).toEqual([
      [narrow, hostOf(2, "c"), 1],
      [wide, hostOf(1, "b"), 9],
    ]);
    expect(target?.host).toBe(hostOf(1, "b"));
    expect(first.map(({ subnetId }) => subnetId)).toEqual([narrow]);
    expect([...subnets].sort()).toEqual([wide, narrow].sort());
  });

  it("are none that have a crawler by now, though the replica has not heard of it", async () => {
    const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
    await addHost(hostOf(1, "b"), { subnetId });
    const athens = await register("athens");
    const store = createDelegationStore(slices);

    await withReplicaBehind(async () => {
      expect(await store.waiting(10, [])).toHaveLength(1);
      await delegate(subnetId, athens);
      expect(await store.waiting(10, [])).toEqual([]);
    });
  });
});

it("what crawlers have to fetch is the sum over slices", async () => {
  const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
  const other = await addSubnet("203.0.113.0", "203.0.113.255");
  const athens = await register("athens");
  await delegate(subnetId, athens);
  await delegate(other, athens);
  await addHost(hostOf(0, "b"), { subnetId, urls: 2 });
  await addHost(hostOf(1, "b"), { subnetId, urls: 3 });
  await addHost(hostOf(2, "b"), { subnetId: other, urls: 4 });
  await caughtUp();
  const store = createDelegationStore(slices);

  const [load] = await store.crawlerLoads(30);
  const loads = await store.loads(30, [athens]);

  expect(load).toMatchObject({ crawlerId: athens, subnets: 2, pagesPerDay: 9 });
  expect(loads.map(({ subnetId: id, pagesPerDay }) => [id, pagesPerDay])).toEqual([
    [subnetId, 5],
    [other, 4],
  ]);
});

describe("a finer delegation", () => {
  const times = { now: noon, reviewAt: secondsAfter(86_400) };

  async function world() {
    const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
    const [athens, berlin] = [await register("athens"), await register("berlin")];
    await delegate(subnetId, athens);
    const { rows } = await shared.query<{ round_id: number }>(
      `insert into probe_round (within_subnet_id, cause, policy, parameters, target_url, target_address, started_at, decided_at, crawler_id, reason)
       values ($1, 'differs-by-place', 'nearest', '{}', 'https://a.example/', '198.51.100.7', $2, $2, $3, '{}') returning round_id`,
      [subnetId, noon, berlin],
    );
    return { subnetId: asSubnetId(subnetId), athens, berlin, roundId: rows[0]!.round_id as never };
  }

  const finerIdOf = async (host: string) =>
    (await ofHost<{ finer_id: number | null }>(host, "finer_id")).finer_id;

  it("is followed by its hosts in every slice at once, though the replica has not heard of it", async () => {
    const { subnetId, athens, berlin, roundId } = await world();
    const hosts = [0, 1, 2].map((slice) => hostOf(slice, "b"));
    for (const [at, host] of hosts.entries())
      await addHost(host, { subnetId, address: `198.51.100.${100 + at}` });
    const finer = createFinerDelegationStore(slices);
    const part = { first: "198.51.100.64", last: "198.51.100.127", crawlerId: berlin, roundId, rttMs: 1 };
    const more = { runnerUpId: null, runnerUpRttMs: null, subnetRttMs: 9, reason: "nearer" };

    await caughtUp();
    await withReplicaBehind(async () => {
      for (const host of hosts)
        await finer.setHost(
          { ...more, subnetId, hostHash: hashOf(host), crawlerId: berlin, roundId, rttMs: 1, seen: [] },
          times,
        );
      const own = await Promise.all(hosts.map(finerIdOf));
      await finer.setParts({ subnetId, subnetCrawlerId: athens, parts: [{ ...part, ...more }] }, times);
      for (const id of own) await finer.end(id as never, "the names resolve alike again", noon);
      const ofPart = await Promise.all(hosts.map(finerIdOf));
      await finer.setParts({ subnetId, subnetCrawlerId: athens, parts: [] }, times);
      const none = await Promise.all(hosts.map(finerIdOf));

      expect(own.filter((id) => id !== null)).toHaveLength(3);
      expect(new Set(own).size).toBe(3);
      expect(new Set(ofPart).size).toBe(1);
      expect(ofPart[0]).not.toBeNull();
      expect(none).toEqual([null, null, null]);
    });
  });

  it("is followed later by hosts that somebody left behind who was ended in between", async () => {
    const { subnetId, berlin, roundId } = await world();
    const [host, part, lost] = ["b", "c", "d"].map((name) => hostOf(1, name)) as [string, string, string];
    await addHost(host, { subnetId });
    await addHost(part, { subnetId, address: "198.51.100.100" });
    await addHost(lost);
    const { pool } = slices.open[1]!;
    await pool.query("update frontier_host set finer_id = 999999 where host = $1", [lost]);
    // Committed, and not followed.
    await shared.query(
      `insert into finer_delegation (subnet_id, host_hash, first_address, last_address, crawler_id, round_id, cause, measured, found_at, delegated_at, review_at)
       values ($1, $2, null, null, $3, $4, 'differs-by-place', false, $5, $5, $5),
              ($1, null, '198.51.100.64', '198.51.100.127', $3, $4, 'measures-apart', false, $5, $5, $5)`,
      [subnetId, hashOf(host), berlin, roundId, noon],
    );
    await caughtUp();
    const finer = createFinerDelegationStore(slices);

    const found = [await finer.followLeftBehind(), await finer.followLeftBehind()];

    expect(found).toEqual([3, 0]);
    expect(await finerIdOf(host)).not.toBeNull();
    expect(await finerIdOf(part)).not.toBeNull();
    expect(await finerIdOf(lost)).toBeNull();
  });

  it("by domain sets is given to hosts of any slice, and ends there", async () => {
    const { subnetId, athens, berlin, roundId } = await world();
    const [greek, german] = [hostOf(1, "b", "gr"), hostOf(2, "b", "de")];
    await addHost(greek, { subnetId });
    await addHost(german, { subnetId });
    await caughtUp();
    const store = createMisplacedHostStore(slices);
    const [gr, de] = ["gr", "de"].map((label) => partitionOf([`.${label}`], []));

    const misplaced = await store.misplaced({ crawlerId: athens, partition: gr! }, [de!], 10);
    const without = await store.holdsNothingOf({ crawlerId: athens, partition: de! }, [subnetId]);
    const given = await store.delegate(
      {
        ...{ subnetId, hosts: [hashOf(german), "1" as HostHash], crawlerId: berlin, roundId },
        ...{ rttMs: null, runnerUpId: null, runnerUpRttMs: null, reason: "its sets" },
      },
      times,
    );
    const finerId = await finerIdOf(german);
    await caughtUp();
    const ended = await store.endNeedless({ crawlerId: athens, partition: de! }, noon);

    expect(misplaced.map(({ host }) => host)).toEqual([german]);
    expect(without).toEqual([]);
    expect(given).toBe(1);
    expect(finerId).not.toBeNull();
    expect([ended, await finerIdOf(german)]).toEqual([1, null]);
  });
});

describe("an opt-out", () => {
  const request = {
    ...{ source: "form" as const, words: "", replyTo: null, requester: null, confirmed: true },
  };
  const markOf = async (host: string) =>
    (await ofHost<{ opt_out_id: number | null }>(host, "opt_out_id")).opt_out_id;
  const appliedTo = async (optOutId: number) =>
    (await shared.query("select applied from opt_out where opt_out_id = $1", [optOutId])).rows[0]!.applied;

  it("holds for hosts of every slice at once, and counts as applied when all servers know of it", async () => {
    const site = "shop.example";
    const hosts = [0, 1, 2].map((slice) => hostOf(slice, "b", site));
    for (const host of hosts) await addHost(host);
    const marks = createOptOutMarks(slices);
    const store = createOptOutStore(slices);
    const late = hostOf(1, "late", site);
    let optOutId = 0;

    await withReplicaBehind(async () => {
      ({ optOutId } = await store.request({ ...request, target: { site, network: null } }, noon));
      expect(await marks.apply(noon)).toMatchObject({ hosts: 3 });
      expect(await Promise.all(hosts.map(markOf))).toEqual([optOutId, optOutId, optOutId]);
      expect(await appliedTo(optOutId)).toBe(0);
      // Added by who could not know better.
      await addHost(late);
    });
    await marks.apply(noon);
    const found = await store.find(optOutId);

    expect(await markOf(late)).toBe(optOutId);
    expect(await appliedTo(optOutId)).toBe(2);
    expect(await marks.apply(noon)).toEqual({ hosts: 0, leases: [], pages: 0, erased: {} });
    expect(found).toMatchObject({ hosts: 4, pages: 0 });

    await withReplicaBehind(async () => {
      await store.lift(optOutId, "asked for", secondsAfter(60));
      await marks.apply(secondsAfter(60));
      expect(await Promise.all([...hosts, late].map(markOf))).toEqual([null, null, null, null]);
      expect(await appliedTo(optOutId)).toBe(2);
    });
    await marks.apply(secondsAfter(60));
    expect(await appliedTo(optOutId)).toBe(3);
  });

  it("of a network names the hosts of all slices to crawlers", async () => {
    const hosts = [1, 2].map((slice) => hostOf(slice, "b"));
    for (const host of hosts) await addHost(host);
    await addHost(hostOf(1, "c"), { address: "203.0.113.7" });
    const store = createOptOutStore(slices);
    const network = { first: "198.51.100.0", last: "198.51.100.255" };
    await store.request({ ...request, source: "operator", target: { site: null, network } }, noon);
    await createOptOutMarks(slices).apply(noon);

    expect(await store.sitesSince(noon, 10)).toEqual([...hosts].sort());
  });

  it("deeds are told of all slices", async () => {
    const site = "shop.example";
    const athens = await register("athens");
    await caughtUp();
    for (const slice of [0, 1, 2]) {
      const hostHash = await addHost(hostOf(slice, "b", site));
      await slices.open[slice]!.pool.query(
        `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, address, wire_bytes, total_ms, body_bytes, shipped_bytes)
         values ($1, 1, $2, $3, 'fetched', 200, '198.51.100.7', 10, 1, 1, 1), ($1, 2, $2, $4, 'fetched', 200, '198.51.100.7', 10, 1, 1, 1)`,
        [hostHash, athens, secondsAfter(-60), secondsAfter(-7200 - slice)],
      );
    }

    const deeds = await deedsOf(slices, { site, network: null }, noon);

    expect(deeds).toMatchObject({
      ...{ hosts: 3, requests: 6, mostInAnHour: 3, bytes: 60, firstAt: "2030-01-01T09:59:58.000Z" },
      ...{ crawlers: [expect.objectContaining({ name: "athens", requests: 6 })] },
      answers: [{ outcome: "fetched", status: 200, requests: 6 }],
    });
  });
});

describe("comparisons of what crawlers fetched", () => {
  const sketch = {
    kind: "page",
    digest: "00",
    simhash: "0",
    titleHash: "0",
    links: [],
    linkCount: 0,
  } as never;

  async function fetched(host: string, crawlerId: CrawlerId): Promise<UrlKey> {
    const key = keyOf(`https://${host}/0`);
    const { pool } = slices.ofHost(key.hostHash);
    await pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes, shipped_bytes)
       values ($1, $2, $3, $4, 'fetched', 1, 1, 1, 1)`,
      [key.hostHash, key.urlHash, crawlerId, noon],
    );
    await pool.query(
      `update frontier_url set last_fetched_at = $3, next_fetch_at = $3::timestamptz + interval '30 days', digest = '\\x00', visits = 1
       where host_hash = $1 and url_hash = $2`,
      [key.hostHash, key.urlHash, noon],
    );
    return key;
  }

  it("lie in their hosts' slices: opened, leased, decided and summed up there", async () => {
    const [athens, berlin] = [await register("athens"), await register("berlin")];
    const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
    const hosts = [0, 1, 2].map((slice) => hostOf(slice, "b"));
    const keys: UrlKey[] = [];
    for (const [at, host] of hosts.entries()) {
      await addHost(host, { subnetId, address: `198.51.100.${at}` });
      keys.push(await fetched(host, athens));
    }
    await caughtUp();
    const trust = createTrustStore(slices);
    const check = {
      cause: "sample",
      sketch,
      wanted: [berlin],
      nextBy: secondsAfter(3600),
      fetchedAt: noon,
    } as never as object;

    const opened = await trust.open(athens, keys.map((key) => ({ ...check, key })) as never);
    const targets = await trust.targets(keys.map(({ hostHash }) => hostHash));
    const request = {
      crawlerId: berlin,
      hosts: 3,
      urlsPerHost: 2,
      leaseSeconds: 60,
      addressRestSeconds: 0,
      now: noon,
    };
    // Turns at addresses are taken in the shared tables: of slice 1, which has a replica, the lease is written here.
    const beside = createTrustStore({ ...slices, open: slices.open.filter(({ number }) => number !== 1) });
    const ofBoth = await beside.lease(request as never);
    const leases = ofBoth.map(({ leaseId, host }) => ({ leaseId: leaseId as LeaseId, host }));
    const { rows } = await slices.open[1]!.pool.query<{ lease_id: LeaseId }>(
      `with given as (
         insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls, is_check, addresses)
         values ($1, $2, $3, $4, $5, 1, 1, true, '{}')
         returning lease_id
       )
       update double_check set lease_id = given.lease_id from given returning given.lease_id`,
      [berlin, hashOf(hosts[1]!), hosts[1], noon, secondsAfter(60)],
    );
    leases.push({ leaseId: rows[0]!.lease_id, host: hosts[1]! });
    const ofChecks = await trust.leasesOfChecks(leases.map(({ leaseId }) => leaseId));
    const taken = [];
    for (const { leaseId, host } of leases) {
      const opinion = {
        crawlerId: berlin,
        leaseId,
        key: keyOf(`https://${host}/0`),
        sketch,
        fetchedAt: secondsAfter(1),
        hostNotBefore: secondsAfter(1),
      };
      taken.push(
        await trust.takeOpinion(
          opinion,
          () => ({ type: "decided", verdict: { type: "agree" } }) as never,
          secondsAfter(1),
        ),
      );
    }
    const again = await trust.takeOpinion(
      {
        crawlerId: berlin,
        leaseId: leases[0]!.leaseId,
        key: keyOf(`https://${leases[0]!.host}/0`),
        sketch,
        fetchedAt: secondsAfter(1),
        hostNotBefore: secondsAfter(1),
      },
      () => ({ type: "decided", verdict: { type: "agree" } }) as never,
      secondsAfter(1),
    );
    const history = await trust.history(noon, secondsAfter(60));

    expect(opened).toBe(3);
    expect(targets.size).toBe(3);
    expect(leases.map(({ host }) => host).sort()).toEqual([...hosts].sort());
    expect(new Set(leases.map(({ leaseId }) => sliceOfNumber(leaseId)))).toEqual(new Set([0, 1, 2]));
    expect(ofChecks.size).toBe(3);
    expect(taken.every((one) => one !== null)).toBe(true);
    expect(again).toBeNull();
    expect(history.outcomes.map(({ crawlerId }) => crawlerId)).toEqual([athens, athens, athens]);
    expect(await trust.untold(athens, noon)).toEqual({ untold: 0, told: 3 });
  });

  it("that speak against a crawler have its pages fetched again wherever they are, the latest first", async () => {
    const athens = await register("athens");
    for (const slice of [0, 1, 2]) {
      await addHost(hostOf(slice, "b"));
      await fetched(hostOf(slice, "b"), athens);
    }
    const trust = createTrustStore(slices);
    const drain = { pagesSince: secondsAfter(-60), mostPages: 2 };

    const { isNew, dueAgain } = await trust.distrust({
      crawlerId: athens,
      words: "it lies",
      now: secondsAfter(1),
      drain,
    });

    expect([isNew, dueAgain]).toEqual([true, 2]);
    const due = await Promise.all(
      slices.open.map(
        async ({ pool }) =>
          (await pool.query("select from frontier_url where next_fetch_at = $1", [secondsAfter(1)])).rowCount,
      ),
    );
    expect(due.reduce((sum: number, one) => sum + (one ?? 0), 0)).toBe(2);
  });
});

describe("what people give", () => {
  const scope = { pagesPerHost: 100, maxDepth: 5, admitNewHosts: true };
  const hosts = (site = "example") => [0, 1, 2].map((slice) => hostOf(slice, "b", site));

  it("as a cap on a site holds for its hosts in every slice at once, and for those that came before all servers knew", async () => {
    const site = "slow.example";
    for (const host of hosts(site)) await addHost(host);
    const late = hostOf(1, "late", site);
    const caps = createSiteCapStore(slices);
    const capOf = async (host: string) =>
      (await ofHost<{ cap_delay_ms: number | null }>(host, "cap_delay_ms")).cap_delay_ms;
    const cap = { site, delayMs: 9000, words: "", setBy: "a", setAt: noon };

    let set: Promise<unknown> = Promise.resolve();
    await withReplicaBehind(async () => {
      set = caps.set(cap);
      await until(async () => (await Promise.all(hosts(site).map(capOf))).every((ms) => ms === 9000), 10_000);
      await addHost(late);
    });
    const listed = await set;

    expect(listed).toMatchObject({ site, hosts: 4 });
    expect(await capOf(late)).toBe(9000);
    expect(await caps.list()).toMatchObject([{ site, hosts: 4 }]);
    await caps.remove(site);
    expect(await Promise.all([...hosts(site), late].map(capOf))).toEqual([null, null, null, null]);
  });

  it("as URLs goes to the slices of their hosts, and is followed there", async () => {
    const store = createSubmissionStore(slices);
    const batch = hosts().map((host, place) => {
      const key = keyOf(`https://${host}/new`);
      return { place, url: key.url, key, fault: null };
    });
    const bad = { place: 3, url: "ftp://x", key: null, fault: "no URL of the web" };
    const id = await store.begin({ deed: "add", submittedBy: "a" }, noon);

    const answers = await store.take(id, [...batch, bad], { deed: "add", scope, now: noon } as never);
    const again = await store.take(
      id,
      batch.map((one) => ({ ...one, place: one.place + 4 })),
      {
        ...{ deed: "add", scope, now: noon },
      } as never,
    );
    await caughtUp();
    for (const { key } of batch)
      await slices
        .ofHost(key.hostHash)
        .pool.query("update frontier_url set last_fetched_at = $2 where host_hash = $1", [
          key.hostHash,
          noon,
        ]);
    const urls = await store.urls(id, { after: -1, limit: 10, now: noon });
    const status = await store.statusOf(batch, noon);

    expect(answers.map(({ answer }) => answer)).toEqual(["new", "new", "new", "refused"]);
    expect(again.map(({ answer }) => answer)).toEqual(["known", "known", "known"]);
    for (const [slice, host] of hosts().entries())
      expect(await ofHost(host, "url_count"), `slice ${slice}`).toEqual({ url_count: 1 });
    expect(urls.map(({ place }) => place)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(status.map(({ url }) => url)).toEqual(batch.map(({ url }) => url));
    expect(await store.find(id)).toMatchObject({
      ...{ fetched: 6, urls: { new: 3, known: 3, elsewhere: 0, refused: 1 } },
    });
  });

  it("as a channel admits its seeds where its host is, leaves out the rest there, and lets it in again", async () => {
    const host = hostOf(1, "b");
    await addHost(host, { urls: 2 });
    const store = createChannelStore(slices);
    const rules = {
      ...{ host, directories: ["/"], seeds: [`https://${host}/seed`], include: [] },
      ...{ exclude: [parseUrlPattern("/0") as never], maxDepth: null },
    };
    const states = async () =>
      (
        await slices.open[1]!.pool.query<{ path: string; state: string }>(
          "select regexp_replace(url, '^.*/', '') as path, state from frontier_url order by url",
        )
      ).rows.map(({ path, state }) => `${path} ${state}`);

    const added = (await store.add(rules, noon)) as { channelId: number };
    await store.settle(noon);
    const settled = await states();
    const removed = await store.remove(added.channelId, noon);

    expect(settled).toEqual(["0 refused", "1 due", "seed due"]);
    expect(removed).toMatchObject({ channelId: added.channelId });
    expect(await states()).toEqual(["0 due", "1 due", "seed due"]);
    expect(await store.list()).toEqual([]);
  });

  it("as a channel whose seeds somebody did not come to is seeded by who settles it", async () => {
    const host = hostOf(1, "b");
    const ended = new Error("ended");
    const store = createChannelStore({
      ...slices,
      ofHost: () => ({ number: 1, pool: { connect: () => Promise.reject(ended) } as never }),
    });
    const rules = {
      host,
      directories: ["/"],
      seeds: [`https://${host}/seed`],
      include: [],
      exclude: [],
      maxDepth: null,
    };

    await expect(store.add(rules, noon)).rejects.toThrow("ended");
    await createChannelStore(slices).settle(noon);

    expect(await ofHost(host, "url_count")).toEqual({ url_count: 1 });
  });

  it("as a hint goes to the slice of the host that says so, and a hub's call finds its feed wherever it is", async () => {
    const host = hostOf(1, "b");
    await addHost(host);
    const location = keyOf(`https://${host}/key.txt`);
    const policies = { perHostAndDay: 100, urlMinutes: 10 } as never;
    const given = {
      key: "0123456789abcdef",
      location,
      scope: `//${host}/`,
      urls: [keyOf(`https://${host}/0`)],
      named: 1,
    };
    const feed = keyOf(`https://${host}/0`);
    await slices.open[1]!.pool.query(
      `insert into websub_subscription (host_hash, url_hash, host, feed, hub, hub_host_hash, topic, named_at, next_at, state, token, secret, lease_ends_at)
       values ($1, $2, $3, $4, 'https://hub.example/', $5, $4, $6, $6, 'active', 'token', 'secret', $7)`,
      [feed.hostHash, feed.urlHash, host, feed.url, hashOf(hostOf(2, "hub")), noon, secondsAfter(3600)],
    );
    await addHost(hostOf(2, "hub"));
    const subscriptions = createSubscriptionStore(slices);

    const answer = await createHintStore(slices).submit(given, { policies, scope }, noon);
    const found = await subscriptions.find("token");
    const signature = `sha256=${createHmac("sha256", "secret").update("x").digest("hex")}`;
    const delivered = await subscriptions.deliver(found!, { signature, body: Buffer.from("x") }, noon);
    const due = await dueSubscriptions(slices.open[1]!.pool, { feedsPerHost: 5, most: 5, now: noon });
    const open = await withoutStoppedHubs(slices, due);
    await slices.open[2]!.pool.query("update frontier_host set opt_out_id = 1");
    const stopped = await withoutStoppedHubs(slices, due);

    expect(answer).toMatchObject({ type: "taken", urls: 1, waiting: true });
    expect(found).toMatchObject({ feed: feed.url });
    expect(await subscriptions.find("another")).toBeNull();
    expect(["hint", "repeated"]).toContain(delivered);
    expect([open.length, stopped.length]).toEqual([1, 0]);
  });

  it("as domain sets asks for the languages of hosts in every slice", async () => {
    for (const host of hosts()) {
      const hostHash = await addHost(host);
      await slices.ofHost(hostHash).pool.query(
        `insert into page (host_hash, url_hash, url, host, language, fetched_at, crawler_id, status, content_type,
           text_search_config, title, description, excerpt, headings, noindex, digest, simhash, words, body_bytes,
           wire_bytes, shipped_bytes, lexemes)
         values ($1, 1, 'https://a.example/', $2, 'el', $3, 1, 200, 'text/html', 'simple', '', '', '', '[]', false, '',
           '0', 1, 1, 1, 1, '')`,
        [hostHash, host, noon],
      );
    }
    const store = createDomainSetStore(slices);
    const hashes = hosts().map(hashOf);
    const inOrder = [...hashes].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));

    const pages = [await store.hostsWithPages(null, 2), await store.hostsWithPages(inOrder[1]!, 2)];
    const without = await store.hostsWithoutLanguage(hashes);
    const changed = await store.refreshLanguages(hashes);

    expect(pages).toEqual([inOrder.slice(0, 2), inOrder.slice(2)]);
    expect([...without].sort()).toEqual([...hashes].sort());
    expect([changed, await store.hostsWithoutLanguage(hashes)]).toEqual([3, []]);
  });
});

describe("what is told of crawlers and subnets", () => {
  it("counts their fetches, first pages and waiting hosts in all slices", async () => {
    const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
    const athens = await register("athens");
    await delegate(subnetId, athens);
    await shared.query("update crawler set release_digest = 'x', state = 'online'");
    await caughtUp();
    for (const slice of [1, 2]) {
      const hostHash = await addHost(hostOf(slice, "b"), { subnetId });
      await slices.open[slice]!.pool.query(
        `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes, shipped_bytes)
         values ($1, 1, $2, $3, 'fetched', 1, 1, 1, 1)`,
        [hostHash, athens, secondsAfter(slice)],
      );
    }

    const [watched] = await createReleaseFleetStore(slices).watched("1", noon);
    const used = await inUseOfRollback(
      shared,
      0,
      slices.open.filter(({ number }) => number !== 0).map(({ pool }) => pool),
    );

    expect(watched).toMatchObject({ crawlerId: athens, fetches: 2, failures: 0 });
    expect(used).toEqual({ total: 1, going: 0 });
  });

  it("has a subnet in use that only another server has hosts of", async () => {
    const subnetId = await addSubnet("198.51.100.0", "198.51.100.255");
    await addHost(hostOf(1, "b"), { subnetId });

    expect(await inUseOfRollback(shared, 0)).toEqual({ total: 0, going: 0 });
    expect(await inUseOfRollback(shared, 0, [slices.open[1]!.pool])).toEqual({ total: 1, going: 0 });
  });
});

it("coverage by day is that of all slices", async () => {
  for (const { number, pool } of slices.open) {
    await pool.query("insert into site_upkeep (finished_at) values (now())").catch(() => {});
    await pool.query(
      `insert into site (host_hash, host, country, language, pages, bytes, standing, channels, urls, due_urls, counted_day, failed_days,
         fetched_days, failures, fetches, added_at)
       values ($1, $2, 'GR', $3, 2, 10, 'ready', 0, 1, 1, 0, '{}', '{}', 0, 0, now())`,
      [hashOf(hostOf(number, "b")), hostOf(number, "b"), number === 2 ? "en" : "el"],
    );
  }

  expect(await countCoverage(slices, noon)).toEqual({ rows: 2 });
  expect(await countCoverage({ ...slices, down: [1] }, noon)).toBeNull();

  const { rows } = await shared.query(
    "select country, language, hosts::int, pages::int, bytes::int from coverage_day order by language",
  );
  expect(rows).toEqual([
    { country: "GR", language: "el", hosts: 2, pages: 4, bytes: 20 },
    { country: "GR", language: "en", hosts: 1, pages: 2, bytes: 10 },
  ]);
});
