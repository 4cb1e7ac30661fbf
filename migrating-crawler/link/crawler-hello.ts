/** Builds the first message of a session: who this crawler is, what its partner allows, and what it still holds. */
import { protocolVersions } from "#protocol/coordinator-messages";
import { type CrawlerHello, maxDeniedCharacters, maxDeniedInHello } from "#protocol/messages";
import { ownNetworks } from "../net/connector.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { type CrawlerLimits, openMinutesPerWeek } from "../settings/limits-config.ts";

interface CrawlerState {
  readonly softwareVersion: string;
  readonly spoolId: string;
  readonly heldLeases: CrawlerHello["heldLeases"];
  /** The methods that the partner allows and this machine supports. */
  readonly probeMethods: CrawlerHello["capabilities"]["probeMethods"];
  /** Whether sites are also contacted over IPv6, by setting or by the machine's routes. */
  readonly ipv6: boolean;
  /** What the supervisor adds to the hello. */
  readonly dock?: Pick<CrawlerHello, "release" | "lastEnd">;
}

export function crawlerHello(config: CrawlerConfig, state: CrawlerState): CrawlerHello {
  const { name, key, publicAddress, place, limits, contact, listAddress } = config;
  const { softwareVersion, spoolId, heldLeases, probeMethods, ipv6, dock } = state;
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
    time: new Date().toISOString(),
  };
}

// Converts the limits to what the coordinator plans with: pages and bytes a day. Monthly bytes, rates and weekly hours
// become daily averages.

const secondsPerDay = 86_400;
const daysPerMonth = 30.4;
const minutesPerWeek = 7 * 1440;

function toldLimits(limits: CrawlerLimits): CrawlerHello["limits"] {
  const { pagesPerDay, concurrentHosts, bytesPerMonth, kilobytesPerSecond, hours } = limits;
  const openPart = hours === null ? 1 : openMinutesPerWeek(hours) / minutesPerWeek;
  const unlimited = Number.POSITIVE_INFINITY;
  const byMonth = bytesPerMonth === null ? unlimited : bytesPerMonth / daysPerMonth;
  const byRate =
    kilobytesPerSecond === null ? unlimited : kilobytesPerSecond * 1024 * secondsPerDay * openPart;
  const bytesPerDay = Math.floor(Math.min(limits.bytesPerDay, byMonth, byRate));
  return { pagesPerDay: openPart === 0 ? 0 : pagesPerDay, bytesPerDay, concurrentHosts };
}

// Selects the part of the partner's deny-list that the coordinator is told, to avoid useless work. The hello is
// limited, so the first entries of a long list are sent; requests for the rest are refused, from which the coordinator
// also learns.

export function toldDenials({
  denyRanges,
  denyDomains,
}: Pick<CrawlerConfig, "denyRanges" | "denyDomains">): NonNullable<CrawlerHello["denies"]> {
  return { networks: firstThatFit(denyRanges), domains: firstThatFit(denyDomains) };
}

/** Each list may use half of the characters. */
function firstThatFit(entries: readonly string[]): string[] {
  const told: string[] = [];
  let left = maxDeniedCharacters / 2;
  for (const entry of entries) {
    left -= entry.length;
    if (left < 0 || told.length === maxDeniedInHello) break;
    told.push(entry);
  }
  return told;
}
