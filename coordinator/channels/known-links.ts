/** Which known links of a channel are worth being told to a crawler. */
import type { CrawlerId, HostHash } from "#core/ids";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { hostHashOf } from "#core/url-key";
import { isLinkName, keptLinkSets, keptLinkSetsMs, type Lease } from "#protocol/lease";
import type { FetchResult, PageLink } from "#protocol/result";
import type { KnownLinkStore, NamedLink, WireResult } from "../results/accepted-result.ts";

/**
 * What the first mention of a link to another site takes in a connection beyond what its name takes, deflated: measured,
 * about 3 bytes for a front page's URL of 34 characters and 17 for an article's of 85 (test/bench/results/digests.md).
 */
const savedBytesPerCharacter = 0.27;

const charactersOfName = 24;

/** What a link takes in a set, and a set before its first link. */
const setBytes = 2.25;

const headBytes = 4;

export interface ToldLink {
  /** Of the channel's pages, as many have it. */
  readonly pageShare: number;
  /** Characters. */
  readonly urlLength: number;
}

export interface ShippedPages {
  /** Pages of the lease that were never read. */
  readonly newPages: number;
  /** Those that were: what is unchanged ships no links. */
  readonly knownPages: number;
  /** Share of visits of the channel's pages that found a change. */
  readonly changedShare: number;
}

/**
 * Those that are told; none where all of them together do not pay. Each costs its place in the set, and saves its text if
 * any page of the lease has it: with a chance of 1 − (1 − share)^pages, taking the lease's pages for any of the channel's.
 */
export function linksThatPay<Link extends ToldLink>(links: readonly Link[], lease: ShippedPages): Link[] {
  const pages = lease.newPages + lease.knownPages * lease.changedShare;
  const gain = ({ pageShare, urlLength }: ToldLink) => {
    const chance = 1 - (1 - Math.min(1, pageShare)) ** pages;
    return chance * savedBytesPerCharacter * Math.max(0, urlLength - charactersOfName) - setBytes;
  };
  const told = links.filter((link) => gain(link) > 0);
  return told.reduce((sum, link) => sum + gain(link), 0) > headBytes ? told : [];
}

export const keyOfName = ({ hostHash, name }: NamedLink): string => `${hostHash} ${name}`;

/** `hasLostLinks`: some of its links are not among them. */
export type FullResult = WireResult & { readonly hasLostLinks?: true };

/** Without a store no name is known. */
export async function withFullLinks(
  results: readonly WireResult[],
  store: Partial<KnownLinkStore>,
): Promise<readonly FullResult[]> {
  const names = results.flatMap(({ result }) => namesIn(result));
  if (names.length === 0) return results;
  const distinct = [...new Map(names.map((one) => [keyOfName(one), one])).values()];
  const urls = (await store.urlsOfNames?.(distinct)) ?? new Map<string, string>();
  return results.map((one) => withFull(one, urls));
}

function namesIn({ url, page }: FetchResult): NamedLink[] {
  const names = page?.links.filter((link) => isLinkName(link.url)) ?? [];
  if (names.length === 0) return [];
  const hostHash = hostOf(url);
  return hostHash === null ? [] : names.map((link) => ({ hostHash, name: link.url }));
}

function withFull(one: WireResult, urls: ReadonlyMap<string, string>): FullResult {
  const { result } = one;
  const hostHash = hostOf(result.url);
  if (result.page === null || hostHash === null || namesIn(result).length === 0) return one;
  const links = result.page.links.flatMap((link): PageLink[] => {
    if (!isLinkName(link.url)) return [link];
    const url = urls.get(keyOfName({ hostHash, name: link.url }));
    return url === undefined ? [] : [{ ...link, url }];
  });
  const full = { ...one, result: { ...result, page: { ...result.page, links } } };
  return links.length === result.page.links.length ? full : { ...full, hasLostLinks: true };
}

function hostOf(url: string): HostHash | null {
  return canParseUrl(url) ? hostHashOf(urlHost(url)) : null;
}

// Which crawler has been told known links of which host in its connection: a crawler keeps the sets of the latest hosts, and
// is told each once. In memory: a coordinator that starts anew has new connections.

export class ToldLinks {
  /** By crawler and host, the latest last: since when it has the set. */
  readonly #told = new Map<CrawlerId, Map<string, number>>();

  /** A new connection: nothing is known of what the crawler still has. */
  forget(crawlerId: CrawlerId): void {
    this.#told.delete(crawlerId);
  }

  /** The leases as they are to be sent now; without sets that the crawler has. */
  once(crawlerId: CrawlerId, leases: readonly Lease[], now: Date): Lease[] {
    return leases.map((lease) => {
      if (lease.knownLinks === undefined || this.#tell(crawlerId, lease.host, now.getTime())) return lease;
      const { knownLinks: _, ...rest } = lease;
      return rest;
    });
  }

  /** False: it has been told. Half of the time that a set is kept, so that the crawler never lacks what is taken for told. */
  #tell(crawlerId: CrawlerId, host: string, nowMs: number): boolean {
    const hosts = this.#told.get(crawlerId) ?? new Map<string, number>();
    this.#told.set(crawlerId, hosts);
    const sinceMs = hosts.get(host);
    const isTold = sinceMs !== undefined && nowMs >= sinceMs && nowMs - sinceMs < keptLinkSetsMs / 2;
    hosts.delete(host);
    hosts.set(host, isTold ? sinceMs : nowMs);
    if (hosts.size > keptLinkSets) hosts.delete(hosts.keys().next().value!);
    return !isTold;
  }
}
