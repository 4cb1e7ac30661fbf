/** Which hosts crawlers may have by their domain sets and the coordinator's own, as the fleet is known now. */

import type { CrawlerId } from "#core/ids";
import { type Partition, partitionHolds, partitionOf } from "../../domain-sets/partition.ts";
import type { HeldHosts } from "../denied-targets.ts";
import type { CoordinatorState } from "../state.ts";

type Fleet = Pick<CoordinatorState, "crawlers" | "crawler">;

/** A crawler's partition with the coordinator's own layer. */
export function partitionsOfFleet(
  state: Pick<CoordinatorState, "crawler">,
  config: { readonly domainSets: readonly string[] },
): (crawlerId: CrawlerId) => Partition {
  const own = partitionOf(config.domainSets);
  return (crawlerId) => {
    const partition = state.crawler(crawlerId)?.partition ?? [];
    return own.length === 0 ? partition : [...own, ...partition];
  };
}

/**
 * A subnet's candidates are the crawlers that may have one of its hosts at least: the nearest of them is then the nearest
 * of those that hold whichever host it holds, and its other hosts go to others one by one (delegate-by-sets).
 */
export function heldHosts(state: Fleet, config: { readonly domainSets: readonly string[] }): HeldHosts {
  const partitionOfCrawler = partitionsOfFleet(state, config);
  return {
    isPartitioned: () =>
      config.domainSets.length > 0 || state.crawlers.some(({ partition }) => partition !== undefined),
    holds: (crawlerId, hosts) => {
      const partition = partitionOfCrawler(crawlerId);
      return partition.length === 0 || hosts.some((host) => partitionHolds(partition, host));
    },
  };
}

/** What connected crawlers may have, each partition once; none: nobody has domain sets. */
export function heldBySomebody(
  fleet: { readonly online: () => readonly CrawlerId[] },
  state: Fleet,
  config: { readonly domainSets: readonly string[] },
): readonly Partition[] {
  if (!heldHosts(state, config).isPartitioned()) return [];
  return distinctPartitions(fleet.online().map(partitionsOfFleet(state, config)));
}

/** Each once, in the order in which they come. */
export function distinctPartitions(partitions: readonly Partition[]): Partition[] {
  return [...new Map(partitions.map((partition) => [keyOf(partition), partition])).values()];
}

function keyOf(partition: Partition): string {
  return JSON.stringify(
    partition.map((layer) => layer.map(({ names, languages }) => [[...names], [...languages]])),
  );
}
