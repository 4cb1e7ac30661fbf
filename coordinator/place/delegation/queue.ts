/**
 * Keeps probe rounds going. Each subnet has one, however many URLs wait in it. A holder's first rounds run in sequence, so
 * that later ones learn from earlier ones. In total, hundreds run at once while thousands wait in the database. Subnets that
 * no crawler could take are left alone for a while.
 *
 *     requested (turned slow, orphaned …) ─┐
 *                                          ├─► round ─► decided
 *     waiting in the database ─► backlog ──┘        └─► nobody, failed ─► rests ─► waits again
 *                                                          (nobody uses IPv6 ─► waits until somebody does)
 *
 * The backlog is read ahead, so that the next round starts as soon as one finishes.
 */

import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "./anycast.ts";
import type { FinishedRound, WaitingSubnet } from "./delegation.ts";
import type { DeniedTargets } from "./denied-targets.ts";
import type { FleetSettling } from "./measure-peers.ts";
import type { PlaceKey } from "./placement.ts";
import { delegateSubnet, isUnspoken, type RoundPorts } from "./probe-round.ts";
import type { RecalibrationQueue } from "./recalibration/recalibrate.ts";
import type { RoundSettings } from "./round-questions.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

export interface QueuePorts extends RoundPorts {
  readonly delegations: Pick<
    DelegationStore,
    "saveRound" | "delegateProvisionally" | "waiting" | "targetsFor"
  >;
  readonly log: Log;
  readonly onDecided: (round: FinishedRound) => void;
  /** False if another coordinator of this database runs the rounds. If omitted, there is no other coordinator. */
  readonly mayRun?: () => boolean;
}

export interface QueueSettings {
  readonly round: RoundSettings;
  /** Maximum concurrent rounds. A fleet that knows little runs fewer: `fewRounds`, or a quarter of the known subnets. */
  readonly concurrentRounds: number;
  /** Minimum wait after a failed round. It grows with each failure. */
  readonly retryMs: number;
}

interface Task {
  readonly target: WaitingSubnet;
  readonly cause: RoundCause;
}

/** Concurrent rounds while little is known, since they cannot learn from each other. */
const fewRounds = 24;

/** Subnets read ahead per round that may run. */
const backlogPerRound = 4;

export class DelegationQueue {
  readonly #ports: QueuePorts;
  readonly #settings: QueueSettings;
  readonly #running = new Map<SubnetId, Promise<void>>();
  readonly #resting: RestingSubnets;
  /** Subnets, with an address each, that wait for a crawler that uses IPv6. */
  readonly #unspoken = new Map<SubnetId, WaitingSubnet>();
  readonly #requested = new Map<SubnetId, RoundCause>();
  readonly #turns = new HolderTurns();
  #backlog: Task[] = [];
  #filling: Promise<unknown> = Promise.resolve();
  #stopped = false;

  constructor(ports: QueuePorts, settings: QueueSettings) {
    this.#ports = ports;
    this.#settings = settings;
    this.#resting = new RestingSubnets(settings.retryMs);
  }

  get running(): number {
    return this.#running.size;
  }

