/**
 * A cap on a site: an operator's minimum time between two requests to each of its hosts, for example after a
 * webmaster's call. Crawlers receive it as a Crawl-delay. If the site states one, too, the slower applies.
 */
import { UsageError } from "#core/errors";
import { hostNamed } from "#core/url-key";

export interface SiteCap {
  /** The name of a host in ASCII. The cap also covers all names below it. */
  readonly site: string;
  /** Minimum time between two requests to a host. */
  readonly delayMs: number;
  readonly words: string;
  readonly setBy: string;
  readonly setAt: Date;
}

export interface ListedCap extends SiteCap {
  /** Number of known hosts of the site. */
  readonly hosts: number;
}

/** Maximum delay that crawlers observe, as for a Crawl-delay. */
export const mostDelaySeconds = 3600;
export const leastDelaySeconds = 0.001;
export const mostWords = 500;
export const mostSiteCaps = 10_000;

/** Accepts `www.example.org` or a URL there. Throws a UsageError for any other text. */
export function readSite(text: string): string {
  const host = hostNamed(text);
  if (host === null)
    throw new UsageError(`“${text.slice(0, 100)}” is not the name of a site, such as www.example.org`);
  return host;
}
