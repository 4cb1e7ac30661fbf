/**
 * Every page and every answer of the API is the same, whether the hosts lie in one slice or in four on two servers: what is
 * served by the coordinator's own routes, listed by themselves, is asked of the one and of the four.
 */
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createOperatorTokenStore } from "#coordinator/access/token-store";
import { numberChanges } from "#coordinator/changes/change-writes";
import { readCoordinatorConfig } from "#coordinator/config";
import { oneSlice, type Slices } from "#coordinator/database/slices";
import { policiesOf } from "#coordinator/live-config";
import { readState } from "#coordinator/load-state";
import { createComplaintStore } from "#coordinator/opt-outs/complaint-store";
import { createOptOutStore } from "#coordinator/opt-outs/store";
import { readinessReads } from "#coordinator/overview/overview-reads";
import { countCoverage } from "#coordinator/reports/coverage-store";
import { type PolicyValue, withChanges } from "#coordinator/settings/catalogue";
import { previewPolicies } from "#coordinator/settings/preview/preview";
import type { PolicyName } from "#coordinator/settings/schema";
import { previewPorts } from "#coordinator/settings/start";
import { sitesTurn } from "#coordinator/sites/start";
import { createReports } from "#coordinator/slices/reports-reads";
import { randomSecrets } from "#coordinator/web/secrets";
import { rankLocally } from "#coordinator/web-graph/local-rank-store";
import { scopes } from "#core/actor";
import { silentLog } from "#core/log";
import { hostHashOf } from "#core/url-key";
import { everyPart } from "../support/every-part.ts";
import { seedChange } from "../support/seed-changes.ts";
import { keepSearchOf, seedManySites, sites } from "../support/seed-many-sites.ts";
import { worldNow } from "../support/seed-world.ts";
import { SpreadServers } from "../support/spread-slices.ts";
import { contactPorts, mainOf, routesOf, webServer } from "../support/web-server.ts";

type Answers = ReadonlyMap<string, Answer>;

let world: SpreadServers;
let whole: Answers;
let spread: Answers;
let previews: { readonly whole: unknown[]; readonly spread: unknown[] };
let headers: Record<string, string>;
beforeAll(async () => {
  world = await SpreadServers.begin(4);
  const { pool } = world.shared;
  const one = oneSlice(pool);
  await seedManySites(pool);
  await seedOperators(pool);
  await keepSearchOf(one);
  await rankLocally(one, {
    settings: { damping: 0.85, tolerance: 1e-13, iterations: 500 },
    write: true,
    at: worldNow,
  });
  await sitesTurn({ pool, now: () => worldNow, nowMs: () => 0 });
  await countCoverage(one, worldNow);
  await pool.query("analyze");
  const { secret, hash: tokenHash } = randomSecrets.make("nco_");
  await createOperatorTokenStore(pool).create({
    ...{ name: "asker", tokenHash, scopes, createdAt: worldNow, expiresAt: null },
  });
  headers = { authorization: `Bearer ${secret}` };
  vi.useFakeTimers({ toFake: ["Date"], now: worldNow });
  whole = await askAll(one);
  const foretold = await previewed(one);
  await world.spread();
  for (const slice of world.slices.open)
    await sitesTurn({ pool: slice.pool, now: () => worldNow, nowMs: () => 0 });
  spread = await askAll(world.slices);
  previews = { whole: foretold, spread: await previewed(world.slices) };
}, 300_000);
afterAll(async () => {
  vi.useRealTimers();
  await world?.close();
});

