/**
 * Wires the delegation of subnets, hosts, parts of subnets, and hosts excluded by domain sets. All measure with one
 * fleet under the same rules.
 */

import type { Pool } from "pg";
import { systemClock } from "#core/clock";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import { seededRandom } from "#core/random";
import { jobs, type Timekeeper } from "#core/scheduler";
import { urlKeyOf } from "#core/url-key";
import type { CrawlerHello } from "#protocol/messages";
import { following } from "../../core/policy.ts";
import type { Fleet, ResultBatch } from "../crawlers/crawler.ts";
import { createDomainSetStore, type DomainSetStore } from "../domain-sets/domain-set-store.ts";
import { type AnycastRanges, watchedFleet } from "./anycast.ts";
import { AnycastCandidates } from "./anycast-check.ts";
import type { FinishedRound } from "./delegation.ts";
import {
  type FinerSettings,
  type ProbingSettings,
  queueSettings,
  type RecalibrationSettings,
  type RoundSettings,
} from "./delegation-settings.ts";
import { type DeniedTargets, strandedSubnets } from "./denied-targets.ts";
import { PeerTurns } from "./measure-peers.ts";
import {
  type DelegateBySetsPorts,
  delegateBySets,
  HostLanguages,
  partitionsOfFleet,
} from "./overrides/assign-by-sets.ts";
import { type DelegateHostsPorts, delegateHosts, NameWatch } from "./overrides/hosts.ts";
import { createMisplacedHostStore } from "./overrides/misplaced-host-store.ts";
import type { FinerRound } from "./overrides/override.ts";
import { createFinerDelegationStore, type FinerDelegationStore } from "./overrides/override-store.ts";
import { replaceFiner, reviewFiner } from "./overrides/review.ts";
import { LeafWatch, splitLeaves } from "./overrides/split-leaves.ts";
import { ProbeBudget, pacedFleet } from "./probe-pacing.ts";
import { FirstFetches } from "./probe-round.ts";
import { type DelegationJobPorts, DelegationQueue, type QueuePorts, RestingSubnets } from "./queue.ts";
import { DelegationRefresh } from "./recalibration/ageing.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

interface DelegatingPorts extends Pick<QueuePorts, "state" | "delegations" | "now" | "fetchTimes"> {
  readonly pool: Pool;
  readonly probing: Probing;
  readonly resolver: NameResolver;
  readonly timekeeper: Timekeeper;
  readonly counters: { round(round: FinishedRound): void };
  /** Crawlers that cannot be given anything now. */
  readonly excluded: () => ReadonlySet<CrawlerId>;
  /** Whether this coordinator delegates. If omitted, there is no other coordinator. */
  readonly leads?: () => boolean;
  readonly log: Log;
}

export function delegating(
  { pool, probing, resolver, timekeeper, counters, ...given }: DelegatingPorts,
  config: RoundSettings & {
    readonly finer: FinerSettings;
    readonly domainSets: readonly string[];
    readonly departureSeconds: number;
  },
) {
  const rounds = { ...given, ...probing };
  const random = () => seededRandom(config.delegation.seed);
  const queue = new DelegationQueue(
    {
      ...rounds,
      random: random(),
      onDecided: (round) => counters.round(round),
      ...(given.leads === undefined ? {} : { mayRun: given.leads }),
    },
    following(() => queueSettings(config)),
  );
  let isStopping = false;
  let ended = Promise.resolve();
  const finerRounds = () => ({
    ...rounds,
    resolver,
    finer: createFinerDelegationStore(pool),
    random: random(),
    settings: queueSettings(config).round,
    onDecided: (round: FinerRound) => counters.round({ ...round, subnetId: round.withinSubnetId }),
    isStopping: () => isStopping,
  });
  const finer = finerDuties(finerRounds, config, given);
  const bySets = domainSetDuties(
    () => ({
      ...finerRounds(),
      misplacedHosts: createMisplacedHostStore(pool),
      request: (subnetIds, cause) => queue.request(subnetIds, cause),
    }),
    { ...given, timekeeper, domainSets: createDomainSetStore(pool) },
    config,
  );
  return {
    queue,
    /** Keeps what results show of hosts for the next pass. */
    onFetched: (batch: ResultBatch) => {
      finer.note(batch);
      bySets.note(batch);
    },
    /** Starts the timers. The queue has its own. */
    start: () => {
      timekeeper.every("watch-hosts-and-leaves", config.finer.everySeconds * 1000, finer.pass, {
        onEach: true,
      });
      timekeeper.every(delegateBySetsDuty, everyMs, bySets.pass);
    },
    close: () => {
      isStopping = true;
      ended = queue.stop();
    },
    stop: async () => await ended,
  };
}

