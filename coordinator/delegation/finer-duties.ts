/**
 * What the coordinator does by the clock for delegations finer than a subnet: hosts whose names resolve
 * differently by place, parts of leaves that measure apart, their reviews, and their crawlers' departures.
 */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import type { NameResolver } from "../frontier/ports.ts";
import type { ResultBatch } from "../results/take-results.ts";
import { delegateHosts } from "./overrides/hosts.ts";
import { LeafWatch } from "./overrides/leaf-watch.ts";
import { NameWatch } from "./overrides/name-watch.ts";
import type { FinerDelegationStore } from "./overrides/override.ts";
import { replaceFiner } from "./overrides/replace-finer.ts";
import { reviewFiner } from "./overrides/review.ts";
import type { FinerRoundPorts } from "./overrides/round.ts";
import { splitLeaves } from "./overrides/split-leaves.ts";
import type { RoundSettings } from "./probe-round.ts";
import type { CoordinatorState } from "./state.ts";

export interface FinerDutyPorts extends Omit<FinerRoundPorts, "finer" | "settings"> {
  /** As they are now. */
  readonly settings: () => RoundSettings;
  readonly finer: FinerDelegationStore;
  readonly state: CoordinatorState;
  readonly resolver: NameResolver;
  readonly log: Log;
}

export interface FinerDuties {
  /** Results came in: what their connections tell is kept for the next pass. */
  note(batch: ResultBatch): void;
  /** One pass over all that is due. */
  pass(): Promise<void>;
  /** Rounds under way are given up, and none begins any more. */
  stop(): void;
}

export function finerDuties(
  given: FinerDutyPorts,
  config: Pick<CoordinatorConfig, "departureSeconds">,
): FinerDuties {
  const { state, log } = given;
  let isStopping = false;
  const names = new NameWatch();
  const leaves = new LeafWatch();
  const since = given.now();
  let { generation } = state;
  const online = (): readonly CrawlerId[] => {
    const full = given.excluded();
    return given.fleet.online().filter((crawlerId) => !full.has(crawlerId));
  };
  return {
    note: (batch) => {
      names.note(batch);
      leaves.note(batch, (address) => state.subnetOf(address));
    },
    pass: async () => {
      const ports = { ...given, settings: given.settings(), isStopping: () => isStopping };
      const departureMs = config.departureSeconds * 1000;
      const moved = await replaceFiner({ ...ports, online }, { departureMs, since, now: ports.now() });
      if (moved > 0) log.warn({ moved }, "hosts and parts of crawlers that are gone went to others");
      if (state.generation !== generation) await ports.finer.endOutdated(ports.now());
      generation = state.generation;
      for (const host of await delegateHosts({ ...ports, names })) {
        log.info({ host }, "a host resolves differently by place and is delegated by itself");
      }
      for (const subnetId of await splitLeaves({ ...ports, leaves })) {
        log.info({ subnetId }, "a leaf measures apart, its parts have changed");
      }
      const { ended } = await reviewFiner(ports);
      if (ended > 0) log.info({ ended }, "hosts or parts go with their subnets again");
    },
    stop: () => {
      isStopping = true;
    },
  };
}

export function scheduleFinerDuties(
  timekeeper: Pick<Timekeeper, "every">,
  duties: FinerDuties,
  { finer }: Pick<CoordinatorConfig, "finer">,
): void {
  timekeeper.every("watch-hosts-and-leaves", finer.everySeconds * 1000, async () => await duties.pass());
}
