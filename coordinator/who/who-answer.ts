/**
 * The answer to "who crawls this, and why (not)?" (design section 4d): one JSON value that the command
 * line, the API and the page share. Dates are ISO 8601 texts in UTC, round-trip times milliseconds,
 * ranges and addresses canonical text. Lists are bounded; where one is cut, a total stands beside it.
 */
import type { ChangeCause, DelegationCause } from "#core/delegation-cause";
import type { RoundCause } from "../delegation/delegation.ts";
import type { HostReport, UrlReport, WaitingReport } from "../frontier/frontier-reports.ts";
import type { FinerReport } from "./explain-delegation.ts";
import type { ComplaintLine, OptOutReport, OrderReport } from "./explain-url.ts";

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
  readonly crawler: CrawlerReport | null;
  /** What of it has opted out; null: nothing. */
  readonly optOut: OptOutReport | null;
  /** About it, the latest first. */
  readonly complaints: readonly ComplaintLine[];
  /** In plain words: what stands in the way of the next fetch, or how it comes about. */
  readonly standing: readonly Standing[];
  readonly nearMatches: readonly NearMatch[];
}

export interface TakenFor {
  readonly type: "url" | "host" | "address" | "range" | "organisation" | "crawler" | "unknown";
  readonly value: string;
}

export interface HolderName {
  readonly holderId: number;
  readonly name: string;
  readonly handle: string | null;
}

export interface CrawlerName {
  readonly crawlerId: number;
  readonly name: string;
  readonly state: "online" | "offline" | "draining";
}

export interface ChainSubnet {
  readonly subnetId: number;
  readonly range: string;
  /** One address only: skipped for its parent (paper section 4.3). */
  readonly unary: boolean;
  readonly name: string;
  readonly holder: HolderName | null;
  readonly country: string | null;
  readonly registry: string;
  readonly delegation: OwnDelegation | null;
}

export interface OwnDelegation {
  readonly crawler: CrawlerName;
  readonly measured: boolean;
  readonly rttMs: number | null;
  readonly runnerUp: CrawlerName | null;
  readonly runnerUpRttMs: number | null;
  readonly cause: DelegationCause;
  readonly since: string;
  readonly roundId: number | null;
}

/** Own, or of the nearest less specific subnet that has one. */
export interface EffectiveDelegation extends OwnDelegation {
  readonly subnetId: number;
  readonly range: string;
  readonly inherited: boolean;
  /** Set where it is not the subnet's: for this host by itself, or for this part of the leaf. */
  readonly finer: "host" | "part" | null;
}

export interface ProbeRound {
  readonly roundId: number;
  readonly subnetId: number;
  readonly cause: RoundCause;
  readonly policy: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly targetUrl: string;
  readonly targetAddress: string;
  readonly startedAt: string;
  readonly decidedAt: string;
  /** Null: nobody could take it. */
  readonly crawler: CrawlerName | null;
  readonly runnerUp: CrawlerName | null;
  readonly reason: Readonly<Record<string, unknown>>;
  readonly reasonWords: string;
  readonly probes: readonly RoundProbe[];
  /** Crawlers that were not asked, with the smallest RTT that the triangle inequality leaves them. */
  readonly notAsked: readonly RuledOut[];
}

/** A round as it was recorded: the reason is not in words yet, and nobody has worked out who was ruled out. */
export type RecordedRound = Omit<ProbeRound, "reasonWords" | "notAsked">;

export interface RoundProbe {
  readonly ordinal: number;
  readonly crawler: CrawlerName;
  readonly method: string;
  readonly outcome: string;
  readonly rttMs: number | null;
  readonly detail: string;
}

export interface RuledOut {
  readonly crawler: CrawlerName;
  /** As recorded, else by today's RTTs between the crawlers; null where the policy uses no bounds, or they are not known. */
  readonly lowerBoundMs: number | null;
  /** True: it could not be nearer than the best that answered. */
  readonly ruledOut: boolean;
}

export interface DelegationChange {
  readonly subnetId: number;
  readonly changedAt: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly cause: ChangeCause;
  readonly roundId: number | null;
  readonly reason: string;
}

/** Subnets next to one, by address; the nearest first. */
export interface Neighbours {
  readonly before: readonly SubnetLine[];
  readonly after: readonly SubnetLine[];
  /** There are others beyond these. */
  readonly moreBefore: boolean;
  readonly moreAfter: boolean;
}

export interface SubnetLine {
  readonly subnetId: number;
  readonly range: string;
  readonly name: string;
  readonly country: string | null;
  readonly crawler: string | null;
  readonly rttMs: number | null;
  readonly inherited: boolean;
}

export interface SubnetList {
  readonly subnets: readonly SubnetLine[];
  /** True when there are more than are listed. */
  readonly more: boolean;
}

export interface OrganisationReport extends HolderName {
  readonly registry: string | null;
  readonly holderKey: string;
  readonly subnetCount: number;
  readonly byCrawler: readonly { readonly crawler: string | null; readonly subnets: number }[];
  readonly list: SubnetList;
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
  readonly softwareVersion: string | null;
  readonly connectedAt: string | null;
  readonly lastSeenAt: string | null;
  readonly offlineReason: string | null;
  readonly holdingBack: readonly string[];
  readonly revoked: boolean;
}

export interface Standing {
  readonly code: StandingCode;
  /** True: no fetch takes place while this holds. */
  readonly stops: boolean;
  readonly words: string;
}

export type StandingCode =
  | "unreadable"
  | "opted-out"
  | "complaints"
  | "url-rejected"
  | "url-unknown"
  /** Its channel leaves it out. */
  | "outside-channel"
  | "host-unknown"
  | "other-coordinator"
  | "host-budget-reached"
  | "host-budget-used-up"
  | "host-urls-left-out"
  | "robots-closed"
  | "slow-pace"
  | "redirects"
  | "near-duplicate"
  | "host-unresolved"
  | "host-unresolvable"
  | "host-refused"
  | "special-purpose"
  | "not-in-registry"
  | "differs-by-place"
  | "leaf-split"
  /** May be had by its domain sets; in no crawler's or not in this coordinator's; in none of its crawler's. */
  | "domain-set"
  | "no-domain-set"
  | "other-domain-set"
  | "waits-for-round"
  | "nobody-could-take-it"
  | "crawler-offline"
  | "crawler-draining"
  | "crawler-held-back"
  | "lease-open"
  | "politeness"
  | "robots-refused"
  | "address-refused"
  | "refused"
  | "gone"
  | "not-due"
  | "failing"
  | "nothing-due"
  | "ready";

export interface NearMatch {
  readonly type: "organisation" | "crawler";
  readonly name: string;
  readonly handle: string | null;
  /** 0 to 1, as pg_trgm counts similarity; at most 0.8 where the name has more words than were asked for. */
  readonly similarity: number;
}
