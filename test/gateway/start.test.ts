/** Each crawler message reaches its flow, over real stores. */
import { beforeEach, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createDueWorkReads } from "#coordinator/crawl/frontier/due-work-store";
import { IdleCrawlers } from "#coordinator/crawl/frontier/idle-crawlers";
import { DayBudget } from "#coordinator/place/crawlers/crawler";
import { createIdentityStore } from "#coordinator/place/crawlers/identity-store";
import { Heartbeats, sessionEnd } from "#coordinator/place/crawlers/sessions";
import { createSigningKeyStore } from "#coordinator/place/crawlers/signing-key-store";
import { fleetMessageHandlers } from "#coordinator/run/gateway/start";
import { Counters, type Metrics } from "#coordinator/tell/overview/metrics";
import { hashCrawlerKey, randomSecrets } from "#coordinator/web/secrets";
import type { CrawlerId } from "#core/ids";
import { silentLog } from "#core/log";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { hello, newFlowWorld } from "../support/flow-world.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { arrivedResult, noon, spoolId } from "../support/store-world.ts";

const world = await forThisFile(newFlowWorld());
beforeEach(async () => await world.reset());

const size = { wireBytes: 10, inflatedBytes: 20 };

/** North has http://a.example/ and two more pages, and is connected. */
async function connected(pagesPerDay = 1000, isCrowded = () => false) {
  const north = await world.delegatedHost(
    "north",
    "http://a.example/",
    "http://a.example/1",
    "http://a.example/2",
  );
  const state = await world.state();
  const budget = new DayBudget();
  const counters = new Counters();
  const sent: [CrawlerId, CoordinatorMessage][] = [];
  const happened: string[] = [];
  const send = (crawlerId: CrawlerId, message: CoordinatorMessage) => sent.push([crawlerId, message]) > 0;
  const idle = new IdleCrawlers({
    reads: createDueWorkReads(world.pool),
    ownerOf: (subnetId) => state.ownerOf(subnetId),
    wake: (crawlerId) => send(crawlerId, { type: "coordinator:wake" }),
    onNews: () => {},
    now: () => noon,
    ...{ nowMs: () => 0, random: () => 0 },
  });
  const heartbeats = new Heartbeats(world.crawlers);
  const handlers = fleetMessageHandlers(
    {
      ...world,
      ...{ state, budget, idle, heartbeats, send },
      counters,
      log: silentLog,
      rooms: [
        {
          onArrived: () => happened.push("fleet changed"),
          onLeft: (_, forGood) => happened.push(...(forGood ? ["draining"] : [])),
          onPosted: () => happened.push("links of other hosts"),
          onFetched: () => happened.push("fetched"),
        },
      ],
      incidents: { note: ({ kind, file = "" }) => happened.push(kind + file) },
      identities: createIdentityStore(world.pool),
      signingKeys: createSigningKeyStore(world.pool),
      secrets: randomSecrets,
      isCrowded,
      now: () => noon,
    },
    readCoordinatorConfig({ scope: { admitNewHosts: true } }),
  );
  const limits = { pagesPerDay, bytesPerDay: 1e12, concurrentHosts: 10 };
  const said = { hello: hello("north", { limits }), remoteAddress: "127.0.0.1", version: 2 };
  const arrival = { ...said, crawlerId: north, publicKey: null };
  const arrived = await handlers.onArrive(arrival);
  const ask = async () => {
    await handlers.onMessage(north, { type: "crawler:ready", freeHosts: 5 }, size);
    const [, tasks] = sent.at(-1)!;
    if (tasks.type !== "coordinator:tasks") throw new Error(tasks.type);
    return tasks;
  };
  return { north, state, idle, heartbeats, budget, counters, sent, happened, handlers, arrived, ask };
}

it("recognises a crawler by its name and the hash of its key", async () => {
  const { handlers, north } = await connected();
  await world.rows(`update crawler_key set key_hash = '${hashCrawlerKey("the key of the north")}'`);
  const given = { version: 2, challenge: "", tlsBinding: null, remoteAddress: "127.0.0.1" };
  const by = (key: string) => handlers.admit({ ...given, hello: hello("north", { key }) });

  expect(await by("the key of the north")).toMatchObject({ crawlerId: north, publicKey: null });
  expect(await by("the key of the south")).toMatchObject({ refuse: { code: "wrong-key", retry: false } });
});

it("welcomes a crawler with what is acknowledged of its spool, and the fleet has changed", async () => {
  const { arrived, state, north, happened } = await connected();

  expect(arrived).toMatchObject({ acknowledgedSequence: 0 });
  expect(state.crawler(north)?.state).toBe("online");
  expect(happened).toEqual(["fleet changed"]);
});

/** The counters summed over their labels. */
async function told({ metrics }: { metrics: Metrics }) {
  const { results, pages, shippedBytes } = metrics;
  const sums = Object.entries({ results, pages, shippedBytes }).map(async ([name, counter]) => {
    const { values } = await counter.get();
    const counted = values.filter(({ labels }) => (labels as { taken?: string }).taken !== "duplicate");
    return [name, counted.reduce((sum, { value }) => sum + value, 0)];
  });
  return Object.fromEntries(await Promise.all(sums));
}

it("answers a crawler that is ready with leases, and counts them", async () => {
  const { ask, sent, north, counters } = await connected();

  expect((await ask()).leases).toMatchObject([{ host: "a.example" }]);
  expect(sent[0]?.[0]).toBe(north);
  expect(await counters.metrics.registry.getSingleMetricAsString("nearcrawl_leases_total")).toContain(
    'event="granted"} 1',
  );
});

