/**
 * The settings that decide how the fleet behaves: each with its bounds and its default, once. The coordinator's file is
 * read with them (coordinator/config.ts). A policy is what an operator changes while it runs, too: its words stand with it; those
 * of the others are in coordinator/setting-words.
 */
import { z } from "zod";
import { maxLinkTypeChecks } from "#protocol/lease";
import { probeMethod } from "#protocol/messages";
import { balancePolicyNames } from "../balance/plan.ts";
import { type PolicyNames, policy } from "../core/policy.ts";
import { delegationPolicies, policyNames } from "../delegation/policies/policies.ts";
import { mostWorthShare } from "../frontier/order/mix.ts";
import { orderNames } from "../frontier/order/strategies.ts";
import { recrawlSettings, seconds } from "../recrawl/recrawl-settings.ts";
import { defaultTrustRule } from "../trust/evidence.ts";
import { defaultSamplingRule } from "../trust/page-sketch.ts";

const delegation = z.strictObject({
  policy: policy(z.enum(policyNames).default("nearest"), {
    title: "Delegation policy",
    basic: true,
    help:
      "Decides which crawlers are asked about a new subnet, and when the answer is good enough. " +
      `${delegationPolicies.map(({ name, words }) => `${name}: ${words}`).join("; ")}.`,
    unit: null,
    origin: "measured, test/bench/results/delegation.md",
    replayed: true,
  }),
  lambdaMs: policy(z.number().min(0).max(1000).default(2), {
    title: "λ, what a probe must save",
    basic: true,
    help:
      "With the policy nearest, another crawler is probed as long as it is expected to save this " +
      "much RTT. Smaller values are more exact and cost more probes.",
    unit: "ms",
    origin: "measured, test/bench/results/delegation.md",
    replayed: true,
  }),
  thresholdMs: z.number().min(0).max(10_000).default(50),
  seed: z.int().min(0).max(0xffff_ffff).default(1),
  concurrentRounds: z.int().min(1).max(5000).default(256),
  getFirstFromUrls: z.int().min(0).max(1000).default(20),
  settleSeconds: z.number().min(0).max(600).default(10),
  expectedCrawlers: z.int().min(1).max(10_000).default(1),
});

/** Considerate by default: what one target, one network and one partner's machine see of the whole fleet. */
const pace = z.strictObject({
  perCrawlerAtOnce: z.int().min(1).max(1000).default(8),
  perCrawlerPerSecond: policy(z.int().min(1).max(10_000).default(20), {
    title: "Probes per second per crawler",
    help: "The most probes that one partner's machine starts in any second.",
    unit: "probes/s",
    origin: "our judgement, nothing that a home connection notices",
  }),
  perTargetPerSecond: policy(z.int().min(1).max(1000).default(3), {
    title: "Probes per second per target",
    help: "The most crawlers that probe one address in any second.",
    unit: "probes/s",
    origin: "our judgement, below what any site takes for an attack",
  }),
  perNetworkPerSecond: policy(z.int().min(1).max(1000).default(5), {
    title: "Probes per second per network",
    help: "The most probes that one /24 (IPv4) or /48 (IPv6) receives in any second.",
    unit: "probes/s",
    origin: "our judgement, below what any network takes for a scan",
  }),
  atOnce: z.int().min(1).max(100_000).default(256),
  perSecond: policy(z.int().min(1).max(100_000).default(500), {
    title: "Probes per second, all crawlers",
    basic: true,
    help: "The most probes that the whole fleet starts in any second.",
    unit: "probes/s",
    origin: "our judgement",
  }),
});

const probe = z.strictObject({
  /**
   * A TCP connect measures the round trip alone and is comparable with the crawlers' distances to each other;
   * HEAD adds the server's own time (paper section 4.2 found HEAD and ping about equally good).
   */
  method: policy(probeMethod.default("connect"), {
    title: "Probe method",
    help:
      "How crawlers probe: an HTTP HEAD, a TCP connect, or a ping (ICMP echo). Only what one " +
      "method measured is compared; crawlers that cannot ping, and sites that do not answer it, " +
      "are probed by connect.",
    unit: null,
    origin: "our judgement, a connect is the path alone; test/bench/results/probe-methods.md",
  }),
  tries: z.int().min(1).max(20).default(6),
  deadlineMs: z.int().min(10).max(60_000).default(3000),
  pace: pace.prefault({}),
});

