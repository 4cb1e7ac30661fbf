/**
 * What an operator may change while the coordinator runs, in words: what each policy does, its unit, and where its
 * default comes from. Bounds and defaults are policy-schema.ts's; policy-catalogue.ts puts both together.
 */

import { delegationPolicies } from "../delegation/policies/policies.ts";

export interface PolicyWords {
  readonly title: string;
  /** One sentence: what it does, and what more or less of it costs. */
  readonly help: string;
  /** As it is written after the value; null: it has none. */
  readonly unit: string | null;
  /** Where the default comes from: a paper's section, a measurement, or our own judgement. */
  readonly origin: string;
}

// The policies of leases and of the frontier's order in words; part of policy-words.ts.

const frontierWords = {
  "lease.seconds": {
    title: "Length of a lease",
    help: "A crawler has so long to fetch what it was handed; then it returns, and may go to another.",
    unit: "s",
    origin: "our judgement",
  },
  "lease.urlsPerHost": {
    title: "URLs of a host in a lease",
    help: "So many URLs of one host are handed to a crawler together, which keeps a connection in use.",
    unit: "URLs",
    origin: "our judgement",
  },
  "lease.hostsPerRequest": {
    title: "Hosts in one answer",
    help: "A crawler that asks for work gets so many hosts at once at most.",
    unit: "hosts",
    origin: "our judgement",
  },
  "frontier.order": {
    title: "Order of the URLs",
    help: "Decides which due URLs of a host are fetched first: the longest due, what most pages link to, Anansi's two lists, the highest PageRank, or what is expected to be most out of date.",
    unit: null,
    origin:
      "our judgement, the longest due costs nothing; what the others have sooner is measured, test/bench/results/anansi.md",
  },
  "frontier.newShare": {
    title: "New URLs in a lease",
    help: "So large a share of a lease is for URLs that were never visited, the rest for visited ones that are due again; the order breadth-first does not ask.",
    unit: "of its URLs",
    origin: "Anansi, section 5.1, nine new ones to one old",
  },
  "frontier.worthShare": {
    title: "Hosts that go by their best URL",
    help: "Of the hosts that a crawler is handed so large a share goes to those whose best due URL comes first in the order, the rest to those that have been due the longest, so that none is forgotten; 0 lets hosts take turns alone, and the order breadth-first does not ask.",
    unit: "of the hosts",
    origin: "our judgement; measured, test/bench/results/anansi.md",
  },
  "frontier.linkTypeChecks": {
    title: "Links asked for their type",
    help: "Of each page so many links to its own site are asked for by HEAD, in turns of the host, and those that are no page are not fetched; each check takes as long as a fetch, and 0 means none.",
    unit: "links a page",
    origin: "our judgement; Anansi, section 4.2, asks them all",
  },
} as const satisfies Readonly<Record<string, PolicyWords>>;

