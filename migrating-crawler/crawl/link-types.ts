/**
 * The optional check of links' type (Anansi, sections 3.2 and 4.2): before a page's result is sent, some of its links are
 * asked for by HEAD, and those whose type no crawler reads are told with it, so that nobody fetches them. The thesis asks
 * every link of a page, 20 seconds for 200 links; here only links of the page's own origin are asked, so many of a page
 * at most, each once in a slice, in turns of the host like any other request and only where robots.txt allows it.
 */
import { canParseUrl } from "#core/ip/url-host";
import type { PageLink } from "#protocol/result";

/** A type that is not read; `readable`: one that is, or nothing can be said; `stop`: the host is not to be asked more now. */
export type LinkType = { readonly notRead: string } | "readable" | "stop";

export interface LinkTypeCheck {
  readonly page: string;
  /** Links that are asked, at most. */
  readonly most: number;
  /** What was asked before, which this adds to. */
  readonly asked: Set<string>;
  readonly ask: (url: URL) => Promise<LinkType>;
}

/** The links, those that are not read with their type. */
export async function withLinkTypes(links: readonly PageLink[], check: LinkTypeCheck): Promise<PageLink[]> {
  const { origin } = new URL(check.page);
  const typed = [...links];
  let left = check.most;
  for (const [index, link] of links.entries()) {
    if (left === 0) break;
    if (link.url === check.page || check.asked.has(link.url) || !canParseUrl(link.url)) continue;
    const url = new URL(link.url);
    if (url.origin !== origin) continue;
    const type = await check.ask(url);
    if (type === "stop") break;
    left -= 1;
    check.asked.add(link.url);
    if (type !== "readable") typed[index] = { ...link, contentType: type.notRead };
  }
  return typed;
}
