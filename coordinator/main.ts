/**
 * The coordinator, wired: stores and sockets on the outside, flows inside, a timekeeper that turns them. What
 * it keeps in memory is read from the database first, so it can be killed and started at any moment.
 */
import { hostname } from "node:os";
import { IncidentLog } from "#core/incidents";
import { createNameResolver, WatchedResolver } from "#core/name-resolver";
import { jobs, Timekeeper } from "#core/scheduler";
import { within } from "#core/within";
import { migrate } from "#db/migrate";
import { createPool, postgresVersion } from "#db/server-database";
import { ServerPool } from "#db/server-pool";
import { withSessionName } from "#db/server-url";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { accessOver, anonymousMayRead } from "./access/start.ts";
import { alertDuties } from "./alerts/start.ts";
import { followFleet, scheduleBalance, succession } from "./balance/start.ts";
import { scheduleChanges } from "./changes/start.ts";
import { scheduleChannels } from "./channels/start.ts";
import type { CoordinatorOptions } from "./config.ts";
import { CoordinatorPresence } from "./crawlers/coordinator-presence-store.ts";
import { DayBudget } from "./crawlers/crawler.ts";
import { createCrawlerStore } from "./crawlers/crawler-store.ts";
import { Heartbeats } from "./crawlers/heartbeats.ts";
import { createIdentityStore } from "./crawlers/identity-store.ts";
import { createSigningKeyStore } from "./crawlers/signing-key-store.ts";
import { keyDuties, moveDuties } from "./crawlers/start.ts";
import { FleetSettling } from "./delegation/measure-peers.ts";
import { heldBySomebody } from "./delegation/overrides/assign-by-sets.ts";
import type { DelegationQueue } from "./delegation/queue.ts";
import { RecalibrationQueue } from "./delegation/recalibration/recalibrate.ts";
import {
  type Delegating,
  delegating,
  type Probing,
  scheduleDelegation,
  startProbing,
} from "./delegation/start.ts";
import { CoordinatorState } from "./delegation/state.ts";
import { createDelegationStore } from "./delegation/store.ts";
import { partitionOf } from "./domain-sets/partition.ts";
import { linkCoordinators } from "./federation/start.ts";
import { createDueWorkReads } from "./frontier/due-work-reads.ts";
import { createFrontierStore } from "./frontier/frontier-store.ts";
import { KnownUrls } from "./frontier/known-urls.ts";
import { frontierOrder } from "./frontier/order/strategies.ts";
import { createPaceStore } from "./frontier/pace-store.ts";
import {
  idleCrawlers,
  outboxDuties,
  paceDuties,
  scheduleFrontier,
  scheduleHostWorths,
  scheduleWakeUps,
} from "./frontier/start.ts";
import { FleetLine } from "./gateway/deferred-gateway.ts";
import { CrawlerGateway } from "./gateway/gateway.ts";
import { standingAside } from "./gateway/gateway-settings.ts";
import { fleetMessageHandlers } from "./gateway/start.ts";
import type { JobPorts } from "./job-ports.ts";
import { journalDuties } from "./journal/start.ts";
import { type ReviewedDatabase, reviewDatabase } from "./journal/went-back-store.ts";
import { following } from "./live-config.ts";
import { followRegistry, readAnew, readWhatIsKnown } from "./load-state.ts";
import { optOutDuties } from "./opt-outs/start.ts";
import { Counters } from "./overview/counters.ts";
import { createIncidentStore } from "./overview/incident-store.ts";
import type { LiveState } from "./overview/overview.ts";
import { readinessReads } from "./overview/overview-reads.ts";
import { OwnHealth } from "./overview/own-health.ts";
import { liveState, observeIndex, observeOwn, overviewDuties, scheduleUpkeep } from "./overview/start.ts";
import { isOwnAddress, type OwnWatch, requireRightClock, watchOwn } from "./own-watch.ts";
import { recrawlDuties } from "./recrawl/start.ts";
import { releaseDuties } from "./releases/start.ts";
import { scheduleReports } from "./reports/start.ts";
import { createResultStore } from "./results/result-store.ts";
import { pagesOfRooms } from "./room-pages.ts";
import { gatewaySettings, outboxSettings, recalibrationRule, watchRoom } from "./room-settings.ts";
import type { IndexKeeper } from "./search/memory/index-keeper-store.ts";
import { scheduleSearch, searchIndex } from "./search/start.ts";
import { policyDuties } from "./settings/start.ts";
import { type Sharing, sharing } from "./sharing/start.ts";
import { scheduleSites } from "./sites/start.ts";
import { openWebServer } from "./start-web.ts";
import { retentionDuties } from "./storage/start.ts";
import { scheduleSubmissions } from "./submissions/start.ts";
import { createSubnetStore, ensureRootSubnets } from "./subnets/subnet-store.ts";
import { createTreeSnapshots, noSnapshots } from "./subnets/tree-snapshot-store.ts";
import { trustDuties } from "./trust/start.ts";
import { randomSecrets } from "./web/secrets.ts";
import { scheduleRanking } from "./web-graph/start.ts";

