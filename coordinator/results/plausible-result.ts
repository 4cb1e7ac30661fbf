/**
 * What no crawler of ours sends, whatever a site serves: more links than are shipped, more bytes than are read,
 * results faster than anything can be fetched. Such a result is dropped by itself; it tells that the crawler's
 * software is another one than it says.
 */
import { type FetchResult, maxPageLinks } from "#protocol/result";

/** A body is read to 5 MB and no further, and what a page takes on the wire is not much more than that. */
export const mostPageBytes: number = 64 * 1024 * 1024;

/** Why it cannot be, in words; null: it can. */
export function implausible({ page, outcome, bodyBytes, wireBytes }: FetchResult): string | null {
  if (bodyBytes > mostPageBytes || wireBytes > mostPageBytes) {
    return `a page of ${Math.max(bodyBytes, wireBytes)} bytes, and none is read so far`;
  }
  if (page === null) return null;
  if (outcome.type !== "fetched") return `there is a page, though the outcome is ${outcome.type}`;
  const isPage = page.kind === undefined || page.kind === "page";
  if (isPage && page.links.length > maxPageLinks) {
    return `a page with ${page.links.length} links, and ${maxPageLinks} are shipped`;
  }
  return null;
}
