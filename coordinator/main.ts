/**
 * The coordinator, wired: stores and sockets on the outside, flows inside, a timekeeper that turns them. What
 * it keeps in memory is read from the database first, so it can be killed and started at any moment.
 */
import type { Server } from "node:http";
import { IncidentLog } from "#core/incidents";
import { createNameResolver } from "#core/name-resolver";
import { Timekeeper } from "#core/scheduler";
import { postgresVersion } from "#db/postgres-version";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { fleetDuties, followFleet } from "./balance/start.ts";
import type { CoordinatorOptions } from "./config.ts";
import { CoordinatorPresence } from "./crawlers/coordinator-presence-store.ts";
import { DayBudget } from "./crawlers/crawler.ts";
import { createCrawlerStore } from "./crawlers/crawler-store.ts";
import { createIdentityStore } from "./crawlers/identity-store.ts";
import { keyDuties, moveDuties } from "./crawlers/start.ts";
import { FleetSettling } from "./delegation/measure-peers.ts";
import { heldBySomebody } from "./delegation/overrides/assign-by-sets.ts";
import { RecalibrationQueue } from "./delegation/recalibration/recalibrate.ts";
import { delegating, startProbing } from "./delegation/start.ts";
import { CoordinatorState } from "./delegation/state.ts";
import { createDelegationStore } from "./delegation/store.ts";
import { partitionOf } from "./domain-sets/partition.ts";
import { linkCoordinators } from "./federation/start.ts";
import { createFrontierStore } from "./frontier/frontier-store.ts";
import { createPaceStore } from "./frontier/pace-store.ts";
import { paceDuties } from "./frontier/start.ts";
import { CrawlerGateway } from "./gateway/gateway.ts";
import { fleetMessageHandlers } from "./gateway/start.ts";
import { following } from "./live-config.ts";
import { followRegistry, readWhatIsKnown } from "./load-state.ts";
import { optOutDuties } from "./opt-outs/start.ts";
import { Counters } from "./overview/counters.ts";
import { createIncidentStore } from "./overview/incident-store.ts";
import { liveState, overviewDuties } from "./overview/start.ts";
import { recrawlDuties } from "./recrawl/start.ts";
import { releaseDuties } from "./releases/start.ts";
import { createResultStore } from "./results/result-store.ts";
import { gatewaySettings, recalibrationRule, watchRoom } from "./room-settings.ts";
import { duties, scheduleDuties, scheduleTableDuties } from "./schedule.ts";
import { policyDuties } from "./settings/start.ts";
import { openWebServer } from "./start-web.ts";
import { createSubnetStore, ensureRootSubnets } from "./subnets/subnet-store.ts";
import { createTreeSnapshots, noSnapshots } from "./subnets/tree-snapshot-store.ts";
import { trustDuties } from "./trust/start.ts";
import { randomSecrets } from "./web/secrets.ts";

export interface RunningCoordinator {
  /** Where its pages, its API and its crawlers' socket are. */
  readonly webUrl: string;
  stop(): Promise<void>;
}

/** How often the metrics' gauges are set. */
const observeMs = 2000;
/** Between two looks whether the crawler's release ends soon: it is signed for months. */
const keepReleasesMs = 6 * 3_600_000;

/** Reads what is known, listens, and goes to work. Rejects when it cannot listen or the database fails. */
export async function startCoordinator(options: CoordinatorOptions): Promise<RunningCoordinator> {
  const presence = await CoordinatorPresence.begin(options.database.pool);
  try {
    return await startPresent(options, presence);
  } catch (error) {
    await presence.end();
    throw error;
  }
}

