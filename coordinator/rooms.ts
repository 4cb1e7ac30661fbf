/** Makes the coordinator's rooms, dependencies first, and connects them. */

import { jobs } from "#core/scheduler";
import { within } from "#core/timer-ms";
import { following } from "./core/policy.ts";
import { scheduleChanges } from "./crawl/changes/start.ts";
import { scheduleChannels } from "./crawl/channels/start.ts";
import { linkCoordinators } from "./crawl/federation/start.ts";
import { createPaceStore } from "./crawl/frontier/due-work-store.ts";
import { outboxSettings } from "./crawl/frontier/link-outbox-store.ts";
import { frontierOrder } from "./crawl/frontier/order/strategies.ts";
import {
  type FrontierJobPorts,
  outboxDuties,
  paceDuties,
  scheduleFrontier,
  scheduleHostWorths,
  scheduleWakeUps,
} from "./crawl/frontier/start.ts";
import { recrawlDuties } from "./crawl/recrawl/start.ts";
import { scheduleSubmissions } from "./crawl/submissions/start.ts";
import { trustDuties } from "./crawl/trust/start.ts";
import { scheduleRanking } from "./crawl/web-graph/start.ts";
import { type Ground, isOwnAddress } from "./ground.ts";
import { followRegistry } from "./load-state.ts";
import { refreshCrawlers } from "./place/balance/presence.ts";
import { type BalanceJobPorts, followFleet, scheduleBalance } from "./place/balance/start.ts";
import { watchRoom } from "./place/crawlers/crawler.ts";
import { keyDuties, moveDuties } from "./place/crawlers/start.ts";
import { recalibrationRule } from "./place/delegation/delegation-settings.ts";
import { RecalibrationQueue } from "./place/delegation/recalibration/recalibrate.ts";
import { delegating, scheduleDelegation, startProbing } from "./place/delegation/start.ts";
import { partitionOf } from "./place/domain-sets/partition.ts";
import { ensureRootSubnets } from "./place/subnets/subnet-store.ts";
import { type CrawlerEvents, standingAside } from "./run/gateway/gateway-settings.ts";
import { fleetMessageHandlers } from "./run/gateway/start.ts";
import { optOutDuties } from "./run/opt-outs/start.ts";
import { releaseDuties } from "./run/releases/start.ts";
import { alertDuties } from "./tell/overview/alerts/start.ts";
import type { LiveState } from "./tell/overview/overview-ask.ts";
import {
  liveState,
  observeIndex,
  observeOwn,
  overviewDuties,
  scheduleUpkeep,
} from "./tell/overview/start.ts";
import { scheduleReports } from "./tell/reports/start.ts";
import { scheduleSites } from "./tell/sites/start.ts";
import { retentionDuties } from "./tell/storage/start.ts";
import { randomSecrets } from "./web/secrets.ts";

/** How often this coordinator checks whether to serve crawlers here or to send them to others. */
const serveMs = 500;
const confirmMs = 1000;
/** How often heartbeats are written. */
const heartbeatsMs = 1000;
const observeMs = 2000;
/** How often the certificate is checked for renewal. */
const certificateMs = 60_000;
/** How often the crawler release's expiry is checked. Releases are signed for months, so this may be rare. */
const keepReleasesMs = 6 * 3_600_000;
/** After a start, crawlers arrive within a short time of each other and share one measurement. */
const bunchMs = 1000;

export interface OpenRooms {
  readonly rooms: readonly Room[];
  /** Shared by jobs of several rooms and the pages. */
  readonly jobPorts: BalanceJobPorts;
  /** The coordinator's live state, for pages and gauges. */
  readonly live: () => LiveState;
}