/** What operators look at beside the sites themselves. */
async function seedOperators(pool: Pool): Promise<void> {
  await pool.query(`
    update frontier_url set visits = 3 + (url_hash & 3), compared_visits = 3, last_fetched_at = '2026-03-01T09:00:00Z',
      last_outcome = 'fetched', last_status = 200,
      changes_per_day = 0.01 * (1 + (url_hash & 255)), next_fetch_at = '2026-03-01T10:00:00Z'::timestamptz + (url_hash & 63) * interval '5 min'
      where url like 'https://site-%';
    update frontier_host h set fetched_urls = 3, fetches = 12 + (host_hash & 7), fetched_bytes = 480000, good_pages = 3
      where host like 'site-%';
    update frontier_host set url_count = 4 + (host_hash & 31) where host like 'site-%';
    update probe_round set method = 'head' where round_id = 1;
    update page_fetch set gap_seconds = 3600 + (url_hash & 1023), connect_ms = 10 + (url_hash & 15), first_byte_ms = 20 + (url_hash & 31)
      where url_hash & 1 = 0;
    insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, status, total_ms, wire_bytes, body_bytes, shipped_bytes)
    select host_hash, url_hash, 1 + (url_hash & 1), '2026-03-01T11:40:00Z'::timestamptz - (url_hash & 1023) * interval '1 s', 'failed',
      (array['target', 'network', 'crawler', 'us'])[1 + (url_hash & 3)::int], case when url_hash & 3 = 0 then 503 end, 40, 100, 0, 0
    from frontier_url where url like '%/harbour';
    insert into hint_host (host_hash, source, host, received, taken, right_hints, wrong_hints, recent_right, recent_wrong, day, last_at)
    select host_hash, 'indexnow', host, 9, 5, 3, 1, 3, 1, '2026-03-01', '2026-03-01T11:00:00Z'::timestamptz - (host_hash & 4095) * interval '1 s'
    from frontier_host where host like 'site-%';
    insert into hint_key (host_hash, key, location, url_hash, scope, state, asked_at)
    select host_hash, 'abcdefgh', 'https://' || host || '/abcdefgh.txt', 7, '//' || host || '/', 'good', '2026-03-01T10:00:00Z'
    from frontier_host where host like 'site-1%';
    insert into hint (host_hash, url_hash, source, url, received_at)
    select host_hash, url_hash, 'indexnow', url, '2026-03-01T11:30:00Z' from frontier_url where url like 'https://site-2%/ferry';
    insert into websub_subscription (host_hash, url_hash, host, feed, topic, hub, hub_host_hash, named_at, state, next_at)
    select host_hash, url_hash, 'a feed', url, url, 'https://hub.example.com/', 5, '2026-03-01T10:00:00Z',
      (array['found', 'active'])[1 + (host_hash & 1)::int], '2026-03-02T10:00:00Z'
    from frontier_url where url like 'https://site-%/ferry';
    insert into channel (host_hash, host, directories, seeds, created_at, counted_at, settled)
    select host_hash, host, '{/ferry}', array['https://' || host || '/ferry'], '2026-02-01T00:00:00Z', '2026-03-01T11:00:00Z', true
    from frontier_host where host in ('site-3.example.org', 'site-9.example.org', 'site-17.example.org') order by host;
    insert into submission (deed, submitted_by, submitted_at, new_urls, known_urls) values ('add', 'anna', '2026-03-01T08:00:00Z', 24, 0);
    insert into submission_url (submission_id, place, url, host_hash, url_hash, answer)
    select 1, row_number() over (order by url), url, host_hash, url_hash, 'new' from frontier_url where url like 'https://site-%/harbour';
    insert into held_urls (host_hash, held_at, depth, redirects, lists, url_hashes, links, urls)
    select host_hash, '2026-03-01T08:00:00Z', 1, 0, 0, '{1,2}', '{1,1}', 'https://' || host || E'/a\\nhttps://' || host || '/b'
    from frontier_host where host like 'site-2%';
    update frontier_host set held_urls = 2 where host like 'site-2%';
    insert into check_outcome (crawler_id, check_id, host_hash, outcome, decided_at)
    select 1 + (check_id & 1), check_id, host_hash, verdict, decided_at from double_check;
    update double_check set suspect_id = crawler_id, words = 'it stood alone' where verdict = 'alone';
    update double_check set verdict = 'cannot-tell' where url like 'https://site-1_.%' and verdict = 'once';
    insert into host_disagreement (host_hash, agreed, silent, changed_at)
    select host_hash, 3, host_hash & 1 = 0, '2026-03-01T11:00:00Z' from frontier_host where host like 'site-%';
    insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls, ending, addresses, open_url_hashes)
    select 1 + (host_hash & 1), host_hash, host, '2026-03-01T11:20:00Z'::timestamptz + (host_hash & 1023) * interval '1 s', '2026-03-01T11:50:00Z',
      '2026-03-01T11:45:00Z', 5 + (host_hash & 7), 0, (array['done', 'expired'])[1 + (host_hash >> 1 & 1)::int], '{}', '{}'
    from frontier_host where host like 'site-%';
    insert into finer_delegation (subnet_id, host_hash, crawler_id, round_id, cause, measured, rtt_ms, found_at, delegated_at, review_at)
    select subnet_id, host_hash, 3, 1, 'probe-round', true, 7.5, '2026-03-01T09:00:00Z', '2026-03-01T09:00:00Z', '2026-03-09T09:00:00Z'
    from frontier_host where host in ('site-4.example.org', 'site-12.example.org');
    update frontier_host h set finer_id = f.finer_id from finer_delegation f where f.host_hash = h.host_hash;
    insert into recrawl_plan (made_at, strategy, reason, plan) values ('2026-03-01T10:00:00Z', 'optimal', 'the total is the fleet''s measured capacity',
      '{"since": "2026-02-20T00:00:00.000Z", "groups": [], "pages": 72, "allowedPerDay": 1000, "totalPerDay": 500, "achievedPerDay": 400,
        "freshness": 0.8, "lastLeaseId": "0", "capacityPerDay": 500, "correction": 1, "multiplier": 0.5, "groupIntervalSeconds": [],
        "bounds": {"leastPerDay": 0.01, "mostPerDay": 24}, "rankedPages": 72, "usualChangesPerDay": 0.1}');`);
  for (const host of sites) await seedChange(pool, { url: `https://${host}/ferry` });
  await numberChanges(pool, worldNow);
}