// Periodic work of finer delegations: GeoDNS hosts, parts of leaves that measure apart, their reviews, and departed
// crawlers.

type FinerDutyPorts = DelegateHostsPorts & { readonly finer: FinerDelegationStore };

function finerDuties(
  portsNow: () => Omit<FinerDutyPorts, "names">,
  config: { readonly departureSeconds: number },
  { state, log, leads = () => true, now }: Pick<DelegatingPorts, "state" | "log" | "leads" | "now">,
) {
  const names = new NameWatch();
  const leaves = new LeafWatch();
  const since = now();
  let { generation } = state;
  return {
    note: (batch: ResultBatch) => {
      names.note(batch);
      leaves.note(batch, (address) => state.subnetOf(address));
    },
    pass: async (): Promise<void> => {
      const ports = portsNow();
      const isLeading = leads();
      if (isLeading) await replaceLost(ports);
      // Only the coordinator connected to a host's crawler sees its fetches.
      for (const host of await delegateHosts({ ...ports, names })) {
        log.info({ host }, "a host resolves differently by place and is delegated by itself");
      }
      for (const subnetId of await splitLeaves({ ...ports, leaves })) {
        log.info({ subnetId }, "a leaf measures apart, its parts have changed");
      }
      const ended = isLeading ? (await reviewFiner(ports)).ended : 0;
      if (ended > 0) log.info({ ended }, "hosts or parts go with their subnets again");
    },
  };

  async function replaceLost(ports: Omit<FinerDutyPorts, "names">): Promise<void> {
    const full = ports.excluded();
    const online = () => ports.fleet.online().filter((crawlerId) => !full.has(crawlerId));
    const departureMs = config.departureSeconds * 1000;
    const moved = await replaceFiner({ ...ports, online }, { departureMs, since, now: now() });
    if (moved > 0) log.warn({ moved }, "hosts and parts of crawlers that are gone went to others");
    if (state.generation !== generation) await ports.finer.endOutdated(now());
    generation = state.generation;
  }
}

// Wires what probe rounds need besides stores and fleet: probe pacing, denied targets, anycast ranges and first fetches, with
// the hooks for hellos and results.

interface ProbingPorts {
  readonly fleet: Fleet;
  /** False if the crawler's results go to another coordinator. If omitted, there is no other coordinator. */
  readonly isHere?: (crawlerId: CrawlerId) => boolean;
  readonly state: CoordinatorState;
  readonly delegations: Pick<DelegationStore, "subnetsOfHosts">;
  readonly now: () => Date;
  readonly denied: DeniedTargets;
  readonly anycast: AnycastRanges;
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
}

type Probing = ReturnType<typeof startProbing>;

/** Maximum wait. An idle crawler asks for work every two seconds, and a site may be slow. */
const firstFetchMs = 30_000;

