/** Settings of what is crawled, its order, the leases and the crawlers' pace. */
import { z } from "zod";
import { maxLinkTypeChecks } from "#protocol/lease";
import { type DeepReadonly, policy, seconds } from "../../core/policy.ts";
import { mostWorthShare, orderNames } from "./order/strategies.ts";

export const scopeSettings = z.strictObject({
  pagesPerHost: policy(z.int().min(1).max(10_000_000).default(100), {
    title: "Pages per host",
    basic: true,
    help: "The most URLs of one host that are crawled. A host starts with 50 and earns the rest.",
    unit: "URLs",
    origin: "our judgement; the budget is coordinator/crawl/frontier/budgets.ts",
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

export const leaseSettings = z.strictObject({
  seconds: seconds(86_400).default(300),
  urlsPerHost: z.int().min(1).max(1000).default(20),
  hostsPerRequest: z.int().min(1).max(1000).default(20),
  /**
   * Pause of an address before another crawler uses it. Default: a crawler's own maximum. Six times as long after an expired
   * lease.
   */
  addressRestSeconds: z.number().min(0).max(3600).default(10),
});

export const frontierSettings = z.strictObject({
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

/** Thresholds for slowing down and speeding up crawlers (frontier/pace), in host slices due or leased. */
export const paceSettings = z.strictObject({
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

export type ScopeSettings = DeepReadonly<z.infer<typeof scopeSettings>>;

export type LeaseSettings = DeepReadonly<z.infer<typeof leaseSettings>>;

export type FrontierSettings = DeepReadonly<z.infer<typeof frontierSettings>>;

export type PaceSettings = DeepReadonly<z.infer<typeof paceSettings>>;
