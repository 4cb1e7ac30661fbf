/**
 * What probe rounds need besides stores and the fleet, wired: the pace at which probes go out, who denies what,
 * which ranges are anycast, and the fetches that rounds wait for. Also what of a hello or a result concerns them.
 */

import { systemClock } from "#core/clock";
import type { CrawlerId, SubnetId } from "#core/ids";
import { urlKeyOf } from "#core/url-key";
import type { CrawlerHello } from "#protocol/messages";
import type { CoordinatorConfig } from "../config.ts";
import type { Fleet } from "../crawlers/crawler.ts";
import { following } from "../live-config.ts";
import type { ResultBatch } from "../results/take-results.ts";
import { watchedFleet } from "./anycast-hints.ts";
import { AnycastRanges } from "./anycast-ranges.ts";
import type { DelegationStore, RoundCause } from "./delegation.ts";
import { DeniedTargets } from "./denied-targets.ts";
import { FirstFetches } from "./first-fetches.ts";
import { heldHosts } from "./overrides/held-hosts.ts";
import { pacedFleet } from "./paced-fleet.ts";
import { ProbeBudget } from "./probe-pacing.ts";
import type { CoordinatorState } from "./state.ts";

export interface ProbingPorts {
  readonly fleet: Fleet;
  readonly state: CoordinatorState;
  readonly delegations: Pick<DelegationStore, "anycastSubnets" | "subnetsOfHosts">;
  readonly now: () => Date;
  /** Asks for new rounds. */
  readonly request: (subnetIds: readonly SubnetId[], cause: RoundCause) => void;
}

export interface Probing {
  /** Whoever probes does it through this: each probe waits for its turn. */
  readonly fleet: Fleet;
  readonly denied: DeniedTargets;
  readonly anycast: AnycastRanges;
  readonly firstFetches: FirstFetches;
  /** What earlier coordinators found to be anycast. */
  restore(): Promise<void>;
  /** A crawler arrived: subnets of it that its partner now denies as a whole go to others. */
  onHello(crawlerId: CrawlerId, hello: CrawlerHello): void;
  /** Results are stored: rounds may wait for one, and what its crawler may not fetch goes to another. */
  onResults(batch: ResultBatch): Promise<void>;
  /** Nobody waits for a turn any longer. */
  close(): void;
}

/** An idle crawler asks for work every two seconds, and a site may take its time. */
const firstFetchMs = 30_000;

export function startProbing(ports: ProbingPorts, config: CoordinatorConfig): Probing {
  const { state } = ports;
  const budget = new ProbeBudget(following(() => config.probe.pace));
  const denied = new DeniedTargets(heldHosts(state, config));
  const anycast = new AnycastRanges();
  const subnetOf = (address: string) => state.subnetOf(address);
  const firstFetches = new FirstFetches({ clock: systemClock, subnetOf }, firstFetchMs);
  return {
    fleet: watchedFleet(pacedFleet(ports.fleet, budget), {
      state,
      ranges: anycast,
      nowMs: () => ports.now().getTime(),
      request: (subnetId) => ports.request([subnetId], "review"),
    }),
    denied,
    anycast,
    firstFetches,
    restore: async () => {
      const subnetIds = await ports.delegations.anycastSubnets();
      anycast.restore(subnetIds, (subnetId) => state.placementOf(subnetId));
    },
    onHello: (crawlerId, hello) => {
      denied.setList(crawlerId, hello.denies);
      if ((hello.denies?.networks.length ?? 0) === 0) return;
      const lost = state.subnetsOf(crawlerId).filter((subnetId) => {
        const range = state.tree.get(subnetId)?.range;
        return range !== undefined && denied.deniesWhole(crawlerId, range);
      });
      ports.request(lost, "denied");
    },
    onResults: async (batch) => {
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