export const policyWords = {
  "delegation.policy": {
    title: "Delegation policy",
    help: `Decides which crawlers are asked about a new subnet, and when the answer is good enough. ${delegationPolicies.map(({ name, words }) => `${name}: ${words}`).join("; ")}.`,
    unit: null,
    origin: "measured, test/bench/results/delegation.md",
  },
  "delegation.lambdaMs": {
    title: "λ, what a probe must save",
    help: "With the policy nearest, another crawler is probed while that is expected to save so much RTT; smaller is more exact and costs more probes.",
    unit: "ms",
    origin: "measured, test/bench/results/delegation.md",
  },
  "delegation.thresholdMs": {
    title: "Threshold",
    help: "With the policy ipmicra, a crawler that answers within this takes the subnet, and nobody else is asked.",
    unit: "ms",
    origin: "IPMicra, section 4.5",
  },
  "delegation.concurrentRounds": {
    title: "Probe rounds at once",
    help: "Maximum concurrent probe rounds; rounds that run together cannot learn from each other.",
    unit: "rounds",
    origin: "our judgement, many more would learn little from each other",
  },
  "delegation.getFirstFromUrls": {
    title: "Fetch first from",
    help: "A new subnet with so many URLs waiting is crawled while it is being probed; 0 means that none is.",
    unit: "URLs",
    origin: "our judgement, below it the first fetch saves less than a probe costs",
  },
  "probe.tries": {
    title: "Tries of a probe",
    help: "A probe measures so many times at most, fewer when two agree, and the smallest time is taken.",
    unit: "tries",
    origin: "our judgement, the smallest of a few is the path, without its queues",
  },
  "probe.deadlineMs": {
    title: "Deadline of a probe",
    help: "A crawler that has no answer by then counts as one that cannot reach the subnet.",
    unit: "ms",
    origin: "our judgement, several times the slowest path round the world",
  },
  "probe.pace.perCrawlerAtOnce": {
    title: "Probes under way, a crawler",
    help: "One partner's machine has so many probes under way at most.",
    unit: "probes",
    origin: "our judgement, nothing that a home connection notices",
  },
  "probe.pace.perCrawlerPerSecond": {
    title: "Probes a second, a crawler",
    help: "One partner's machine starts so many probes in any second at most.",
    unit: "probes/s",
    origin: "our judgement, nothing that a home connection notices",
  },
  "probe.pace.perTargetPerSecond": {
    title: "Probes a second, a target",
    help: "One address hears from so many of our crawlers in any second at most.",
    unit: "probes/s",
    origin: "our judgement, below what any site takes for an attack",
  },
  "probe.pace.perNetworkPerSecond": {
    title: "Probes a second, a network",
    help: "One /24 (IPv4) or /48 (IPv6) hears from our crawlers so often in any second at most.",
    unit: "probes/s",
    origin: "our judgement, below what any network takes for a scan",
  },
  "probe.pace.atOnce": {
    title: "Probes under way, all crawlers",
    help: "The whole fleet has so many probes under way at most.",
    unit: "probes",
    origin: "our judgement",
  },
  "probe.pace.perSecond": {
    title: "Probes a second, all crawlers",
    help: "The whole fleet starts so many probes in any second at most.",
    unit: "probes/s",
    origin: "our judgement",
  },
  "balance.policy": {
    title: "Balance policy",
    help: "Decides which subnets an overloaded crawler gives up and to whom; none leaves overloads alone.",
    unit: null,
    origin: "measured, test/bench/results/balance.md",
  },
  "balance.everySeconds": {
    title: "Balance every",
    help: "Loads are looked at, and moves made, so often.",
    unit: "s",
    origin: "our judgement, loads change over hours",
  },
  "balance.movesPerPass": {
    title: "Moves in one pass",
    help: "So many subnets move, and so many probes are made for them, in one pass at most.",
    unit: "moves",
    origin: "our judgement, a minute's work for the fleet",
  },
  "recalibration.slowerThanFactor": {
    title: "Slower than usual by",
    help: "A fetch counts as slow above so many times its host's usual time; smaller notices more and probes more.",
    unit: "times",
    origin: "IPMicra, section 4.4; the figure is measured, test/bench/results/calibration.md",
  },
  "recalibration.timesInARow": {
    title: "Slow in a row",
    help: "A subnet is probed again after so many slow fetches in a row, or more where slow fetches are common.",
    unit: "fetches",
    origin: "IPMicra, section 4.4, more than one time continuously",
  },
  "recalibration.everySeconds": {
    title: "Look for slow subnets every",
    help: "Hosts that turned slow wait for their round so long at most.",
    unit: "s",
    origin: "our judgement",
  },
  "recalibration.refreshDays": {
    title: "Probe again after",
    help: "A decision so old is probed again, since a crawler that became nearer meanwhile shows in no fetch time.",
    unit: "days",
    origin: "our judgement",
  },
  "recrawl.intervalHours": {
    title: "Fetch again after",
    help: "A page that was fetched is due again after so long, and counts so in every crawler's load; pages that have their time already keep it.",
    unit: "h",
    origin: "our judgement, a week",
  },
  "recrawl.strategy": {
    title: "Recrawl strategy",
    help: "fixed: every page after the same interval; iir and icr: groups of hosts and channels at intervals that follow what the fleet manages; optimal: each page at the rate that keeps most of the index fresh.",
    unit: null,
    origin:
      "our judgement: optimal keeps one to two points more fresh, and leaves what changes too fast; test/bench/results/recrawl.md",
  },
  "recrawl.total": {
    title: "Fetches again, in all",
    help: "With optimal: interval divides as many fetches as recrawl.intervalHours for every page comes to; capacity takes all that the fleet is found to manage.",
    unit: null,
    origin: "our judgement, an interval says what sites and partners are to bear",
  },
  "recrawl.groups": {
    title: "Priority groups",
    help: "With iir and icr, hosts, and their channels for themselves, are divided by how often they change into so many groups, each with an interval.",
    unit: "groups",
    origin: "SARSS, section 4",
  },
  "recrawl.encourageRate": {
    title: "Encouragement, δ",
    help: "What succeeds more often than before is tried at so much of its interval; smaller finds free capacity sooner and overshoots more.",
    unit: "times",
    origin: "our judgement, SARSS names no value",
  },
  "recrawl.smallestMultiple": {
    title: "Smallest multiple, σ",
    help: "With iir and icr, a group that would be more urgent than the one before it gets so many times its interval.",
    unit: "times",
    origin: "our judgement, SARSS names no value",
  },
  "recrawl.biggestMultiple": {
    title: "Biggest multiple, μ",
    help: "With iir and icr, a group has at most so many times the interval of the one before it.",
    unit: "times",
    origin: "our judgement, SARSS names no value",
  },
  "recrawl.shortestHours": {
    title: "Fetch again after, at the least",
    help: "No page is fetched again sooner by iir, icr and optimal, however often it changes.",
    unit: "h",
    origin: "our judgement, hardly any reader notices the rest",
  },
  "recrawl.longestDays": {
    title: "Fetch again after, at the most",
    help: "Every page is fetched again by then under iir, icr and optimal, since one that never changed may change after all.",
    unit: "days",
    origin: "our judgement",
  },
  "recrawl.visitsPerChange": {
    title: "Fetches for each change",
    help: "With optimal, a page is fetched at most so many times as often as it is thought to change. Small numbers cost freshness: what slow pages may not have goes to those that change too fast.",
    unit: "times",
    origin: "worked out, test/core/recrawl/optimal-rates; SARSS names 2 (section 4.3)",
  },
  "recrawl.usualChangesPerDay": {
    title: "Changes expected of a page",
    help: "What a page is expected to change as long as neither its visits nor its host say anything else.",
    unit: "changes/day",
    origin: "Cho and Garcia-Molina, VLDB 2000: half of the pages change within 50 days",
  },
  "recrawl.everySeconds": {
    title: "Look at the intervals every",
    help: "Plans are made anew so often; iir and icr only when half the most urgent hosts and channels had six updates.",
    unit: "s",
    origin: "our judgement",
  },
  "scope.pagesPerHost": {
    title: "Pages per host",
    help: "So many URLs of one host are crawled at most; a host starts with 50 and earns the rest.",
    unit: "URLs",
    origin: "our judgement; the budget is coordinator/frontier/budgets.ts",
  },
  "scope.maxDepth": {
    title: "Links from a seed",
    help: "A URL that is so many links away from a seed is crawled, and none that is further.",
    unit: "links",
    origin: "our judgement",
  },
  "scope.admitNewHosts": {
    title: "Follow links to new hosts",
    help: "Whether links to hosts that nobody named are followed, or kept as links alone.",
    unit: null,
    origin: "our judgement, a crawl goes no further than it was told",
  },
  "scope.newHostsPerCrawlerAndDay": {
    title: "New hosts, a crawler and day",
    help: "One crawler's results bring in so many hosts that nobody knew in a day (UTC) at most.",
    unit: "hosts/day",
    origin: "our judgement, a page of a new crawl names one or two",
  },
  "scope.followNofollow": {
    title: "Follow rel=nofollow",
    help: "Whether links with rel=nofollow are followed; they are in the web graph either way.",
    unit: null,
    origin: "the convention of search engines since 2005",
  },
  "trust.share": {
    title: "Fetched twice",
    help: "So large a share of an established crawler's pages is fetched by another one as well, and compared; 0.01 is one in a hundred.",
    unit: "of its pages",
    origin: "measured, test/bench/results/trust.md",
  },
  "trust.newcomerShare": {
    title: "Fetched twice, of newcomers",
    help: "So large a share of a new crawler's first pages is fetched by another one as well, and compared.",
    unit: "of its pages",
    origin: "measured, test/bench/results/trust.md",
  },
  "trust.threshold": {
    title: "Evidence to distrust",
    help: "A crawler whose evidence (a natural logarithm of likelihoods) reaches this is not trusted any more.",
    unit: null,
    origin: "measured, test/bench/results/trust.md",
  },
  "trust.onDistrust": {
    title: "What happens on distrust",
    help: "drain: its subnets go to others and its latest pages are fetched again; keep: it gets no new ones.",
    unit: null,
    origin: "our judgement, a liar's pages harm every reader",
  },
  ...frontierWords,
  "changes.keepDays": {
    title: "Keep changes for",
    help: "Changes can be read for so long after they were noted; a reader that was away for longer has to look again.",
    unit: "days",
    origin: "our judgement, a reader that is away for a month begins anew anyway",
  },
  "pace.slowDownUnder": {
    title: "Slow down under",
    help: "A crawler with less due work is told to slow down: it works on no more hosts at a time than it has slices, one at least. Above, it has a place for each slice, within its partner's limits.",
    unit: "host slices",
    origin:
      "WEB-SAILOR, section 4.3; the number is our judgement, a few connections keep up with a few hosts",
  },
  "pace.hurryUpOver": {
    title: "Hurry up over",
    help: "A crawler with more due work is told to hurry up: it works on as many hosts at a time as its partner allows, until half of that work is left.",
    unit: "host slices",
    origin: "WEB-SAILOR, section 4.3; the number is our judgement, twice the places of a crawler as it comes",
  },
  "pace.everySeconds": {
    title: "Look at the work every",
    help: "How often each crawler's due work is counted; its places for hosts follow that count, up and down.",
    unit: "s",
    origin: "our judgement",
  },
} as const satisfies Readonly<Record<string, PolicyWords>>;

export type PolicyName = keyof typeof policyWords;
