/** Selects the links to ship: without sessions, duplicates and apparent traps. */
import type { PageExtract } from "#protocol/result";
import { urlParts } from "./host-memory.ts";
import { linkTrap } from "./link-trap.ts";

type Link = PageExtract["links"][number];

interface ShippedLinks {
  readonly links: Link[];
  /** The number of links dropped as apparent traps. */
  readonly trapped: number;
}

/** Expects `links` without duplicates and the URL of their page. */
export function shipLinks(links: readonly Link[], page: string, now: Date): ShippedLinks {
  const from = { parts: urlParts(withoutSession(page)), thisYear: now.getUTCFullYear() };
  const all = links.some(({ url }) => withoutSession(url) !== url) ? withoutSessions(links) : links;
  const shipped = all.filter(({ url }) => linkTrap(url, from) === null);
  return { links: shipped, trapped: all.length - shipped.length };
}

/** Links that differ only in their session become one. */
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

// Removes sessions from links, which gives the page's public URL. Sites add sessions for visitors without cookies
// (Servlet specification section 7.1.3, PHP's session.use_trans_sid, ASP.NET's cookieless sessions, ColdFusion), so a
// crawler would see new URLs for the same pages forever. Names with no other meaning lose any value; ambiguous names
// (`sid` may be a story's number) lose only token-like values, as in the Internet Archive's rules.

/** The session in a path follows a semicolon. */
const pathSession = /;(?:jsessionid|phpsessid|sessionid|session|sid)(?:=|%3d)[^/?#;&]*/gi;

/** ASP.NET uses a separate segment, `(S(24 letters and digits))`, alone or with others of its kind. */
const aspSession = /\/\((?:[AFSX]\([A-Za-z0-9_-]{10,}\))+\)(?=\/|$|\?)/g;

const sessionName =
  /^(?:jsessionid|phpsessid|aspsessionid[a-z]{0,8}|cftoken|cfid|oscsid|zenid|xtcsid|mosessionid)$/i;

const perhapsSessionName = /^(?:sid|s|ses|sess|session|session_?id|sessid|sess_?id|sessionkey|phpsess)$/i;

/** A random number in hex or letters (at least 20 characters, digits among them, no words), or a UUID. */
const token = /^(?:(?=[^/]*\d)[A-Za-z0-9]{20,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

const hint = /[;(]|s(?:ess|id)|zenid|cf(?:id|token)|[?&]s(?:es)?=|sid=/i;

/** `url` is canonical; without a session the same text is returned. */
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
