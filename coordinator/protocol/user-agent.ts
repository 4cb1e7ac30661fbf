/**
 * The User-Agent of every request to a site (RFC 9110 section 10.1.5): our product with its version and the page
 * that says who we are, as the coordinator states them. A partner may add a contact of its own as a second comment;
 * it cannot replace anything, for the coordinator puts the whole together and crawlers send what they are told.
 *
 *   Nearcrawl/0.1 (+https://crawl.example.org/about-crawler) (hosted by: abuse@partner.example)
 */

import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";
import { parseAddress } from "../core/ip/address.ts";
import { specialPurposeOf } from "../core/ip/special-purpose.ts";

/** Longest User-Agent that a welcome carries. */
const maxUserAgent = 200;

/** Printable ASCII, so that it can stand in a header, and beginning with the product that robots.txt files address. */
export const userAgent = z
  .string()
  .max(maxUserAgent)
  .regex(/^Nearcrawl\/[\x20-\x7e]+$/);

/** What a comment can hold (RFC 9110 section 5.6.5) without a parenthesis or a backslash; no space at its ends. */
export const partnerContact = z.string().regex(/^[!-'*-[\]-~](?:[ -'*-[\]-~]{0,76}[!-'*-[\]-~])?$/, {
  error: "must be up to 78 printable ASCII characters without parentheses, such as abuse@example.org",
});

/** The User-Agent of one crawler; a contact for which there is no room is left out. */
export function userAgentOf(base: string, contact: string | undefined): string {
  if (contact === undefined) return base;
  const whole = `${base} (hosted by: ${contact})`;
  return whole.length <= maxUserAgent ? whole : base;
}

/** The contact page that a User-Agent names; null: it names none. */
export function contactPageOf(text: string): URL | null {
  const named = /\(\+(https?:\/\/[^\s)]+)\)/.exec(text)?.[1];
  return named !== undefined && canParseUrl(named) ? new URL(named) : null;
}

/** What a User-Agent names for those who mind its requests: a page, or an e-mail address as mailto:…; null: nothing. */
export function contactOf(text: string): string | null {
  return /\(\+((?:https?:\/\/|mailto:)[^\s)]+)\)/.exec(text)?.[1] ?? null;
}

/** `Nearcrawl` of `Nearcrawl/0.1 (+https://…)`: what robots.txt is matched by (RFC 9309 section 2.2.1). */
export function productToken(userAgent: string): string {
  return /^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? "Nearcrawl";
}

/** Leaves room for the product in a User-Agent. */
const maxContact = 160;

/**
 * A contact as a User-Agent names it: an e-mail address as mailto:…, a page by its URL. Null where it is neither, or of a
 * name or an address that nobody outside this machine and its network can reach.
 */
export function reachableContact(contact: string): string | null {
  if (contact.length > maxContact) return null;
  const [, mailbox, domain] = /^(?:mailto:)?([!#-'*+\-./0-9=?A-Z^-~]+@([A-Za-z0-9.-]+))$/.exec(contact) ?? [];
  if (mailbox !== undefined && domain !== undefined) return isPublicHost(domain) ? `mailto:${mailbox}` : null;
  if (!/^https?:\/\/[!-'*-~]+$/.test(contact) || !canParseUrl(contact)) return null;
  return isPublicHost(new URL(contact).hostname) ? contact : null;
}

/** By its name or address alone: nobody is asked. */
function isPublicHost(host: string): boolean {
  const address = parseAddress(host.replace(/^\[(.*)\]$/, "$1"));
  if (address !== null) return specialPurposeOf(address) === null;
  return (
    /\.[a-z][a-z0-9-]*\.?$/i.test(host) &&
    !/\.(invalid|localhost|test|example|local|internal)\.?$/i.test(host)
  );
}
