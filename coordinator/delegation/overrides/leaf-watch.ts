/**
 * Connect times by address, leaf by leaf, as results bring them: what tells that a leaf's addresses are not
 * all in one place. In memory only and bounded; after a restart it fills again.
 */

import { LRUCache } from "lru-cache";
import type { CrawlerId, SubnetId } from "#core/ids";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import type { ResultBatch } from "../../results/take-results.ts";
import type { ProbedTarget } from "./override.ts";

/** Addresses in all, of leaves that were fetched from lately. */
const maxAddresses = 50_000;
const maxAddressesPerLeaf = 64;
/** Latest times of one address. */
const maxTimes = 8;
/** Leaves with something new that wait for a pass; more are noticed with their next fetch. */
const maxTouched = 10_000;

export interface WatchedAddress {
  readonly target: ProbedTarget;
  /** Whose times these are: the crawler that fetched last. */
  readonly crawlerId: CrawlerId;
  readonly timesMs: readonly number[];
}

export interface WatchedLeaf {
  readonly addresses: Map<string, WatchedAddress>;
  /** Not looked at before. */
  restsUntilMs: number;
}

export class LeafWatch {
  readonly #leaves = new LRUCache<SubnetId, WatchedLeaf>({ maxSize: maxAddresses });
  readonly #touched = new Set<SubnetId>();

  /** Results came in. `leafOf`: the most specific subnet of more than one address. */
  note(batch: ResultBatch, leafOf: (address: string) => SubnetId | null): void {
    for (const { result } of batch.results) {
      const { address, url, timing } = result;
      if (address === null || timing.connectMs === null || !canParseUrl(url)) continue;
      const subnetId = leafOf(address);
      if (subnetId === null) continue;
      this.#add(
        subnetId,
        { target: { url, host: urlHost(url), address }, crawlerId: batch.crawlerId },
        timing.connectMs,
      );
    }
  }

  #add(subnetId: SubnetId, seen: Omit<WatchedAddress, "timesMs">, timeMs: number): void {
    const leaf = this.#leaves.get(subnetId) ?? {
      addresses: new Map(),
      restsUntilMs: Number.NEGATIVE_INFINITY,
    };
    const known = leaf.addresses.get(seen.target.address);
    const before = known?.crawlerId === seen.crawlerId ? known.timesMs : [];
    leaf.addresses.delete(seen.target.address);
    leaf.addresses.set(seen.target.address, { ...seen, timesMs: [...before, timeMs].slice(-maxTimes) });
    const [oldest] = leaf.addresses.keys();
    if (leaf.addresses.size > maxAddressesPerLeaf && oldest !== undefined) leaf.addresses.delete(oldest);
    this.#leaves.set(subnetId, leaf, { size: leaf.addresses.size });
    if (leaf.addresses.size > 1 && this.#touched.size < maxTouched) this.#touched.add(subnetId);
  }

  /** Leaves of several addresses with new times since they were taken last, that do not rest. */
  takeTouched(nowMs: number): [SubnetId, WatchedLeaf][] {
    const touched = [...this.#touched];
    this.#touched.clear();
    return touched.flatMap((subnetId): [SubnetId, WatchedLeaf][] => {
      const leaf = this.#leaves.get(subnetId);
      return leaf === undefined || leaf.restsUntilMs > nowMs ? [] : [[subnetId, leaf]];
    });
  }
}
