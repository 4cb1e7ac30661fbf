/**
 * The settings that decide how the fleet behaves: each with its bounds and its default, once. The coordinator's file is
 * read with them (coordinator/config.ts), and so is what an operator changes while it runs (policy-catalogue.ts).
 * Defaults carry their unit in the name and their origin in the comment.
 */
import { z } from "zod";
import { maxLinkTypeChecks } from "#protocol/lease";
import { probeMethod } from "#protocol/messages";
import { balancePolicyNames } from "../balance/plan.ts";
import { policyNames } from "../delegation/policies/policies.ts";
import { mostWorthShare } from "../frontier/order/mix.ts";
import { orderNames } from "../frontier/order/strategies.ts";
import { recrawlSettings, seconds } from "../recrawl/recrawl-settings.ts";
import { defaultTrustRule } from "../trust/evidence.ts";
import { defaultSamplingRule } from "../trust/page-sketch.ts";

const delegation = z.strictObject({
  policy: z.enum(policyNames).default("nearest"),
  /** IPMicra section 4.5: 50 ms gave a good ratio of accuracy over probes. */
  thresholdMs: z.number().min(0).max(10_000).default(50),
  /** λ of `nearest`, ms: what a probe has to be expected to save (delegation/policies/expected-gain). */
  lambdaMs: z.number().min(0).max(1000).default(2),
  /** Seeds the policy `random`. */
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  /** Probe rounds at once, at most; a fleet that knows little yet runs fewer. */
  concurrentRounds: z.int().min(1).max(5000).default(256),
  /** A new subnet with so many URLs waiting is crawled while it is being probed (get-first); 0: none is. */
  getFirstFromUrls: z.int().min(0).max(1000).default(20),
  /** How long a new fleet may take to assemble and measure itself before the first round starts. */
  settleSeconds: z.number().min(0).max(600).default(10),
  /** Rounds wait (at most settleSeconds) until so many crawlers are connected. */
  expectedCrawlers: z.int().min(1).max(10_000).default(1),
});

/** Considerate by default: what one target, one network and one partner's machine see of the whole fleet. */
const pace = z.strictObject({
  perCrawlerAtOnce: z.int().min(1).max(1000).default(8),
  perCrawlerPerSecond: z.int().min(1).max(10_000).default(20),
  /** Crawlers that probe the same address in any one second. */
  perTargetPerSecond: z.int().min(1).max(1000).default(3),
  /** Towards one /24 (IPv4) or /48 (IPv6). */
  perNetworkPerSecond: z.int().min(1).max(1000).default(5),
  atOnce: z.int().min(1).max(100_000).default(256),
  perSecond: z.int().min(1).max(100_000).default(500),
});

const probe = z.strictObject({
  /**
   * A TCP connect measures the round trip alone and is comparable with the crawlers' distances to each other;
   * HEAD adds the server's own time (paper section 4.2 found HEAD and ping about equally good).
   */
  method: probeMethod.default("connect"),
  /** At most so many, fewer when two agree; the smallest is taken. */
  tries: z.int().min(1).max(20).default(6),
  deadlineMs: z.int().min(10).max(60_000).default(3000),
  pace: pace.prefault({}),
});

const scope = z.strictObject({
  /** At most; a host starts with 50 and earns the rest by the pages it has (frontier/host-budget). */
  pagesPerHost: z.int().min(1).max(10_000_000).default(100),
  maxDepth: z.int().min(0).max(1000).default(8),
  admitNewHosts: z.boolean().default(false),
  /** Hosts that nobody knew and that one crawler's results may bring in, a day: a page of a new crawl names one or two. */
  newHostsPerCrawlerAndDay: z.int().min(0).max(100_000_000).default(50_000),
  /** Links with rel=nofollow are in the web graph either way. */
  followNofollow: z.boolean().default(false),
});

const lease = z.strictObject({
  seconds: seconds(86_400).default(300),
  urlsPerHost: z.int().min(1).max(1000).default(20),
  hostsPerRequest: z.int().min(1).max(1000).default(20),
  /**
   * An address is left alone for so long before another crawler asks it than the last one, six times that after a
   * lease that ran out: the longest rest that a crawler keeps for an address, and the longest request.
   */
  addressRestSeconds: z.number().min(0).max(3600).default(10),
});

