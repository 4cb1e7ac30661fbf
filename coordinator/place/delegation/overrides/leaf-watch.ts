/**
 * Collects connect times by address and leaf from results, which show whether a leaf's addresses are in several
 * places. Bounded and in memory only; after a restart it fills again.
 */
import { LRUCache } from "lru-cache";
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { rangeBetween, rangeHolds } from "#core/ip/range";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import type { ResultBatch } from "../../crawlers/result-batch.ts";
import type { FinerDelegation, ProbedTarget } from "./override.ts";
import type { FinerDelegationStore } from "./override-store.ts";
import type { FinerRoundPorts } from "./round.ts";
import { type ApartVerdict, apartAddresses } from "./sub-ranges.ts";

/** Total addresses, of recently fetched leaves. */
const maxAddresses = 50_000;

const maxAddressesPerLeaf = 64;

/** Latest times kept per address. */
const maxTimes = 8;

/** Changed leaves that wait for a pass; further ones are noted at their next fetch. */
const maxTouched = 10_000;

interface WatchedAddress {
  readonly target: ProbedTarget;
  /** The crawler that measured these times, the last to fetch. */
  readonly crawlerId: CrawlerId;
  readonly timesMs: readonly number[];
}

interface WatchedLeaf {
  readonly addresses: Map<string, WatchedAddress>;
  /** Not examined before this time. */
  restsUntilMs: number;
}

export class LeafWatch {
  readonly #leaves = new LRUCache<SubnetId, WatchedLeaf>({ maxSize: maxAddresses });
  readonly #touched = new Set<SubnetId>();

  /** Notes results. `leafOf` finds the most specific subnet of more than one address. */
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

  /** Takes leaves of several addresses with new times that are not resting. */
  takeTouched(nowMs: number): [SubnetId, WatchedLeaf][] {
    const touched = [...this.#touched];
    this.#touched.clear();
    return touched.flatMap((subnetId): [SubnetId, WatchedLeaf][] => {
      const leaf = this.#leaves.get(subnetId);
      return leaf === undefined || leaf.restsUntilMs > nowMs ? [] : [[subnetId, leaf]];
    });
  }
}

// Decides whether a leaf is suspected to span several places: its crawler's connect times per address are compared
// with the RTT at delegation, and in a split leaf a part's times with each other.

interface SuspicionPorts extends Pick<FinerRoundPorts, "state" | "settings"> {
  readonly finer: Pick<FinerDelegationStore, "partsOf">;
}

/** What measures apart within a leaf, by connect times. */
export interface Suspicion {
  readonly subnetId: SubnetId;
  readonly owner: CrawlerId;
  readonly parts: readonly FinerDelegation[];
  readonly leaf: WatchedLeaf;
  /** One verdict for the rest of the leaf and one per fetched part. */
  readonly groups: readonly Group[];
}

export interface Group {
  readonly crawlerId: CrawlerId;
  readonly verdict: ApartVerdict;
}

/** Null when nothing measures apart or nothing can be said. */
export async function suspicionOf(
  subnetId: SubnetId,
  leaf: WatchedLeaf,
  ports: SuspicionPorts,
): Promise<Suspicion | null> {
  const delegation = ports.state.delegationOf(subnetId);
  // An unmeasured or anycast leaf has no RTT to compare with.
  if (delegation === null || !delegation.measured) return null;
  const owner = delegation.crawlerId;
  const watched = [...leaf.addresses.values()];
  const isMixed = watched.some(({ crawlerId }) => crawlerId !== owner);
  const expectedMs = ports.settings.probe.method === "connect" ? delegation.rttMs : null;
  const rest = apartAddresses(timesBy(owner, watched), expectedMs);
  if (rest.apart.length === 0 && !isMixed) return null;
  const parts = await ports.finer.partsOf(subnetId);
  const ofParts = parts.map((part) => {
    const inside = watched.filter(({ target }) => isWithin(part, target.address));
    return {
      crawlerId: part.crawlerId,
      verdict: apartAddresses(timesBy(part.crawlerId, inside), null),
    };
  });
  const groups = [{ crawlerId: owner, verdict: rest }, ...ofParts];
  if (groups.every(({ verdict }) => verdict.apart.length === 0)) return null;
  return { subnetId, owner, parts, leaf, groups };
}

function timesBy(crawlerId: CrawlerId, watched: readonly WatchedAddress[]) {
  return watched
    .filter((one) => one.crawlerId === crawlerId)
    .map(({ target, timesMs }) => ({ address: target.address, timesMs }));
}

function isWithin({ place }: FinerDelegation, text: string): boolean {
  if (place.type !== "part") return false;
  const address = parseAddress(text);
  const first = parseAddress(place.first);
  const last = parseAddress(place.last);
  const range = first && last && rangeBetween(first, last);
  return range !== null && address !== null && rangeHolds(range, address);
}
