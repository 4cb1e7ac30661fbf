/**
 * The User-Agent of every request to a site (RFC 9110 section 10.1.5): our product with its version and information page, as
 * the coordinator states them. A partner may add a contact as a second comment but cannot replace anything, because the
 * coordinator builds the whole text and crawlers send it unchanged.
 *
 * Nearcrawl/0.1 (+https://crawl.example.org/about-crawler) (hosted by: abuse@partner.example)
 */

import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";
import { parseAddress } from "../core/ip/address.ts";
import { specialPurposeOf } from "../core/ip/special-purpose.ts";

const maxUserAgent = 200;

/** Printable ASCII that begins with the product that robots.txt files address. */
export const userAgent = z
  .string()
  .max(maxUserAgent)
  .regex(/^Nearcrawl\/[\x20-\x7e]+$/);

/** A comment (RFC 9110 section 5.6.5) without parentheses, backslashes and spaces at the ends. */
export const partnerContact = z.string().regex(/^[!-'*-[\]-~](?:[ -'*-[\]-~]{0,76}[!-'*-[\]-~])?$/, {
  error: "must be up to 78 printable ASCII characters without parentheses, such as abuse@example.org",
});

/** Builds the User-Agent of one crawler. A contact that does not fit is left out. */
export function userAgentOf(base: string, contact: string | undefined): string {
  if (contact === undefined) return base;
  const whole = `${base} (hosted by: ${contact})`;
  return whole.length <= maxUserAgent ? whole : base;
}

/** Returns the contact page in a User-Agent, or null. */
export function contactPageOf(text: string): URL | null {
  const named = /\(\+(https?:\/\/[^\s)]+)\)/.exec(text)?.[1];
  return named !== undefined && canParseUrl(named) ? new URL(named) : null;
}

/** Returns the contact in a User-Agent, a page or a mailto: address, or null. */
export function contactOf(text: string): string | null {
  return /\(\+((?:https?:\/\/|mailto:)[^\s)]+)\)/.exec(text)?.[1] ?? null;
}

/** Returns `Nearcrawl` for `Nearcrawl/0.1 (+https://…)`: the name that robots.txt files use (RFC 9309 section 2.2.1). */
export function productToken(userAgent: string): string {
  return /^[A-Za-z_-]+/.exec(userAgent)?.[0] ?? "Nearcrawl";
}

/** Maximum length of a contact, which leaves room for the product in a User-Agent. */
const maxContact = 160;

/**
 * Returns a contact in the form of the User-Agent: mailto:… for an e-mail address, or a page's URL. Returns null when it is
 * neither, or when its host cannot be reached from outside this machine and network.
 */
export function reachableContact(contact: string): string | null {
  if (contact.length > maxContact) return null;
  const [, mailbox, domain] = /^(?:mailto:)?([!#-'*+\-./0-9=?A-Z^-~]+@([A-Za-z0-9.-]+))$/.exec(contact) ?? [];
  if (mailbox !== undefined && domain !== undefined) return isPublicHost(domain) ? `mailto:${mailbox}` : null;
  if (!/^https?:\/\/[!-'*-~]+$/.test(contact) || !canParseUrl(contact)) return null;
  return isPublicHost(new URL(contact).hostname) ? contact : null;
}

/** Decides by name or address alone, without a lookup. */
function isPublicHost(host: string): boolean {
  const address = parseAddress(host.replace(/^\[(.*)\]$/, "$1"));
  if (address !== null) return specialPurposeOf(address) === null;
  return (
    /\.[a-z][a-z0-9-]*\.?$/i.test(host) &&
    !/\.(invalid|localhost|test|example|local|internal)\.?$/i.test(host)
  );
}
