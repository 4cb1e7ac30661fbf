/**
 * Keeps probe rounds going: one at a time for a subnet, however many URLs wait in it; the first ones of a
 * holder one after the other, so that the later learn from the earlier; hundreds at once over all, while
 * thousands wait in the database. What nobody could take is left alone for a while.
 *
 *   requested (turned slow, orphaned …) ─┐
 *                                        ├─► round ─► decided
 *   waiting in the database ─► backlog ──┘        └─► nobody, failed ─► rests ─► waits again
 *                                                        (nobody speaks IPv6 ─► waits until somebody does)
 *
 * A backlog of what waits is read ahead, so that a round that ends makes room for the next at once.
 */

import type { RoundCause } from "#core/delegation-cause";
import type { SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { FinishedRound, WaitingSubnet } from "./delegation.ts";
import type { PlaceKey } from "./placement.ts";
import { delegateSubnet, isUnspoken, type RoundPorts, type RoundSettings } from "./probe-round.ts";
import type { DelegationStore } from "./store.ts";

export interface QueuePorts extends RoundPorts {
  readonly delegations: Pick<
    DelegationStore,
    "saveRound" | "delegateProvisionally" | "waiting" | "targetsFor"
  >;
  readonly log: Log;
  readonly onDecided: (round: FinishedRound) => void;
  /** False: another coordinator of this database runs the rounds; left out, none does. */
  readonly mayRun?: () => boolean;
}

export interface QueueSettings {
  readonly round: RoundSettings;
  /** A fleet that knows little yet runs fewer: `fewRounds`, or a quarter of the subnets it knows. */
  readonly concurrentRounds: number;
  /** A subnet whose round failed is not tried again before; longer each time it fails again. */
  readonly retryMs: number;
}

interface Task {
  readonly target: WaitingSubnet;
  readonly cause: RoundCause;
}

/** At once while past rounds have taught little: what runs together cannot learn from each other. */
const fewRounds = 24;

/** Read ahead from the database, for each round that may run. */
const backlogPerRound = 4;

export class DelegationQueue {
  readonly #ports: QueuePorts;
  readonly #settings: QueueSettings;
  readonly #running = new Map<SubnetId, Promise<void>>();
  readonly #resting: RestingSubnets;
  /** They wait for a crawler that speaks IPv6, however long; with an address of each. */
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
   * Asks for a new round for a subnet that is delegated already (it turned slow, its crawler left …). One that
   * is anycast has no latency that could have turned.
   */
  request(subnetIds: readonly SubnetId[], cause: RoundCause): void {
    const busy = new Set(this.#busy());
    for (const subnetId of subnetIds) {
      if (cause === "slow-fetches" && this.#ports.anycast?.has(subnetId)) continue;
      if (!this.#requested.has(subnetId) && !busy.has(subnetId)) this.#requested.set(subnetId, cause);
    }
  }

  /** Whether a round for this subnet was asked for, or runs. */
  isUnderWay(subnetId: SubnetId): boolean {
    return this.#requested.has(subnetId) || this.#running.has(subnetId);
  }

  /**
   * Fills the free places with rounds; returns how many it started. One call at a time: of two, the later
   * could hold an answer from before a round that the earlier started and that has ended since.
   */
  fill(): Promise<number> {
    const filled = this.#filling.then(() => this.#fill());
    this.#filling = filled.catch(() => {});
    return filled;
  }

  /** Resolves when no round is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Starts nothing more, and gives up what is under way at its next step; resolves when all has ended. */
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

  /** Rounds that wait for a fetch use nothing, and do not count. */
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

  /** Whatever may start now; the rest of the backlog stays for when a round ends. */
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

  /** It runs, or was decided since it was read. */
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

// How many rounds of one holder run at once. Its first ones run one after the other: each teaches the next
// where the holder stands, which saves more probes than running them together saves time. A holder that is
// known has more at once, so that thousands of its subnets are not decided one by one.

/** One round more at once for so many subnets of the holder that are known. */
const knownForOneMore = 8;

export class HolderTurns {
  readonly #running = new Map<PlaceKey, number>();

  /** `known`: subnets of this holder that somebody measured. Those without a holder wait for nobody. */
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

// Subnets that nobody could take, or whose round failed: each is left alone for a while, longer every time.

/** The wait grows to so many times the first one. */
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

  /** It was decided after all. */
  forget(subnetId: SubnetId): void {
    this.#rests.delete(subnetId);
  }

  /** Who rests now. What has been awake for as long as the longest rest starts anew. */
  asleep(nowMs: number): SubnetId[] {
    const asleep: SubnetId[] = [];
    for (const [subnetId, { untilMs }] of this.#rests) {
      if (untilMs > nowMs) asleep.push(subnetId);
      else if (untilMs + mostTimesLonger * this.#firstMs <= nowMs) this.#rests.delete(subnetId);
    }
    return asleep;
  }
}
