/** What the coordinator does by the clock, and how often. */

import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { IncidentLog } from "#core/incidents";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import type { Timekeeper } from "#core/scheduler";
import { scheduleFleetDuties } from "./balance/start.ts";
import { scheduleChangeDuties } from "./changes/start.ts";
import { scheduleChannelDuties } from "./channels/start.ts";
import type { CoordinatorConfig, CoordinatorOptions } from "./config.ts";
import type { CoordinatorPresence } from "./crawlers/coordinator-presence-store.ts";
import type { CrawlerStore } from "./crawlers/crawler.ts";
import type { AnycastRanges } from "./delegation/anycast.ts";
import type { DelegationStore } from "./delegation/delegation.ts";
import type { DeniedTargets } from "./delegation/denied-targets.ts";
import { type FleetSettling, PeerTurns, peerTurnMs } from "./delegation/measure-peers.ts";
import type { DelegationQueue } from "./delegation/queue.ts";
import { DelegationRefresh, type RecalibrationQueue } from "./delegation/recalibration/recalibrate.ts";
import type { CoordinatorState } from "./delegation/state.ts";
import type { FrontierStore } from "./frontier/frontier.ts";
import { frontierOrder } from "./frontier/order/strategies.ts";
import { resolveHosts } from "./frontier/resolve-hosts.ts";
import { scheduleHostWorths } from "./frontier/start.ts";
import { forgetTurns } from "./frontier/turn-store.ts";
import type { CrawlerGateway } from "./gateway/gateway.ts";
import { following } from "./live-config.ts";
import type { Counters } from "./overview/counters.ts";
import type { ResultStore } from "./results/arrived-result.ts";
import { forgetSeals } from "./results/result-writes.ts";
import { scheduleSearchDuties } from "./search/start.ts";
import { scheduleRanking } from "./web-graph/start.ts";

export interface DutyPorts {
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly state: CoordinatorState;
  readonly gateway: Pick<CrawlerGateway, "online" | "probe" | "send">;
  readonly queue: Pick<DelegationQueue, "fill" | "request">;
  readonly settling: FleetSettling;
  readonly recalibration: RecalibrationQueue;
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly frontier: FrontierStore;
  readonly results: ResultStore;
  readonly resolver: NameResolver;
  readonly counters: Counters;
  /** Crawlers that get no new subnet now. */
  readonly withoutRoom: () => ReadonlySet<CrawlerId>;
  /** Mean time from one fetch of a page to its next; left out, the fixed interval. */
  readonly recrawlDays?: () => number;
  /** Without it, nobody denies anything. */
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
  /** Left out, no other coordinator shares the database. */
  readonly presence?: CoordinatorPresence;
  readonly log: Log;
  readonly now: () => Date;
}

/** The names by which a duty can be hurried. */
export const duties = {
  resolveHosts: "resolve-hosts",
  delegate: "delegate-subnets",
  measurePeers: "measure-crawlers",
} as const;

const resolveBatch = 200;
const unmeasuredBatch = 50;

/** How often it is looked whether a subnet without an answer is due; each waits longer every time. */
const retryUnmeasuredMs = 30_000;

/** Old decisions that are probed again in a minute: 43,200 a day. */
const refreshRounds = 30;