export interface RunningCoordinator {
  /** Where its pages, its API and its crawlers' socket are. */
  readonly webUrl: string;
  /**
   * Resolves, with words, when the database went back, or others took this coordinator for frozen and replaced it: what it knows
   * of the database is not so any more, and it has to start over.
   */
  readonly hasToStartOver: Promise<string>;
  stop(): Promise<void>;
}

/** How often it is seen to that crawlers are served, or sent to the others. */
const serveMs = 500;
const confirmMs = 1000;
/** A way to the database that is slower is no way. */
const presenceConnectMs = 3000;
/** How often what crawlers say of themselves is written. */
const heartbeatsMs = 1000;
/** How often the metrics' gauges are set. */
const observeMs = 2000;
/** How soon a renewed certificate is shown. */
const certificateMs = 60_000;
/** Between two looks whether the crawler's release ends soon: it is signed for months. */
const keepReleasesMs = 6 * 3_600_000;
/** Crawlers arrive in bunches after a start: one measurement, and one look, for all of them. */
const bunchMs = 1000;

/** Reads what is known, listens, and goes to work. Rejects when it cannot listen or the database fails. */
export async function startCoordinator(asked: CoordinatorOptions): Promise<RunningCoordinator> {
  const { database: given, log, journalRoot = null } = asked;
  const watch = watchOwn(asked);
  const { now } = watch;
  const options = { ...asked, now };
  let presence: CoordinatorPresence | null = null;
  let ground: Ground | null = null;
  let own: ServerPool | null = null;
  try {
    await requireRightClock(options, watch);
    const reviewed = await reviewDatabase({ pool: given.pool, journalRoot, log, now });
    const { port } = options.config.listen;
    // A port that anybody gets names nobody.
    const name = `${hostname()}:${port === 0 ? `process ${process.pid}` : port}`;
    presence = await CoordinatorPresence.begin(given.pool, {
      ...{ ...(options.nowMs === undefined ? {} : { nowMs: options.nowMs }), name, log },
      sessions: (session) => {
        const sessions = createPool(withSessionName(given.url, session), 2);
        sessions.options.connectionTimeoutMillis = presenceConnectMs;
        return sessions;
      },
    });
    // All that this coordinator writes goes through sessions that are ended when another takes over from it.
    const url = withSessionName(given.url, presence.sessionName);
    const pool = createPool(url, given.pool.options.max);
    own = pool;
    const database = { ...given, url, pool };
    await migrate(database);
    void presence.replaced.then(() => {
      // Over a way that was cut, what waits for an answer would wait for minutes.
      if (pool instanceof ServerPool) pool.sever("Connection terminated: others have taken over");
    });
    ground = await layGround({ ...options, database }, { presence, watch, reviewed });
    const rooms = await openRooms(ground);
    const running = await goToWork(ground, rooms, given.url);
    return {
      ...running,
      stop: async () => {
        await running.stop();
        await pool.end();
      },
    };
  } catch (error) {
    await presence?.end();
    await ground?.others.stop();
    await watch.close();
    await own?.end();
    throw error;
  }
}

type Ground = Awaited<ReturnType<typeof layGround>>;
type Rooms = Awaited<ReturnType<typeof openRooms>>;

