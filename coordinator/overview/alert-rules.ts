/** Alerts about the crawl as a whole: what waits, what fails, what is shipped, how near it is fetched. */

import type { AlertFacts } from "./alert-facts.ts";
import {
  accuracyShare,
  leastFetchedBytes,
  leastFetches,
  leastSamples,
  ourFailureShare,
  queueAgeHours,
  roundWaitMinutes,
  shippedShare,
} from "./alert-thresholds.ts";
import { type Alert, alertOf } from "./alerts.ts";

export function crawlAlerts(facts: AlertFacts): readonly (Alert | null)[] {
  return [ourErrors(facts), subnetsWait(facts), queueAge(facts), compression(facts), accuracy(facts)];
}

function ourErrors({ hour: { fetches, ourFailures } }: AlertFacts): Alert | null {
  if (fetches < leastFetches || ourFailures <= fetches * ourFailureShare) return null;
  return alertOf("errors-by-us", {
    words: `${percent(ourFailures / fetches)} of the last hour's ${fetches} fetches failed by the fault of our own software.`,
    advice:
      "If it began with a release, hold that (nearcrawl release hold VERSION). The failures name the URLs to look at.",
    link: "/fleet/failures?blame=us",
  });
}

function subnetsWait({ queue: { unplacedSeconds } }: AlertFacts): Alert | null {
  if (unplacedSeconds === null || unplacedSeconds <= roundWaitMinutes * 60) return null;
  return alertOf("subnets-wait", {
    words: `Hosts whose subnet no crawler has been found for wait for up to ${span(unplacedSeconds)}.`,
    advice:
      "Look who was asked, and why nobody took it: all crawlers may be full, draining, or not allowed there.",
    link: "/fleet/queue?reason=no-delegation",
  });
}

function queueAge({ queue: { p95Seconds } }: AlertFacts): Alert | null {
  if (p95Seconds === null || p95Seconds <= queueAgeHours * 3600) return null;
  return alertOf("queue-age", {
    words: `One in twenty hosts that are due waits for more than ${span(p95Seconds)}.`,
    advice:
      "The queue says what for. Raise the budgets of crawlers that are full, invite more, or crawl less often (recrawl.intervalHours).",
    link: "/fleet/queue",
  });
}

function compression({ day: { fetchedBytes, shippedBytes } }: AlertFacts): Alert | null {
  if (fetchedBytes < leastFetchedBytes || shippedBytes <= fetchedBytes * shippedShare) return null;
  return alertOf("compression-poor", {
    words: `Crawlers shipped 1/${(fetchedBytes / shippedBytes).toFixed(1)} of what they fetched in the last 24 hours; 1/20 is the aim.`,
    advice:
      "Short pages and many failed fetches ship more than they fetch; the crawlers' table says whose share is the largest.",
    link: "/#fleet",
  });
}

function accuracy({ accuracy: { samples, share } }: AlertFacts): Alert | null {
  if (samples < leastSamples || share === null || share >= accuracyShare) return null;
  return alertOf("accuracy-low", {
    words: `Only ${percent(share)} of ${samples} sampled subnets are with a crawler that is nearly the nearest.`,
    advice:
      "The samples say whose subnets are off. A lower λ probes more before it decides; full crawlers pass theirs on.",
    link: "/accuracy",
  });
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

/** "90 minutes", "26 hours", "3 days". */
function span(seconds: number): string {
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} hours`;
  return `${Math.round(seconds / 86_400)} days`;
}
