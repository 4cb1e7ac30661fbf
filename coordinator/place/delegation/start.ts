/**
 * What decides whose everything is: rounds for subnets, for hosts and parts of subnets, and for hosts that domain sets
 * keep from their subnet's crawler. All of them measure with one fleet, under the same rules and beside each other.
 */

import type { Pool } from "pg";
import { systemClock } from "#core/clock";
import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, HostHash, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { NameResolver } from "#core/name-resolver";
import { seededRandom } from "#core/random";
import { jobs, type Timekeeper } from "#core/scheduler";
import { urlKeyOf } from "#core/url-key";
import type { CrawlerHello } from "#protocol/messages";
import { following } from "../../core/live-settings.ts";
import type { Fleet } from "../crawlers/crawler.ts";
import type { ResultBatch } from "../crawlers/result-batch.ts";
import { createDomainSetStore, type DomainSetStore } from "../domain-sets/domain-set-store.ts";
import { type AnycastRanges, watchedFleet } from "./anycast.ts";
import { AnycastCandidates } from "./anycast-candidates.ts";
import type { FinishedRound } from "./delegation.ts";
import {
  type FinerSettings,
  type ProbingSettings,
  queueSettings,
  type RecalibrationSettings,
  type RoundSettings,
} from "./delegation-settings.ts";
import { type DeniedTargets, strandedSubnets } from "./denied-targets.ts";
import type { DelegationJobPorts } from "./job-ports.ts";
import { PeerTurns } from "./measure-peers.ts";
import {
  type DelegateBySetsPorts,
  delegateBySets,
  HostLanguages,
  partitionsOfFleet,
} from "./overrides/assign-by-sets.ts";
import { type DelegateHostsPorts, delegateHosts, NameWatch } from "./overrides/hosts.ts";
import { LeafWatch } from "./overrides/leaf-watch.ts";
import { createMisplacedHostStore } from "./overrides/misplaced-host-store.ts";
import type { FinerRound } from "./overrides/override.ts";
import type { FinerDelegationStore } from "./overrides/override-store.ts";
import { createFinerDelegationStore } from "./overrides/override-store.ts";
import { replaceFiner, reviewFiner } from "./overrides/review.ts";
import { splitLeaves } from "./overrides/split-leaves.ts";
import { ProbeBudget, pacedFleet } from "./probe-pacing.ts";
import { FirstFetches } from "./probe-round.ts";
import { DelegationQueue, type QueuePorts, RestingSubnets } from "./queue.ts";
import { DelegationRefresh } from "./recalibration/refresh.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

interface DelegatingPorts extends Pick<QueuePorts, "state" | "delegations" | "now" | "fetchTimes"> {
  readonly pool: Pool;
  readonly probing: Probing;
  readonly resolver: NameResolver;
  readonly timekeeper: Timekeeper;
  readonly counters: { round(round: FinishedRound): void };
  /** Crawlers that may be given nothing now. */
  readonly excluded: () => ReadonlySet<CrawlerId>;
  /** Whether this coordinator decides whose subnets are; left out, there is no other. */
  readonly leads?: () => boolean;
  readonly log: Log;
}

export type Delegating = ReturnType<typeof delegating>;

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
    /** Results came in: what they tell of hosts is kept for the next pass. */
    onFetched: (batch: ResultBatch) => {
      finer.note(batch);
      bySets.note(batch);
    },
    /** By the clock from now on; the queue has a duty of its own. */
    start: () => {
      timekeeper.every("watch-hosts-and-leaves", config.finer.everySeconds * 1000, finer.pass, {
        onEach: true,
      });
      timekeeper.every(delegateBySetsDuty, everyMs, bySets.pass);
    },
    /** Rounds under way are given up, and none begins any more. */
    close: () => {
      isStopping = true;
      ended = queue.stop();
    },
    stop: async () => await ended,
  };
}

// What the coordinator does by the clock for delegations finer than a subnet: hosts whose names resolve
// differently by place, parts of leaves that measure apart, their reviews, and their crawlers' departures.

