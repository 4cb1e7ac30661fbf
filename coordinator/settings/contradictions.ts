/** Policies that are each within their bounds, and together impossible or without effect. */

import { priorityLimitsFault } from "../recrawl/priority-groups.ts";
import type { PolicyName } from "./descriptions.ts";
import type { PolicySettings } from "./schema.ts";

interface Rule {
  readonly names: readonly PolicyName[];
  /** What is wrong, with the values; null: nothing. */
  readonly fault: (settings: PolicySettings) => string | null;
}

/** What crawlers wait between two requests to a host, unless it asks for more (migrating-crawler/settings/config.ts). */
const politenessSeconds = 1;

// Recrawl policies that are each within their bounds, and together impossible or without effect.

const recrawlRules: readonly Rule[] = [
  {
    names: ["recrawl.smallestMultiple", "recrawl.biggestMultiple"],
    fault: ({ recrawl }) => {
      const fault = priorityLimitsFault(recrawl);
      return fault && `recrawl.biggestMultiple: ${fault}`;
    },
  },
  {
    names: ["recrawl.shortestHours", "recrawl.longestDays"],
    fault: ({ recrawl: { shortestHours, longestDays } }) =>
      shortestHours > longestDays * 24
        ? `recrawl.shortestHours: no page may be fetched again before ${shortestHours} h are over, and each has to be after ${longestDays * 24} h (recrawl.longestDays: ${longestDays})`
        : null,
  },
  {
    names: ["recrawl.shortestHours", "lease.seconds"],
    fault: ({ recrawl: { shortestHours }, lease }) =>
      shortestHours * 3600 < lease.seconds
        ? `recrawl.shortestHours: pages could be due again after ${shortestHours * 3600} s, before the lease on them ends (lease.seconds: ${lease.seconds} s)`
        : null,
  },
  {
    names: ["recrawl.strategy", "recrawl.total", "recrawl.intervalHours", "recrawl.longestDays"],
    fault: ({ recrawl: { strategy, total, intervalHours, longestDays } }) =>
      strategy === "optimal" && total === "interval" && intervalHours > longestDays * 24
        ? `recrawl.intervalHours: fetches for one every ${intervalHours} h are less than what recrawl.longestDays (${longestDays * 24} h) asks for every page, so that nothing is left to divide`
        : null,
  },
  {
    names: ["recrawl.strategy", "recrawl.total"],
    fault: ({ recrawl: { strategy, total } }) =>
      total === "capacity" && strategy !== "optimal"
        ? `recrawl.total: capacity is without effect under recrawl.strategy ${strategy}; only optimal divides a total`
        : null,
  },
];

const rules: readonly Rule[] = [
  {
    names: ["lease.seconds", "lease.urlsPerHost"],
    fault: ({ lease }) =>
      lease.seconds < lease.urlsPerHost * politenessSeconds
        ? `lease.seconds: a crawler leaves ${politenessSeconds} s between two URLs of a host, so ${lease.urlsPerHost} of them (lease.urlsPerHost) take longer than a lease of ${lease.seconds} s`
        : null,
  },
  {
    names: ["recrawl.intervalHours", "lease.seconds"],
    fault: ({ recrawl, lease }) =>
      recrawl.intervalHours * 3600 < lease.seconds
        ? `recrawl.intervalHours: pages would be due again after ${recrawl.intervalHours * 3600} s, before the lease on them ends (lease.seconds: ${lease.seconds} s)`
        : null,
  },
  ...recrawlRules,
  {
    names: ["frontier.linkTypeChecks", "lease.seconds", "lease.urlsPerHost"],
    fault: ({ frontier, lease }) =>
      frontier.linkTypeChecks > 0 &&
      lease.seconds < lease.urlsPerHost * (1 + frontier.linkTypeChecks) * politenessSeconds
        ? `frontier.linkTypeChecks: ${lease.urlsPerHost} URLs (lease.urlsPerHost) with ${frontier.linkTypeChecks} checks each take ${lease.urlsPerHost * (1 + frontier.linkTypeChecks) * politenessSeconds} s at ${politenessSeconds} s between two requests, longer than a lease of ${lease.seconds} s (lease.seconds)`
        : null,
  },
  {
    names: ["trust.share", "trust.newcomerShare"],
    fault: ({ trust }) =>
      trust.newcomerShare < trust.share
        ? `trust.newcomerShare: ${trust.newcomerShare} is less than what is fetched twice of established crawlers (trust.share: ${trust.share}); the larger one counts`
        : null,
  },
  {
    names: ["scope.admitNewHosts", "scope.newHostsPerCrawlerAndDay"],
    fault: ({ scope }) =>
      scope.admitNewHosts && scope.newHostsPerCrawlerAndDay === 0
        ? "scope.newHostsPerCrawlerAndDay: new hosts are admitted (scope.admitNewHosts: yes), and none a day"
        : null,
  },
  {
    names: ["delegation.policy", "delegation.thresholdMs", "probe.deadlineMs"],
    fault: ({ delegation, probe }) =>
      delegation.policy === "ipmicra" && delegation.thresholdMs > probe.deadlineMs
        ? `delegation.thresholdMs: a probe has failed after ${probe.deadlineMs} ms (probe.deadlineMs), so the first answer would always do at ${delegation.thresholdMs} ms`
        : null,
  },
  {
    names: ["pace.slowDownUnder", "pace.hurryUpOver"],
    fault: ({ pace }) =>
      pace.slowDownUnder >= pace.hurryUpOver
        ? `pace.slowDownUnder: with ${pace.slowDownUnder} host slices and pace.hurryUpOver: ${pace.hurryUpOver}, a crawler would be told to slow down and to hurry up at once`
        : null,
  },
  within("perCrawlerAtOnce", "atOnce"),
  within("perCrawlerPerSecond", "perSecond"),
  within("perNetworkPerSecond", "perSecond"),
  within("perTargetPerSecond", "perNetworkPerSecond"),
];

type Pace = keyof PolicySettings["probe"]["pace"];

function within(part: Pace, whole: Pace): Rule {
  return {
    names: [`probe.pace.${part}`, `probe.pace.${whole}`],
    fault: ({ probe: { pace } }) =>
      pace[part] > pace[whole]
        ? `probe.pace.${part}: ${pace[part]} can never be reached, since probe.pace.${whole} is ${pace[whole]}`
        : null,
  };
}

/** Of the rules that concern one of these policies; an old contradiction elsewhere holds nobody up. */
export function contradictionsIn(settings: PolicySettings, touched: Iterable<PolicyName>): string[] {
  const names = new Set(touched);
  return rules
    .filter((rule) => rule.names.some((name) => names.has(name)))
    .flatMap(({ fault }) => fault(settings) ?? []);
}
