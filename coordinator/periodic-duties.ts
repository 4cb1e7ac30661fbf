/** What the coordinator does by the clock, and how often. */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorConfig } from "./config.ts";
import type { Counters } from "./counters.ts";
import type { CoordinatorState } from "./flows/coordinator-state.ts";
import { departedCrawlers } from "./flows/crawler-presence.ts";
import type { DelegationQueue } from "./flows/delegation-queue.ts";
import type { FleetSettling } from "./flows/fleet-settling.ts";
import type {
  CrawlerStore,
  DelegationStore,
  FrontierStore,
  NameResolver,
  ResultStore,
} from "./flows/ports.ts";
import { PutOffMoves } from "./flows/put-off-moves.ts";
import { rebalanceLoad } from "./flows/rebalance-load.ts";
import type { RecalibrationQueue } from "./flows/recalibrate-delegations.ts";
import { DelegationRefresh } from "./flows/refresh-delegations.ts";
import { replaceCrawler } from "./flows/replace-crawler.ts";
import { resolveHosts } from "./flows/resolve-hosts.ts";
import type { Log } from "./log.ts";
import type { CrawlerGateway } from "./net/crawler-gateway.ts";
import type { Timekeeper } from "./timekeeper.ts";

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
  readonly log: Log;
  readonly now: () => Date;
}

/** The names by which a duty can be hurried. */
export const duties = {
  resolveHosts: "resolve-hosts",
  delegate: "delegate-subnets",
  measurePeers: "measure-crawlers",
  rebalance: "rebalance-load",
} as const;

const resolveBatch = 200;
/** How often a fleet that has not changed measures itself anew. */
const measurePeersMs = 600_000;
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
  timekeeper.every(duties.measurePeers, 60_000, async () => sendPeers(ports, "unmeasured"));
  timekeeper.every("measure-crawlers-again", measurePeersMs, async () => sendPeers(ports, "all"));
  timekeeper.every("return-expired-leases", 5000, async () => {
    const leases = await ports.frontier.returnExpired(ports.now());
    ports.counters.leases("expired", leases);
    if (leases > 0) ports.log.warn({ leases }, "leases ran out and returned");
  });
  timekeeper.every("reopen-refused", 60_000, async () => await ports.frontier.reopenRefused(ports.now()));
  const departures = { since: ports.now(), orphansTold: new Map<CrawlerId, number>() };
  timekeeper.every("replace-departed-crawlers", 5000, async () => {
    await replaceDeparted(ports, departures, config);
  });
  const putOff = new PutOffMoves();
  timekeeper.every(duties.rebalance, config.balance.everySeconds * 1000, async () => {
    const settings = { ...config.balance, probe: config.probe };
    const moved = await rebalanceLoad({ ...ports, fleet: ports.gateway, putOff }, settings, ports.now());
    ports.counters.moves("overload", moved.length);
    if (moved.length > 0) ports.log.info({ subnets: moved.length }, "load was rebalanced");
  });
  timekeeper.every("recalibrate", config.recalibration.everySeconds * 1000, async () => {
    const slow = await ports.recalibration.findSlow();
    ports.queue.request(slow, "slow-fetches");
    if (slow.length > 0) ports.log.info({ subnets: slow.length }, "fetches turned slow, probing again");
    tellSlowCrawlers(ports);
  });
  const refresh = new DelegationRefresh(ports.delegations, {
    days: config.recalibration.refreshDays,
    roundsPerTurn: refreshRounds,
  });
  timekeeper.every("refresh-delegations", 60_000, async () => {
    ports.queue.request(await refresh.next(ports.now()), "refresh");
  });
  timekeeper.every("retry-unmeasured", retryUnmeasuredMs, async () => {
    ports.queue.request(await ports.delegations.unmeasured(unmeasuredBatch, ports.now()), "retry");
  });
}

/** Tells every connected crawler whom to measure: those it has not measured yet, or all. */
function sendPeers(ports: DutyPorts, which: "unmeasured" | "all"): void {
  const online = ports.gateway.online();
  const addresses = new Map<CrawlerId, string>();
  for (const crawlerId of online) {
    const address = ports.state.crawler(crawlerId)?.address;
    if (address) addresses.set(crawlerId, address);
  }
  for (const crawlerId of online) {
    const peers = [...addresses]
      .filter(([peer]) => peer !== crawlerId)
      .filter(([peer]) => which === "all" || !ports.state.hasMeasured(crawlerId, peer))
      .slice(0, 1000)
      .map(([peer, address]) => ({ crawlerId: peer, address, port: 443 }));
    if (peers.length > 0) ports.gateway.send(crawlerId, { type: "coordinator:peers", peers });
  }
}

/** Everything that a crawler fetches turned slow: its own network, and no route's; nothing is probed for that. */
function tellSlowCrawlers({ recalibration, log }: DutyPorts): void {
  for (const { crawlerId, factor, hosts, kind } of recalibration.takeSlowCrawlers()) {
    const times = Math.round(factor * 100) / 100;
    log.warn({ crawlerId, times, hosts, kind }, "everything that a crawler fetches turned slow: its network");
  }
}

interface Departures {
  readonly since: Date;
  /** How many subnets of each departed crawler nobody could take; told once, since it may stay so for long. */
  readonly orphansTold: Map<CrawlerId, number>;
}

async function replaceDeparted(
  ports: DutyPorts,
  { since, orphansTold }: Departures,
  config: CoordinatorConfig,
): Promise<void> {
  const departureMs = config.departureSeconds * 1000;
  const gone = departedCrawlers(ports.state, { departureMs, since, now: ports.now() });
  const full = ports.withoutRoom();
  const online = () => ports.gateway.online().filter((crawlerId) => !full.has(crawlerId));
  if (online().length === 0) return;
  for (const crawlerId of gone) {
    const replaced = await replaceCrawler(crawlerId, { ...ports, online }, ports.now());
    ports.queue.request(replaced.orphans, "crawler-left");
    const { moved, orphans, returnedLeases } = replaced;
    ports.counters.moves("crawler-left", moved.length);
    const isOld = moved.length + returnedLeases === 0 && orphansTold.get(crawlerId) === orphans.length;
    orphansTold.set(crawlerId, orphans.length);
    if (isOld) continue;
    const counts = { crawlerId, moved: moved.length, orphans: orphans.length, returnedLeases };
    ports.log.warn(counts, "a crawler is gone, its subnets go to others");
  }
}
