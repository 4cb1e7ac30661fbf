/** Builds the first message of a session: who this crawler is, what its partner allows, and which leases it still has. */
import { crawlerVersions } from "#protocol/coordinator-messages";
import {
  type CrawlerHeartbeat,
  type CrawlerHello,
  maxDeniedCharacters,
  maxDeniedInHello,
} from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { ownNetworks } from "../net/connector.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import { type CrawlerLimits, openMinutesPerWeek } from "../settings/limits-config.ts";

interface CrawlerState {
  readonly softwareVersion: string;
  readonly spoolId: string;
  readonly heldLeases: CrawlerHello["heldLeases"];
  readonly probeMethods: CrawlerHello["capabilities"]["probeMethods"];
  /** Whether sites are also contacted over IPv6, by setting or by the machine's routes. */
  readonly ipv6: boolean;
  /** What the supervisor adds to the hello. */
  readonly supervisor?: Pick<CrawlerHello, "release" | "lastEnd">;
}

export function crawlerHello(config: CrawlerConfig, state: CrawlerState): CrawlerHello {
  const { name, key, publicAddress, place, limits, contact, listAddress } = config;
  const { softwareVersion, spoolId, heldLeases, probeMethods, ipv6, supervisor } = state;
  const ownRanges = limits.ownNetwork ? [] : ownNetworks();
  return {
    type: "crawler:hello",
    protocolVersions: [...crawlerVersions],
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
    ...supervisor,
    ...(contact === null ? {} : { contact }),
    listAddress,
    time: new Date().toISOString(),
  };
}

// Converts the limits to what the coordinator plans with: pages and bytes a day. Monthly bytes, rates and weekly hours become
// daily averages.

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

// Selects the part of the partner's deny-list that is sent to the coordinator, to avoid useless work. The hello is limited, so
// the first entries of a long list are sent. Requests for the rest are refused, from which the coordinator also learns.

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

// Summarises the crawler's work for periodic log lines and for the heartbeats to the coordinator.

export interface CrawlerStatus {
  readonly name: string;
  readonly connected: boolean;
  readonly crawlerId: number | null;
  readonly openHosts: number;
  readonly spooledResults: number;
  readonly pages: number;
  /** Bytes of the bodies as transferred and as decoded, and of everything sent to the coordinator. */
  readonly fetchedBytes: number;
  readonly bodyBytes: number;
  readonly shippedBytes: number;
  /** `bodyBytes / shippedBytes`, or null before anything was sent. */
  readonly timesSmaller: number | null;
  /** Why the crawler is blocked. Empty if it is not. */
  readonly holdingBack: readonly string[];
  /** Why the disk accepts no results. Null if it does. */
  readonly diskFault: string | null;
  /** Null if the system does not report it. */
  readonly diskFreeBytes: number | null;
}

type Counted = "pages" | "fetchedBytes" | "bodyBytes" | "timesSmaller";

export function crawlerStatus(known: Omit<CrawlerStatus, Counted>, tally: Tally): CrawlerStatus {
  const { pages, fetchedBytes, bodyBytes } = tally;
  const { shippedBytes, holdingBack } = known;
  return {
    ...known,
    pages,
    fetchedBytes,
    bodyBytes,
    timesSmaller: shippedBytes === 0 ? null : Math.round((10 * bodyBytes) / shippedBytes) / 10,
    holdingBack: holdingBack.filter((word) => word !== "").map((word) => word.slice(0, 500)),
  };
}

export function heartbeatOf(status: CrawlerStatus): CrawlerHeartbeat {
  const { openHosts, spooledResults, pages, fetchedBytes, shippedBytes, bodyBytes, holdingBack } = status;
  const { diskFault, diskFreeBytes } = status;
  return {
    type: "crawler:heartbeat",
    openHosts,
    spooledResults,
    pages,
    fetchedBytes,
    shippedBytes,
    bodyBytes,
    holdingBack: [...holdingBack].slice(0, 10),
    ...(diskFault === null ? {} : { diskFault: diskFault.slice(0, 500) }),
    ...(diskFreeBytes === null ? {} : { diskFreeBytes }),
    time: new Date().toISOString(),
  };
}

/** Counts what the crawler has done since its start. */
export class Tally {
  pages = 0;
  /** Bytes of the bodies as transferred and as decoded. */
  fetchedBytes = 0;
  bodyBytes = 0;

  /** Refusals without a request (robots.txt, addresses) are not pages. */
  count(result: Pick<FetchResult, "outcome" | "wireBytes" | "bodyBytes">): void {
    const { type } = result.outcome;
    if (type === "refused-by-robots" || type === "refused-address" || type === "failed") return;
    this.pages++;
    this.fetchedBytes += result.wireBytes;
    this.bodyBytes += result.bodyBytes;
  }
}
