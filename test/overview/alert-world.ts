/** The facts of a crawl that needs no attention, and ways to change one of them. */
import type { AlertFacts, CrawlerFacts, JobFacts, OwnFacts } from "#coordinator/tell/overview/alert-facts";

export const nowMs = Date.parse("2026-03-01T12:00:00Z");
export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

export const athens: CrawlerFacts = {
  ...{ name: "athens", state: "online", lastSeenMs: nowMs, connectedMs: nowMs - dayMs, joinedMs: null },
  ...{ drainingSinceMs: null, distrusted: false, waitingResults: 12, fetches: 1000, ownFailures: 0 },
  ...{ copiedFolder: false, neverRan: false, waits: false, idleWhy: null },
};

export const well: AlertFacts = {
  nowMs,
  crawlers: [athens, { ...athens, name: "berlin" }],
  queue: { p95Seconds: 300, unplacedSeconds: 20 },
  linkOutbox: { effects: 900, ageSeconds: 0.4 },
  hour: { fetches: 2000, failures: { target: 0, network: 0, crawler: 0, us: 0 } },
  day: { fetchedBytes: 1.6e9, shippedBytes: 6e7 },
  ...{ figuresAtMs: nowMs - minuteMs, statedUntilMs: null, registryAppliedMs: nowMs - 20 * dayMs },
  ...{ incidents: [], openInvitations: 0, releases: [], databaseMs: 1.5 },
  accuracy: { samples: 400, share: 0.96 },
};

export const healthy: OwnFacts = {
  ...{ clock: null, silent: null, unwritable: null, journal: null, leaderlessSinceMs: null },
  ...{ eventLoop: { p99Ms: 12, mostMs: 180 }, jobs: [], silentCoordinators: [] },
};

export const withCrawler = (differences: Partial<CrawlerFacts>): Partial<AlertFacts> => ({
  crawlers: [athens, { ...athens, name: "berlin", ...differences }],
});
export const withOwn = (differences: Partial<OwnFacts>): Partial<AlertFacts> => ({
  own: { ...healthy, ...differences },
});
export const fault = (words: string, seconds: number) => ({ words, sinceMs: nowMs - seconds * 1000 });
export const job: JobFacts = {
  ...{ name: "apply-links", everyMs: 1000, runningSinceMs: null, succeededMs: nowMs - 500 },
  ...{ failures: 0, failingSinceMs: null, words: null },
};
