/** Alerts about crawlers: away, emptying, not believed, failing, behind. */

import type { AlertFacts, CrawlerFacts } from "./alert-facts.ts";
import {
  crawlerFailureShare,
  drainingHours,
  leastFetches,
  offlineMinutes,
  waitingResults,
} from "./alert-thresholds.ts";
import { type Alert, alertAbout, alertOf } from "./alerts.ts";

const minuteMs = 60_000;

export function fleetAlerts(facts: AlertFacts): readonly (Alert | null)[] {
  return [
    nobodyConnected(facts),
    copied(facts),
    offline(facts),
    waiting(facts),
    draining(facts),
    distrusted(facts),
    failing(facts),
    behind(facts),
  ];
}

function nobodyConnected({ crawlers }: AlertFacts): Alert | null {
  if (crawlers.some(({ state, lastSeenMs }) => state !== "offline" && lastSeenMs !== null)) return null;
  const words =
    crawlers.length === 0
      ? "No crawler is registered, so nothing is crawled."
      : `None of ${crawlers.length} registered crawlers is connected, so nothing is crawled.`;
  const advice =
    crawlers.length === 0
      ? "Invite a partner: nearcrawl fleet invite --name NAME."
      : "Look whether partners can reach this coordinator (its address, its certificate, a firewall), then ask one of them for the crawler's own words.";
  return alertOf("no-crawler-connected", { words, advice, link: "/fleet" });
}

function copied({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter(({ copiedFolder }) => copiedFolder).map(({ name }) => name);
  return alertAbout(names, {
    name: "copied-folder",
    words: "Two machines run with one crawler's folder",
    advice: "Have one of them stopped, or invite that crawler anew: nearcrawl fleet reinvite NAME.",
    link: "/fleet/incidents?kind=copied-folder",
  });
}

function offline({ crawlers, nowMs }: AlertFacts): Alert | null {
  const limitMs = nowMs - offlineMinutes * minuteMs;
  // Who drains and goes has been taken leave of.
  const gone = crawlers.filter(
    ({ state, lastSeenMs, drainingSinceMs, waits }) =>
      state === "offline" &&
      !waits &&
      drainingSinceMs === null &&
      lastSeenMs !== null &&
      lastSeenMs < limitMs,
  );
  return alertAbout(
    namesBy(gone, ({ lastSeenMs }) => lastSeenMs ?? 0),
    {
      name: "crawler-offline",
      words: `Offline for more than ${offlineMinutes} minutes`,
      advice:
        "Its page says why and what its last words were; write to the partner. Its subnets are with others. If it is gone for good: nearcrawl fleet kill NAME.",
      link: "/fleet",
    },
  );
}

function waiting({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter(({ waits }) => waits).map(({ name }) => name);
  return alertAbout(names, {
    name: "crawler-waits",
    words: "Crawlers that run nothing until something is done",
    advice: "Each says what it waits for, and who can do it: its page, or nearcrawl fleet show NAME.",
    link: "/fleet",
  });
}

function draining({ crawlers, nowMs }: AlertFacts): Alert | null {
  const limitMs = nowMs - drainingHours * 60 * minuteMs;
  const long = crawlers.filter(
    ({ drainingSinceMs, distrusted: isDistrusted }) =>
      drainingSinceMs !== null && drainingSinceMs < limitMs && !isDistrusted,
  );
  return alertAbout(
    namesBy(long, ({ drainingSinceMs }) => drainingSinceMs ?? 0),
    {
      name: "crawler-draining",
      words: `Draining for more than ${drainingHours} hours`,
      advice: "Take it back with nearcrawl fleet resume NAME, or shut it out with nearcrawl fleet kill NAME.",
      link: "/fleet",
    },
  );
}

function distrusted({ crawlers }: AlertFacts): Alert | null {
  const names = crawlers.filter((crawler) => crawler.distrusted).map(({ name }) => name);
  return alertAbout(names, {
    name: "crawler-distrusted",
    words: "What these crawlers report is not believed",
    advice:
      "Read the evidence: nearcrawl fleet trust NAME. Shut it out, or restore it if a proxy or a site was to blame.",
    link: "/fleet/trust",
  });
}

function failing({ crawlers }: AlertFacts): Alert | null {
  const share = ({ fetches, ownFailures }: CrawlerFacts) => ownFailures / fetches;
  const bad = crawlers.filter((one) => one.fetches >= leastFetches && share(one) > crawlerFailureShare);
  return alertAbout(
    namesBy(bad, (one) => -share(one)),
    {
      name: "crawler-errors",
      words: `More than ${crawlerFailureShare * 100} % of the last hour's fetches failed by the crawler's own fault`,
      advice: "Its failures say what: a full disk, a resolver, a proxy. Tell the partner, or drain it.",
      link: "/fleet/failures?blame=crawler",
    },
  );
}

function behind({ crawlers }: AlertFacts): Alert | null {
  const full = crawlers.filter((one) => one.waitingResults > waitingResults);
  return alertAbout(
    namesBy(full, (one) => -one.waitingResults),
    {
      name: "results-wait",
      words: `More than ${waitingResults} results wait on a crawler's disk`,
      advice:
        "If it is one crawler: its line is slow, or it was away. If all: the database takes results more slowly than they come.",
      link: "/fleet",
    },
  );
}

/** Ascending by what it gives; equals by name. */
function namesBy(crawlers: readonly CrawlerFacts[], order: (crawler: CrawlerFacts) => number): string[] {
  return [...crawlers]
    .sort((a, b) => order(a) - order(b) || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}
