/**
 * What decides whose everything is: rounds for subnets, for hosts and parts of subnets, and for hosts that domain sets
 * keep from their subnet's crawler. All of them measure with one fleet, under the same rules and beside each other.
 */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { seededRandom } from "#core/random";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { createDomainSetStore } from "../domain-sets/domain-set-store.ts";
import { domainSetDuties } from "../domain-sets/start.ts";
import type { NameResolver } from "../frontier/ports.ts";
import { following } from "../live-config.ts";
import type { Counters } from "../overview/counters.ts";
import type { ResultBatch } from "../results/take-results.ts";
import { queueSettings } from "../room-settings.ts";
import { finerDuties, scheduleFinerDuties } from "./finer-duties.ts";
import { createFinerDelegationStore } from "./overrides/finer-delegation-store.ts";
import type { FinerRound } from "./overrides/override.ts";
import type { Probing } from "./probing.ts";
import { DelegationQueue, type QueuePorts } from "./queue.ts";

export interface DelegatingPorts extends Pick<QueuePorts, "state" | "delegations" | "now"> {
  readonly pool: Pool;
  readonly probing: Probing;
  readonly resolver: NameResolver;
  readonly timekeeper: Timekeeper;
  readonly counters: Counters;
  /** Crawlers that may be given nothing now. */
  readonly excluded: () => ReadonlySet<CrawlerId>;
  readonly log: Log;
}

export interface Delegating {
  readonly queue: DelegationQueue;
  /** Results came in: what they tell of hosts is kept for the next pass. */
  note(batch: ResultBatch): void;
  /** By the clock from now on; the queue has a duty of its own. */
  start(): void;
  /** Rounds under way are given up, and none begins any more; resolves when the last has ended. */
  stop(): Promise<void>;
}

export function delegating(
  { pool, probing, resolver, timekeeper, counters, ...given }: DelegatingPorts,
  config: CoordinatorConfig,
): Delegating {
  const rounds = { ...given, ...probing };
  const queue = new DelegationQueue(
    {
      ...{ ...rounds, random: seededRandom(config.delegation.seed) },
      onDecided: (round) => counters.round(round),
    },
    following(() => queueSettings(config)),
  );
  const finerRounds = () => ({
    ...{ ...rounds, timekeeper, resolver, finer: createFinerDelegationStore(pool) },
    random: seededRandom(config.delegation.seed),
    settings: () => queueSettings(config).round,
    onDecided: (round: FinerRound) => counters.round({ ...round, subnetId: round.withinSubnetId }),
  });
  const finer = finerDuties(finerRounds(), config);
  const bySets = domainSetDuties(
    {
      ...{ ...finerRounds(), domainSets: createDomainSetStore(pool) },
      request: (subnetIds, cause) => queue.request(subnetIds, cause),
    },
    config,
  );
  return {
    queue,
    note: (batch) => {
      finer.note(batch);
      bySets.note(batch);
    },
    start: () => {
      scheduleFinerDuties(timekeeper, finer, config);
      bySets.start();
    },
    stop: async () => {
      const roundsGivenUp = queue.stop();
      finer.stop();
      bySets.stop();
      await roundsGivenUp;
    },
  };
}