/** Of which answers are no tables', or cannot be the same. */
const notAsked = [
  // They do not end, or are of this process.
  ...["/events", "/api/changes/stream", "/metrics", "/assets/:name", "/sign-in/:link", "/websub/:token"],
  // Numbers of changes are each slice's own: test/slices/reads-over-slices asks for them.
  ...["/changes", "/api/changes"],
  // What tables and their indexes take on disk.
  ...["/storage", "/api/storage"],
];

const hosts = [...sites.slice(0, 6), "www.example.org", "old.example.org", "nowhere.example.org"];

const values: Readonly<Record<string, readonly string[]>> = {
  host: hosts,
  name: ["athens", "berlin", "tokyo"],
};

const ofSite = [
  ...["part=pages", "part=pages&filter=held", "part=pages&filter=rejected", "part=pages&filter=failing"],
  ...["part=changes", "part=robots", "part=speed", "part=links"],
];
const ofExplore = ["view=list&sort=load", "layout=whole&colour=load", "at=1.2.0.0/16&measure=load", "at=GR"];

/** Beside each route as it is, and as CSV; for pages and the API. */
const variants: Readonly<Record<string, readonly string[]>> = {
  "/sites/:host": ofSite,
  "/explore": ofExplore,
  "/explore/map": ["country=GR"],
  "/coverage": ["channel=2", "submission=1", "host=site-3.example.org", "host=site-8.example.org"],
  "/fleet/failures": ["hours=1", "crawler=athens", "host=site-4.example.org", "blame=crawler"],
  "/fleet/in-hand": ["sort=open", "sort=host"],
  "/fleet/queue": ["reason=crawler-away"],
  "/reports/coverage": ["country=GR", "language=de"],
  "/accuracy": ["only=far"],
  "/search": ["q=ferry", "q=harbour&sort=date"],
  "/find": ["q=site-1", "q=athens"],
  "/who": ["q=site-2.example.org", "q=1.2.0.0/16", "q=athens"],
  "/pages": ["url=https://site-3.example.org/", "url=https://site-0.example.org/harbour"],
};

async function appOver(slices: Slices): Promise<FastifyInstance> {
  const database = world.shared;
  const app = webServer(database, {
    reads: { ...createReports(slices, () => 0), ...readinessReads(database.pool) },
    parts: everyPart(database, { slices, state: await readState(database) }),
    contact: {
      ...contactPorts(database),
      optOuts: createOptOutStore(slices),
      complaints: createComplaintStore(slices),
    },
  });
  await app.ready();
  return app;
}

interface Answer {
  readonly status: number;
  readonly partial: string | undefined;
  readonly body: unknown;
}

async function askAll(slices: Slices): Promise<Answers> {
  const app = await appOver(slices);
  const answers = new Map<string, Answer>();
  try {
    for (const url of urlsOf(app)) {
      const { statusCode, body, headers: sent } = await app.inject({ url, headers });
      const type = String(sent["content-type"]);
      answers.set(url, {
        status: statusCode,
        partial: sent["nearcrawl-partial"] as string | undefined,
        body: /json/.test(type) ? withoutMoments(JSON.parse(body)) : /html/.test(type) ? mainOf(body) : body,
      });
    }
  } finally {
    await app.close();
  }
  return answers;
}

/** The overview's history is what its app has seen so far. */
const withoutMoments = (value: object): unknown =>
  JSON.parse(JSON.stringify(value, (name, one) => (name === "pagesHistory" ? null : one)));

function urlsOf(app: FastifyInstance): string[] {
  const urls = routesOf(app)
    .filter(({ path, methods }) => methods.includes("GET") && !notAsked.includes(path))
    .flatMap(({ path }) => {
      const name = /:(\w+)/.exec(path)?.[1];
      const filled =
        name === undefined ? [path] : (values[name] ?? ["1"]).map((one) => path.replace(/:\w+/, one));
      const asked = variants[path.replace(/^\/api/, "")] ?? [];
      return filled.flatMap((url) => [url, ...asked.map((query) => `${url}?${query}`)]);
    });
  return urls;
}