it("lets work and results wait while many crawlers arrive", async () => {
  let isCrowded = false;
  const { ask, handlers, north } = await connected(1000, () => isCrowded);
  const [lease] = (await ask()).leases;
  const one = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/" });
  isCrowded = true;
  const done: string[] = [];
  const batch = { crawlerId: north, spoolId, results: [{ ...one, wireBytes: 70 }] };
  const taken = handlers.onResults(batch).then(() => done.push("results"));
  const asked = ask().then(() => done.push("work"));

  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(done).toEqual([]);
  isCrowded = false;
  await Promise.all([taken, asked]);

  expect(done.sort()).toEqual(["results", "work"]);
});

it("gives a crawler no more in a day than its partner allows, and nothing while it is drained", async () => {
  const { ask, budget, north, state } = await connected(10);

  budget.spend(north, { pages: 8, bytes: 0 }, noon);
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, state: "draining" })));
  expect(await ask()).toMatchObject({ leases: [], reason: "this crawler is being drained" });
  state.setCrawlers(state.crawlers.map((crawler) => ({ ...crawler, state: "online" })));
  expect((await ask()).leases[0]?.urls).toHaveLength(2);
  budget.spend(north, { pages: 2, bytes: 0 }, noon);
  expect(await ask()).toMatchObject({ leases: [], reason: "the pages or bytes of this day are used up" });
});

it("stores results, spends the day's pages, counts, and notifies whoever waits for fetches and links", async () => {
  const { ask, handlers, north, budget, counters, happened } = await connected();
  const [lease] = (await ask()).leases;
  const result = (sequence: number, url: string, links: string[] = []) => ({
    ...arrivedResult({
      sequence,
      leaseId: lease!.leaseId,
      url,
      page: { links: links.map((link) => ({ url: link, anchor: "", nofollow: false })) },
    }),
    wireBytes: 70,
  });
  const differs = result(2, "http://a.example/1");
  differs.result.difference = { words: "two minds", file: ": a page" };
  const results = [result(1, "http://a.example/", ["http://new.example/"]), differs];

  await handlers.onResults({ crawlerId: north, spoolId, results });

  expect(happened).toEqual(["fleet changed", "second-opinion: a page", "fetched", "links of other hosts"]);
  expect(budget.spent(north, noon)).toMatchObject({ pages: 2 });
  expect(await told(counters)).toMatchObject({ results: 2, pages: 2, shippedBytes: 140 });
});

it("spends and counts a result once that arrives twice", async () => {
  const { ask, handlers, north, budget, counters } = await connected();
  const [lease] = (await ask()).leases;
  const one = arrivedResult({ sequence: 1, leaseId: lease!.leaseId, url: "http://a.example/" });
  const batch = { crawlerId: north, spoolId, results: [{ ...one, wireBytes: 70 }] };

  await handlers.onResults(batch);
  await handlers.onResults(batch);

  expect(budget.spent(north, noon)).toEqual({ pages: 1, bytes: one.result.wireBytes });
  expect(await told(counters)).toMatchObject({ results: 1 });
});

it("takes a lease back from its own crawler, and no other crawler's", async () => {
  const { ask, handlers, north } = await connected();
  const other = await world.crawler("other");
  const [lease] = (await ask()).leases;
  const end = { type: "crawler:lease-end", leaseId: lease!.leaseId, reason: "stopping" } as const;

  await handlers.onMessage(other, end, size);
  expect(await world.rows("select ending from lease")).toEqual([{ ending: null }]);
  await handlers.onMessage(north, end, size);

  expect(await world.rows("select ending from lease")).toEqual([{ ending: "returned" }]);
});

it("stores a heartbeat, and a crawler's measurements of its peers", async () => {
  const { handlers, heartbeats, north, state } = await connected();
  const south = await world.crawler("south");
  state.setCrawlers(await world.crawlers.list());
  const counts = { openHosts: 3, spooledResults: 0, pages: 9, fetchedBytes: 1, shippedBytes: 1 };

  await handlers.onMessage(north, { type: "crawler:heartbeat", ...counts, holdingBack: [] }, size);
  const outcome = { type: "measured", method: "connect", rttMs: 31, tries: 3 } as const;
  const peers = [{ crawlerId: south, outcome }];
  await handlers.onMessage(north, { type: "crawler:peer-rtts", peers }, size);

  await heartbeats.write();
  const [row] = await world.rows<{ heartbeat: object }>("select heartbeat from crawler order by crawler_id");
  expect(row?.heartbeat).toEqual({ ...counts, holdingBack: [] });
  expect(state.peerRtts.rttMs(south, north)).toBe(31);
});

it("marks a crawler that leaves as offline, with the reason, and hands its subnets over if it leaves for good", async () => {
  const { handlers, north, state, happened } = await connected();

  await handlers.onLeave(north, { code: null, reason: "its machine restarts" }, false);
  expect(state.crawler(north)).toMatchObject({
    ...{ state: "offline", offlineReason: "its machine restarts", lastSeenAt: noon, drainingSince: null },
  });
  await handlers.onLeave(north, sessionEnd("leaves"), true);

  expect(state.crawler(north)).toMatchObject({ state: "offline", drainingSince: noon });
  expect(happened).toEqual(["fleet changed", "draining"]);
});