/** What all rooms stand on: the stores, the settings in force, and what the database knows, read into memory. */
async function layGround(
  options: CoordinatorOptions,
  {
    presence,
    watch,
    reviewed,
  }: {
    readonly presence: CoordinatorPresence;
    readonly watch: OwnWatch;
    readonly reviewed: ReviewedDatabase;
  },
) {
  const { database, log, version, snapshotFolder = null } = options;
  const { clock, now } = watch;
  const { pool } = database;
  const timekeeper = new Timekeeper(
    log,
    () => presence.leads,
    (error) => watch.database.note(error),
    {
      isRight: () => (clock?.fault ?? null) === null,
      mayForget: () => clock?.isProven ?? true,
    },
  );
  const health = new OwnHealth({
    ...{ database: watch.database, now, nowMs: () => performance.now(), lead: presence },
    jobs: () => timekeeper.reports(),
    eventLoop: () => watch.eventLoop.delay,
    journal: () => journal.fault(),
    dns: () => resolver.silent,
    certificate: () => watch.certificate?.facts() ?? null,
    closed: () => fleet.closed,
    clock: () => clock?.fault ?? null,
  });
  const resolver = new WatchedResolver(createNameResolver({ servers: options.config.resolvers }), now);
  const policies = await policyDuties({ pool, config: options.config, timekeeper, log, now });
  const { config } = policies;
  const state = new CoordinatorState();
  const budget = new DayBudget();
  const counters = new Counters();
  /** Crawlers are spoken to through the gateway, which opens last: until then nobody is online. */
  const fleet = new FleetLine();
  const idle = idleCrawlers({
    ...{ reads: createDueWorkReads(pool), timekeeper, state, now },
    send: (...sent) => fleet.send(...sent),
  });
  const knownUrls = new KnownUrls();
  const stores = {
    subnets: createSubnetStore(pool),
    crawlers: createCrawlerStore(pool, presence.number),
    delegations: createDelegationStore(pool, () => heldBySomebody(fleet, state, config), presence.number),
    frontier: createFrontierStore(pool, (hosts) => idle.noteHosts(hosts)),
    results: createResultStore(pool, knownUrls),
    identities: createIdentityStore(pool),
    signingKeys: createSigningKeyStore(pool),
  };
  const incidents = new IncidentLog({
    store: createIncidentStore(pool),
    log,
    onNoted: (kind) => counters.incident(kind),
  });
  const snapshots =
    snapshotFolder === null
      ? noSnapshots
      : createTreeSnapshots({ folder: snapshotFolder, schema: database.schema, log });
  const heartbeats = new Heartbeats(stores.crawlers);
  const { keepReleases = async () => {}, registryHost = null, socketPath = null } = options;
  const journal = journalDuties({
    ...{ pool, reviewed, timekeeper, log, now },
    keepDays: () => config.retention.recordDays,
  });
  const rooms: LateRooms = {};
  const others: Sharing = sharing({
    ...{ ...stores, pool, presence, fleet, state, budget, timekeeper, log, now },
    denied: () => rooms.probing!.denied,
    queue: () => rooms.delegations!.queue,
    readAnew: async () => {
      await readAnew({ ...stores, state, hasWitnesses: config.trust.witnesses }, now());
      await rooms.probing!.restore();
    },
  });
  const ground = {
    ...{
      database,
      pool,
      log,
      version,
      now,
      startedAt: now(),
      presence,
      keepReleases,
      registryHost,
      socketPath,
    },
    ...{
      timekeeper,
      policies,
      config,
      journal,
      state,
      budget,
      counters,
      fleet,
      idle,
      heartbeats,
      stores,
      incidents,
    },
    ...{ knownUrls, snapshots, watch, health },
    /** What other coordinators on this database are told and tell; and what it needs of rooms that are opened later. */
    ...{ others, late: rooms },
    resolver,
    settling: new FleetSettling({
      expectedCrawlers: config.delegation.expectedCrawlers,
      settleMs: config.delegation.settleSeconds * 1000,
    }),
  };
  // Whatever others change while it is read is heard, and read once more.
  await others.listen();
  const { witnesses: hasWitnesses } = config.trust;
  await readWhatIsKnown({ ...stores, state, budget, snapshots, hasWitnesses }, now());
  return ground;
}

interface LateRooms {
  probing?: Probing;
  delegations?: Delegating;
}

