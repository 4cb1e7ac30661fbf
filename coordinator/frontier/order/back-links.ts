/** What most pages link to, of all that is known, goes first (WEB-SAILOR, sections 3.3 and 4.1). */
import type { OrderStrategy } from "./strategies.ts";

export const backLinks: OrderStrategy = {
  name: "back-links",
  words: "what most pages link to first (WEB-SAILOR)",
  mixesNewAndOld: true,
  newScore: (url) => url.backLinks,
  oldScore: (url) => url.backLinks,
  reason: (url) => `${url.backLinks} = I, the links to it`,
};