/** Opens the rooms. From then on, the gateway passes crawlers' messages to them. */
export function openRooms(ground: Ground): OpenRooms {
  const { pool, config, log, now, version, timekeeper, state, counters, incidents, fleet, stores } = ground;
  const { others, resolver, health, settling, idle, denied, anycast, budget } = ground;
  const nowMs = () => performance.now();
  const shared = { pool, timekeeper, state, log, now };
  const duty = { pool, timekeeper, now, nowMs };
  const leads = () => ground.presence.leads;
  const send: typeof fleet.send = (...sent) => fleet.send(...sent);
  const own = {
    send,
    online: () => fleet.here(),
    refuse: (...to: Parameters<typeof fleet.refuse>) => fleet.refuse(...to),
  };
  const request: BalanceJobPorts["queue"]["request"] = (subnetIds, cause) => others.request(subnetIds, cause);
  const room = watchRoom(state, budget);
  const withoutRoom = () => room(now());

  const recalibration = new RecalibrationQueue(
    { results: stores.results, state, now },
    following(() => recalibrationRule(config)),
  );
  const probing = startProbing(
    {
      ...{ fleet, state, denied, anycast, delegations: stores.delegations, now, request },
      isHere: (crawlerId) => fleet.isHere(crawlerId),
    },
    config,
  );
  const delegations = delegating(
    {
      ...{ ...shared, probing, resolver, counters, leads, excluded: withoutRoom },
      delegations: recalibration.explaining(stores.delegations),
      fetchTimes: async (asked) => await recalibration.fetchTimes(asked),
    },
    config,
  );
  const trusting = trustDuties(
    {
      ...{ ...shared, ...stores, incidents, version, online: own.online, request, denied: () => denied },
      onAsked: (crawlerId) => idle.note(crawlerId),
    },
    config,
  );
  const recrawls = recrawlDuties(shared, config);
  const paces = paceDuties(
    {
      ...{ timekeeper, log, now, online: own.online, send },
      paces: createPaceStore(pool, partitionOf(config.domainSets)),
      isIdle: (crawlerId) => idle.isIdle(crawlerId),
    },
    config,
  );
  const outbox = outboxDuties(
    { ...shared, counters, incidents },
    outboxSettings(config, { known: ground.knownUrls }),
  );
  const watching = overviewDuties(
    {
      ...{ ...shared, ...stores, ...probing, counters, withoutRoom, version, request, health },
      random: Math.random,
      isSettled: () => settling.settled,
    },
    config,
  );
  const { metrics } = counters;
  const alerts = alertDuties(
    {
      ...{ pool, timekeeper, resolver, metrics, health, leads, log, now, nowMs },
      facts: watching.alertFacts,
    },
    config,
  );
  const keys = keyDuties(
    { ...stores, gateway: own, secrets: randomSecrets, timekeeper, log, now },
    { signingKeyDays: () => config.signingKeyDays },
  );
  const moves = moveDuties({
    ...{ ...shared, ...stores, gateway: own },
    refresh: async () => await refreshCrawlers({ crawlers: stores.crawlers, state }),
    mayBegin: (crawlerId) => fleet.isHere(crawlerId) || (leads() && !fleet.online().includes(crawlerId)),
    others: async () => ground.presence.others.size,
  });
  const mayForget = () => ground.watch.clock?.isProven ?? true;
  const jobPorts: BalanceJobPorts & FrontierJobPorts = {
    ...{ ...ground, ...stores, recrawlDays: recrawls.meanDays, recalibration, withoutRoom },
    queue: {
      fill: async () => await delegations.queue.fill(),
      isUnderWay: (subnetId) => delegations.queue.isUnderWay(subnetId),
      request,
    },
    gateway: { ...probing.fleet, here: own.online, send },
  };
  health.watchSearch(() => ground.searchEngine.fault());
  const live = () => liveState({ ...ground, queue: delegations.queue });
  const rooms: Room[] = [
    ground.policies,
    { onFetched: (batch) => recalibration.note(batch) },
    delegations,
    probing,
    trusting,
    releaseDuties({ pool, timekeeper, metrics, log, now, online: own.online, send }),
    keys,
    paces,
    optOutDuties({ pool, gateway: own, timekeeper, config, log, now }),
    linkCoordinators({ pool, timekeeper, metrics: metrics.coordinators, log, now }, config),
    // The ground stops it, after this coordinator has announced its end.
    { ...others, start: async () => await others.start(delegations.queue), stop: async () => {} },
    outbox,
    moves,
    recrawls,
    watching,
    alerts,
    retentionDuties({ ...duty, log, mayForget }, config),
    {
      onArrived: () => {
        timekeeper.hurry(jobs.measurePeers, bunchMs);
        timekeeper.hurry(jobs.settle, bunchMs);
      },
      onLeft: (_, forGood) => {
        if (forGood) timekeeper.hurry(jobs.handOver);
      },
      start: () => {
        scheduleFrontier(jobPorts, config);
        scheduleWakeUps(timekeeper, idle);
        scheduleDelegation(jobPorts, config);
        scheduleBalance(jobPorts, config);
        scheduleReports({ pool, timekeeper, log, now });
        scheduleRanking({ database: ground.database, timekeeper, log, now });
        scheduleChannels(pool, timekeeper, now);
        scheduleSubmissions(pool, timekeeper, now);
        scheduleSites(duty);
        scheduleHostWorths({ ...duty, order: () => frontierOrder(config.frontier) });
        scheduleChanges({ ...duty, keepDays: () => config.changes.keepDays });
        const clockIsRight = scheduleUpkeep({ ...shared, incidents });
        ground.watch.onClock((isRight, jumpedMs) => {
          timekeeper.hurry("note-alerts");
          if (isRight) clockIsRight(jumpedMs);
        });
      },
    },
    ownRoom(ground, live),
  ];
  ground.gateway.handle(
    fleetMessageHandlers(
      {
        ...{
          ...ground,
          ...stores,
          ...trusting.stores,
          moves,
          rooms,
          send,
          secrets: randomSecrets,
          isOwnAddress,
        },
        recrawlPlan: recrawls.plan,
        hasGoneBack: () => ground.journal.hasGoneBack(),
        ...(ground.watch.clock === null ? {} : { clock: ground.watch.clock }),
        addresses: () => others.addresses(),
        isCrowded: () => fleet.isCrowded(),
      },
      config,
    ),
  );
  const followers = followDatabase(
    ground,
    async () => void (await Promise.all([keys.review(), moves.review()])),
  );
  return { rooms: [followers, ...rooms], jobPorts, live };
}

