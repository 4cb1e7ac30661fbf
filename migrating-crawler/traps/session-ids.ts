/**
 * Links without the session that they were made for: the same page under the URL that everybody may have.
 * Sites put a session into their links for visitors without cookies (Servlet specification section 7.1.3,
 * PHP's session.use_trans_sid, ASP.NET's cookieless sessions, ColdFusion); a crawler would be given new URLs
 * for the same pages for ever. Names that stand for nothing else lose any value; names with other uses
 * (`sid` may be a story's number) only what looks like a token, as in the Internet Archive's rules.
 */

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