/** Changes of settings that are foretold from samples, each of another kind. */
const changes: readonly Partial<Record<PolicyName, PolicyValue>>[] = [
  { "delegation.policy": "exhaustive" },
  { "recrawl.intervalHours": 24 },
  { "scope.pagesPerHost": 2, "scope.maxDepth": 1 },
  { "balance.policy": "min-cost-flow" },
  { "trust.share": 0.1, "trust.threshold": 4 },
  { "probe.pace.perCrawlerPerSecond": 1 },
  { "lease.seconds": 60, "lease.urlsPerHost": 5 },
  { "delegation.getFirstFromUrls": 3 },
  { "recalibration.slowerThanFactor": 3, "recalibration.refreshDays": 7 },
];

async function previewed(slices: Slices): Promise<unknown[]> {
  const before = policiesOf(readCoordinatorConfig({}));
  const effects: unknown[] = [];
  for (const change of changes) {
    const entries = Object.entries(change) as [PolicyName, PolicyValue][];
    const step = {
      before,
      after: withChanges(before, new Map(entries)),
      names: new Set(entries.map(([name]) => name)),
    };
    effects.push(
      await previewPolicies(
        step,
        previewPorts(slices, silentLog, () => worldNow),
      ),
    );
  }
  return effects;
}

describe("four slices on two servers", () => {
  it("show what one does, page by page", () => {
    expect([...spread.keys()]).toEqual([...whole.keys()]);
    const differing = [...whole.keys()].filter(
      (url) => JSON.stringify(spread.get(url)) !== JSON.stringify(whole.get(url)),
    );
    const those = (answers: Answers) => Object.fromEntries(differing.map((url) => [url, answers.get(url)]));
    expect(those(spread)).toEqual(those(whole));
    expect(differing).toEqual([]);
  });

  it("were asked for something", () => {
    const told = (url: string) => whole.get(url)!.body as Record<string, never>;
    expect([...whole.values()].filter(({ status }) => status === 200).length).toBeGreaterThan(150);
    expect(told("/api/fleet/failures")).toMatchObject({ shares: { fetches: expect.any(Number) } });
    expect(JSON.stringify(told("/api/fleet/failures"))).toContain("https://site-1.example.org/harbour");
    expect(JSON.stringify(told("/api/fleet/hints"))).toContain("site-17.example.org");
    expect(JSON.stringify(told("/api/sites/site-0.example.org?part=links"))).toContain("site-23.example.org");
    expect(JSON.stringify(told("/api/explore?view=list&sort=load"))).toContain("dueHosts");
    expect(JSON.stringify(told("/api/reports/organisations"))).toContain("Example Networks");
    expect(JSON.stringify(told("/api/crawlers/athens"))).toContain("https://site-");
    expect(JSON.stringify(told("/api/fleet/recrawl"))).toContain("measured capacity");
  });

  it("foretell the same of a change of settings", () => {
    expect(JSON.stringify(previews.whole)).not.toContain("Not told");
    expect(previews.spread).toEqual(previews.whole);
  });

  it("have hosts each", () => {
    expect(new Set(hosts.map((host) => world.slices.ofHost(hostHashOf(host)).number)).size).toBe(4);
  });
});

/** For everybody, or of this process: nothing of hosts is told there. */
const ofNoHosts =
  /^\/(about-crawler|robots\.txt|releases\/|ready$|health$|sign-in$|\.well-known\/|api\/openapi\.json$)/;

describe("slices whose server is gone", () => {
  it("are named by every page and answer, and none of them fails", async () => {
    await world.servers.kill(1);
    world.slices.down = [1, 3];
    const without = await askAll(world.slices);

    const changed = [...without].filter(([url, { status }]) => status !== whole.get(url)!.status);
    const isAway = (url: string) =>
      hosts.some(
        (host) => url.includes(`/${host}`) && [1, 3].includes(world.slices.ofHost(hostHashOf(host)).number),
      );
    expect(changed.filter(([url, { status }]) => !(status === 404 && isAway(url)))).toEqual([]);
    expect(changed.length).toBeGreaterThan(0);
    const asked = [...without].filter(([url, { status }]) => status === 200 && !ofNoHosts.test(url));
    expect(asked.filter(([, { partial }]) => partial !== "1, 3").map(([url]) => url)).toEqual([]);
    for (const [url, { body }] of asked)
      if (typeof body === "string" && body.startsWith("<main")) expect(body, url).toContain("slices 1, 3");
  });
});
