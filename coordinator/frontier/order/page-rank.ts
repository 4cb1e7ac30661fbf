/** By PageRank as last computed (`nearcrawl rank`); a URL that had no part in that comes after all that had. */
import { type OrderStrategy, told } from "./strategies.ts";

export const pageRank: OrderStrategy = {
  name: "pagerank",
  words: "the highest PageRank first, as nearcrawl rank last computed it",
  mixesNewAndOld: true,
  newScore: (url) => url.pageRank ?? 0,
  oldScore: (url) => url.pageRank ?? 0,
  reason: ({ pageRank: rank }) =>
    rank === null ? "0, since no rank was computed with this URL in it" : `${told(rank)} = its PageRank`,
};
