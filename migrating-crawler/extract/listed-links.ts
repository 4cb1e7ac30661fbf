/**
 * Which of a list's entries are shipped. A sitemap speaks for its own host only (sitemaps.org protocol,
 * "Sitemap file location"): the same name, with or without `www.`, and what is below it; everything else
 * in it is left out, so that nobody names URLs of others in bulk. A feed may point anywhere, as a page may.
 * When there are more than a message holds, those that changed last are taken.
 */
import { composed } from "#protocol/composed";
import {
  type ChangeFrequency,
  changeFrequencyWords,
  maxListedUrls,
  type PageExtract,
} from "#protocol/result";
import type { ListEntry } from "./read-list.ts";
import { resolveUrl } from "./resolve-url.ts";
import type { WorkTurns } from "./work-turns.ts";

type Link = PageExtract["links"][number];

/** Of the 8 MiB that a message may have: what 10,000 usual URLs take, several times over. */
const maxLinkBytes = 4 * 1024 * 1024;
/** What a link takes beside its texts. */
const linkFrameBytes = 125;
/** Other work gets its turn after so many entries. */
const entriesPerTurn = 256;

export interface ListedLinks {
  readonly links: Link[];
  /** Entries that were left out: no web addresses, of other hosts, or too many. */
  readonly leftOut: number;
}

export async function listedLinks(
  entries: readonly ListEntry[],
  list: { readonly url: string; readonly base: string; readonly kind: "sitemap" | "feed" },
  turns: WorkTurns,
): Promise<ListedLinks> {
  const found = new Map<string, Link>();
  let leftOut = 0;
  const allowed = list.kind === "sitemap" ? ownSite(list.url) : () => true;
  for (const [index, entry] of entries.entries()) {
    if (index % entriesPerTurn === 0) await turns.next();
    const url = resolveUrl(entry.href, list.base);
    if (url === null || !allowed(url)) leftOut++;
    else if (!found.has(url)) found.set(url, linkOf(url, entry));
  }
  const links = fitting([...found.values()]);
  return { links, leftOut: leftOut + found.size - links.length };
}

/** Host and port of a URL in canonical form. */
const authority = /^https?:\/\/([^/:?[]+|\[[^\]]*\])(?::(\d+))?\//;

/** Whether a URL is of the list's host, on the list's port or its scheme's own. */
function ownSite(listUrl: string): (url: string) => boolean {
  const list = new URL(listUrl);
  const host = list.hostname.replace(/^www\./, "");
  const isAddress = /^[\d.]+$|^\[/.test(host);
  return (url) => {
    const [, name = "", port = ""] = authority.exec(url) ?? [];
    if (port !== "" && port !== list.port) return false;
    return name === host || (!isAddress && name.endsWith(`.${host}`));
  };
}

function linkOf(url: string, entry: ListEntry): Link {
  const modifiedAt = momentOf(entry.modified);
  const changeFrequency = frequencyOf(entry.frequency);
  return {
    url,
    anchor: anchorOf(entry.title),
    nofollow: false,
    ...(modifiedAt === null ? {} : { modifiedAt }),
    ...(changeFrequency === undefined ? {} : { changeFrequency }),
  };
}

/** One of the protocol's words; whatever else stands there says nothing. */
function frequencyOf(written: string): ChangeFrequency | undefined {
  const word = written.slice(0, 20).trim().toLowerCase();
  return changeFrequencyWords.find((one) => one === word);
}

/** Titles may be escaped HTML (RFC 4287 section 3.1.1.2, and most of RSS). */
function anchorOf(title: string): string {
  return composed(title.slice(0, 1000))
    .replace(/<[^<>]*>/g, "")
    .replace(/[\s\0]+/g, " ")
    .trim()
    .slice(0, 200)
    .replace(/\p{Surrogate}/gu, "\ufffd");
}

const day = /^\d{4}-\d\d-\d\d$/;
const dateTime = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;
const mailDate = /^(?:[a-z]{3,9},?\s+)?\d{1,2}\s+[a-z]{3,9}\s+\d{2,4}\s+\d{1,2}:\d\d/i;

/** W3C date-time, RFC 3339 or RFC 822 to ISO 8601, to the second; a date without a day is none. */
export function momentOf(written: string): string | null {
  const text = written.trim();
  if (text.length > 60 || ![day, dateTime, mailDate].some((form) => form.test(text))) return null;
  const ms = Date.parse(text);
  if (Number.isNaN(ms) || ms < 0 || ms > Date.UTC(2100, 0)) return null;
  return day.test(text) ? text : new Date(ms).toISOString().replace(/\.\d{3}Z$/, "Z");
}

/** In the list's order, as many as fit. */
function fitting(links: Link[]): Link[] {
  const chosen = new Set<Link>();
  let bytes = 0;
  for (const link of links.length <= maxListedUrls ? links : newestFirst(links)) {
    bytes += link.url.length + 3 * link.anchor.length + linkFrameBytes;
    if (bytes > maxLinkBytes || chosen.size >= maxListedUrls) break;
    chosen.add(link);
  }
  return chosen.size === links.length ? links : links.filter((link) => chosen.has(link));
}

function newestFirst(links: readonly Link[]): Link[] {
  const changedMs = (link: Link) => (link.modifiedAt === undefined ? 0 : Date.parse(link.modifiedAt));
  return links
    .map((link) => ({ link, ms: changedMs(link) }))
    .sort((one, other) => other.ms - one.ms)
    .map(({ link }) => link);
}
