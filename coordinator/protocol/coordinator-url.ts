/** Where crawlers connect: `wss://host[:port][/path]`, or `ws://` where the host is this machine, so that no key travels in the clear. */
import { canParseUrl } from "#core/ip/url-host";

export function isCoordinatorUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return false;
  return url.protocol === "wss:" || (url.protocol === "ws:" && isLoopbackHost(url.hostname));
}

/** Of a URL's host, brackets around IPv6 included. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
