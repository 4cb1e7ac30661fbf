/** A report of a working crawler with small numbers. */

import { noUrls } from "#crawler/status/status-history";
import type { StatusReport } from "#crawler/status/status-report";

export function sampleReport(changes: Partial<StatusReport> = {}): StatusReport {
  const unlimited = { resetsAt: null, holdingBack: "" };
  return {
    statusVersion: 1,
    at: "2026-11-22T13:00:00.000Z",
    state: "crawling",
    words: "Crawling: 2 sites open, 7 URLs in the last minute.",
    crawler: {
      name: "amber",
      id: 1,
      home: "/var/lib/nearcrawl-crawler",
      processId: 77,
      startedAt: "2026-11-22T09:40:00.000Z",
      fingerprint: "abcdefghijkl",
      publicAddress: "192.0.2.7",
    },
    coordinator: {
      url: "wss://search.example/crawler",
      contactPage: "https://search.example/about-crawler",
      userAgent: "Nearcrawl/0.1 (+https://search.example/about-crawler)",
      connectedSince: "2026-11-22T12:56:00.000Z",
      notConnectedSince: null,
      notConnectedBecause: "",
    },
    pause: null,
    drain: null,
    contribution: { days: [{ day: "2026-11-21", urls: 900, pages: 880 }], total: { urls: 950, pages: 929 } },
    holdingBack: [],
    limits: [
      { limit: "pause", unit: "", used: null, cap: null, ...unlimited },
      {
        limit: "pagesPerDay",
        unit: "pages",
        used: 50,
        cap: 200,
        resetsAt: "2026-11-23T00:00:00.000Z",
        holdingBack: "",
      },
      { limit: "bytesPerMonth", unit: "bytes", used: 1024, cap: null, ...unlimited },
      { limit: "memoryBytes", unit: "bytes", used: null, cap: null, ...unlimited },
    ],
    notTold: [],
    work: {
      openHosts: 2,
      hostsWaiting: 1,
      slowHosts: [
        {
          host: "slow.example",
          words: "28 requests per minute at most: it answered 429 or 503 at 60 requests per minute",
        },
      ],
      pace: null,
      lastMinute: { ...noUrls, urls: 7, fetched: 6, failed: 1 },
      today: { ...noUrls, urls: 50, fetched: 49, failed: 1 },
      probes: { asked: 3, measured: 2, notAllowed: 1, unanswered: 0 },
    },
    shipping: {
      pages: 49,
      fetchedBytes: 1000,
      bodyBytes: 4096,
      shippedBytes: 1024,
      timesSmaller: 4,
      waitingResults: 1,
      spoolBytes: 2048,
      spoolMostBytes: 4096,
    },
    errors: { today: { target: 1, network: 0, crawler: 0, us: 0 }, latest: [] },
    versions: { crawler: "0.1.0", release: "1.4.0", dock: "1", node: "20.20.2", protocol: 3 },
    releases: {
      current: "1.4.0",
      isWatched: true,
      previous: "1.3.0",
      offeredSince: null,
      takesNothing: null,
      policy: "follow: releases are taken when they are offered",
      notTaken: [{ version: "1.5.0", state: "pinned", reason: "the partner refuses this version" }],
      returned: [],
    },
    lastEnds: [],
    ...changes,
  };
}

export const failure = {
  at: "2026-11-22T12:59:00.000Z",
  blame: "target",
  host: "a.example",
  code: "tls",
  words: "the certificate has expired",
} as const;