const scope = z.strictObject({
  pagesPerHost: policy(z.int().min(1).max(10_000_000).default(100), {
    title: "Pages per host",
    basic: true,
    help: "The most URLs of one host that are crawled. A host starts with 50 and earns the rest.",
    unit: "URLs",
    origin: "our judgement; the budget is coordinator/frontier/budgets.ts",
  }),
  maxDepth: policy(z.int().min(0).max(1000).default(8), {
    title: "Links from a seed",
    basic: true,
    help: "URLs further from a seed than this many links are not crawled.",
    unit: "links",
    origin: "our judgement",
  }),
  admitNewHosts: policy(z.boolean().default(false), {
    title: "Follow links to new hosts",
    basic: true,
    help: "Whether links to hosts that nobody submitted are followed, or only kept as links.",
    unit: null,
    origin: "our judgement, a crawl goes no further than asked",
  }),
  newHostsPerCrawlerAndDay: policy(z.int().min(0).max(100_000_000).default(50_000), {
    title: "New hosts per crawler and day",
    help: "The most unknown hosts that one crawler's results may bring in per day (UTC).",
    unit: "hosts/day",
    origin: "our judgement, a page of a new crawl names one or two",
  }),
  newHostsPerDomainAndDay: policy(z.int().min(1).max(100_000_000).default(1000), {
    title: "New hosts per domain and day",
    help:
      "The most unknown hosts of one registrable domain that links may bring in per day (UTC). A " +
      "domain begins with 20, and may have as many more a day as it has. The rest waits.",
    unit: "hosts/day",
    origin: "our judgement, a university's two thousand hosts are in within ten days",
  }),
  newHostsPerLinkingSiteAndDay: policy(z.int().min(1).max(100_000_000).default(5000), {
    title: "New hosts per linking site and day",
    help:
      "The most unknown hosts that the pages of one registrable domain may bring in per day (UTC); " +
      "the first of a domain that nobody knew counts for five. The rest waits.",
    unit: "hosts/day",
    origin: "our judgement, a tenth of what a crawler may bring in",
  }),
  followNofollow: policy(z.boolean().default(false), {
    title: "Follow rel=nofollow",
    help: "Whether links with rel=nofollow are followed. They are in the web graph either way.",
    unit: null,
    origin: "the convention of search engines since 2005",
  }),
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
  policy: policy(z.enum([...balancePolicyNames, "none"]).default("min-cost-flow"), {
    title: "Balance policy",
    help: "Which subnets an overloaded crawler gives up, and to whom; none leaves overloads alone.",
    unit: null,
    origin: "measured, test/bench/results/balance.md",
  }),
  everySeconds: seconds(86_400).default(60),
  movesPerPass: z.int().min(1).max(100_000).default(500),
});

const recalibration = z.strictObject({
  slowerThanFactor: z.number().min(1.05).max(100).default(1.5),
  timesInARow: z.int().min(2).max(100).default(2),
  everySeconds: seconds(86_400).default(30),
  refreshDays: policy(z.number().min(1).max(3650).default(30), {
    title: "Probe again after, on average",
    help:
      "The budget of re-checks: as many rounds as probe each decision again once in so many days, " +
      "since no fetch time shows that another crawler has become nearer. They go where most is " +
      "saved: by how often subnets like it move, what a move costs, and what is fetched there.",
    unit: "days",
    origin: "our judgement",
  }),
});

/** What is believed of crawlers: a share of their pages is fetched by another one as well, and compared. */
const trust = z.strictObject({
  share: policy(z.number().min(0).max(1).default(defaultSamplingRule.share), {
    title: "Cross-fetched",
    basic: true,
    help: "The share of an established crawler's pages that another crawler fetches as well, for comparison; 0.05 is one in twenty.",
    unit: "of its pages",
    origin: "measured, test/bench/results/trust.md",
  }),
  newcomerShare: z.number().min(0).max(1).default(defaultSamplingRule.newcomerShare),
  newcomerPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.newcomerPages),
  /** Of the next pages of a crawler whose page stood alone. */
  watchedShare: z.number().min(0).max(1).default(defaultSamplingRule.watchedShare),
  watchedPages: z.int().min(0).max(10_000_000).default(defaultSamplingRule.watchedPages),
  /** The second fetch follows the first within so long; later, a page has changed too often by itself. */
  slotSeconds: seconds(86_400).default(600),
  /** Of a liar's pages, the altered ones: what is looked for. */
  alteredShare: z.number().min(0.001).max(1).default(defaultTrustRule.alteredShare),
  threshold: z.number().min(1).max(100).default(defaultTrustRule.threshold),
  onDistrust: policy(z.enum(["drain", "keep"]).default("drain"), {
    title: "When a crawler is distrusted",
    help: "drain: its subnets go to others and its latest pages are fetched again; keep: it gets no new ones.",
    unit: null,
    origin: "our judgement, a liar's pages harm every reader",
  }),
  witnesses: policy(z.boolean().default(true), {
    title: "Second witnesses",
    help:
      "Whether a probe report that wins a subnet is held against other crawlers' before it is " +
      "believed. It costs 0.2 to 1.1 probes per subnet where nobody lies; who runs all crawlers " +
      "themselves may do without.",
    unit: null,
    origin: "measured, test/bench/results/trust.md",
    replayed: true,
  }),
  refetchPages: z.int().min(0).max(1_000_000).default(10_000),
});

