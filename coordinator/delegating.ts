/**
 * What decides whose everything is: rounds for subnets, for hosts and parts of subnets, and for hosts that domain sets
 * keep from their subnet's crawler. All of them measure with one fleet, under the same rules and beside each other.
 */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorConfig } from "./config.ts";
import { seededRandom } from "./core/seeded-random.ts";
import type { Counters } from "./counters.ts";
import { domainSetDuties } from "./domain-set-duties.ts";
import { finerDuties, scheduleFinerDuties } from "./finer-duties.ts";
import { DelegationQueue, type QueuePorts } from "./flows/delegation-queue.ts";
import type { FinerRound } from "./flows/finer-delegations.ts";
import type { NameResolver } from "./flows/ports.ts";
import type { ResultBatch } from "./flows/take-results.ts";
import { following } from "./live-config.ts";
import type { Log } from "./log.ts";
import { createDomainSetStore } from "./postgres/domain-sets/domain-set-store.ts";
import { createFinerDelegationStore } from "./postgres/finer-delegation-store.ts";
import type { Probing } from "./probing.ts";
import type { Timekeeper } from "./timekeeper.ts";
import { queueSettings } from "./wiring-settings.ts";

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
