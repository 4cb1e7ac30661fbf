/**
 * Which crawler has been told known links of which host in its connection: a crawler keeps the sets of the latest hosts, and
 * is told each once. In memory: a coordinator that starts anew has new connections.
 */
import type { CrawlerId } from "#core/ids";
import { keptLinkSets, keptLinkSetsMs, type Lease } from "#protocol/lease";

export class ToldLinks {
  /** By crawler and host, the latest last: since when it has the set. */
  readonly #told = new Map<CrawlerId, Map<string, number>>();

  /** A new connection: nothing is known of what the crawler still has. */
  forget(crawlerId: CrawlerId): void {
    this.#told.delete(crawlerId);
  }

  /** The leases as they are to be sent now; without sets that the crawler has. */
  once(crawlerId: CrawlerId, leases: readonly Lease[], now: Date): Lease[] {
    return leases.map((lease) => {
      if (lease.knownLinks === undefined || this.#tell(crawlerId, lease.host, now.getTime())) return lease;
      const { knownLinks: _, ...rest } = lease;
      return rest;
    });
  }

  /** False: it has been told. Half of the time that a set is kept, so that the crawler never lacks what is taken for told. */
  #tell(crawlerId: CrawlerId, host: string, nowMs: number): boolean {
    const hosts = this.#told.get(crawlerId) ?? new Map<string, number>();
    this.#told.set(crawlerId, hosts);
    const sinceMs = hosts.get(host);
    const isTold = sinceMs !== undefined && nowMs >= sinceMs && nowMs - sinceMs < keptLinkSetsMs / 2;
    hosts.delete(host);
    hosts.set(host, isTold ? sinceMs : nowMs);
    if (hosts.size > keptLinkSets) hosts.delete(hosts.keys().next().value!);
    return !isTold;
  }
}
