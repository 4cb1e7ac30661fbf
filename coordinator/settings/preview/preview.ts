/**
 * What a change of policies would come to, before it is made: computed from samples of what the crawl has done, in
 * bounded time. What cannot be told in time, or at all, is said so.
 */
import type { AlarmClock } from "#core/clock";
import type { Log } from "#core/log";
import type { PolicyName } from "../descriptions.ts";
import { previewBalance } from "./balance.ts";
import { previewFrontier, previewLeases, previewLinks, previewPace } from "./crawl.ts";
import { previewDelegation, previewFirstFetches } from "./delegation.ts";
import { previewDistrust, previewRecalibration, previewSampling } from "./other.ts";
import type { PolicyEffect, PolicyStep, PreviewPolicies, PreviewPorts } from "./types.ts";

/** So long a preview is waited for, all effects together. */
const patienceMs = 2000;

/** Each by the policies that it tells of. */
const previews: readonly {
  readonly title: string;
  readonly of: readonly PolicyName[];
  readonly preview: PreviewPolicies;
}[] = [
  {
    title: "Delegation: the latest rounds played again",
    of: ["delegation.policy", "delegation.lambdaMs", "delegation.thresholdMs"],
    preview: previewDelegation,
  },
  {
    title: "Subnets that are fetched first and probed meanwhile",
    of: ["delegation.getFirstFromUrls"],
    preview: previewFirstFetches,
  },
  {
    title: "Probes: what waits",
    of: [
      "delegation.concurrentRounds",
      "probe.tries",
      "probe.deadlineMs",
      "probe.pace.perCrawlerAtOnce",
      "probe.pace.perCrawlerPerSecond",
      "probe.pace.atOnce",
      "probe.pace.perSecond",
    ],
    preview: previewPace,
  },
  {
    title: "Balance: the present loads planned anew",
    of: [
      "balance.policy",
      "balance.everySeconds",
      "balance.movesPerPass",
      "recrawl.intervalHours",
      "recrawl.strategy",
      "recrawl.total",
    ],
    preview: previewBalance,
  },
  {
    title: "Recalibration: the latest fetches weighed again",
    of: [
      "recalibration.slowerThanFactor",
      "recalibration.timesInARow",
      "recalibration.everySeconds",
      "recalibration.refreshDays",
    ],
    preview: previewRecalibration,
  },
  {
    title: "Pages due, and what hosts may have",
    of: ["recrawl.intervalHours", "recrawl.strategy", "recrawl.total", "scope.pagesPerHost"],
    preview: previewFrontier,
  },
  {
    title: "Links that are followed",
    of: ["scope.maxDepth", "scope.admitNewHosts", "scope.followNofollow", "scope.newHostsPerCrawlerAndDay"],
    preview: previewLinks,
  },
  {
    title: "Pages that are fetched twice",
    of: ["trust.share", "trust.newcomerShare"],
    preview: previewSampling,
  },
  {
    title: "Crawlers that would be judged otherwise",
    of: ["trust.threshold", "trust.onDistrust"],
    preview: previewDistrust,
  },
  {
    title: "Leases",
    of: ["lease.seconds", "lease.urlsPerHost", "lease.hostsPerRequest"],
    preview: previewLeases,
  },
];

export async function previewPolicies(step: PolicyStep, ports: PreviewPorts): Promise<PolicyEffect[]> {
  const wanted = previews.filter(({ of }) => of.some((name) => step.names.has(name)));
  const told = new Set(previews.flatMap(({ of }) => of));
  const untold = [...step.names].filter((name) => !told.has(name));
  const deadline = deadlineOf(ports.clock);
  try {
    const effects = await Promise.all(
      wanted.map(async ({ title, preview }) => {
        const effect = preview(step, ports).catch((error: unknown) => failed(title, error, ports.log));
        return await Promise.race([effect, deadline.passed.then(() => late(title))]);
      }),
    );
    return [...effects, ...(untold.length === 0 ? [] : [atOnce(untold)])];
  } finally {
    deadline.callOff();
  }
}

function deadlineOf(clock: AlarmClock): { readonly passed: Promise<void>; readonly callOff: () => void } {
  let callOff = () => {};
  const passed = new Promise<void>((resolve) => {
    callOff = clock.wake(patienceMs, resolve);
  });
  return { passed, callOff };
}

const late = (title: string): PolicyEffect => ({
  title,
  figures: [],
  basis: `Not told: reading or computing it took longer than ${patienceMs / 1000} s.`,
  limits: [],
});

function failed(title: string, error: unknown, log: Log): PolicyEffect {
  log.error({ error }, "what a change of policies would come to could not be computed");
  return {
    title,
    figures: [],
    basis: "Not told: the database did not answer as it should; the coordinator's log says why.",
    limits: [],
  };
}

const atOnce = (names: readonly PolicyName[]): PolicyEffect => ({
  title: "Without figures",
  figures: [],
  basis: `Nothing that is stored tells what ${names.join(", ")} would come to.`,
  limits: ["It holds from the moment it is saved, for what begins after that."],
});
