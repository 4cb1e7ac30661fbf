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

/** `page`: the URL of the document that the links are on. */
export function shipLinks(links: readonly Link[], page: string, now: Date): ShippedLinks {
  const from = { parts: urlParts(withoutSession(page)), thisYear: now.getUTCFullYear() };
  const shipped = new Map<string, Link>();
  let trapped = 0;
  for (const link of links) {
    const url = withoutSession(link.url);
    const known = shipped.get(url);
    if (known !== undefined) shipped.set(url, merged(known, link));
    else if (linkTrap(url, from) !== null) trapped++;
    else shipped.set(url, url === link.url ? link : { ...link, url });
  }
  return { links: [...shipped.values()], trapped };
}

function merged(known: Link, again: Link): Link {
  return {
    ...known,
    anchor: known.anchor === "" ? again.anchor : known.anchor,
    nofollow: known.nofollow && again.nofollow,
  };
}