export function startProbing(ports: ProbingPorts, config: { readonly probe: ProbingSettings }) {
  const { state, denied, anycast } = ports;
  const budget = new ProbeBudget(following(() => config.probe.pace));
  const subnetOf = (address: string) => state.subnetOf(address);
  const firstFetches = new FirstFetches(
    { clock: systemClock, subnetOf, ...(ports.isHere === undefined ? {} : { isHere: ports.isHere }) },
    firstFetchMs,
  );
  return {
    /** All probes go through this paced fleet. */
    fleet: watchedFleet(pacedFleet(ports.fleet, budget), {
      state,
      ranges: anycast,
      nowMs: () => ports.now().getTime(),
      request: (subnetId) => ports.request([subnetId], "review"),
    }),
    denied,
    anycast,
    firstFetches,
    /** Subnets that the arriving crawler denies as a whole, or cannot reach, go to others. */
    onHello: (crawlerId: CrawlerId, hello: CrawlerHello) => {
      denied.setList(crawlerId, hello.denies);
      const isWilling = (hello.denies?.networks.length ?? 0) === 0 && hello.capabilities.ipv6;
      if (isWilling) return;
      const lost = state.subnetsOf(crawlerId).filter((subnetId) => {
        if (denied.deniesSubnet(crawlerId, subnetId)) return true;
        const range = state.tree.get(subnetId)?.range;
        return range !== undefined && denied.deniesWhole(crawlerId, range);
      });
      ports.request(lost, "denied");
    },
    /** Stored results may complete waiting rounds, and hosts that the crawler may not fetch go to others. */
    onFetched: async (batch: ResultBatch): Promise<void> => {
      firstFetches.note(batch);
      const subnetIds = await ports.delegations.subnetsOfHosts(refusedHosts(batch));
      const nowMs = ports.now().getTime();
      for (const subnetId of subnetIds) denied.noteRefusal(batch.crawlerId, subnetId, nowMs);
      const owned = subnetIds.filter((subnetId) => state.ownerOf(subnetId) === batch.crawlerId);
      ports.request(owned, "denied");
    },
    close: () => budget.close(),
  };
}

/** Hosts that the crawler's partner does not let it fetch. */
function refusedHosts({ results }: ResultBatch) {
  const refused = results.filter(
    ({ result: { outcome } }) => outcome.type === "failed" && outcome.code === "not-allowed",
  );
  const keys = refused.map(({ result }) => urlKeyOf(result.url));
  return [...new Set(keys.flatMap((key) => (typeof key === "string" ? [] : [key.hostHash])))];
}

/** Unmeasured subnets probed at a time, those with the most fetches first: 18,000 an hour. */
const unmeasuredBatch = 50;
const retryUnmeasuredMs = 10_000;
/** Pause of a subnet from which nothing was learned. It grows every time. */
const unmeasuredRestMs = 300_000;

const lookForAnycastMs = 60_000;

/** Old decisions probed again per minute: 43,200 a day. */
const refreshRounds = 30;

/** Reports crawlers whose own network turned slow. That is no route's fault, so nothing is probed. */
function tellSlowCrawlers({ recalibration, log }: DelegationJobPorts): void {
  for (const { crawlerId, factor, hosts, kind } of recalibration.takeSlowCrawlers()) {
    const times = Math.round(factor * 100) / 100;
    log.warn({ crawlerId, times, hosts, kind }, "everything that a crawler fetches turned slow: its network");
  }
}

// Periodically decides undelegated subnets, and decides old and slow ones again.

/** Searching for waiting subnets scans all due hosts, so while there are none it may use a twentieth of the time. */
const looksShare = 20;
const oftenestMs = 250;
const seldomestMs = 10_000;

interface ScheduleSettings {
  readonly recalibration: RecalibrationSettings;
  readonly recrawl: { readonly intervalHours: number };
}

