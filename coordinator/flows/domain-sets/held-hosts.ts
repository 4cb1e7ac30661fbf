/** Which hosts crawlers may have by their domain sets and the coordinator's own, as the fleet is known now. */
import { type Partition, partitionHolds, partitionOf } from "#core/dset/partition";
import type { CrawlerId } from "#core/ids";
import type { CoordinatorState } from "../coordinator-state.ts";
import type { HeldHosts } from "../denied-targets.ts";

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

/** A subnet's candidates are told apart by the name of the host that is probed; its language is not asked. */
export function heldHosts(state: Fleet, config: { readonly domainSets: readonly string[] }): HeldHosts {
  const partitionOfCrawler = partitionsOfFleet(state, config);
  return {
    isPartitioned: () =>
      config.domainSets.length > 0 || state.crawlers.some(({ partition }) => partition !== undefined),
    holds: (crawlerId, host) => {
      const partition = partitionOfCrawler(crawlerId);
      return partition.length === 0 || partitionHolds(partition, { host, language: null });
    },
  };
}
