/**
 * Links to other sites that the coordinator knows of the lease's channel (SARSS section 2.1): they travel by their names.
 * The coordinator has their URLs, or drops the link and reads the page again in full at its next visit.
 */
import { canParseUrl, urlHost } from "#core/ip/url-host";
import { KnownDigests } from "#protocol/known-digests";
import {
  keptLinkSets,
  keptLinkSetsMs,
  type Lease,
  linkDigestOf,
  linkHashOf,
  linkNameOf,
} from "#protocol/lease";
import type { PageLink } from "#protocol/result";
import type { PageResult } from "./fetch-page.ts";

interface KeptSet {
  readonly set: KnownDigests;
  readonly sinceMs: number;
}

/** The sets that came with leases, of the latest hosts: a coordinator tells each once in a connection. */
export class KnownLinkSets {
  readonly #sets = new Map<string, KeptSet>();

  /**
   * Of the lease's host; null: none came, or only one that cannot be read, which is the coordinator's fault and no reason
   * not to crawl.
   */
  of({ host, knownLinks }: Pick<Lease, "host" | "knownLinks">, nowMs: number): KnownDigests | null {
    const kept = knownLinks === undefined ? this.#fresh(host, nowMs) : readSet(knownLinks, nowMs);
    this.#sets.delete(host);
    if (kept === null) return null;
    this.#sets.set(host, kept);
    if (this.#sets.size > keptLinkSets) this.#sets.delete(this.#sets.keys().next().value!);
    return kept.set;
  }

  #fresh(host: string, nowMs: number): KeptSet | null {
    const kept = this.#sets.get(host);
    return kept !== undefined && nowMs - kept.sinceMs < keptLinkSetsMs ? kept : null;
  }
}

function readSet(packed: string, nowMs: number): KeptSet | null {
  try {
    return { set: new KnownDigests(Buffer.from(packed, "base64")), sinceMs: nowMs };
  } catch {
    return null;
  }
}

/** With names in place of known links to other sites than `host`. Sitemaps and feeds name their URLs in full. */
export function withKnownLinks(result: PageResult, host: string, known: KnownDigests | null): PageResult {
  const { page } = result;
  if (known === null || page === null || (page.kind ?? "page") !== "page") return result;
  return { ...result, page: { ...page, links: page.links.map((link) => named(link, host, known)) } };
}

function named(link: PageLink, host: string, known: KnownDigests): PageLink {
  if (!canParseUrl(link.url) || urlHost(link.url) === host) return link;
  const hash = linkHashOf(link.url);
  return known.has(linkDigestOf(hash)) ? { ...link, url: linkNameOf(hash) } : link;
}
