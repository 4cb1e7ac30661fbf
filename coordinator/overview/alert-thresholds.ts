/** From where on something is an alert. Each with its unit and where it comes from. */

/** Most partners' machines are back from an update or a cut line within this; its subnets went to others long before. */
export const offlineMinutes = 60;
/** Subnets are handed over within minutes, leases run out in five; what still drains a day later was forgotten. */
export const drainingHours = 24;
/** A round takes seconds, and one that nobody answers is tried again for an hour (delegation/retry-wait). */
export const roundWaitMinutes = 60;
/** Of the hosts that are due, 95 of 100 wait less: a day late is a seventh of the usual recrawl interval (one week). */
export const queueAgeHours = 24;
/** Failures that are our software's fault should not happen at all; a few may come from one odd page. */
export const ourFailureShare = 0.01;
/** The crawler's or its machine's fault; a release is held back from 2 % more than others have (core/release). */
export const crawlerFailureShare = 0.1;
/** Fewer fetches say nothing of a share (as in releases/automatic-staging). */
export const leastFetches = 50;
/** UCYMicra ships less than a twentieth of what is fetched. */
export const shippedShare = 1 / 20;
/** Less than this fetched in a day is too little to judge by: some 250 pages of the usual 40 kB. */
export const leastFetchedBytes = 10_000_000;
/** The registries are imported each quarter (ops/systemd), and ten days are left to look at a plan. */
export const registryDays = 100;
/** A page shows what a dozen queries gave; at this each, it takes longer than people wait. */
export const databaseMs = 250;
/** Below nine of ten the policy does worse than any we measured (ops/evaluate: 90 to 99 %). */
export const accuracyShare = 0.9;
/** With fewer samples a few odd ones decide. */
export const leastSamples = 30;
/** Minutes are written as they end; so many in a row are missing only when nobody writes. */
export const silentMinutes = 5;
/** Coordinators ask their parent every few seconds, and when it is away, every five minutes at least. */
export const relativeMinutes = 15;
/** Results that a crawler has on its disk and that we have not acknowledged: minutes of work at full pace. */
export const waitingResults = 5000;
