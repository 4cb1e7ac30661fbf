/**
 * A cap on a site: the least time between two requests to each of its hosts, as an operator sets it, such as after a call
 * from its webmaster. Crawlers are told it as a Crawl-delay; the slower of the two holds.
 */
import { UsageError } from "#core/errors";
import { hostNamed } from "#core/url-key";

export interface SiteCap {
  /** A host's name in ASCII; the cap holds for it and all names below it. */
  readonly site: string;
  /** Between two requests to one host. */
  readonly delayMs: number;
  readonly words: string;
  readonly setBy: string;
  readonly setAt: Date;
}

export interface ListedCap extends SiteCap {
  /** Known hosts that belong to the site. */
  readonly hosts: number;
}

/** What a crawler keeps at most, as of a Crawl-delay. */
export const mostDelaySeconds = 3600;
export const leastDelaySeconds = 0.001;
export const mostWords = 500;
export const mostSiteCaps = 10_000;

/** `www.example.org`, or a URL of it. Throws a UsageError for what is no host's name. */
export function readSite(text: string): string {
  const host = hostNamed(text);
  if (host === null)
    throw new UsageError(`“${text.slice(0, 100)}” is not the name of a site, such as www.example.org`);
  return host;
}
