/** From where a request comes: the address, the browser, and whether a page of ours has sent it. */

import type { FastifyRequest } from "fastify";
import type { Whence } from "#core/access-types";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { canParseUrl } from "#core/ip/url-host";

/**
 * Behind a proxy (the server's `trustProxy`), the last address of X-Forwarded-For, which is the one that the proxy
 * saw. Null: a proxy that does not say.
 */
export function requesterOf(request: FastifyRequest): string | null {
  if (request.ips?.length === 1) return null;
  const address = parseAddress(request.ip);
  return address === null ? null : formatAddress(unmapAddress(address));
}

/** Whoever is on this machine can do worse than read too much. */
export function isThisMachine(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

export function whenceOf(request: FastifyRequest): Whence {
  const { "user-agent": userAgent = "" } = request.headers;
  return { remoteAddress: requesterOf(request), userAgent };
}

/** Browsers say from where a form was sent; programs need not, and have nobody's rights to abuse. */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // Our pages send their forms with their origin; `null` is a sandboxed frame's, or a file's.
  return !canParseUrl(origin) || new URL(origin).host !== host;
}
