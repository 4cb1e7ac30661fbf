/**
 * What `npm run bench -- all` runs: one bench for each thing that must not get slower unnoticed, in a form that takes well
 * under a minute. Its figures are for comparing two commits; results/*.md have those of the full runs.
 */

export interface QuickBench {
  /** Of test/lab/NAME.bench.ts. */
  readonly name: string;
  readonly args: readonly string[];
  /** It runs what is in dist/. */
  readonly isBuilt?: true;
}

export const quickBenches: readonly QuickBench[] = [
  { name: "crawl", args: ["real", "made", "short"] },
  { name: "ingest", args: ["20000", "5"] },
  { name: "delegation", args: ["nearest", "200"] },
  { name: "search", args: ["--pages", "20000", "--users", "4", "--seconds", "6"] },
  { name: "start", args: ["--rounds", "3"], isBuilt: true },
  { name: "ip-tree", args: ["20260301", "0.05"] },
];