/** The rooms of the crawl, those first that others need; last the gateway, which hands them what crawlers say. */
async function openRooms(ground: Ground) {
  const { pool, config, log, now, version, timekeeper, state, counters, incidents, fleet, stores } = ground;
  const shared = { pool, timekeeper, state, log, now };
  const online = () => fleet.online();
  const here = () => fleet.here();
  const leads = () => ground.presence.leads;
  const send: FleetLine["send"] = (crawlerId, message) => fleet.send(crawlerId, message);
  const own = {
    online: here,
    send,
    refuse: (...refused: Parameters<FleetLine["refuse"]>) => fleet.refuse(...refused),
  };
  const { others } = ground;
  const request: DelegationQueue["request"] = (subnetIds, cause) => others.request(subnetIds, cause);
  const room = watchRoom(state, ground.budget);
  const withoutRoom = () => room(now());

  const recalibration = new RecalibrationQueue(
    { results: stores.results, state, now },
    following(() => recalibrationRule(config)),
  );
  const probing = startProbing(
    {
      ...{ fleet, state, delegations: stores.delegations, now, request },
      isHere: (crawlerId) => fleet.isHere(crawlerId),
    },
    config,
  );
  ground.late.probing = probing;
  await probing.restore();
  const delegations = delegating(
    {
      ...{ ...shared, probing, resolver: ground.resolver, counters, leads, excluded: withoutRoom },
      delegations: recalibration.explaining(stores.delegations),
      fetchTimes: async (asked) => await recalibration.fetchTimes(asked),
    },
    config,
  );
  ground.late.delegations = delegations;
  const trusting = trustDuties(
    {
      ...{ ...shared, ...stores, incidents, version, online, request },
      denied: () => probing.denied,
      onAsked: (crawlerId) => ground.idle.note(crawlerId),
    },
    config,
  );
  const recrawls = recrawlDuties({ pool, timekeeper, log, now }, config);
  const paces = paceDuties(
    {
      ...{ timekeeper, log, now, online: here, send },
      paces: createPaceStore(pool, partitionOf(config.domainSets)),
      isIdle: (crawlerId) => ground.idle.isIdle(crawlerId),
    },
    config,
  );
  const outbox = outboxDuties(
    { pool, timekeeper, counters, incidents, log, now },
    outboxSettings(config, { known: ground.knownUrls }),
  );
  const watching = overviewDuties(
    {
      ...{ ...shared, ...stores, ...probing, counters, withoutRoom, version, request },
      random: Math.random,
      isSettled: () => ground.settling.settled,
      health: ground.health,
    },
    config,
  );
  const { metrics } = counters;
  const alerts = alertDuties(
    {
      ...{ pool, timekeeper, resolver: ground.resolver, metrics, health: ground.health },
      ...{ facts: watching.alertFacts, leads, log, now, nowMs: () => performance.now() },
    },
    config,
  );
  const releases = releaseDuties({ pool, timekeeper, metrics, log, now, online: here, send });
  const links = linkCoordinators({ pool, timekeeper, metrics: metrics.coordinators, log, now }, config);
  const keys = keyDuties(
    { ...stores, gateway: own, secrets: randomSecrets, timekeeper, log, now },
    { signingKeyDays: () => config.signingKeyDays },
  );
  const moves = moveDuties({
    ...{ ...shared, ...stores, gateway: own },
    mayBegin: (crawlerId) => fleet.isHere(crawlerId) || (leads() && !fleet.online().includes(crawlerId)),
    others: async () => ground.presence.others.size,
  });
  const optOuts = optOutDuties({ pool, gateway: own, timekeeper, config, log, now });
  const nowMs = () => performance.now();
  const mayForget = () => ground.watch.clock?.isProven ?? true;
  const retention = retentionDuties({ pool, timekeeper, log, now, nowMs, mayForget }, config);

  const handlers = fleetMessageHandlers(
    {
      ...{
        ...stores,
        ...trusting.stores,
        state,
        budget: ground.budget,
        idle: ground.idle,
        heartbeats: ground.heartbeats,
        counters,
        incidents,
        moves,
        log,
        now,
      },
      hasGoneBack: () => ground.journal.hasGoneBack(),
      ...(ground.watch.clock === null ? {} : { clock: ground.watch.clock }),
      isOwnAddress,
      ...{ secrets: randomSecrets, recrawlPlan: recrawls.plan, send },
      onHello: (crawlerId, hello) => {
        for (const one of [probing, trusting, releases, others]) one.onHello(crawlerId, hello);
      },
      onWelcome: (crawlerId) => {
        for (const one of [keys, paces, optOuts, others]) one.onWelcome(crawlerId);
      },
      onLeft: (crawlerId) => others.onLeave(crawlerId),
      onPeerReport: (crawlerId) => others.onPeerReport(crawlerId),
      addresses: () => others.addresses(),
      isCrowded: () => fleet.isCrowded(),
      onFetched: async (batch) => {
        recalibration.note(batch);
        delegations.note(batch);
        await probing.onResults(batch);
      },
      onReleaseReport: (crawlerId, report) => releases.onReport(crawlerId, report),
      onPosted: () => outbox.onPosted(),
      onDraining: () => timekeeper.hurry(jobs.handOver),
      onFleetChange: () => {
        timekeeper.hurry(jobs.measurePeers, bunchMs);
        timekeeper.hurry(jobs.settle, bunchMs);
      },
    },
    config,
  );
  const gateway = new CrawlerGateway({
    settings: {
      ...gatewaySettings(config),
      postgresVersion: await postgresVersion(pool),
      fleetSize: () => state.crawlers.length,
    },
    ...{ handlers, log, zlibSync: await loadZlibSync() },
    onFault: (error) => ground.watch.database.note(error),
  });
  fleet.open(gateway);
  return {
    ...{ recalibration, probing, delegations, trusting, recrawls, paces, watching, releases, links, keys },
    ...{ moves, optOuts, outbox, retention, gateway, withoutRoom, alerts },
  };
}

