/**
 * The answer to "who crawls this, and why (not)?" (design section 4d): one JSON value that the command
 * line, the API and the page share. Dates are ISO 8601 texts in UTC, round-trip times milliseconds,
 * ranges and addresses canonical text. Lists are bounded; where one is cut, a total stands beside it.
 */

import type { Standing } from "#core/explanation";
import type { CrawlerName } from "../crawlers/crawler.ts";
import type { FinerReport } from "../delegation/overrides/who-reads.ts";
import type { MoveCounts, RateKind } from "../delegation/recalibration/ageing.ts";
import type { DelegationChange, ProbeRound } from "../delegation/round-reads.ts";
import type { HostReport, UrlReport, WaitingReport } from "../frontier/frontier-reports.ts";
import type { ComplaintLine, OptOutReport } from "../opt-outs/opt-out.ts";
import type { NearMatch, OrganisationReport } from "../subnets/holder-reads.ts";
import type { ChainSubnet, EffectiveDelegation, Neighbours, SubnetList } from "../subnets/subnet-reads.ts";
import type { OrderReport } from "./explain-url.ts";
import type { RollUp } from "./roll-up.ts";

export interface WhoAnswer {
  readonly question: string;
  /** When it was answered. */
  readonly at: string;
  /** False: nothing is known of what was asked for. */
  readonly found: boolean;
  readonly takenFor: TakenFor;
  /** Addresses of the host or the question, and where they are known from. */
  readonly addresses: readonly string[];
  readonly addressesFrom: "question" | "frontier" | "dns" | null;
  /** From the most specific subnet (which may be a unary one, skipped for its parent) to the top. */
  readonly chain: readonly ChainSubnet[];
  /** Beside the most specific subnet, below the same one; null: there is none. */
  readonly neighbours: Neighbours | null;
  /** Where networks publish that the address or the range lies, a line for each source; hints, and no measurement. */
  readonly published: readonly PublishedReport[];
  readonly effective: EffectiveDelegation | null;
  /** What is in force for this host or address alone, in place of its subnet's delegation. */
  readonly finer: FinerReport | null;
  /** Parts of the leaf that are crawled by others than the rest of it. */
  readonly parts: readonly FinerReport[];
  /** The round that decided the effective delegation, else the latest one of the leaf. */
  readonly round: ProbeRound | null;
  readonly history: readonly DelegationChange[];
  readonly url: UrlReport | null;
  /** Of a URL in the frontier: its place among what is due of its host. */
  readonly order: OrderReport | null;
  readonly host: HostReport | null;
  /** What waits in the leaf subnet. */
  readonly waiting: WaitingReport | null;
  /** For a range: registered subnets within it. */
  readonly inside: SubnetList | null;
  readonly organisation: OrganisationReport | null;
  /** How soon a decision like the one in force is out of date; null: not learned yet, or it was not decided by a round. */
  readonly ageing: AgeingReport | null;
  /** For a range, an organisation or a country: what lies in its space; null: nothing was to be counted, or not in time. */
  readonly rollUp: RollUp | null;
  readonly crawler: CrawlerReport | null;
  /** What of it has opted out; null: nothing. */
  readonly optOut: OptOutReport | null;
  /** About it, the latest first. */
  readonly complaints: readonly ComplaintLine[];
  /** In plain words: what stands in the way of the next fetch, or how it comes about. */
  readonly standing: readonly Standing[];
  readonly nearMatches: readonly NearMatch[];
}

/** What one source publishes of a range. */
export interface PublishedReport {
  /** `geofeed https://example.net/geofeed.csv`, `aws`. */
  readonly source: string;
  /** Null: it names the range without a single place. */
  readonly place: string | null;
  /** As it was published. */
  readonly range: string;
  /** Of the registry object that names the geofeed; null: none had to. */
  readonly within: string | null;
  /** Of the list; ISO date. */
  readonly listDate: string | null;
}

export interface AgeingReport extends Pick<MoveCounts, "moves" | "months"> {
  /** The most specific kind of network of which something was seen: `moves` in `months`. */
  readonly kind: RateKind;
  /** Expected, from all kinds that the subnet belongs to. */
  readonly perMonth: number;
}

/** Without the ranges that they make together. */

export interface TakenFor {
  readonly type: "url" | "host" | "address" | "range" | "organisation" | "country" | "crawler" | "unknown";
  readonly value: string;
}

export interface CrawlerReport extends CrawlerName {
  readonly place: string | null;
  readonly country: string | null;
  readonly latitude: number | null;
  readonly longitude: number | null;
  readonly address: string | null;
  readonly pagesPerDay: number;
  readonly concurrentHosts: number;
  readonly probeMethods: readonly string[];
  /** As its last hello said; null: it said nothing yet. */
  readonly speaksIpv6: boolean | null;
  readonly softwareVersion: string | null;
  readonly connectedAt: string | null;
  readonly lastSeenAt: string | null;
  readonly offlineReason: string | null;
  readonly holdingBack: readonly string[];
  readonly revoked: boolean;
}