const balance = z.strictObject({
  policy: z.enum([...balancePolicyNames, "none"]).default("min-cost-flow"),
  everySeconds: seconds(86_400).default(60),
  /** Probe a predicted target before its subnet moves (design section 6). */
  movesPerPass: z.int().min(1).max(100_000).default(500),
});

const recalibration = z.strictObject({
  /** "Sufficiently larger" of paper section 4.4: slower than so many times the host's usual time. */
  slowerThanFactor: z.number().min(1.05).max(100).default(1.5),
  /** Slow so often in a row before the subnet is probed again. */
  timesInARow: z.int().min(2).max(100).default(2),
  everySeconds: seconds(86_400).default(30),
  /** A decision so old is probed again, for a crawler that became nearer meanwhile shows in no fetch time. */
  refreshDays: z.number().min(1).max(3650).default(30),
});

/** What is believed of crawlers: a share of their pages is fetched by another one as well, and compared. */
const trust = z.strictObject({
  /** Of an established crawler's pages; 0: none are. */
  share: z.number().min(0).max(1).default(defaultSamplingRule.share),
  /** Of a newcomer's first pages. */
  newcomerShare: z.number().min(0).max(1).default(defaultSamplingRule.newcomerShare),
  newcomerPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.newcomerPages),
  /** Of the next pages of a crawler whose page stood alone. */
  watchedShare: z.number().min(0).max(1).default(defaultSamplingRule.watchedShare),
  watchedPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.watchedPages),
  /** The second fetch follows the first within so long; later, a page has changed too often by itself. */
  slotSeconds: seconds(86_400).default(600),
  /** Of a liar's pages, the altered ones: what is looked for. */
  alteredShare: z.number().min(0.001).max(1).default(defaultTrustRule.alteredShare),
  /** Evidence (a logarithm of likelihoods) above which a crawler is not trusted (test/bench/results/trust.md). */
  threshold: z.number().min(1).max(100).default(defaultTrustRule.threshold),
  /** `drain`: its subnets go to others, and its latest pages are fetched again; `keep`: it gets no new ones. */
  onDistrust: z.enum(["drain", "keep"]).default("drain"),
  /** Of its latest pages so many are fetched again at most. */
  refetchPages: z.int().min(0).max(1_000_000).default(10_000),
});

const frontier = z.strictObject({
  /** Which due URLs of a host go first (frontier/order/order-strategies). */
  order: z.enum(orderNames).default("breadth-first"),
  /** Of a lease, where the order mixes new and old URLs: Anansi, section 5.1, 90 percent. */
  newShare: z.number().min(0).max(1).default(0.9),
  /** Of the hosts that a crawler is handed, where the order mixes: how many go by their best URL (frontier/order/host-turns). */
  worthShare: z.number().min(0).max(mostWorthShare).default(0.75),
  /** Links of a page that are asked for their type by HEAD (Anansi, section 4.2); 0: none is. */
  linkTypeChecks: z.int().min(0).max(maxLinkTypeChecks).default(0),
});

/** When crawlers are told to slow down or to hurry up (frontier/pace), in host slices due or in hand. */
const workPace = z.strictObject({
  slowDownUnder: z.number().min(0).max(1_000_000).default(4),
  hurryUpOver: z.number().min(1).max(10_000_000).default(64),
  everySeconds: seconds(86_400).default(10),
});

/** The change feed. */
const changes = z.strictObject({
  /** A reader that is away for longer has missed changes. */
  keepDays: z.number().min(1).max(3650).default(30),
});

/** By the names of the sections in the coordinator's file. */
export const policySections = {
  delegation,
  probe,
  balance,
  recalibration,
  recrawl: recrawlSettings,
  scope,
  trust,
  lease,
  frontier,
  changes,
  pace: workPace,
} as const;

export type PolicySectionName = keyof typeof policySections;

/** Every section in full, what cannot be changed while running included. */
export type PolicySettings = {
  readonly [Name in PolicySectionName]: DeepReadonly<z.infer<(typeof policySections)[Name]>>;
};

export type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;
