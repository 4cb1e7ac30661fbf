/** What is told of a URL's record in plain words: how it was found, when it is fetched next and why, how it changes. */

import { howMany, instantWords } from "#core/format";
import type { FetchLine, UrlReport } from "../frontier/frontier-reports.ts";
import { told } from "../frontier/order/strategies.ts";

export function foundWords(url: Pick<UrlReport, "foundBy" | "depth" | "redirects">): string {
  switch (url.foundBy) {
    case "seed":
      return "as a seed";
    case "redirect":
      return `by ${howMany(url.redirects, "redirect")} in a row, ${howMany(url.depth, "link")} from a seed`;
    case "list":
      return "in a sitemap or a feed";
    case "link":
      return `by a link, ${howMany(url.depth, "link")} from a seed`;
  }
}

/** When it is fetched next, and why then. `at`: the answer's instant. */
export function nextFetchWords(url: UrlReport, at: string): string {
  switch (url.state) {
    case "leased":
      return "a crawler has it in hand";
    case "held":
      return "when its host's budget grows";
    case "gone":
      return "not any more: it is gone";
    case "refused":
      return url.lastOutcome === "refused-by-robots" && url.nextFetchAt !== null
        ? `robots.txt is asked again ${instantWords(url.nextFetchAt)}`
        : "not any more: it is refused";
    case "due": {
      if (url.nextFetchAt === null) return "as soon as its turn comes";
      const when = url.nextFetchAt <= at ? "due since" : "not before";
      return `${when} ${instantWords(url.nextFetchAt)}, ${whyThen(url)}`;
    }
  }
}

function whyThen(url: UrlReport): string {
  if (url.visits === 0) return "since it was never fetched";
  if (url.failures > 0) return `a new try after ${howMany(url.failures, "failure")} in a row`;
  const rate = url.changes.perDay;
  return `as the recrawl policy has it${rate === null ? "" : ` for a page with ${told(rate)} changes a day`}`;
}

/** "0.5 changes a day, by 3 changes in 8 compared visits; 12 links, 0.7 of them changed"; empty: nothing is known. */
export function changeWords({ changes }: Pick<UrlReport, "changes">): string {
  const compared =
    changes.comparedVisits === 0
      ? []
      : [
          `${howMany(changes.contentChanges, "change")} in ${howMany(changes.comparedVisits, "compared visit")}`,
        ];
  const rate = changes.perDay === null ? [] : [`about ${told(changes.perDay)} a day`];
  const links = changes.outLinks === null ? [] : [howMany(changes.outLinks, "link")];
  const ratio =
    changes.linkRatio === null ? [] : [`${told(changes.linkRatio)} of them changed at the last visit`];
  return [[...compared, ...rate].join(", "), [...links, ...ratio].join(", ")]
    .filter((part) => part !== "")
    .join("; ");
}

/** What a visit found of the content, beside the visit before: changed, the same, or nothing to compare with. */
export function contentWords({ changed }: Pick<FetchLine, "changed">): string {
  return changed === null ? "–" : changed ? "changed" : "same";
}

/** The validators that the next fetch asks with; empty: none. */
export function validatorWords({ validators }: Pick<UrlReport, "validators">): string {
  const { etag, lastModified, digest } = validators;
  return [
    ...(etag === null ? [] : [`ETag ${etag}`]),
    ...(lastModified === null ? [] : [`Last-Modified ${lastModified}`]),
    ...(digest === null ? [] : [`SHA-256 ${digest.slice(0, 16)}…`]),
  ].join(", ");
}
