/** What webmasters would miss: who crawls the public web says who he is, and how he can be reached. */
import { contactPageOf } from "#protocol/user-agent";
import type { CoordinatorConfig } from "./config.ts";
import { publishedKeySet } from "./wiring-settings.ts";

/** A line for each fault, with what to do about it; none for a crawl of one's own network or an emulated one. */
export function contactWarnings(config: CoordinatorConfig): string[] {
  if (!crawlsPublicWeb(config)) return [];
  const page = contactPageOf(config.userAgent);
  const warnings: string[] = [];
  if (page === null || isNobodys(page.hostname)) {
    warnings.push(
      `the User-Agent "${config.userAgent}" names a page that no webmaster can open: set publicUrl in the settings to the address at which this coordinator is reached from outside (or userAgent), before you crawl the public web`,
    );
  }
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

function isNobodys(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]|.*\.(invalid|localhost|test|example))$/.test(host);
}
