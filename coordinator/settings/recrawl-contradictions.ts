/** Recrawl policies that are each within their bounds, and together impossible or without effect. */
import { priorityLimitsFault } from "../recrawl/priority-groups.ts";
import type { Rule } from "./contradictions.ts";

export const recrawlRules: readonly Rule[] = [
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
