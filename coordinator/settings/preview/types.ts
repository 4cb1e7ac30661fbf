/** What a change of policies would come to, and the samples of real data that it is computed from. */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Log } from "#core/log";
import type { ProbeMethod } from "#protocol/messages";
import type { CrawlerStore } from "../../crawlers/crawler.ts";
import type { DelegationStore } from "../../delegation/delegation.ts";
import type { Placement } from "../../delegation/placement.ts";
import type { WatchedFetch } from "../../delegation/recalibration/fetch-watch.ts";
import type { PlannedTotal } from "../../recrawl/recrawl-settings.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";

/** One number before and after the change; null: it cannot be told. */
export interface PolicyFigure {
  /** For programs: camelCase. */
  readonly name: string;
  readonly words: string;
  /** As it is written after the number; empty: a count. */
  readonly unit: string;
  readonly before: number | null;
  readonly after: number | null;
}

export interface PolicyEffect {
  readonly title: string;
  readonly figures: readonly PolicyFigure[];
  /** What it was computed from. */
  readonly basis: string;
  /** What it cannot tell, each in a sentence. */
  readonly limits: readonly string[];
}

export interface SampledRounds {
  readonly crawlers: readonly { readonly crawlerId: CrawlerId; readonly placement: Placement }[];
  /** Oldest first; of a subnet the latest. */
  readonly rounds: readonly (PastRound & {
    readonly crawlerId: CrawlerId;
    /** Probes that it cost then. */
    readonly paidProbes: number;
  })[];
}

export interface FrontierSizes {
  readonly hosts: number;
  /** URLs that were fetched at least once, and those that wait for their first fetch. */
  readonly fetchedUrls: number;
  readonly newUrls: number;
  readonly heldUrls: number;
  /** By the budget of each host under the given limit: held URLs that there would be room for, hosts that have more than they may. */
  readonly releasable: number;
  readonly hostsOver: number;
  /** 1: all hosts were looked at; less: a sample, and the numbers are scaled. */
  readonly share: number;
}

export interface LinkSample {
  readonly links: number;
  readonly nofollow: number;
  /** Distinct hosts that the links lead to, and those of them that the frontier does not hold. */
  readonly hosts: number;
  readonly unknownHosts: number;
}

export interface FetchRates {
  /** The latest fetches that were looked at, and over how long they came. */
  readonly fetches: number;
  readonly hours: number;
  readonly crawlers: readonly {
    readonly crawlerId: CrawlerId;
    readonly pagesPerDay: number;
    /** As the sampling counts them. */
    readonly pages: number;
    readonly watchedUntilPage: number;
  }[];
}

export interface TrustScore {
  readonly name: string;
  readonly score: number;
  readonly isDistrusted: boolean;
}

export interface ProbeRates {
  /** Subnets that wait for their first round, as far as they were counted. */
  readonly waiting: number;
  readonly isCountedInFull: boolean;
  /** Of the latest rounds. */
  readonly rounds: number;
  readonly probesPerRound: number | null;
  /** Mean time of the latest answers, in ms. */
  readonly answerMs: number | null;
  /** Crawlers that are connected. */
  readonly online: number;
}

export interface MeasuredByMethod {
  readonly delegations: number;
  readonly rounds: number;
}

export interface PastLease {
  /** From its grant to its end. */
  readonly seconds: number;
  readonly urls: number;
  readonly ending: "done" | "expired" | "returned";
}

/** Each reading is bounded, in rows and by the connection's time-out. */
export interface PolicySamples {
  rounds(most: number): Promise<SampledRounds>;
  /** The latest fetches of hosts that were fetched recently, and how many hosts have been fetched at all. */
  fetches(
    mostHosts: number,
    perHost: number,
  ): Promise<{ readonly fetches: readonly PastFetch[]; readonly hosts: number; readonly allHosts: number }>;
  /** Decisions by a probe round that are older. */
  decidedBefore(before: Date, most: number): Promise<number>;
  frontier(pagesPerHost: number): Promise<FrontierSizes>;
  /** The share of a sample of the URLs that lies at this depth or deeper. */
  shareAtDepth(depth: number): Promise<{ readonly urls: number; readonly share: number }>;
  links(most: number): Promise<LinkSample>;
  fetchRates(most: number): Promise<FetchRates>;
  trustScores(): Promise<readonly TrustScore[]>;
  probeRates(mostWaiting: number): Promise<ProbeRates>;
  /** Of so many measured delegations, and of so many of the latest rounds, how many were decided by each method. */
  measuredBy(most: number): Promise<ReadonlyMap<ProbeMethod, MeasuredByMethod>>;
  leases(most: number): Promise<readonly PastLease[]>;
  /** Of so many subnets that wait, those with this many URLs due or more. */
  waitingWithUrls(urls: number, most: number): Promise<number>;
}

export interface PreviewPorts {
  readonly samples: PolicySamples;
  readonly crawlers: Pick<CrawlerStore, "list" | "rtts">;
  readonly delegations: Pick<DelegationStore, "crawlerLoads" | "loads" | "probedRtts" | "targetsFor">;
  /** The recrawl plan in force; left out, or null: none was made. */
  readonly recrawlPlan?: () => Promise<PlannedTotal | null>;
  readonly clock: AlarmClock;
  readonly log: Log;
  readonly now: () => Date;
}

export interface PolicyStep {
  readonly before: PolicySettings;
  readonly after: PolicySettings;
  /** What changes. */
  readonly names: ReadonlySet<PolicyName>;
}

export type PreviewPolicies = (step: PolicyStep, ports: PreviewPorts) => Promise<PolicyEffect>;

// Past fetches once more, under another rule of recalibration: how often a subnet would have been probed again.

export interface PastFetch extends WatchedFetch {
  readonly subnetId: SubnetId;
}

export interface PastRound {
  readonly placement: Placement;
  /** What those said who were asked then, in ms; null: they had no answer. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number | null>;
}
