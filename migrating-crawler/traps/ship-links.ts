/** The links of a document that are shipped: without sessions, each URL once, and without those that look like traps. */
import type { PageExtract } from "#protocol/result";
import { urlParts } from "./host-memory.ts";
import { linkTrap } from "./link-trap.ts";

type Link = PageExtract["links"][number];

interface ShippedLinks {
  readonly links: Link[];
  /** Links that were left out because they look like traps. */
  readonly trapped: number;
}

/** `links`: each URL once. `page`: the URL of the document that they are on. */
export function shipLinks(links: readonly Link[], page: string, now: Date): ShippedLinks {
  const from = { parts: urlParts(withoutSession(page)), thisYear: now.getUTCFullYear() };
  const all = links.some(({ url }) => withoutSession(url) !== url) ? withoutSessions(links) : links;
  const shipped = all.filter(({ url }) => linkTrap(url, from) === null);
  return { links: shipped, trapped: all.length - shipped.length };
}

/** Links that differ in their session alone become one. */
function withoutSessions(links: readonly Link[]): Link[] {
  const found = new Map<string, Link>();
  for (const link of links) {
    const url = withoutSession(link.url);
    const known = found.get(url);
    found.set(url, known === undefined ? { ...link, url } : merged(known, link));
  }
  return [...found.values()];
}

function merged(known: Link, again: Link): Link {
  return {
    ...known,
    anchor: known.anchor === "" ? again.anchor : known.anchor,
    nofollow: known.nofollow && again.nofollow,
  };
}

// Links without the session that they were made for: the same page under the URL that everybody may have.
// Sites put a session into their links for visitors without cookies (Servlet specification section 7.1.3,
// PHP's session.use_trans_sid, ASP.NET's cookieless sessions, ColdFusion); a crawler would be given new URLs
// for the same pages for ever. Names that stand for nothing else lose any value; names with other uses
// (`sid` may be a story's number) only what looks like a token, as in the Internet Archive's rules.

/** In the path, behind a semicolon. */
const pathSession = /;(?:jsessionid|phpsessid|sessionid|session|sid)(?:=|%3d)[^/?#;&]*/gi;

/** ASP.NET: a segment of its own, `(S(24 letters and digits))`, alone or with others of its kind. */
const aspSession = /\/\((?:[AFSX]\([A-Za-z0-9_-]{10,}\))+\)(?=\/|$|\?)/g;

const sessionName =
  /^(?:jsessionid|phpsessid|aspsessionid[a-z]{0,8}|cftoken|cfid|oscsid|zenid|xtcsid|mosessionid)$/i;

const perhapsSessionName = /^(?:sid|s|ses|sess|session|session_?id|sessid|sess_?id|sessionkey|phpsess)$/i;

/** A random number in hex or letters: 20 characters at least, digits among them, no words; or a UUID. */
const token = /^(?:(?=[^/]*\d)[A-Za-z0-9]{20,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

const hint = /[;(]|s(?:ess|id)|zenid|cf(?:id|token)|[?&]s(?:es)?=|sid=/i;

/** `url` in canonical form; the same text when it has no session. */
export function withoutSession(url: string): string {
  const mark = url.indexOf("?");
  if (mark < 0 && !url.includes(";") && !url.includes("(")) return url;
  if (!hint.test(url)) return url;
  const path = (mark < 0 ? url : url.slice(0, mark)).replace(pathSession, "").replace(aspSession, "");
  if (mark < 0) return path;
  const kept = url
    .slice(mark + 1)
    .split("&")
    .map((parameter) => parameter.replace(pathSession, ""))
    .filter((parameter) => !isSession(parameter));
  return kept.length === 0 ? path : `${path}?${kept.join("&")}`;
}

function isSession(parameter: string): boolean {
  const at = parameter.indexOf("=");
  if (at < 0) return false;
  const name = parameter.slice(0, at).replace(/^amp;/, "");
  return sessionName.test(name) || (perhapsSessionName.test(name) && token.test(parameter.slice(at + 1)));
}
