/** The links of a document that are shipped: without sessions, each URL once, and without those that look like traps. */
import type { PageExtract } from "#protocol/result";
import { linkTrap } from "./link-trap.ts";
import { withoutSession } from "./session-ids.ts";
import { urlParts } from "./url-parts.ts";

type Link = PageExtract["links"][number];

export interface ShippedLinks {
  readonly links: Link[];
  /** Links that were left out because they look like traps. */
  readonly trapped: number;
}

/** `links`: each URL once. `page`: the URL of the document that they are on. */
export function shipLinks(links: readonly Link[], page: string, now: Date): ShippedLinks {
  const from = { parts: urlParts(withoutSession(page)), thisYear: now.getUTCFullYear() };
  const all = links.some(({ url }) => withoutSession(url) !== url) ? withoutSessions(links) : links;
  const shipped = all.filter(({ url }) => linkTrap(url, from) === null);
  return { links: shipped, trapped: all.length - shipped.length };
}

/** Links that differ in their session alone become one. */
function withoutSessions(links: readonly Link[]): Link[] {
  const found = new Map<string, Link>();
  for (const link of links) {
    const url = withoutSession(link.url);
    const known = found.get(url);
    found.set(url, known === undefined ? { ...link, url } : merged(known, link));
  }
  return [...found.values()];
}

function merged(known: Link, again: Link): Link {
  return {
    ...known,
    anchor: known.anchor === "" ? again.anchor : known.anchor,
    nofollow: known.nofollow && again.nofollow,
  };
}
