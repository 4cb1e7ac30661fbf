/**
 * The foundation of all rooms, which is made first: the coordinator's number in the database and its session there, the
 * settings in force, the stores, the gateway, and the parts of the database that are kept in memory.
 */
import { hostname, networkInterfaces, uptime } from "node:os";
import { EventLoopWatch } from "#core/clock";
import { ClockError } from "#core/errors";
import { IncidentLog } from "#core/incidents";
import { createNameResolver, WatchedResolver } from "#core/name-resolver";
import { doubtedAfterMs, doubtfulStart, type MachineClock, OwnClock } from "#core/own-clock";
import { Timekeeper } from "#core/scheduler";
import { migrate } from "#db/migrate";
import { createPool, type Database } from "#db/server-database";
import { ServerPool } from "#db/server-pool";
import { withSessionName } from "#db/server-url";
import { isLoopbackHost } from "#protocol/invitation";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import type { CoordinatorOptions } from "./config.ts";
import { createDueWorkReads } from "./crawl/frontier/due-work-store.ts";
import { createFrontierStore } from "./crawl/frontier/frontier-store.ts";
import { KnownUrls } from "./crawl/frontier/known-urls.ts";
import { idleCrawlers } from "./crawl/frontier/start.ts";
import { createResultStore } from "./crawl/results/result-store.ts";
import { DatabaseWatch } from "./database/database-watch.ts";
import { readAnew, readWhatIsKnown } from "./load-state.ts";
import { CoordinatorPresence } from "./place/crawlers/coordinator-presence-store.ts";
import { DayBudget } from "./place/crawlers/crawler.ts";
import { createCrawlerStore } from "./place/crawlers/crawler-store.ts";
import { createIdentityStore } from "./place/crawlers/identity-store.ts";
import { Heartbeats } from "./place/crawlers/sessions.ts";
import { createSigningKeyStore } from "./place/crawlers/signing-key-store.ts";
import { AnycastRanges } from "./place/delegation/anycast.ts";
import { DeniedTargets } from "./place/delegation/denied-targets.ts";
import { FleetSettling } from "./place/delegation/measure-peers.ts";
import { heldBySomebody, heldHosts } from "./place/delegation/overrides/assign-by-sets.ts";
import { CoordinatorState } from "./place/delegation/state.ts";
import { createDelegationStore } from "./place/delegation/store.ts";
import { createSubnetStore } from "./place/subnets/subnet-store.ts";
import { createTreeSnapshots, noSnapshots } from "./place/subnets/tree-snapshot-store.ts";
import { CrawlerGateway } from "./run/gateway/gateway.ts";
import { gatewaySettings } from "./run/gateway/gateway-settings.ts";
import { WholeFleet } from "./run/gateway/whole-fleet.ts";
import { journalDuties } from "./run/journal/start.ts";
import { reviewDatabase } from "./run/journal/went-back-store.ts";
import { policyDuties } from "./run/settings/start.ts";
import { sharing } from "./run/sharing/start.ts";
import { createIncidentStore } from "./tell/fleet/incident-store.ts";
import { lastMinute } from "./tell/overview/figure-store.ts";
import { Counters } from "./tell/overview/metrics.ts";
import { OwnHealth } from "./tell/overview/own-health.ts";
import { makeSearchEngine } from "./tell/search/start.ts";
import { OwnCertificate } from "./web/own-certificate.ts";

/** A connection attempt that takes longer counts as failed. */
const presenceConnectMs = 3000;

export type Ground = Awaited<ReturnType<typeof layGround>>;

/** Rejects without leaving anything behind when the clock is wrong or the database fails. */
export async function layGround(options: CoordinatorOptions) {
  const watch = watchOwn(options);
  let place: Place | null = null;
  let ground: Awaited<ReturnType<typeof makeGround>> | null = null;
  const end = async () => {
    await place?.presence.end();
    await ground?.others.stop();
    await place?.database.pool.end();
    await watch.close();
  };
  try {
    await requireRightClock({ ...options, now: watch.now }, watch);
    place = await takePlace(options, watch);
    await migrate(place.database);
    ground = await makeGround(options, { ...place, watch });
    // Listening starts first, so that rows changed during the reading are read again.
    await ground.others.listen();
    const hasWitnesses = ground.config.trust.witnesses;
    await readWhatIsKnown({ ...ground, ...ground.stores, hasWitnesses }, ground.now());
    await ground.readAnycast();
    return { ...ground, end };
  } catch (error) {
    await end();
    throw error;
  }
}