export function scheduleDuties(ports: DutyPorts, config: CoordinatorConfig): void {
  const { timekeeper } = ports;
  timekeeper.every(duties.resolveHosts, 500, async () => {
    const settings = { batch: resolveBatch, allowSpecialPurpose: config.allowSpecialPurpose };
    const subnetOf = (address: string) => ports.state.subnetOf(address);
    const settled = await resolveHosts({ ...ports, subnetOf }, settings, ports.now);
    if (settled > 0) timekeeper.hurry(duties.delegate);
    if (settled === resolveBatch) timekeeper.hurry(duties.resolveHosts);
  });
  timekeeper.every(duties.delegate, 250, async () => {
    const online = ports.gateway.online();
    if (ports.settling.isSettled(online, ports.state, performance.now())) await ports.queue.fill();
  });
  const peers = new PeerTurns(ports);
  timekeeper.every(duties.measurePeers, peerTurnMs, async () => peers.next());
  timekeeper.every("return-expired-leases", 5000, async () => {
    const leases = await ports.frontier.returnExpired(ports.now());
    ports.counters.leases("expired", leases);
    if (leases > 0) ports.log.warn({ leases }, "leases ran out and returned");
  });
  timekeeper.every("reopen-refused", 60_000, async () => await ports.frontier.reopenRefused(ports.now()));
  scheduleFleetDuties(ports, config);
  const recalibrateMs = () => config.recalibration.everySeconds * 1000;
  timekeeper.every("recalibrate", recalibrateMs, async () => {
    const found = await ports.recalibration.findSlow();
    // Anycast ranges were given away by load, and a round would do so again.
    const slow = found.filter((subnetId) => !ports.anycast?.has(subnetId));
    ports.queue.request(slow, "slow-fetches");
    if (slow.length > 0) ports.log.info({ subnets: slow.length }, "fetches turned slow, probing again");
    tellSlowCrawlers(ports);
  });
  const refresh = new DelegationRefresh(
    ports.delegations,
    following(() => ({ days: config.recalibration.refreshDays, roundsPerTurn: refreshRounds })),
  );
  timekeeper.every("refresh-delegations", 60_000, async () => {
    ports.queue.request(await refresh.next(ports.now()), "refresh");
  });
  timekeeper.every("retry-unmeasured", retryUnmeasuredMs, async () => {
    ports.queue.request(await ports.delegations.unmeasured(unmeasuredBatch, ports.now()), "retry");
  });
}

/** Everything that a crawler fetches turned slow: its own network, and no route's; nothing is probed for that. */
function tellSlowCrawlers({ recalibration, log }: DutyPorts): void {
  for (const { crawlerId, factor, hosts, kind } of recalibration.takeSlowCrawlers()) {
    const times = Math.round(factor * 100) / 100;
    log.warn({ crawlerId, times, hosts, kind }, "everything that a crawler fetches turned slow: its network");
  }
}

// What keeps the database's tables in order by the clock: the index for search, ranks, channels, changes, old rows.

export function scheduleTableDuties(
  ports: Pick<CoordinatorOptions, "database" | "log"> & {
    readonly incidents: IncidentLog;
    readonly timekeeper: Timekeeper;
    readonly now: () => Date;
  },
  config: Pick<CoordinatorConfig, "changes" | "frontier">,
): void {
  const { database, incidents, timekeeper, log, now } = ports;
  const { pool } = database;
  const nowMs = () => performance.now();
  scheduleSearchDuties({ pool, timekeeper, now, nowMs });
  scheduleUpkeep({ pool, incidents, timekeeper, now });
  scheduleRanking({ database, timekeeper, log, now });
  scheduleHostWorths({ pool, timekeeper, order: () => frontierOrder(config.frontier), now, nowMs });
  scheduleChannelDuties(pool, timekeeper, now);
  scheduleChangeDuties({ pool, timekeeper, now, keepDays: () => config.changes.keepDays, nowMs });
}

// What is forgotten in time: incidents, seals and turns that nobody will ask about any more.

interface UpkeepParts {
  readonly pool: Pool;
  readonly incidents: IncidentLog;
  readonly timekeeper: Timekeeper;
  readonly now: () => Date;
}

const forgetMs = 3_600_000;

function scheduleUpkeep({ pool, incidents, timekeeper, now }: UpkeepParts): void {
  timekeeper.every("forget-what-is-old", forgetMs, async () => {
    await incidents.forgetOld(now());
    await forgetSeals(pool, now());
    await forgetTurns(pool, now());
  });
}