  /**
   * Requests a new round for delegated subnets (turned slow, crawler left …). Skips anycast ranges if the cause is slowness,
   * since their latency shows no distance.
   */
  request(subnetIds: readonly SubnetId[], cause: RoundCause): void {
    const busy = new Set(this.#busy());
    for (const subnetId of subnetIds) {
      if (cause === "slow-fetches" && this.#ports.anycast?.has(subnetId)) continue;
      if (!this.#requested.has(subnetId) && !busy.has(subnetId)) this.#requested.set(subnetId, cause);
    }
  }

  /** Whether a round for this subnet was requested or runs. */
  isUnderWay(subnetId: SubnetId): boolean {
    return this.#requested.has(subnetId) || this.#running.has(subnetId);
  }

  /**
   * Starts rounds in the free slots. Returns how many. Calls are serialised, because a concurrent one could hold rows read
   * before another call's round started and ended.
   */
  fill(): Promise<number> {
    const filled = this.#filling.then(() => this.#fill());
    this.#filling = filled.catch(() => {});
    return filled;
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Starts nothing more and abandons running rounds at their next step. Resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#backlog = [];
    this.#ports.firstFetches?.close();
    await this.idle();
  }

  #isStopping(): boolean {
    return this.#stopped || this.#ports.mayRun?.() === false;
  }

  async #fill(): Promise<number> {
    if (this.#freePlaces() <= 0 || this.#ports.fleet.online().length === 0) return 0;
    const requested = await this.#requestedTargets(this.#freePlaces());
    for (const task of requested) this.#start(task);
    const early = this.#startFromBacklog();
    const free = this.#freePlaces();
    if (free <= 0) return requested.length + early;
    const waiting = await this.#ports.delegations.waiting(free * backlogPerRound, this.#busy());
    this.#backlog = waiting.map((target) => ({ target, cause: "new-subnet" }));
    return requested.length + early + this.#startFromBacklog();
  }

  /** Number of rounds that may start. Rounds that wait for a fetch do not count. */
  #freePlaces(): number {
    if (this.#isStopping()) return 0;
    const { concurrentRounds } = this.#settings;
    const known = this.#ports.state.delegationTable.size / 4;
    const most = Math.min(concurrentRounds, Math.max(fewRounds, Math.floor(known)));
    return most - Math.max(0, this.#running.size - (this.#ports.firstFetches?.waiting ?? 0));
  }

  async #requestedTargets(most: number): Promise<Task[]> {
    const picked = [...this.#requested].filter(([subnetId]) => !this.#running.has(subnetId)).slice(0, most);
    if (picked.length === 0) return [];
    const causes = new Map(picked);
    const targets = await this.#ports.delegations.targetsFor([...causes.keys()]);
    for (const [subnetId] of picked) this.#requested.delete(subnetId);
    return targets.map((target) => ({ target, cause: causes.get(target.subnetId) ?? "operator" }));
  }

  /** Starts what may start now. The rest stays in the backlog. */
  #startFromBacklog(): number {
    let free = this.#freePlaces();
    let started = 0;
    const left: Task[] = [];
    for (const task of this.#backlog) {
      if (free > 0 && this.#mayStart(task)) {
        this.#start(task);
        free -= 1;
        started += 1;
      } else if (!this.#isDone(task)) left.push(task);
    }
    this.#backlog = left;
    return started;
  }

  #mayStart(task: Task): boolean {
    const holderKey = this.#holderOf(task);
    return !this.#isDone(task) && this.#turns.mayStart(holderKey, this.#knownOf(holderKey));
  }

  /** True if it is running or was decided since it was read. */
  #isDone({ target: { subnetId } }: Task): boolean {
    return this.#running.has(subnetId) || this.#ports.state.ownerOf(subnetId) !== null;
  }

  #holderOf({ target }: Task): PlaceKey | null {
    return this.#ports.state.placementOf(target.subnetId)?.holderKey ?? null;
  }

  #knownOf(holderKey: PlaceKey | null): number {
    let known = 0;
    if (holderKey === null) return known;
    this.#ports.state.knowledge.eachOwner({ kind: "holder", key: holderKey }, (_, count) => {
      known += count;
    });
    return known;
  }

  #busy(): SubnetId[] {
    const [first] = this.#unspoken.values();
    if (first !== undefined && !isUnspoken(first, this.#ports)) this.#unspoken.clear();
    const resting = this.#resting.asleep(this.#ports.now().getTime());
    return [...this.#running.keys(), ...this.#unspoken.keys(), ...resting];
  }

  #start(task: Task): void {
    const { subnetId } = task.target;
    if (this.#running.has(subnetId)) return;
    const holderKey = this.#holderOf(task);
    this.#turns.start(holderKey);
    const round = this.#run(task).finally(() => {
      this.#turns.end(holderKey);
      this.#running.delete(subnetId);
      this.#startFromBacklog();
    });
    this.#running.set(subnetId, round);
  }

  async #run({ target, cause }: Task): Promise<void> {
    const { subnetId } = target;
    const nowMs = () => this.#ports.now().getTime();
    try {
      const ports = { ...this.#ports, isStopping: () => this.#isStopping(), settings: this.#settings.round };
      const round = await delegateSubnet(target, cause, ports);
      if (round?.reason.type === "no-candidates" && round.reason.needsIpv6)
        this.#unspoken.set(subnetId, target);
      else if (round === null || round.crawlerId === null) this.#resting.rest(subnetId, nowMs());
      else this.#resting.forget(subnetId);
      if (round !== null) this.#ports.onDecided(round);
    } catch (error) {
      this.#resting.rest(subnetId, nowMs());
      this.#ports.log.error({ subnetId, error }, "probe round failed, will be tried again");
    }
  }
}

