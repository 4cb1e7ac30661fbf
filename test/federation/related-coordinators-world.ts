/** Coordinators with their own databases and web servers, which crawl a world of links. */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { readCoordinatorConfig } from "#coordinator/config";
import { settleClaims } from "#coordinator/crawl/federation/claim-store";
import { AskParent, type TurnOutcome } from "#coordinator/crawl/federation/exchange";
import { dropWaiting } from "#coordinator/crawl/federation/exchange-queue-store";
import { createExchangeStore } from "#coordinator/crawl/federation/exchange-store";
import { HttpParentClient } from "#coordinator/crawl/federation/parent-client";
import { createCoordinatorStore, stateParent } from "#coordinator/crawl/federation/related-store";
import { coordinatorPart } from "#coordinator/crawl/federation/start";
import type { CrawlScope } from "#coordinator/crawl/frontier/frontier";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import { randomSecrets } from "#coordinator/web/secrets";
import { asLeaseId, type CrawlerId, type SubnetId } from "#core/ids";
import { silentLog } from "#core/log";
import type { Lease } from "#protocol/lease";
import {
  arrivedResult,
  batchOf,
  keyOf,
  newWorld,
  noon,
  secondsAfterNoon,
  seeds,
  scope as shallow,
} from "../support/store-world.ts";
import { until } from "../support/until.ts";
import { webServer } from "../support/web-server.ts";

/** Deep enough for all links of a test, since depth depends on the order in which pages are found. */
const scope: CrawlScope = { ...shallow, maxDepth: 100 };

/** URLs that a page links to. */
export type LinksOf = (url: string) => readonly string[];

