/**
 * Keeps probe rounds going: one at a time for a subnet, however many URLs wait in it, a bounded number at once
 * over all. What nobody could take is left alone for a while, so that it does not crowd out the rest.
 */
import type { SubnetId } from "#core/ids";
import type { Log } from "../log.ts";
import { delegateSubnet, type RoundPorts, type RoundSettings } from "./delegate-subnet.ts";
import type { DelegationStore, FinishedRound, RoundCause, WaitingSubnet } from "./ports.ts";

export interface QueuePorts extends RoundPorts {
  readonly delegations: Pick<DelegationStore, "saveRound" | "waiting" | "targetsFor">;
  readonly log: Log;
  readonly onDecided: (round: FinishedRound) => void;
}

export interface QueueSettings {
  readonly round: RoundSettings;
  readonly concurrentRounds: number;
  /** A subnet whose round failed is not tried again before. */
  readonly retryMs: number;
}

export class DelegationQueue {
  readonly #ports: QueuePorts;
  readonly #settings: QueueSettings;
  readonly #running = new Map<SubnetId, Promise<void>>();
  readonly #restingUntilMs = new Map<SubnetId, number>();
  readonly #requested = new Map<SubnetId, RoundCause>();
  #filling: Promise<unknown> = Promise.resolve();

  constructor(ports: QueuePorts, settings: QueueSettings) {
    this.#ports = ports;
    this.#settings = settings;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Asks for a new round for a subnet that is delegated already (it turned slow, its crawler left …). */
  request(subnetIds: readonly SubnetId[], cause: RoundCause): void {
    const busy = new Set(this.#busy());
    for (const subnetId of subnetIds) {
      if (!this.#requested.has(subnetId) && !busy.has(subnetId)) this.#requested.set(subnetId, cause);
    }
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
    await Promise.all(this.#running.values());
  }

  async #fill(): Promise<number> {
    const free = this.#settings.concurrentRounds - this.#running.size;
    if (free <= 0 || this.#ports.fleet.online().length === 0) return 0;
    const requested = await this.#requestedTargets(free);
    for (const { target, cause } of requested) this.#start(target, cause);
    const left = free - requested.length;
    if (left <= 0) return requested.length;
    const waiting = await this.#ports.delegations.waiting(left, this.#busy());
    for (const target of waiting) this.#start(target, "new-subnet");
    return requested.length + waiting.length;
  }

  async #requestedTargets(most: number): Promise<{ target: WaitingSubnet; cause: RoundCause }[]> {
    const picked = [...this.#requested].filter(([subnetId]) => !this.#running.has(subnetId)).slice(0, most);
    if (picked.length === 0) return [];
    const causes = new Map(picked);
    for (const [subnetId] of picked) this.#requested.delete(subnetId);
    const targets = await this.#ports.delegations.targetsFor([...causes.keys()]);
    return targets.map((target) => ({ target, cause: causes.get(target.subnetId) ?? "operator" }));
  }

  #busy(): SubnetId[] {
    const nowMs = this.#ports.now().getTime();
    for (const [subnetId, untilMs] of this.#restingUntilMs) {
      if (untilMs <= nowMs) this.#restingUntilMs.delete(subnetId);
    }
    return [...this.#running.keys(), ...this.#restingUntilMs.keys()];
  }

  #start(target: WaitingSubnet, cause: RoundCause): void {
    if (this.#running.has(target.subnetId)) return;
    this.#running.set(
      target.subnetId,
      this.#run(target, cause).finally(() => this.#running.delete(target.subnetId)),
    );
  }

  async #run(target: WaitingSubnet, cause: RoundCause): Promise<void> {
    const { subnetId } = target;
    try {
      const round = await delegateSubnet(target, cause, { ...this.#ports, settings: this.#settings.round });
      if (round === null || round.crawlerId === null) this.#rest(subnetId);
      if (round !== null) this.#ports.onDecided(round);
    } catch (error) {
      this.#rest(subnetId);
      this.#ports.log.error({ subnetId, error }, "probe round failed, will be tried again");
    }
  }

  #rest(subnetId: SubnetId): void {
    this.#restingUntilMs.set(subnetId, this.#ports.now().getTime() + this.#settings.retryMs);
  }
}