// Limits concurrent rounds per holder. A holder's first rounds run in sequence, because each teaches the next, which
// saves more probes than concurrency saves time. A known holder gets more, so that thousands of subnets are not
// decided one by one.

/** How many known subnets of the holder allow one more concurrent round. */
const knownForOneMore = 8;

export class HolderTurns {
  readonly #running = new Map<PlaceKey, number>();

  /** `known` counts the holder's measured subnets. Subnets without a holder never wait. */
  mayStart(holderKey: PlaceKey | null, known: number): boolean {
    if (holderKey === null) return true;
    return (this.#running.get(holderKey) ?? 0) < 1 + Math.floor(known / knownForOneMore);
  }

  start(holderKey: PlaceKey | null): void {
    if (holderKey !== null) this.#running.set(holderKey, (this.#running.get(holderKey) ?? 0) + 1);
  }

  end(holderKey: PlaceKey | null): void {
    if (holderKey === null) return;
    const left = (this.#running.get(holderKey) ?? 0) - 1;
    if (left > 0) this.#running.set(holderKey, left);
    else this.#running.delete(holderKey);
  }
}

// Subnets that no crawler could take or whose round failed are left alone, longer every time.

/** Maximum pause as a multiple of the first. */
const mostTimesLonger = 32;

interface Rest {
  readonly untilMs: number;
  readonly times: number;
}

export class RestingSubnets {
  readonly #firstMs: number;
  readonly #rests = new Map<SubnetId, Rest>();

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  rest(subnetId: SubnetId, nowMs: number): void {
    const times = this.#rests.get(subnetId)?.times ?? 0;
    const waitMs = this.#firstMs * Math.min(mostTimesLonger, 2 ** times);
    this.#rests.set(subnetId, { untilMs: nowMs + waitMs, times: times + 1 });
  }

  forget(subnetId: SubnetId): void {
    this.#rests.delete(subnetId);
  }

  /** Subnets that are left alone now. One that has been awake for longer than the maximum pause starts over. */
  asleep(nowMs: number): SubnetId[] {
    const asleep: SubnetId[] = [];
    for (const [subnetId, { untilMs }] of this.#rests) {
      if (untilMs > nowMs) asleep.push(subnetId);
      else if (untilMs + mostTimesLonger * this.#firstMs <= nowMs) this.#rests.delete(subnetId);
    }
    return asleep;
  }
}

// Dependencies of the jobs that delegate and balance subnets.

export interface DelegationJobPorts {
  readonly timekeeper: Pick<Timekeeper, "every" | "hurry">;
  readonly state: CoordinatorState;
  /** `online` is the whole fleet. `here` are the crawlers connected to this coordinator, the only ones to which it can send. */
  readonly gateway: Fleet & {
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
  };
  readonly queue: Pick<DelegationQueue, "fill" | "isUnderWay" | "request">;
  readonly settling: FleetSettling;
  readonly recalibration: RecalibrationQueue;
  readonly delegations: DelegationStore;
  /** Mean days between fetches of a page. The fixed interval if omitted. */
  readonly recrawlDays?: () => number;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
  /** If omitted, no range counts as anycast. */
  readonly anycast?: AnycastRanges;
  readonly log: Log;
  readonly now: () => Date;
}