export async function newCoordinator() {
  const world = await newWorld();
  const config = readCoordinatorConfig({});
  const settings = { ...config, scope: { ...config.scope, ...scope } };
  const metrics = createMetrics();
  const { pool } = world;
  const part = { pool, patientPool: pool, metrics, version: "test", config: settings };
  const listen = async (port: number): Promise<FastifyInstance> => {
    const server = webServer(world.database, { parts: [coordinatorPart({ ...part, now: () => noon })] });
    await server.listen({ host: "127.0.0.1", port });
    return server;
  };
  let app = await listen(0);
  const { port } = app.server.address() as AddressInfo;
  const store = createCoordinatorStore(world.pool);
  let subnetId: SubnetId;
  let crawlerId: CrawlerId;
  const taking = { scope, mostNewHosts: 1_000_000, now: noon };
  const clients: HttpParentClient[] = [];
  let sequence = 0;
  let second = 0;

  /** Resets to no relatives, an empty frontier, and one crawler that has every host's subnet. */
  async function startAnew(): Promise<void> {
    await world.reset();
    await world.pool.query(
      `delete from related_coordinator; delete from foreign_url; delete from coordinator_self;
       update claims_settling set settled_claims = null, host_cursor = null, url_cursor_host = null, url_cursor_url = null`,
    );
    subnetId = await world.subnet("198.51.100.0", "198.51.100.255");
    crawlerId = await world.crawler("crawler");
    await world.delegations.delegateOwnSubnet(subnetId, crawlerId, noon);
    sequence = 0;
    second = 0;
  }
  await startAnew();

  const resolveAll = async (): Promise<void> => {
    for (const host of await world.frontier.hostsToResolve(500, secondsAfterNoon(second)))
      await world.resolve(host, "198.51.100.7", subnetId);
  };

  async function dueAgain(): Promise<void> {
    await world.pool.query("update frontier_url set next_fetch_at = $1", [noon]);
    await world.pool.query("update frontier_host set due_at = $1", [noon]);
  }

  /** Crawls until nothing is due and returns the URLs. All hosts have the same address. */
  async function crawl(linksOf: LinksOf): Promise<string[]> {
    const fetched: string[] = [];
    for (;;) {
      await resolveAll();
      second += 10;
      const leases = await world.lease(crawlerId, secondsAfterNoon(second));
      if (leases.length === 0) return fetched;
      const results = leases.flatMap(({ leaseId, urls }) =>
        urls.map(({ url }) => arrivedResult({ sequence: ++sequence, leaseId, url, links: linksOf(url) })),
      );
      fetched.push(...results.map(({ key }) => key.url));
      const now = secondsAfterNoon(second);
      await world.results.take(batchOf(crawlerId, results, { scope, now }));
      await world.applyOutbox(now);
    }
  }

  return {
    world,
    store,
    url: `http://127.0.0.1:${port}`,
    port,
    metrics,
    crawl,
    seed: async (...urls: string[]) => await world.frontier.admit(seeds(...urls), scope, noon),
    invite: async (name: string): Promise<string> => {
      const { secret, hash: keyHash } = randomSecrets.make("ncc_");
      await store.invite({ name, keyHash, createdBy: "test", now: noon });
      return secret;
    },
    join: async (parent: { url: string; key: string; owns: readonly string[] }, timeoutMs?: number) => {
      await stateParent(world.pool, parent, noon);
      const client = new HttpParentClient({ ...parent, certificatePin: null }, timeoutMs);
      clients.push(client);
      return new AskParent({
        ...{ store: createExchangeStore(pool), client, taking: () => taking, random: () => 0 },
        ...{ log: silentLog, everyMs: 5000 },
        onTaken: (taken, told) => metrics.coordinators.exchanged("parent", { ...taken, told }),
      });
    },
    startAnew,
    stopListening: async () => await app.close(),
    listenAgain: async () => {
      app = await listen(port);
    },
    crawlAgain: async (linksOf: LinksOf) => {
      await dueAgain();
      return await crawl(linksOf);
    },
    leaseOf: async (host: string): Promise<Lease[]> => {
      await resolveAll();
      await dueAgain();
      // The host that has been due longest is leased.
      await world.pool.query("update frontier_host set due_at = $1 where host = $2", [
        secondsAfterNoon(-60),
        host,
      ]);
      second += 10;
      const leases = await world.lease(crawlerId, secondsAfterNoon(second));
      const others = leases.filter((lease) => lease.host !== host);
      for (const { leaseId } of others)
        await world.frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId }, noon);
      return leases.filter((lease) => lease.host === host);
    },
    giveBack: async (leases: readonly Lease[]) => {
      for (const { leaseId } of leases)
        await world.frontier.returnLease({ leaseId: asLeaseId(leaseId), crawlerId }, noon);
    },
    drop: async (most: number) => await dropWaiting(pool, most, noon),
    settleOnce: async () => await settleClaims(world.pool, taking),
    settle: async () => {
      while ((await settleClaims(world.pool, taking)).more);
    },
    frontier: async (): Promise<Record<string, number>> => {
      const rows = await world.rows<{ url: string; back_links: number }>(
        "select url, back_links from frontier_url order by url",
      );
      return Object.fromEntries(rows.map(({ url, back_links }) => [url, back_links]));
    },
    /** Resolves when a session of this database waits for a lock of this kind. */
    someoneWaits: async (event: "Lock" | "advisory") =>
      await until(
        async () =>
          (
            await world.rows(
              `select from pg_stat_activity
               where datname = current_database() and '${event}' in (wait_event_type, wait_event)`,
            )
          ).length > 0,
        10_000,
      ),
    waiting: async () =>
      (
        await world.rows<{ n: number }>(
          "select count(*)::int as n from foreign_url where waits_since is not null or number is not null",
        )
      )[0]!.n,
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await app.close();
      await world.close();
    },
  };
}

export type TestCoordinator = Awaited<ReturnType<typeof newCoordinator>>;

/** Exchanges until nothing waits, retrying failures at once; returns the number of failed turns. */
export async function exchangeAll(asking: readonly AskParent[]): Promise<number> {
  let failures = 0;
  for (let quiet = 0; quiet < 2; ) {
    const outcomes: TurnOutcome[] = [];
    for (const one of asking) outcomes.push(await one.turn());
    failures += outcomes.filter((outcome) => outcome === "failed").length;
    quiet = outcomes.every((outcome) => outcome === "done") ? quiet + 1 : 0;
    if (failures > 2000) throw new Error("the exchange never ends");
  }
  return failures;
}

export const hostOf = (url: string): string => keyOf(url).host;