/** From here on the database's notices are followed, the pages and crawlers are answered, and the clock runs. */
async function goToWork(
  ground: Ground,
  rooms: Rooms,
  /** For a process beside this one, which only reads. */
  databaseUrl: string,
): Promise<RunningCoordinator> {
  const { config, log, now, timekeeper, presence, incidents } = ground;
  const followers = [ground.policies, rooms.releases, rooms.optOuts, rooms.links];
  const following = await followDatabase(ground, rooms);
  const { pool } = ground.database;
  const index = searchIndex({ pool, databaseUrl, settings: config.search, log });
  try {
    // Who is invited by the pages that listen now is to find a release.
    await ground.keepReleases(now(), pool);
    await rooms.retention.begin();
    const { web, url } = await openWebServer({
      ...{ ...ground, metrics: ground.counters.metrics, live: liveOf(ground, rooms), searchIndex: index },
      attach: (server) => rooms.gateway.attach(server),
      beforeAnswer: ground.journal.catchUp,
      certificate: ground.watch.certificate,
      readiness: readinessReads(ground.watch.database.pool),
      succession: succession(jobPorts(ground, rooms), config),
      access: (pool) => accessOver(pool, anonymousMayRead(ground.config), now, log),
      rooms: pagesOfRooms,
    });
    try {
      const { moves, recrawls, trusting } = rooms;
      await Promise.all([...followers, moves, recrawls, trusting].map((one) => one.start()));
      await ground.others.start();
      await ground.journal.start();
      await ground.others.stateAddress(config.publicUrl ?? url);
    } catch (error) {
      await timekeeper.stop();
      await Promise.all(followers.map((one) => one.stop()));
      await web.close();
      throw error;
    }
    scheduleJobs(ground, rooms, index);
    rooms.gateway.serve(null);
    log.info({ webUrl: url, subnets: ground.state.tree.size }, "coordinator listens");
    return {
      webUrl: url,
      hasToStartOver: Promise.race([ground.journal.wentBack, presence.replaced]),
      stop: async () => {
        await index.stop();
        await following.stop();
        await ground.journal.stop();
        await ground.snapshots.idle();
        const roundsGivenUp = rooms.delegations.stop();
        rooms.probing.close();
        ground.others.close();
        await timekeeper.stop();
        await rooms.gateway.close();
        await rooms.watching.stop();
        await Promise.all(followers.map((one) => one.stop()));
        await incidents.flush();
        await roundsGivenUp;
        await presence.end();
        await ground.others.stop();
        await web.close();
        await ground.watch.close();
        log.info({}, "coordinator stopped");
      },
    };
  } catch (error) {
    // A start that fails leaves nothing behind.
    await index.stop();
    await following.stop();
    throw error;
  }
}

/** What others write into the database: operators' changes of the fleet, and imports of the registry. */
async function followDatabase(ground: Ground, { keys, moves }: Rooms): Promise<{ stop(): Promise<void> }> {
  const { pool, stores, state, timekeeper, snapshots, log } = ground;
  const onChange = async () => void (await Promise.all([keys.review(), moves.review()]));
  const fleet = await followFleet({ ...stores, state, timekeeper, log, onChange });
  try {
    const ensureRoots = async () => await ensureRootSubnets(pool);
    const registry = await followRegistry({ ...stores, ensureRoots, state, log, snapshots });
    return {
      stop: async () => {
        await registry.stop();
        await fleet.stop();
      },
    };
  } catch (error) {
    await fleet.stop();
    throw error;
  }
}

