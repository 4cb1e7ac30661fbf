/** The first message of a session: who this crawler is, what its partner allows, and what it still holds. */

import { protocolVersions } from "#protocol/coordinator-messages";
import type { CrawlerHello } from "#protocol/messages";
import { toldDenials } from "../limits/told-denials.ts";
import { toldLimits } from "../limits/told-limits.ts";
import { ownNetworks } from "../net/own-networks.ts";
import type { CrawlerConfig } from "../settings/config.ts";

export interface CrawlerState {
  readonly softwareVersion: string;
  readonly spoolId: string;
  readonly heldLeases: CrawlerHello["heldLeases"];
  /** Those that the partner allows and this machine can do. */
  readonly probeMethods: CrawlerHello["capabilities"]["probeMethods"];
  /** What the dock wants said. */
  readonly dock?: Pick<CrawlerHello, "release" | "lastEnd">;
}

export function crawlerHello(config: CrawlerConfig, state: CrawlerState): CrawlerHello {
  const { name, key, publicAddress, place, limits, ipv6, contact, listAddress } = config;
  const { softwareVersion, spoolId, heldLeases, probeMethods, dock } = state;
  const ownRanges = limits.ownNetwork ? [] : ownNetworks();
  return {
    type: "crawler:hello",
    protocolVersions: [...protocolVersions],
    name,
    key,
    softwareVersion,
    spoolId,
    heldLeases,
    publicAddress,
    place,
    capabilities: { probeMethods, ipv6 },
    limits: toldLimits(limits),
    denies: toldDenials({ ...config, denyRanges: [...ownRanges, ...config.denyRanges] }),
    ...(config.domainSets.length === 0 ? {} : { domainSets: [...config.domainSets] }),
    ...dock,
    ...(contact === null ? {} : { contact }),
    listAddress,
  };
}