const frontier = z.strictObject({
  order: policy(z.enum(orderNames).default("breadth-first"), {
    title: "Order of the URLs",
    basic: true,
    help: "Which due URLs of a host are fetched first: those due longest, those with the most links, Anansi's two lists, or those with the highest PageRank.",
    unit: null,
    origin:
      "our judgement, the longest due costs nothing; what the others have sooner is measured, test/bench/results/anansi.md",
  }),
  newShare: policy(z.number().min(0).max(1).default(0.9), {
    title: "New URLs in a lease",
    help: "The share of a lease that goes to URLs never visited before; the rest goes to visited ones that are due again. The order breadth-first ignores it.",
    unit: "of its URLs",
    origin: "Anansi, section 5.1, nine new ones to one old",
  }),
  worthShare: z.number().min(0).max(mostWorthShare).default(0.75),
  linkTypeChecks: z.int().min(0).max(maxLinkTypeChecks).default(0),
});

/** When crawlers are told to slow down or to hurry up (frontier/pace), in host slices due or in hand. */
const workPace = z.strictObject({
  slowDownUnder: policy(z.number().min(0).max(1_000_000).default(4), {
    title: "Slow down under",
    help:
      "A crawler with less due work is told to slow down: it works on no more hosts at a time than " +
      "it has slices, and on at least one. Above that it has a place for each slice, within its " +
      "partner's limits.",
    unit: "host slices",
    origin:
      "WEB-SAILOR, section 4.3; the number is our judgement, a few connections keep up with a few hosts",
  }),
  hurryUpOver: policy(z.number().min(1).max(10_000_000).default(64), {
    title: "Hurry up over",
    help: "A crawler with more due work is told to hurry up: it works on as many hosts at a time as its partner allows, until half of that work is left.",
    unit: "host slices",
    origin: "WEB-SAILOR, section 4.3; the number is our judgement, twice a crawler's initial places",
  }),
  everySeconds: seconds(86_400).default(10),
});

/** The change feed. */
const changes = z.strictObject({
  keepDays: policy(z.number().min(1).max(3650).default(30), {
    title: "Keep changes for",
    basic: true,
    help: "How long changes can be read after they were recorded. A reader that was away longer has to start over.",
    unit: "days",
    origin: "our judgement, a reader that is away for a month starts over anyway",
  }),
});

/** How long is kept what grows day by day (storage/table-ends). */
const retention = z.strictObject({
  fetchDays: policy(z.int().min(2).max(3650).default(30), {
    title: "Keep fetches for",
    basic: true,
    help:
      "How long each fetch is kept with its times, sizes and outcome. After that only the counts " +
      "per URL, host and day remain. This takes the most disk space: 250 bytes per fetch.",
    unit: "days",
    origin: "our judgement, a distrusted crawler's fetches are searched over 30 days",
  }),
  leaseHours: policy(z.int().min(6).max(8760).default(24), {
    title: "Keep closed leases for",
    help: "How long a closed lease is kept. After that only the daily counts by outcome remain.",
    unit: "hours",
    origin: "our judgement, only open leases are needed",
  }),
  roundDays: policy(z.int().min(1).max(3650).default(90), {
    title: "Keep probe rounds for",
    help: "How long probe rounds are kept with their answers. The latest of each subnet, and those that decide a delegation, stay.",
    unit: "days",
    origin: "our judgement, three times recalibration.refreshDays",
  }),
  historyDays: policy(z.int().min(1).max(36_500).default(730), {
    title: "Keep delegation changes for",
    help: "How long the history says which crawler had a subnet before, and why it changed.",
    unit: "days",
    origin: "our judgement, a year and the one before it",
  }),
  rejectedDays: policy(z.int().min(1).max(3650).default(90), {
    title: "Keep rejected URLs for",
    help: "How long a URL without a place in the frontier is kept with the reason, after it was last named.",
    unit: "days",
    origin: "our judgement",
  }),
  recordDays: policy(z.int().min(30).max(36_500).default(1095), {
    title: "Keep records for",
    help: "How long the audit log is kept, and complaints, opt-outs, moves, invitations and tokens after they ended.",
    unit: "days",
    origin: "our judgement, three years",
  }),
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
  retention,
  pace: workPace,
} as const;

export type PolicySectionName = keyof typeof policySections;

export type PolicyName = {
  [Name in PolicySectionName]: PolicyNames<(typeof policySections)[Name], `${Name}.`>;
}[PolicySectionName];

/** Every section in full, what cannot be changed while running included. */
export type PolicySettings = {
  readonly [Name in PolicySectionName]: DeepReadonly<z.infer<(typeof policySections)[Name]>>;
};

export type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value;
