/**
 * IANA's bootstrap files (RFC 9224): which RDAP server answers for which block of addresses. The most specific
 * block that holds the whole range wins (section 5.1); of a block's servers https is preferred (section 3).
 */

import { z } from "zod";
import { SourceFileError } from "#core/errors";
import { type IpRange, parseRange, prefixLengthOf, rangeCovers } from "#core/ip/range";
import { canParseUrl } from "#core/ip/url-host";

/** Section 10.2. Other members, and services of a shape that is not known, are passed over. */
const bootstrapSchema = z.object({
  version: z.string().max(20),
  publication: z.string().max(100),
  services: z
    .array(z.tuple([z.array(z.string().max(200)).max(10_000), z.array(z.string().max(2000)).max(100)]))
    .max(10_000),
});

export interface RdapService {
  readonly range: IpRange;
  /** Base URLs that end with a slash, https first. */
  readonly servers: readonly string[];
}

export interface RdapBootstrap {
  /** RFC 3339, as the file states it. */
  readonly publication: string;
  readonly services: readonly RdapService[];
}

/** Throws SourceFileError when the text is not a bootstrap file for addresses. */
export function readBootstrap(file: string, text: string): RdapBootstrap {
  const checked = bootstrapSchema.safeParse(jsonOf(file, text));
  if (!checked.success) {
    const issue = checked.error.issues[0]!;
    throw new SourceFileError(
      file,
      null,
      `not an RDAP bootstrap file: ${issue.path.join(".")} ${issue.message}`,
    );
  }
  const services = checked.data.services.flatMap(([blocks, urls]) => servicesOf(blocks, urls));
  if (services.length === 0) throw new SourceFileError(file, null, "the bootstrap file names no server");
  return { publication: checked.data.publication, services };
}

/** The service of the most specific block that holds the range, or null. */
export function serviceFor(bootstrap: RdapBootstrap, range: IpRange): RdapService | null {
  let best: RdapService | null = null;
  for (const service of bootstrap.services) {
    if (!rangeCovers(service.range, range)) continue;
    if (best === null || rangeCovers(best.range, service.range)) best = service;
  }
  return best;
}

function servicesOf(blocks: readonly string[], urls: readonly string[]): RdapService[] {
  const servers = urls.filter(isBaseUrl).sort((one, other) => rankOf(one) - rankOf(other));
  if (servers.length === 0) return [];
  return blocks.flatMap((block) => {
    const range = parseRange(block);
    return range === null || prefixLengthOf(range) === null
      ? []
      : [{ range, servers: servers.map(withSlash) }];
  });
}

function isBaseUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && `${username}${password}${search}${hash}` === "";
}

const rankOf = (url: string) => (url.toLowerCase().startsWith("https:") ? 0 : 1);

const withSlash = (url: string) => (url.endsWith("/") ? url : `${url}/`);

function jsonOf(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (/^\s*</.test(text)) throw new SourceFileError(file, 1, "a web page, not an RDAP bootstrap file");
    throw new SourceFileError(file, null, `not JSON: ${(error as Error).message.slice(0, 120)}`);
  }
}