type FinerDutyPorts = DelegateHostsPorts & { readonly finer: FinerDelegationStore };

/** `portsNow`: the settings of rounds are as they are now. */
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
    /** One pass over all that is due. */
    pass: async (): Promise<void> => {
      const ports = portsNow();
      const isLeading = leads();
      if (isLeading) await replaceLost(ports);
      // What a host's fetches tell, its crawler's coordinator alone hears.
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

// What probe rounds need besides stores and the fleet, wired: the pace at which probes go out, who denies what,
// which ranges are anycast, and the fetches that rounds wait for. Also what of a hello or a result concerns them.

interface ProbingPorts {
  readonly fleet: Fleet;
  /** False: its results go to another coordinator; left out, there is none. */
  readonly isHere?: (crawlerId: CrawlerId) => boolean;
  readonly state: CoordinatorState;
  readonly delegations: Pick<DelegationStore, "subnetsOfHosts">;
  readonly now: () => Date;
  readonly denied: DeniedTargets;
  readonly anycast: AnycastRanges;
  /** Asks for new rounds. */
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
}

export type Probing = ReturnType<typeof startProbing>;

/** An idle crawler asks for work every two seconds, and a site may take its time. */
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
    /** Whoever probes does it through this: each probe waits for its turn. */
    fleet: watchedFleet(pacedFleet(ports.fleet, budget), {
      state,
      ranges: anycast,
      nowMs: () => ports.now().getTime(),
      request: (subnetId) => ports.request([subnetId], "review"),
    }),
    denied,
    anycast,
    firstFetches,
    /** A crawler arrived: subnets of it that it now denies as a whole, or cannot reach, go to others. */
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
    /** Results are stored: rounds may wait for one, and what its crawler may not fetch goes to another. */
    onFetched: async (batch: ResultBatch): Promise<void> => {
      firstFetches.note(batch);
      const subnetIds = await ports.delegations.subnetsOfHosts(refusedHosts(batch));
      const nowMs = ports.now().getTime();
      for (const subnetId of subnetIds) denied.noteRefusal(batch.crawlerId, subnetId, nowMs);
      const owned = subnetIds.filter((subnetId) => state.ownerOf(subnetId) === batch.crawlerId);
      ports.request(owned, "denied");
    },
    /** Nobody waits for a turn any longer. */
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

/** Subnets of which nobody knows who is near are asked about at this pace: those of which most is fetched first, 18,000 an hour. */
const unmeasuredBatch = 50;
const retryUnmeasuredMs = 10_000;
/** One of which nothing was learned is left alone for so long, and longer every time. */
const unmeasuredRestMs = 300_000;

/** How often some delegations are looked at for whether they may be anycast. */
const lookForAnycastMs = 60_000;

/** Old decisions that are probed again in a minute: 43,200 a day. */
const refreshRounds = 30;

/** Everything that a crawler fetches turned slow: its own network, and no route's; nothing is probed for that. */
function tellSlowCrawlers({ recalibration, log }: DelegationJobPorts): void {
  for (const { crawlerId, factor, hosts, kind } of recalibration.takeSlowCrawlers()) {
    const times = Math.round(factor * 100) / 100;
    log.warn({ crawlerId, times, hosts, kind }, "everything that a crawler fetches turned slow: its network");
  }
}

// Who owns nothing yet is decided, and old and slow decisions are made again, by the clock.

/** To look for subnets that wait is to go through all due hosts: while there are none, it takes a twentieth of the time. */
const looksShare = 20;
const oftenestMs = 250;
const seldomestMs = 10_000;

/** Of the coordinator's settings. */
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
      // Anycast ranges were given away by load, and a round would do so again.
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
    // A crawler that is alone can be compared with nobody.
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

// What the coordinator does by the clock for domain sets: hosts that their subnet's crawler may not have go to the
// nearest that may, and hosts' languages are kept by what their pages turn out to be in.

/** The name by which the duty can be hurried. */
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
