/** Where a page leads: its links as absolute URLs, and the address that it states for itself. */
import { cutAt } from "./cut-text.ts";
import type { ResolveReference } from "./link-resolver.ts";
import type { ReadLink } from "./read-links.ts";

/** The links in order, each URL once (the first anchor that says something); page-wide nofollow holds for all. */
export function absoluteLinks(
  links: readonly ReadLink[],
  resolve: ResolveReference,
  nofollow: boolean,
): { url: string; anchor: string; nofollow: boolean }[] {
  const found = new Map<string, { url: string; anchor: string; nofollow: boolean }>();
  for (const link of links) {
    const url = resolve(link.href);
    if (url === null) continue;
    const known = found.get(url);
    const anchor = cutAt(link.anchor, 200);
    if (known === undefined) found.set(url, { url, anchor, nofollow: nofollow || link.nofollow });
    else {
      if (known.anchor === "") known.anchor = anchor;
      known.nofollow &&= nofollow || link.nofollow;
    }
  }
  return [...found.values()];
}

/** The target of the first `Link` with the relation `canonical` (RFC 8288, RFC 6596), as written. */
export function canonicalOfHeader(header: string | readonly string[] | undefined): string | null {
  for (const value of [header ?? []].flat().slice(0, 20)) {
    for (const [, target, parameters] of value.slice(0, 8192).matchAll(/<([^<>]*)>([^<]*)/g)) {
      if (/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?canonical(?:\s[^"]*)?"|canonical(?=\s|[;,]|$))/i.test(parameters!))
        return target!;
    }
  }
  return null;
}
