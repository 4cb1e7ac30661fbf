/** What each rule looks for, with its threshold: for whoever wonders why something is an alert, or is none. */

import {
  accuracyShare,
  crawlerFailureShare,
  databaseMs,
  drainingHours,
  leastFetchedBytes,
  leastFetches,
  leastSamples,
  offlineMinutes,
  ourFailureShare,
  queueAgeHours,
  registryDays,
  relativeMinutes,
  roundWaitMinutes,
  shippedShare,
  silentMinutes,
  waitingResults,
} from "./alert-thresholds.ts";
import type { AlertName } from "./alerts.ts";

const percent = (share: number) => `${share * 100} %`;

export const ruleWords: Readonly<Record<AlertName, string>> = {
  "coordinator-silent": `no coordinator has written its figures for ${silentMinutes} minutes`,
  "no-crawler-connected": "no crawler is connected",
  "errors-by-us": `over ${percent(ourFailureShare)} of the last hour's fetches (${leastFetches} at least) failed in our own software`,
  "copied-folder": "two machines ran with one crawler's folder within the last day",
  "crawler-offline": `a crawler that is not draining has been away for over ${offlineMinutes} minutes`,
  "crawler-draining": `a crawler has been draining for over ${drainingHours} hours`,
  "crawler-distrusted": "a crawler's results or probe reports are not believed",
  "crawler-errors": `over ${percent(crawlerFailureShare)} of a crawler's fetches in the last hour (${leastFetches} at least) failed by its own fault`,
  "results-wait": `over ${waitingResults} results wait on a crawler's disk`,
  "subnets-wait": `a host waits for over ${roundWaitMinutes} minutes for a crawler to be found`,
  "queue-age": `one in twenty hosts that are due waits for over ${queueAgeHours} hours`,
  "compression-poor": `over ${percent(shippedShare)} of what was fetched in 24 hours (${leastFetchedBytes / 1e6} MB at least) was shipped`,
  "registry-old": `the registry in force is over ${registryDays} days old, or there is none`,
  incidents: "incidents were noted in the last hour",
  "release-missing":
    "no release is offered to all, while invitations are open or crawlers have joined where nothing has run yet",
  "crawler-waits": "a crawler that is away has said that nothing can run there until something is done",
  "release-held": "the newest release was offered, and is offered to nobody any more",
  "release-failing": "a crawler refused a release that is offered, or went back to the one before",
  "database-slow": `the database takes over ${databaseMs} ms for the simplest of questions`,
  "parent-away": `the parent coordinator was not reached, or refused, for over ${relativeMinutes} minutes`,
  "child-silent": `a coordinator below this one was not heard of for over ${relativeMinutes} minutes, or is refused`,
  "foreign-urls-dropped":
    "URLs for another coordinator were given up within the last day, because too many waited",
  "accuracy-low": `under ${percent(accuracyShare)} of the samples (${leastSamples} at least) are with a crawler that is nearly the nearest`,
};
