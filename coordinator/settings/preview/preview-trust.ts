/** Other shares of pages that are fetched twice, and another evidence that is needed to distrust. */

import { samplingShare } from "../../trust/page-sketch.ts";
import type { PolicySettings } from "../schema.ts";
import { nothingYet } from "./delegation.ts";
import type { PreviewPolicies } from "./preview.ts";
import type { FetchRates } from "./types.ts";

const mostFetches = 10_000;

export const previewSampling: PreviewPolicies = async ({ before, after }, { samples }) => {
  const rates = await samples.fetchRates(mostFetches);
  const title = "Pages that are fetched twice";
  if (rates.fetches === 0) return nothingYet(title);
  const pages = rates.crawlers.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const figure = (name: string, words: string, unit: string, of: (settings: PolicySettings) => number) => ({
    ...{ name, words, unit },
    before: of(before),
    after: of(after),
  });
  return {
    title,
    figures: [
      figure("secondFetchesPerDay", "Second fetches", "pages/day", (settings) => second(settings, rates)),
      figure("ofAllPages", "Of all pages", "%", (settings) => (100 * second(settings, rates)) / pages),
    ],
    basis: `${rates.fetches.toLocaleString("en-GB")} fetches of the last ${rates.hours.toFixed(1)} hours, crawler by crawler: who is new or watched more closely is counted with the share that holds for it.`,
    limits: ["Differences lead to further fetches, one or two each; they are not counted."],
  };
};

function second({ trust }: PolicySettings, { crawlers }: FetchRates): number {
  return crawlers.reduce((sum, crawler) => sum + crawler.pagesPerDay * samplingShare(crawler, trust), 0);
}

export const previewDistrust: PreviewPolicies = async ({ before, after }, { samples }) => {
  const scores = await samples.trustScores();
  const above = ({ trust }: PolicySettings) => scores.filter(({ score }) => score >= trust.threshold);
  const fresh = above(after).filter(({ isDistrusted }) => !isDistrusted);
  const below = scores.filter(({ isDistrusted, score }) => isDistrusted && score < after.trust.threshold);
  const named = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(", ");
  return {
    title: "Crawlers that would be judged otherwise",
    figures: [
      {
        name: "atOrAboveThreshold",
        words: "Crawlers whose evidence reaches the threshold",
        unit: "crawlers",
        before: above(before).length,
        after: above(after).length,
      },
      {
        name: "newlyDistrusted",
        words: "Trusted now, and distrusted at their next comparison that is weighed",
        unit: "crawlers",
        before: above(before).filter(({ isDistrusted }) => !isDistrusted).length,
        after: fresh.length,
      },
    ],
    basis: `The evidence of ${scores.length} crawlers as it was when it was last weighed${fresh.length === 0 ? "" : `; newly distrusted would be: ${named(fresh)}`}.`,
    limits: [
      below.length === 0
        ? "Who is not trusted stays so until an operator restores it, whatever the threshold is then."
        : `${named(below)} would stay distrusted although the evidence is below the threshold: an operator restores it.`,
      ...(before.trust.onDistrust === after.trust.onDistrust
        ? []
        : ["What happens on distrust holds for crawlers that are distrusted from then on."]),
    ],
  };
};