async function startPresent(
  {
    config: file,
    database,
    log,
    version,
    snapshotFolder = null,
    registryHost = null,
    keepReleases = async () => {},
    now = () => new Date(),
  }: CoordinatorOptions,
  presence: CoordinatorPresence,
): Promise<RunningCoordinator> {
  const { pool } = database;
  const startedAt = now();
  const stores = {
    subnets: createSubnetStore(pool),
    crawlers: createCrawlerStore(pool, presence.number),
    delegations: createDelegationStore(pool, () => heldBySomebody(gateway, state, config)),
    frontier: createFrontierStore(pool),
    results: createResultStore(pool),
    identities: createIdentityStore(pool),
  };
  const state = new CoordinatorState();
  const budget = new DayBudget();
  const counters = new Counters();
  const timekeeper = new Timekeeper(log);
  const policies = await policyDuties({ pool, config: file, timekeeper, log, now });
  const { config } = policies;
  const incidents = new IncidentLog({
    store: createIncidentStore(pool),
    log,
    onNoted: (kind) => counters.incident(kind),
  });
  const resolver = createNameResolver({ servers: config.resolvers });
  const settling = new FleetSettling({
    expectedCrawlers: config.delegation.expectedCrawlers,
    settleMs: config.delegation.settleSeconds * 1000,
  });
  const snapshots =
    snapshotFolder === null
      ? noSnapshots
      : createTreeSnapshots({ folder: snapshotFolder, schema: database.schema, log });
  await readWhatIsKnown({ ...stores, state, budget, snapshots }, now());

  const recalibration = new RecalibrationQueue(
    { results: stores.results, state, now },
    following(() => recalibrationRule(config)),
  );
  const trusting = trustDuties(
    {
      ...{ pool, timekeeper, state, incidents, version, log, now },
      ...stores,
      online: () => gateway.online(),
      denied: () => probing.denied,
      request: (subnetIds, cause) => queue.request(subnetIds, cause),
    },
    config,
  );
  const recrawls = recrawlDuties({ pool, timekeeper, log, now }, config);
  const gateway = new CrawlerGateway({
    settings: { ...gatewaySettings(config), postgresVersion: await postgresVersion(pool) },
    handlers: fleetMessageHandlers(
      {
        ...stores,
        ...trusting.stores,
        state,
        budget,
        counters,
        incidents,
        identities: stores.identities,
        secrets: randomSecrets,
        moves: () => moves,
        recrawlPlan: recrawls.plan,
        onWelcome: (crawlerId) => {
          keys.onWelcome(crawlerId);
          paces.onWelcome(crawlerId);
          optOuts.onWelcome(crawlerId);
        },
        log,
        now,
        send: (crawlerId, message) => gateway.send(crawlerId, message),
        // Crawlers arrive in bunches after a start: one measurement, and one look, for all of them.
        onFleetChange: () => {
          timekeeper.hurry(duties.measurePeers, 1000);
          timekeeper.hurry(fleetDuties.settle, 1000);
        },
        onDraining: () => timekeeper.hurry(fleetDuties.handOver),
        onNewUrls: () => timekeeper.hurry(duties.resolveHosts),
        onHello: (crawlerId, hello) => {
          probing.onHello(crawlerId, hello);
          trusting.onHello(crawlerId, hello);
          releases.onHello(crawlerId, hello);
        },
        onReleaseReport: (crawlerId, report) => releases.onReport(crawlerId, report),
        onFetched: async (batch) => {
          recalibration.note(batch);
          delegations.note(batch);
          await probing.onResults(batch);
        },
      },
      config,
    ),
    log,
    zlibSync: await loadZlibSync(),
  });
  const room = watchRoom(state, budget);
  const withoutRoom = () => room(now());
  const probing = startProbing(
    {
      fleet: gateway,
      state,
      delegations: stores.delegations,
      now,
      request: (subnetIds, cause) => queue.request(subnetIds, cause),
    },
    config,
  );
  await probing.restore();
  const delegations = delegating(
    {
      ...{ pool, state, probing, resolver, timekeeper, counters, log, now, excluded: withoutRoom },
      delegations: recalibration.explaining(stores.delegations),
    },
    config,
  );
  const { queue } = delegations;
  const paces = paceDuties(
    {
      ...{ timekeeper, log, now, paces: createPaceStore(pool, partitionOf(config.domainSets)) },
      online: () => gateway.online(),
      send: (crawlerId, message) => gateway.send(crawlerId, message),
    },
    config,
  );
  const live = () => liveState({ startedAt, gateway, queue, counters, settling, state });
  const watching = overviewDuties(
    {
      ...{ ...stores, ...probing, pool, state, timekeeper, counters, withoutRoom, version, log, now },
      random: Math.random,
      isSettled: () => settling.settled,
      request: (subnetIds, cause) => queue.request(subnetIds, cause),
    },
    config,
  );
  const { metrics } = counters;
  const releases = releaseDuties({
    pool,
    timekeeper,
    metrics,
    log,
    now,
    online: () => gateway.online(),
    send: (crawlerId, message) => gateway.send(crawlerId, message),
  });
  const links = linkCoordinators({ pool, timekeeper, metrics: metrics.coordinators, log, now }, config);
  const keys = keyDuties({ ...stores, gateway, secrets: randomSecrets, timekeeper, log, now });
  const others = async () => await presence.others();
  const moves = moveDuties({ ...stores, others, pool, gateway, state, timekeeper, log, now });
  const optOuts = optOutDuties({ pool, gateway, timekeeper, config, log, now });
  const onChange = async () => void (await Promise.all([keys.review(), moves.review()]));
  const fleet = await followFleet({ ...stores, state, timekeeper, log, onChange });
  const ensureRoots = async () => await ensureRootSubnets(pool);
  const registry = await followRegistry({ ...stores, ensureRoots, state, log, snapshots }).catch(
    async (error) => {
      await fleet.stop();
      throw error;
    },
  );
  // Who is invited by the pages that listen now is to find a release.
  await keepReleases(now());
  const opened = openWebServer({
    ...{ config, database, resolver, live, metrics, version, log, registryHost, state },
  });
  const { web, url } = await opened.catch(async (error) => {
    // A start that fails leaves nothing behind; nothing else has been set going until here.
    await registry.stop();
    await fleet.stop();
    throw error;
  });
  const followers = [policies, releases, optOuts, links];
  await Promise.all([...followers, moves, recrawls, trusting].map((one) => one.start())).catch(
    async (error) => {
      await timekeeper.stop();
      await Promise.all(followers.map((one) => one.stop()));
      await web.close();
      await registry.stop();
      await fleet.stop();
      throw error;
    },
  );
  scheduleDuties(
    {
      ...stores,
      timekeeper,
      state,
      gateway: {
        ...probing.fleet,
        send: (crawlerId, message) => gateway.send(crawlerId, message),
      },
      queue,
      denied: probing.denied,
      anycast: probing.anycast,
      recalibration,
      settling,
      resolver,
      counters,
      withoutRoom,
      recrawlDays: recrawls.meanDays,
      presence,
      log,
      now,
    },
    config,
  );
  keys.start();
  watching.start();
  delegations.start();
  paces.start();
  scheduleTableDuties({ database, incidents, timekeeper, log, now }, config);
  timekeeper.every("keep-releases", keepReleasesMs, async () => await keepReleases(now()));
  timekeeper.every("observe", observeMs, async () => counters.observe(live(), gateway.counts().refusals));
  gateway.attach(web.server as Server);
  log.info({ webUrl: url, subnets: state.tree.size }, "coordinator listens");
  return {
    webUrl: url,
    stop: async () => {
      await registry.stop();
      await fleet.stop();
      await snapshots.idle();
      const roundsGivenUp = delegations.stop();
      probing.close();
      await timekeeper.stop();
      await gateway.close();
      await watching.stop();
      await Promise.all(followers.map((one) => one.stop()));
      await incidents.flush();
      await roundsGivenUp;
      await presence.end();
      await web.close();
      log.info({}, "coordinator stopped");
    },
  };
}
