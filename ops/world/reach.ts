/** What a crawler finds when it connects to a name or address of the emulated Internet. */
import { parseAddress } from "#core/ip/address";
import { rangeHolds } from "#core/ip/range";
import { addressSeenBy, type WorldSite } from "./model.ts";
import type { WorldState } from "./world-state.ts";

export interface Reach {
  readonly type: "site";
  readonly address: string;
  readonly rttMs: number;
  /** The first site at that address: it sets the bandwidth. */
  readonly site: WorldSite;
}

export type Refusal =
  | { readonly type: "refused"; readonly address: string; readonly rttMs: number }
  | { readonly type: "timeout" }
  | { readonly type: "unreachable" };

/** Sites serve plain HTTP only. */
const webPort = 80;

export function reachOf(
  state: WorldState,
  crawlerIndex: number,
  target: { readonly host: string; readonly port: number },
): Reach | Refusal {
  if (state.conditions.isCutOff(crawlerIndex)) return { type: "timeout" };
  const named = state.siteByHost.get(target.host);
  const address = named ? addressSeenBy(state.world, named, crawlerIndex) : target.host;
  const parsed = parseAddress(address);
  if (parsed === null) return { type: "unreachable" };
  const rttMs = state.conditions.rttMs(crawlerIndex, address);
  if (rttMs === null) {
    const isRegistered = state.world.subnets.some(
      ({ range, kind }) => kind !== "iana" && rangeHolds(range, parsed),
    );
    return { type: isRegistered ? "timeout" : "unreachable" };
  }
  const site = state.siteByAddress.get(address);
  if (!site || target.port !== webPort) return { type: "refused", address, rttMs };
  const block = site.blocks.find((blocked) => blocked.crawlerIndex === crawlerIndex);
  if (block) return block.how === "refused" ? { type: "refused", address, rttMs } : { type: "timeout" };
  return { type: "site", address, rttMs, site };
}