/** Follows registry imports and operators' changes of the fleet. */
function followDatabase(ground: Ground, onChange: () => Promise<void>): Room {
  const { pool, stores, state, timekeeper, snapshots, log } = ground;
  const followed: { stop(): Promise<void> }[] = [];
  return {
    begin: async () => {
      followed.push(await followFleet({ ...stores, state, timekeeper, log, onChange }));
      const ensureRoots = async () => await ensureRootSubnets(pool);
      followed.push(await followRegistry({ ...stores, ensureRoots, state, log, snapshots }));
    },
    stop: async () => {
      for (const one of followed.reverse()) await one.stop();
      await snapshots.idle();
    },
  };
}

/** Serves crawlers while the database answers, and reports the coordinator's health. */
function ownRoom(ground: Ground, live: () => LiveState): Room {
  const { timekeeper, gateway, presence, others, counters, pool, keepReleases, log, now, searchEngine } =
    ground;
  const { certificate } = ground.watch;
  const lookAtCertificate = async () => {
    const before = certificate?.facts().notTaken ?? null;
    const isRenewed = certificate?.look(now()) ?? false;
    const { file, endsMs, notTaken } = certificate?.facts() ?? { notTaken: null };
    if (isRenewed) log.info({ file, ends: endsMs }, "a renewed certificate is shown");
    else if (notTaken !== null && notTaken !== before)
      log.warn({ file, words: notTaken }, "what lies in the certificate's file is not shown");
  };
  return {
    // The release must exist before the pages invite anybody.
    begin: async () => await keepReleases(now(), pool),
    start: () => {
      searchEngine.start();
      const serve = async () => {
        // Without another coordinator, crawlers stay while the database is away.
        const isFit = () => presence.reachesDatabase || (presence.isPresent && others.addresses().length < 2);
        // After a pause of its own process, the coordinator first checks whether it was replaced.
        if (!isFit()) await within(confirmMs, presence.look()).catch(() => {});
        gateway.serve(isFit() ? null : standingAside);
      };
      timekeeper.every("serve-crawlers", serveMs, serve, { onEach: true });
      const always = { onEach: true, whateverTheClock: true } as const;
      const writeHeartbeats = async () => await ground.heartbeats.write();
      timekeeper.every("write-heartbeats", heartbeatsMs, writeHeartbeats, always);
      timekeeper.every("keep-releases", keepReleasesMs, async () => await keepReleases(now(), pool));
      timekeeper.every("look-at-certificate", certificateMs, lookAtCertificate);
      const observe = async () => {
        counters.observe(live(), gateway.counts().refusals);
        observeOwn(counters.metrics, ground.health, presence.leads);
        observeIndex(counters.metrics, searchEngine.state());
      };
      timekeeper.every("observe", observeMs, observe, always);
    },
    stop: async () => await searchEngine.stop(),
  };
}

/** What a room provides to the coordinator. The methods, all optional, are called in this order. */
export interface Room extends CrawlerEvents {
  /** Runs before any request is answered. A failure prevents the start. */
  begin?(): Promise<void>;
  /** Starts following the database and the room's scheduled jobs. */
  start?(): void | Promise<void>;
  /** Cancels work in progress. */
  close?(): void;
  /** Resolves when nothing of the room runs any more. It is called even if the room was never started. */
  stop?(): Promise<void>;
}
