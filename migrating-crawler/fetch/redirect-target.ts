/**
 * Where a redirect leads (RFC 9110 section 10.2.2, WHATWG Fetch "location URL"): Location against the page's
 * own URL, bytes beyond ASCII taken for UTF-8 where they are, else for ISO-8859-1.
 */
import { isUtf8 } from "node:buffer";
import { withoutUser } from "#core/ip/url-host";
import { maxRedirects } from "#protocol/result";
import { resolveUrl } from "../extract/resolve-url.ts";
import { Failure } from "../net/failure.ts";

/** 305 and 306 name proxies; 304 answers a condition. */
const redirecting = new Set([300, 301, 302, 303, 307, 308]);
const toldCharacters = 100;

export interface RedirectingAnswer {
  readonly status: number;
  readonly location: string | readonly string[] | undefined;
}

/** The page that redirects, and how many redirects in a row led to it. */
export interface RedirectedPage {
  readonly url: string;
  readonly redirects: number;
}

/** An absolute http(s) URL; a Failure when it leads nowhere; null when the answer is no redirect. */
export function redirectTarget(answer: RedirectingAnswer, page: RedirectedPage): string | Failure | null {
  const locations = new Set([answer.location ?? []].flat().map((value) => value.trim()));
  const [location] = locations;
  if (!redirecting.has(answer.status) || location === undefined || location === "") return null;
  if (locations.size > 1) return new Failure("bad-redirect", `${locations.size} different Locations`);
  const target = resolveUrl(textOf(location), page.url);
  if (target === null) return new Failure("bad-redirect", `not a URL that is crawled: ${shown(location)}`);
  if (target === withoutFragment(page.url)) {
    return new Failure("redirect-loop", "the page redirects to itself");
  }
  if (page.redirects < maxRedirects) return target;
  return new Failure("too-many-redirects", `more than ${maxRedirects} redirects in a row`);
}

function textOf(latin1: string): string {
  const bytes = Buffer.from(latin1, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : latin1;
}

function shown(location: string): string {
  const start = withoutUser(location)
    .slice(0, toldCharacters)
    .replace(/[^\x20-\x7e]/g, "?");
  return location.length > toldCharacters ? `${start}… (${location.length} bytes)` : start;
}

function withoutFragment(url: string): string {
  const parsed = new URL(url);
  parsed.hash = "";
  return parsed.href;
}
