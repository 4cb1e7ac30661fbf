/** Who of the crawlers that have measured subnets may have them, as their partners say. */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { DelegationStore } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";

/** Subnets whose targets are read at once. */
const batchSize = 5000;

/**
 * Takes those out whose partners deny what is probed in the subnet; a subnet that nobody is left for goes too.
 * While nobody denies anything, nothing is read.
 */
export async function withoutDenied(
  measured: Map<SubnetId, Map<CrawlerId, number>>,
  ports: { readonly delegations: Pick<DelegationStore, "targetsFor">; readonly denied?: DeniedTargets },
  now: Date,
): Promise<void> {
  const { denied, delegations } = ports;
  if (!denied?.deniesAnything) return;
  const subnetIds = [...measured.keys()];
  for (let start = 0; start < subnetIds.length; start += batchSize) {
    for (const target of await delegations.targetsFor(subnetIds.slice(start, start + batchSize))) {
      const crawlers = measured.get(target.subnetId);
      for (const crawlerId of crawlers?.keys() ?? [])
        if (denied.denies(crawlerId, target, now.getTime())) crawlers?.delete(crawlerId);
      if (crawlers?.size === 0) measured.delete(target.subnetId);
    }
  }
}