type Place = Awaited<ReturnType<typeof takePlace>>;

/** The coordinator's number in this database, with sessions that end when another takes the number over. */
async function takePlace(options: CoordinatorOptions, { now }: OwnWatch) {
  const { database: given, journalRoot = null, config, nowMs, log } = options;
  const reviewed = await reviewDatabase({ pool: given.pool, journalRoot, log, now });
  const { port } = config.listen;
  const name = `${hostname()}:${port === 0 ? `process ${process.pid}` : port}`;
  const presence = await CoordinatorPresence.begin(given.pool, {
    ...{ ...(nowMs === undefined ? {} : { nowMs }), name, log },
    sessions: (session) => {
      const sessions = createPool(withSessionName(given.url, session), 2);
      sessions.options.connectionTimeoutMillis = presenceConnectMs;
      return sessions;
    },
  });
  const url = withSessionName(given.url, presence.sessionName);
  const pool = createPool(url, given.pool.options.max);
  void presence.replaced.then(() => {
    // On a severed connection, waiting for answers would take minutes.
    if (pool instanceof ServerPool) pool.sever("Connection terminated: others have taken over");
  });
  const database: Database = { ...given, url, pool };
  return { reviewed, presence, database };
}

async function makeGround(options: CoordinatorOptions, own: Place & { readonly watch: OwnWatch }) {
  const { log, version, snapshotFolder = null, keepReleases = async () => {} } = options;
  const { registryHost = null, socketPath = null } = options;
  const { presence, database, watch } = own;
  const { clock, now } = watch;
  const { pool } = database;
  const timekeeper = new Timekeeper(
    log,
    () => presence.leads,
    (error) => watch.database.note(error),
    { isRight: () => (clock?.fault ?? null) === null, mayForget: () => clock?.isProven ?? true },
  );
  const policies = await policyDuties({ pool, config: options.config, timekeeper, log, now });
  const { config } = policies;
  const state = new CoordinatorState();
  const gateway = new CrawlerGateway({
    settings: {
      ...gatewaySettings(config),
      fleetSize: () => state.crawlers.length,
    },
    ...{ log, zlibSync: await loadZlibSync() },
    onFault: (error) => watch.database.note(error),
  });
  const fleet = new WholeFleet(gateway);
  const resolver = new WatchedResolver(createNameResolver({ servers: config.resolvers }), now);
  const journal = journalDuties({
    ...{ pool, reviewed: own.reviewed, timekeeper, log, now },
    keepDays: () => config.retention.recordDays,
  });
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
  const idle = idleCrawlers({
    ...{ reads: createDueWorkReads(pool), timekeeper, state, now },
    send: (...sent) => fleet.send(...sent),
  });
  const knownUrls = new KnownUrls();
  const searchEngine = makeSearchEngine({
    ...{ database: options.database, settings: config.search, folder: options.searchFolder ?? null, log },
    ...{ authorization: options.searchAuthorization ?? null, leads: () => presence.leads },
  });
  const stores = {
    subnets: createSubnetStore(pool),
    crawlers: createCrawlerStore(pool, presence.number),
    delegations: createDelegationStore(pool, () => heldBySomebody(fleet, state, config), presence.number),
    frontier: createFrontierStore(pool, (hosts) => idle.noteHosts(hosts)),
    results: createResultStore(pool, knownUrls, searchEngine.texts),
    identities: createIdentityStore(pool),
    signingKeys: createSigningKeyStore(pool),
  };
  const counters = new Counters();
  const onNoted = (kind: string) => counters.incident(kind);
  const incidents = new IncidentLog({ store: createIncidentStore(pool), log, onNoted });
  const snapshots =
    snapshotFolder === null
      ? noSnapshots
      : createTreeSnapshots({ folder: snapshotFolder, schema: database.schema, log });
  const { delegations } = stores;
  const [budget, anycast] = [new DayBudget(), new AnycastRanges()];
  const denied = new DeniedTargets(heldHosts(state, config), state);
  /** Anycast ranges found earlier or by other coordinators. */
  const readAnycast = async () =>
    anycast.restore(
      await delegations.anycastSubnets(),
      (subnetId) => state.placementOf(subnetId),
      await delegations.notAnycast(),
    );
  /** Exchanges notices with the other coordinators of this database. */
  const others = sharing({
    ...{ ...stores, pool, presence, fleet, state, budget, denied, timekeeper, log, now },
    readAnew: async () => {
      await readAnew({ ...stores, state, hasWitnesses: config.trust.witnesses }, now());
      await readAnycast();
    },
  });
  const settling = new FleetSettling({
    expectedCrawlers: config.delegation.expectedCrawlers,
    settleMs: config.delegation.settleSeconds * 1000,
  });
  return {
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
      gateway,
      fleet,
      idle,
      stores,
      incidents,
    },
    ...{
      knownUrls,
      searchEngine,
      snapshots,
      watch,
      health,
      resolver,
      denied,
      anycast,
      readAnycast,
      others,
      settling,
    },
    heartbeats: new Heartbeats(stores.crawlers),
  };
}

