/** What has been due the longest, then what is nearest to a seed: every URL has its turn, whatever links to it. */
import type { OrderStrategy } from "./strategies.ts";

export const breadthFirst: OrderStrategy = {
  name: "breadth-first",
  words: "the longest due first, then the nearest to a seed",
  mixesNewAndOld: false,
  newScore: (url) => url.dueSeconds,
  oldScore: (url) => url.dueSeconds,
  reason: ({ dueSeconds, depth }) =>
    `${dueSeconds < 0 ? `due in ${Math.round(-dueSeconds)} s` : `due for ${Math.round(dueSeconds)} s`}, ${depth} ${depth === 1 ? "link" : "links"} from a seed`,
};
