/**
 * Links that came by their names (protocol/known-links), in full again, before anything else looks at them. A name that
 * stands for no known link of the page's host, whether by mistake or by intent, is dropped; its page loses its
 * validators, so that it is read in full at its next visit, against another set.
 */

import type { HostHash } from "#core/ids";
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { hostHashOf } from "#core/url-key";
import { isLinkName } from "#protocol/lease";
import type { FetchResult, PageLink } from "#protocol/result";
import type { WireResult } from "../results/take-results.ts";

/** A name on a page of a host. */
export interface NamedLink {
  readonly hostHash: HostHash;
  readonly name: string;
}

export interface KnownLinkStore {
  /** URLs of those names that stand for exactly one known link of a channel of their host, by `keyOfName`. */
  readonly urlsOfNames: (names: readonly NamedLink[]) => Promise<ReadonlyMap<string, string>>;
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
