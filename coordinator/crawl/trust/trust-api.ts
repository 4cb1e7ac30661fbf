/** API schemas for trust in crawlers and its reasons. */
import { z } from "zod";
import { dateTime, type ReadOf, record } from "../../web/api-operation.ts";

/**
 * not-compared: no page has been compared yet. watched: it stood alone recently, so more pages are compared.
 * unproven: too many comparisons were inconclusive, so more are made.
 */
export const trustStandings = [
  "trusted",
  "not-compared",
  "unproven",
  "watched",
  "distrusted",
  "probes-doubted",
] as const;

export type TrustStanding = (typeof trustStandings)[number];

export const standingWords: Readonly<Record<TrustStanding, string>> = {
  trusted: "trusted",
  "not-compared": "not compared yet",
  unproven: "unproven",
  watched: "watched",
  distrusted: "not trusted",
  "probes-doubted": "probes doubted",
};

const standing = {
  crawler: z.string(),
  standing: z.enum(trustStandings),
  pages: z.number().describe("Fetched under leases since the comparisons began, or since it was restored."),
  comparisons: z.strictObject({
    agreed: z.int(),
    alone: z.int(),
    once: z.int(),
    untold: z.int().describe("Inconclusive. From five on, and a third of all, the crawler is unproven."),
  }),
  score: z.number(),
  restoredAt: dateTime().nullable(),
};

export const trustLine = record("TrustLine", {
  ...standing,
  since: dateTime()
    .nullable()
    .describe("Since when it is not trusted, and why; null with words: why it is unproven."),
  words: z.string(),
});

const doubt = z.strictObject({ since: dateTime(), words: z.string() }).nullable();

const trustEvidence = z.strictObject({
  url: z.string(),
  at: dateTime(),
  verdict: z
    .enum(["alone", "once"])
    .describe("Each fetch differed from all others', or the first alone did."),
  words: z.string(),
  counts: z.boolean(),
  why: z.string(),
  opinions: z.array(z.strictObject({ crawler: z.string(), at: z.string(), said: z.string() })),
});

export const trustReportSchema = record("TrustReport", {
  ...standing,
  distrusted: doubt,
  probesDoubted: doubt,
  connected: z.int().describe("Connected crawlers. With fewer than three nobody can say who is right."),
  evidence: z.array(trustEvidence).describe("The latest first."),
});

export type TrustLine = ReadOf<typeof trustLine>;
export type TrustReport = ReadOf<typeof trustReportSchema>;
export type TrustEvidence = ReadOf<typeof trustEvidence>;

export function unprovenWords({ agreed, alone, once, untold }: TrustReport["comparisons"]): string {
  const of = `${untold} of ${untold + agreed + alone + once} comparisons of its pages were inconclusive`;
  const why =
    "it runs another version than the others, sites did not answer, or there are too few crawlers to say who is right";
  return `${of}: ${why}. Its honesty is unproven, so more of its pages are compared.`;
}
