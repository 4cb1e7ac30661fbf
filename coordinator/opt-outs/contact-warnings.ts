/** What webmasters would miss: who crawls the public web says who he is, and how he can be reached. */
import { contactOf, reachableContact } from "#protocol/user-agent";
import type { CoordinatorConfig } from "../config.ts";
import { publishedKeySet } from "../room-settings.ts";

/**
 * Why nobody may crawl the public web with these settings: the User-Agent names nothing that a webmaster can reach. Null
 * where it does, and for a crawl of one's own network or an emulated one.
 */
export function contactFault(config: CoordinatorConfig): string | null {
  if (!crawlsPublicWeb(config)) return null;
  const stated = contactOf(config.userAgent);
  if (stated !== null && reachableContact(stated) !== null) return null;
  return `the User-Agent "${config.userAgent}" would tell sites of the public web nobody whom they can reach`;
}

/** A line for each fault beyond that, with what to do about it. */
export function contactWarnings(config: CoordinatorConfig): string[] {
  if (!crawlsPublicWeb(config)) return [];
  const warnings: string[] = [];
  if (config.contact === null) {
    warnings.push(
      "no contact is set, so nobody who minds our requests can write to us: set contact in the settings to an e-mail address or a URL",
    );
  }
  if (config.signRequests && publishedKeySet(config) === null) {
    warnings.push(
      "signRequests is on, but no request is signed: sites take our public keys by https alone, so publicUrl in the settings must be an https URL",
    );
  }
  return warnings;
}

/** Not so with a partner's own network, nor where names come from servers that were set up for a test. */
function crawlsPublicWeb({ allowSpecialPurpose, resolvers }: CoordinatorConfig): boolean {
  const isEmulated =
    resolvers.length > 0 && resolvers.every((one) => /^(127\.|\[::1\])/.test(one) && !/:53$/.test(one));
  return !allowSpecialPurpose && !isEmulated;
}
