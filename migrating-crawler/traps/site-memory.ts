/**
 * Judges each fetched page by what the crawler remembers of its host: near-duplicates, pages that say "not
 * found" with status 200, links into patterns that lead nowhere new. One for the life of a crawler; hosts
 * that were not crawled for long are forgotten first. Nothing is kept on disk: it is learned again.
 */
import { randomInt } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { PageExtract } from "#protocol/result";
import { HostMemory } from "./host-memory.ts";
import { looksAlike, pagePrint } from "./page-print.ts";
import { suspicionOf } from "./soft-not-found.ts";

/** All hosts together. A host of 256 remembered pages takes about 80 KB. */
const maxBytes = 8_000_000;
const maxHosts = 5000;
/** A host is asked for a page that cannot exist at most this often. */
const askAgainMs = 24 * 3600 * 1000;

/** What a host said for a page that cannot exist. */
export type MissingAnswer =
  | { readonly type: "page"; readonly page: PageExtract }
  /** An error, a redirect, a refusal: nothing to compare with. */
  | { readonly type: "no-page" }
  /** There was no turn for the question. */
  | { readonly type: "not-asked" };

export interface JudgedAt {
  /** The URL that was fetched. */
  readonly url: string;
  readonly nowMs: number;
  /** Asks the page's origin for this path, politely; called at most once a day for a host. */
  readonly ask: (path: string) => Promise<MissingAnswer>;
}

export class SiteMemory {
  readonly #hosts = new LRUCache<string, HostMemory>({ max: maxHosts, maxSize: maxBytes });

  /** About so many bytes are taken. */
  get bytes(): number {
    return this.#hosts.calculatedSize;
  }

  /** The page with what its host's other pages say of it. Sitemaps and feeds only have their links looked at. */
  async judge(page: PageExtract, at: JudgedAt): Promise<PageExtract> {
    const { hostname } = new URL(at.url);
    const memory = this.#hosts.get(hostname) ?? new HostMemory();
    const judged = page.kind === "sitemap" || page.kind === "feed" ? page : await judgePage(page, memory, at);
    const shipped = withoutKnownTraps(judged, memory, hostname);
    // The cache keeps the size that an object came with: it comes anew.
    this.#hosts.delete(hostname);
    this.#hosts.set(hostname, memory, { size: memory.bytes });
    return shipped;
  }
}

async function judgePage(page: PageExtract, memory: HostMemory, at: JudgedAt): Promise<PageExtract> {
  const print = pagePrint(page, at.url);
  const { duplicateOf, isAlike } = memory.likeness(at.url, print);
  const isMissing = await isSoftNotFound(page, memory, { ...at, isAlike });
  memory.note(at.url, print, isAlike || isMissing);
  if (isMissing) return withoutContent(page);
  return duplicateOf === null ? page : { ...page, nearDuplicateOf: duplicateOf };
}

async function isSoftNotFound(
  page: PageExtract,
  memory: HostMemory,
  at: JudgedAt & { readonly isAlike: boolean },
): Promise<boolean> {
  const suspicion = suspicionOf(page, at);
  if (suspicion !== "likely") return suspicion === "certain";
  if (memory.missing === null || at.nowMs - memory.missing.askedAtMs >= askAgainMs) await ask(memory, at);
  const print = memory.missing?.print ?? null;
  return print !== null && looksAlike(pagePrint(page, at.url), print);
}

async function ask(memory: HostMemory, at: JudgedAt): Promise<void> {
  // Digits only: a page that repeats them differs from others in numbers alone.
  const path = `/no-such-page-${randomInt(1e9, 1e10)}`;
  const answer = await at.ask(path);
  if (answer.type === "not-asked") return;
  const print = answer.type === "page" ? pagePrint(answer.page, new URL(path, at.url).href) : null;
  memory.missing = { askedAtMs: at.nowMs, print };
}

/** Nothing of it is indexed, and its links are those of every page, or random. */
function withoutContent(page: PageExtract): PageExtract {
  return { ...page, softNotFound: true, lexemes: "", links: [] };
}

function withoutKnownTraps(page: PageExtract, memory: HostMemory, hostname: string): PageExtract {
  const links = page.links.filter(({ url }) => !isOf(hostname, url) || !memory.isTrap(url));
  const trapped = page.links.length - links.length;
  return trapped === 0 ? page : { ...page, links, trappedLinks: (page.trappedLinks ?? 0) + trapped };
}

/** `url` in canonical form. */
function isOf(hostname: string, url: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = url[at + hostname.length];
  return url.startsWith(hostname, at) && (after === "/" || after === ":");
}
