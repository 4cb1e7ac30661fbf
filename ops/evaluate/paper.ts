/** The numbers that the paper states in its text (section 4.5); its figures 3 to 5 have no others that can be read. */
export const paper = {
  /** In the experiment with thresholds. */
  crawlers: 12,
  /** Accuracy: the best crawler, exactly. */
  thresholds: [
    { thresholdMs: 25, optimalPct: 90, probesPerUrl: 6.5 },
    { thresholdMs: 50, optimalPct: 75, probesPerUrl: 3 },
  ],
  /** Twelve crawlers, 50 ms. */
  probesPerUrlLast50: 2.66,
  /** Random by location-aware: "one order of magnitude less time", 4 crawlers, 1,000 sites. */
  downloadRatio: 10,
} as const;