/** What the coordinator's memory knows at any moment, for the pages and the gauges. */
function liveOf(ground: Ground, { gateway, delegations }: Rooms): () => LiveState {
  return () => liveState({ ...ground, gateway, queue: delegations.queue });
}

function jobPorts(ground: Ground, { probing, delegations, recrawls, ...rooms }: Rooms): JobPorts {
  const { fleet, stores, others } = ground;
  const queue: JobPorts["queue"] = {
    fill: async () => await delegations.queue.fill(),
    isUnderWay: (subnetId) => delegations.queue.isUnderWay(subnetId),
    request: (subnetIds, cause) => others.request(subnetIds, cause),
  };
  return {
    ...{ ...ground, ...stores, queue, recrawlDays: recrawls.meanDays },
    ...{ denied: probing.denied, anycast: probing.anycast },
    ...{ recalibration: rooms.recalibration, withoutRoom: rooms.withoutRoom },
    gateway: {
      ...probing.fleet,
      here: () => fleet.here(),
      send: (crawlerId, message) => fleet.send(crawlerId, message),
    },
  };
}

/** What is done by the clock, room by room. */
function scheduleJobs(ground: Ground, rooms: Rooms, index: IndexKeeper): void {
  const { config, database, pool, timekeeper, incidents, counters, keepReleases, log, now } = ground;
  const { delegations, gateway } = rooms;
  const ports = jobPorts(ground, rooms);
  const nowMs = () => performance.now();
  scheduleFrontier(ports, config);
  scheduleWakeUps(timekeeper, ground.idle);
  scheduleDelegation(ports, config);
  scheduleBalance(ports, config);
  const own = [
    rooms.keys,
    rooms.watching,
    rooms.alerts,
    delegations,
    rooms.paces,
    rooms.outbox,
    rooms.retention,
  ];
  for (const room of own) room.start();
  scheduleReports({ pool, timekeeper, log, now });
  const clockIsRight = scheduleUpkeep({ pool, incidents, timekeeper, log, now });
  ground.watch.onClock.call = (isRight, jumpedMs) => {
    timekeeper.hurry("note-alerts");
    if (isRight) clockIsRight(jumpedMs);
  };
  scheduleRanking({ database, timekeeper, log, now });
  scheduleChannels(pool, timekeeper, now);
  scheduleSubmissions(pool, timekeeper, now);
  const duty = { pool, timekeeper, now, nowMs };
  scheduleSearch(duty);
  scheduleSites(duty);
  scheduleHostWorths({ ...duty, order: () => frontierOrder(config.frontier) });
  scheduleChanges({ ...duty, keepDays: () => config.changes.keepDays });
  timekeeper.every("serve-crawlers", serveMs, async () => {
    const { presence, others } = ground;
    // Where crawlers have nowhere else to go, they stay while the database is away.
    const isFit = () => presence.reachesDatabase || (presence.isPresent && others.addresses().length < 2);
    // A process that stood still itself, and that nobody has replaced, looks before it sends anybody away.
    if (!isFit()) await within(confirmMs, presence.look()).catch(() => {});
    gateway.serve(isFit() ? null : standingAside);
  });
  timekeeper.every("write-heartbeats", heartbeatsMs, async () => await ground.heartbeats.write());
  timekeeper.every("keep-releases", keepReleasesMs, async () => await keepReleases(now(), pool));
  const live = liveOf(ground, rooms);
  const { certificate } = ground.watch;
  timekeeper.every("look-at-certificate", certificateMs, async () => {
    const before = certificate?.facts().notTaken ?? null;
    const isRenewed = certificate?.look(now()) ?? false;
    const { file, endsMs, notTaken } = certificate?.facts() ?? { notTaken: null };
    if (isRenewed) log.info({ file, ends: endsMs }, "a renewed certificate is shown");
    else if (notTaken !== null && notTaken !== before)
      log.warn({ file, words: notTaken }, "what lies in the certificate's file is not shown");
  });
  timekeeper.every("observe", observeMs, async () => {
    counters.observe(live(), gateway.counts().refusals);
    observeOwn(counters.metrics, ground.health, ground.presence.leads);
    observeIndex(counters.metrics, index.state());
  });
}
