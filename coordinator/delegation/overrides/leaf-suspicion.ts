/**
 * Whether a leaf is suspected to be in several places: the connect times of its crawler, address by address,
 * are held against what it measured when the leaf was delegated to it; and those of a part's crawler against
 * each other, where the leaf is split already.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { rangeBetween, rangeHolds } from "#core/ip/range";
import { type ApartVerdict, apartAddresses } from "./apart-addresses.ts";
import type { WatchedAddress, WatchedLeaf } from "./leaf-watch.ts";
import type { FinerDelegation, FinerDelegationStore } from "./override.ts";
import type { FinerRoundPorts } from "./round.ts";

export interface SuspicionPorts extends Pick<FinerRoundPorts, "state" | "settings"> {
  readonly finer: Pick<FinerDelegationStore, "partsOf">;
}

/** What of a leaf measures apart, as far as connect times tell. */
export interface Suspicion {
  readonly subnetId: SubnetId;
  readonly owner: CrawlerId;
  readonly parts: readonly FinerDelegation[];
  readonly leaf: WatchedLeaf;
  /** One verdict for the rest of the leaf, one for each part that was fetched from. */
  readonly groups: readonly Group[];
}

export interface Group {
  readonly crawlerId: CrawlerId;
  readonly verdict: ApartVerdict;
}

/** Null: nothing of the leaf looks apart, or nothing can be said of it. */
export async function suspicionOf(
  subnetId: SubnetId,
  leaf: WatchedLeaf,
  ports: SuspicionPorts,
): Promise<Suspicion | null> {
  const delegation = ports.state.delegationOf(subnetId);
  // Nobody measured it (or it is anycast): there is nothing to hold anything against.
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