export function scheduleDelegation(ports: DelegationJobPorts, config: ScheduleSettings): void {
  const { timekeeper } = ports;
  let inVainMs = 0;
  const delegateMs = () => Math.min(seldomestMs, Math.max(oftenestMs, looksShare * inVainMs));
  timekeeper.every(
    jobs.delegate,
    delegateMs,
    async () => {
      const online = ports.gateway.online();
      const beganMs = performance.now();
      const isSettled = ports.settling.isSettled(online, ports.state, beganMs);
      const started = isSettled ? await ports.queue.fill() : 0;
      inVainMs = started > 0 ? 0 : performance.now() - beganMs;
    },
    { onEach: true },
  );
  const peers = new PeerTurns(ports);
  timekeeper.every(
    jobs.measurePeers,
    () => peers.everyMs,
    async () => peers.next(),
    { onEach: true },
  );
  const recalibrateMs = () => config.recalibration.everySeconds * 1000;
  timekeeper.every(
    "recalibrate",
    recalibrateMs,
    async () => {
      const found = await ports.recalibration.findSlow();
      // Anycast ranges were assigned by load, and a round would assign them by load again.
      const slow = found.filter((subnetId) => !ports.anycast?.has(subnetId));
      ports.queue.request(slow, "slow-fetches");
      if (slow.length > 0) ports.log.info({ subnets: slow.length }, "fetches turned slow, probing again");
      tellSlowCrawlers(ports);
    },
    { onEach: true },
  );
  const refresh = new DelegationRefresh(
    ports,
    following(() => ({ days: config.recalibration.refreshDays, roundsPerTurn: refreshRounds })),
  );
  timekeeper.every("refresh-delegations", 60_000, async () => {
    ports.queue.request(await refresh.next(ports.now()), "refresh");
  });
  if (ports.anycast) {
    const { state, anycast: ranges } = ports;
    const online = () => ports.gateway.online();
    const candidates = new AnycastCandidates({ state, ranges, online, nowMs: () => ports.now().getTime() });
    timekeeper.every("look-for-anycast", lookForAnycastMs, async () => {
      ports.queue.request(candidates.next(), "review");
    });
  }
  const resting = new RestingSubnets(unmeasuredRestMs);
  ports.state.watch((subnetId) => {
    if (subnetId !== null && ports.state.delegationOf(subnetId)?.measured) resting.forget(subnetId);
  });
  timekeeper.every("retry-unmeasured", retryUnmeasuredMs, async () => {
    const nowMs = ports.now().getTime();
    const turn = Math.floor(nowMs / retryUnmeasuredMs);
    ports.queue.request(strandedSubnets(ports, { most: unmeasuredBatch, turn }), "denied");
    // A lone crawler cannot be compared.
    if (ports.gateway.online().length < 2) return;
    const { recrawlDays = () => config.recrawl.intervalHours / 24 } = ports;
    const asked = { dueBy: ports.now(), except: resting.asleep(nowMs), recrawlDays: recrawlDays() };
    const due = await ports.delegations.unmeasured({ ...asked, limit: unmeasuredBatch });
    for (const { subnetId } of due) resting.rest(subnetId, nowMs);
    ports.queue.request(
      due.map(({ subnetId }) => subnetId),
      "retry",
    );
  });
}

// Periodic work of domain sets: hosts that their subnet's crawler may not have go to the nearest that may, and hosts'
// languages are updated from their pages.

const delegateBySetsDuty = "delegate-by-domain-sets";

const everyMs = 5000;

function domainSetDuties(
  portsNow: () => Omit<DelegateBySetsPorts, "partitionOf">,
  given: Pick<DelegatingPorts, "state" | "log" | "timekeeper"> & { readonly domainSets: DomainSetStore },
  config: { readonly domainSets: readonly string[] },
) {
  const { state, log, timekeeper } = given;
  const partitionOf = partitionsOfFleet(state, config);
  const languages = new HostLanguages(given.domainSets);
  const asksLanguages = () =>
    state.crawlers.some(({ crawlerId }) =>
      partitionOf(crawlerId).some((layer) => layer.some(({ languages: asked }) => asked.size > 0)),
    );
  return {
    note: (batch: ResultBatch) => languages.note(hostsWithPages(batch)),
    pass: async (): Promise<void> => {
      await languages.pass({ all: asksLanguages() });
      const { moved, ended } = await delegateBySets({ ...portsNow(), partitionOf });
      if (moved + ended === 0) return;
      log.info({ moved, ended }, "hosts went where their domain sets are");
      timekeeper.hurry(delegateBySetsDuty);
    },
  };
}

function hostsWithPages({ results }: ResultBatch): HostHash[] {
  const keys = results.flatMap(({ result }) => (result.page === null ? [] : [urlKeyOf(result.url)]));
  return keys.flatMap((key) => (typeof key === "string" ? [] : [key.hostHash]));
}