type OwnWatch = ReturnType<typeof watchOwn>;

/** Watches database, clock, event loop and certificate. Uses no connection of the pool, which may be exhausted. */
function watchOwn({
  database: { url },
  config: { tls },
  log,
  machineClock = systemMachineClock,
  ...given
}: CoordinatorOptions) {
  const clockListeners: ((isRight: boolean, jumpedMs: number) => void)[] = [];
  const clock = given.now
    ? null
    : new OwnClock(machineClock, (fault, jumpedMs) => {
        if (fault !== null) log.error({ words: fault.words }, "this coordinator's clock is wrong");
        else log.info({ jumpedMs }, "the clock is right again, and is followed");
        for (const listener of clockListeners) listener(fault === null, jumpedMs);
      });
  const now = given.now ?? clock!.now;
  const onTime = (atMs: number, tookMs: number) => clock?.hearDatabase(atMs, tookMs);
  const database = new DatabaseWatch(url, { now, nowMs: () => performance.now(), log, onTime });
  const eventLoop = new EventLoopWatch();
  const certificate = tls === null ? null : new OwnCertificate(tls);
  database.start();
  return {
    ...{ clock, now },
    /** The listener is called when the clock turns out wrong, and when it is right again after a jump. */
    onClock: (listener: (isRight: boolean, jumpedMs: number) => void) => void clockListeners.push(listener),
    database,
    eventLoop,
    certificate,
    close: async () => {
      eventLoop.close();
      await database.close();
    },
  };
}

const systemMachineClock: MachineClock = {
  wall: () => new Date(),
  steadyMs: () => performance.now(),
  uptimeMs: () => uptime() * 1000,
};

/** Whether the address is one of this machine, so that its peer uses the same clock. */
export function isOwnAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, "");
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return isLoopbackHost(plain) || own.some((one) => one.address === plain);
}

/**
 * Must be called before anything is written. Throws ClockError; a supervisor then restarts the coordinator once the clock is
 * right.
 */
async function requireRightClock(
  { database, clockIsRight = false, log, now }: CoordinatorOptions & { readonly now: () => Date },
  watch: OwnWatch,
): Promise<void> {
  await watch.database.look();
  const fault = watch.clock?.fault ?? null;
  if (fault !== null) throw new ClockError(`${fault.words}: let NTP set it (timedatectl), then start again`);
  if (watch.clock === null || clockIsRight) return;
  const last = await lastMinute(database.pool);
  const doubt = doubtfulStart(now(), last);
  if (doubt !== null) throw new ClockError(doubt);
  if (last === null || now().getTime() - last.getTime() < doubtedAfterMs) return;
  watch.clock.doubt();
  log.warn(
    { lastWritten: last },
    "the database was last written days ago: if this machine's clock is right, nothing is to be done; nothing " +
      "that is kept for days is deleted for a day, or until crawlers agree",
  );
}
