/**
 * The URLs that a result names: links and redirects, which belong to the web graph, and sitemaps, feeds and what
 * these list, which do not. What may be followed is to be admitted, but for links whose type no crawler reads.
 *
 * A redirect is no link further than where it starts; what a host's own robots.txt and lists name lies where its
 * seeds do, or one link from there; everything else is one link deeper than the page.
 */
import { type UrlKey, urlKeyOf } from "#core/url-key";
import type { FetchResult, PageExtract } from "#protocol/result";
import type { AdmittedUrl, ArrivedResult } from "../frontier/ports.ts";

export function namedUrls(
  result: FetchResult,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit"> {
  const { links, admit } = fromDocument(result, from, followNofollow);
  return { links, admit: [...sitemapsOfRobots(result, from), ...admit] };
}

function fromDocument(
  { outcome, page }: FetchResult,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit"> {
  if (outcome.type === "redirected") return fromRedirect(outcome.location, from);
  if (page === null || page.softNotFound === true) return { links: [], admit: [] };
  if (page.kind !== undefined && page.kind !== "page") return { links: [], admit: fromList(page, from) };
  const { links, admit } = fromPage(page, from, followNofollow);
  return { links, admit: [...feedsOf(page, from), ...admit] };
}

function fromRedirect(location: string, from: UrlKey): Pick<ArrivedResult, "links" | "admit"> {
  const key = urlKeyOf(location);
  if (typeof key === "string" || key.url === from.url) return { links: [], admit: [] };
  const link = { hostHash: key.hostHash, urlHash: key.urlHash, anchor: "", nofollow: false };
  return { links: [link], admit: [{ key, depth: 0, redirects: 1 }] };
}

function fromPage(
  page: PageExtract,
  from: UrlKey,
  followNofollow: boolean,
): Pick<ArrivedResult, "links" | "admit"> {
  const links = new Map<string, ArrivedResult["links"][number]>();
  const admit: AdmittedUrl[] = [];
  for (const { url, anchor, nofollow, contentType } of page.links) {
    const key = urlKeyOf(url);
    if (typeof key === "string" || key.url === from.url) continue;
    // Of several links to one URL, the first that may be followed counts.
    if (links.get(key.url)?.nofollow === false || (nofollow && links.has(key.url))) continue;
    links.set(key.url, { hostHash: key.hostHash, urlHash: key.urlHash, anchor, nofollow });
    if (contentType !== undefined) continue;
    if ((!nofollow || followNofollow) && !page.robots.nofollow) admit.push({ key, depth: 1 });
  }
  return { links: [...links.values()], admit };
}

/** What a list names of its own host is one link from a seed, however deep the list was found. */
function fromList(page: PageExtract, from: UrlKey): AdmittedUrl[] {
  return page.links.flatMap(({ url, modifiedAt, changeFrequency }) => {
    const key = urlKeyOf(url);
    if (typeof key === "string" || key.url === from.url) return [];
    const isOwn = key.hostHash === from.hostHash;
    const changedMs = isOwn && modifiedAt !== undefined ? Date.parse(modifiedAt) : Number.NaN;
    return [
      {
        key,
        depth: 1,
        fromSeed: isOwn,
        lists: 1,
        ...(Number.isNaN(changedMs) ? {} : { modifiedAt: new Date(changedMs) }),
        ...(isOwn && changeFrequency !== undefined ? { changeFrequency } : {}),
      },
    ];
  });
}

function feedsOf(page: PageExtract, from: UrlKey): AdmittedUrl[] {
  if (page.robots.nofollow) return [];
  return (page.feeds ?? []).flatMap((url) => asList(url, from, { depth: 1 }));
}

function sitemapsOfRobots({ robots }: FetchResult, from: UrlKey): AdmittedUrl[] {
  return (robots?.sitemaps ?? []).flatMap((url) => asList(url, from, { depth: 0, fromSeed: true }));
}

/** A host names its own lists; what it names of others is a link like any, so that nobody uses up their share. */
function asList(
  url: string,
  from: UrlKey,
  at: { readonly depth: number; readonly fromSeed?: boolean },
): AdmittedUrl[] {
  const key = urlKeyOf(url);
  if (typeof key === "string") return [];
  return key.hostHash === from.hostHash ? [{ key, ...at, isList: true }] : [{ key, depth: 1 }];
}
