/**
 * A cap on a site: an operator's minimum time between two requests to each of its hosts, for example after a
 * webmaster's call. Crawlers receive it as a Crawl-delay; the slower of the two applies.
 */
import { UsageError } from "#core/errors";
import { hostNamed } from "#core/url-key";

export interface SiteCap {
  /** A host's name in ASCII; the cap also covers all names below it. */
  readonly site: string;
  /** Between two requests to one host. */
  readonly delayMs: number;
  readonly words: string;
  readonly setBy: string;
  readonly setAt: Date;
}

export interface ListedCap extends SiteCap {
  /** Number of known hosts of the site. */
  readonly hosts: number;
}

/** The longest delay that a crawler observes, as for a Crawl-delay. */
export const mostDelaySeconds = 3600;
export const leastDelaySeconds = 0.001;
export const mostWords = 500;
export const mostSiteCaps = 10_000;

/** Accepts `www.example.org` or a URL of it. Throws a UsageError for other texts. */
export function readSite(text: string): string {
  const host = hostNamed(text);
  if (host === null)
    throw new UsageError(`“${text.slice(0, 100)}” is not the name of a site, such as www.example.org`);
  return host;
}
