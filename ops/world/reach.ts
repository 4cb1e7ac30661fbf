/** What a crawler finds when it connects to a name or address of the emulated Internet. */
import { parseAddress } from "#core/ip/address";
import { rangeHolds } from "#core/ip/range";
import type { WorldSite } from "./model.ts";
import type { WorldState } from "./world-state.ts";

export interface Reach {
  readonly type: "site";
  readonly address: string;
  readonly rttMs: number;
  /** The first site at that address: it sets the bandwidth. */
  readonly site: WorldSite;
}

export type Refusal =
  | { readonly type: "refused"; readonly rttMs: number }
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
  const address = state.siteByHost.get(target.host)?.address ?? target.host;
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
  return site && target.port === webPort
    ? { type: "site", address, rttMs, site }
    : { type: "refused", rttMs };
}
