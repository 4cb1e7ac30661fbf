/** What became of a URL, in the words that its row in the frontier keeps. */
import { maxRedirects } from "#protocol/result";
import { clean } from "../database/transaction.ts";
import { type CountedResult, isList, isSoftNotFound, mostListsInARow } from "./arrived-result.ts";

/** Null: nothing has to be said beside the outcome. */
export function reasonOf(counted: CountedResult): string | null {
  const { outcome } = counted.result;
  switch (outcome.type) {
    case "fetched":
      return fetchedWords(counted, outcome.truncated);
    case "unchanged":
      return outcome.status === 304 ? null : "the same body as before";
    case "redirected":
      return clean(`to ${outcome.location}${unfollowed(counted)}`);
    case "http-error":
      return `status ${outcome.status}`;
    case "refused-by-robots":
      return clean(`robots.txt: ${outcome.rule}`);
    case "refused-address":
      return clean(`${outcome.address} is a special-purpose address (${outcome.block})`);
    case "unsupported":
      return clean(`content type ${outcome.contentType} is not indexed`);
    case "failed":
      return clean(`${outcome.code}: ${outcome.reason}`);
  }
}

function fetchedWords({ result, before }: CountedResult, truncated: boolean): string | null {
  if (isSoftNotFound(result)) return "the page says “not found”, though with status 200";
  if (isList(result)) {
    const nested = before.lists >= mostListsInARow ? ", which are left out: too many lists in a row" : "";
    return `a ${result.page?.kind} that names ${result.page?.links.length} URLs${nested}`;
  }
  return truncated ? "the body was cut at the size limit" : null;
}

function unfollowed({ before }: CountedResult): string {
  if (before.redirects < maxRedirects) return "";
  return `; not followed, it would be redirect ${before.redirects + 1} in a row`;
}
