/** Extracts the URLs of a sitemap or feed, which is not indexed itself. Robots directives in its header apply as for a page. */

import { createHash } from "node:crypto";
import { foreignDateMs } from "#core/foreign-dates";
import { composed } from "#protocol/composed";
import {
  type ChangeFrequency,
  changeFrequencyWords,
  maxListedUrls,
  type PageExtract,
} from "#protocol/result";
import { shipLinks } from "../traps/link-trap.ts";
import {
  documentKind,
  kindOf,
  type ListForm,
  listForm,
  mediaType,
  xmlRoot,
  xmlText,
} from "./document-kind.ts";
import { type ListEntry, readList, type StatedLink, type WorkTurns } from "./read-list.ts";
import { resolveUrl } from "./resolve-url.ts";
import { unpackGzip } from "./unpack-gzip.ts";

/** Maximum unpacked bytes, equal to what is kept of any body. */
const maxListBytes = 5 * 1024 * 1024;

export interface FetchedList {
  readonly url: string;
  /** The body without content codings. A gzip file is still compressed. */
  readonly bytes: Buffer;
  readonly digest?: string | undefined;
  readonly contentType: string;
  readonly robotsTag: string | readonly string[] | undefined;
}

interface ExtractedList {
  readonly page: PageExtract;
  /** True if the list is broken or longer than the limit. */
  readonly cut: boolean;
}

export async function extractList(list: FetchedList, turns: WorkTurns): Promise<ExtractedList | null> {
  const kind = documentKind(list);
  if (kind === "page" || kind === "other") return null;
  const unpacked = await unpackGzip(list.bytes, maxListBytes);
  const { text, charset } = xmlText(unpacked.bytes, list.contentType);
  const form = listForm(text);
  if (form === null) return null;
  const entries = await readList(text, form, turns);
  const base = baseOf(text, form, list.url);
  const {
    links: listed,
    foreign,
    leftOut,
  } = await listedLinks(entries, { url: list.url, base, kind: kindOf(form) }, turns);
  const { links, trapped } = shipLinks(listed, list.url, new Date());
  const foreignLinks = shipLinks(foreign, list.url, new Date()).links;
  const robots = robotsDirectives({ metas: [], header: list.robotsTag, nowMs: Date.now() });
  const page: PageExtract = {
    ...nothingToIndex,
    kind: kindOf(form),
    contentType: mediaType(list.contentType).slice(0, 200),
    charset: charset.slice(0, 40),
    links: robots.nofollow ? links.map((link) => ({ ...link, nofollow: true })) : links,
    ...(foreignLinks.length === 0 || robots.nofollow ? {} : { foreignLinks }),
    ...(trapped === 0 ? {} : { trappedLinks: trapped }),
    ...(leftOut === 0 ? {} : { leftOutLinks: leftOut }),
    robots: { noindex: robots.noindex, nofollow: robots.nofollow },
    digest: list.digest ?? bodyDigest(list.bytes),
  };
  return { page, cut: unpacked.truncated };
}

const nothingToIndex = {
  canonicalUrl: null,
  title: "",
  description: "",
  headings: [],
  language: null,
  textSearchConfig: "simple",
  text: "",
  words: 0,
  simhash: "0".repeat(16),
} satisfies Partial<PageExtract>;

/** Feed links may be relative to the xml:base of the feed, the entry or the link (RFC 4287 section 2). */
function baseOf(text: string, form: ListForm, url: string): string {
  const stated =
    kindOf(form) === "feed"
      ? /\sxml:base\s*=\s*["']([^"'<&]{1,2048})["']/.exec(xmlRoot(text)!.tag)?.[1]
      : undefined;
  return (stated === undefined ? null : resolveUrl(stated, url)) ?? url;
}

function resolveStated({ href, bases }: StatedLink, base: string): string | null {
  return resolveUrl(
    href,
    bases.reduce((within, stated) => resolveUrl(stated, within) ?? within, base),
  );
}

export const bodyDigest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

// Selects the entries to send. A sitemap speaks only for its own host (sitemaps.org protocol, "Sitemap file location"), with
// or without `www.`, and for its subdomains. Other entries are sent separately, so that nobody can announce other people's
// URLs in bulk: the coordinator accepts those whose host's robots.txt names the sitemap ("Sitemaps & Cross Submits"). A feed
// may link anywhere. If the entries exceed a message, the most recently changed ones are sent.

type Link = PageExtract["links"][number];

/** Half of the 8 MiB that a message may have. 10,000 typical URLs fit several times over. */
const maxLinkBytes = 4 * 1024 * 1024;

const linkFrameBytes = 125;

const entriesPerTurn = 256;

interface ListedLinks {
  readonly links: Link[];
  /** Links to hosts other than those that the sitemap speaks for. */
  readonly foreign: Link[];
  readonly leftOut: number;
}

async function listedLinks(
  entries: readonly ListEntry[],
  list: { readonly url: string; readonly base: string; readonly kind: "sitemap" | "feed" },
  turns: WorkTurns,
): Promise<ListedLinks> {
  const found = new Map<string, Link>();
  const foreign = new Map<string, Link>();
  let leftOut = 0;
  const allowed = list.kind === "sitemap" ? ownSite(list.url) : () => true;
  for (const [index, entry] of entries.entries()) {
    if (index % entriesPerTurn === 0) await turns.next();
    const url = isRelative(list.kind, entry.href) ? null : resolveStated(entry, list.base);
    const kind = url === null || allowed(url) ? found : foreign;
    if (url === null) leftOut++;
    else if (!kind.has(url)) kind.set(url, linkOf(url, entry));
  }
  const links = fitting([...found.values()], { entries: maxListedUrls, bytes: maxLinkBytes });
  const left = { entries: maxListedUrls - links.length, bytes: maxLinkBytes - bytesOf(links) };
  const others = fitting([...foreign.values()], left);
  return {
    links,
    foreign: others,
    leftOut: leftOut + found.size + foreign.size - links.length - others.length,
  };
}

/** Sitemap URLs must begin with a protocol (sitemaps.org/protocol, loc), so anything else is an error and not a path. */
function isRelative(kind: "sitemap" | "feed", href: string): boolean {
  return kind === "sitemap" && !/^\s*https?:[/\\]{2}/i.test(href);
}

const authority = /^https?:\/\/([^/:?[]+|\[[^\]]*\])(?::(\d+))?\//;

/** Accepts the list's host, at the list's own port or at the default port. */
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

function frequencyOf(written: string): ChangeFrequency | undefined {
  const word = written.slice(0, 20).trim().toLowerCase();
  return changeFrequencyWords.find((one) => one === word);
}

/** Titles may be escaped HTML (RFC 4287 section 3.1.1.2, and most RSS). */
function anchorOf(title: string): string {
  return composed(title.slice(0, 1000))
    .replace(/<[^<>]*>/g, "")
    .replace(/[\s\0]+/g, " ")
    .trim()
    .slice(0, 200)
    .replace(/\p{Surrogate}/gu, "\ufffd");
}

const day = /^\d{4}-\d\d-\d\d$/;

/** Converts W3C date-time, RFC 3339 or RFC 822 to ISO 8601 with seconds. A date without a day is rejected. */
function momentOf(written: string): string | null {
  const text = written.trim();
  const ms = foreignDateMs(text);
  if (ms === null || ms < 0 || ms > Date.UTC(2100, 0)) return null;
  return day.test(text) ? text : new Date(ms).toISOString().replace(/\.\d{3}Z$/, "Z");
}

const bytesOf = (links: readonly Link[]) =>
  links.reduce((sum, { url, anchor }) => sum + url.length + 3 * anchor.length + linkFrameBytes, 0);

function fitting(links: Link[], most: { readonly entries: number; readonly bytes: number }): Link[] {
  const chosen = new Set<Link>();
  let bytes = 0;
  for (const link of links.length <= most.entries ? links : newestFirst(links)) {
    bytes += bytesOf([link]);
    if (bytes > most.bytes || chosen.size >= most.entries) break;
    chosen.add(link);
  }
  return chosen.size === links.length ? links : links.filter((link) => chosen.has(link));
}

function newestFirst(links: readonly Link[]): Link[] {
  const changedMs = (link: Link) => foreignDateMs(link.modifiedAt ?? "") ?? 0;
  return links
    .map((link) => ({ link, ms: changedMs(link) }))
    .sort((one, other) => other.ms - one.ms)
    .map(({ link }) => link);
}

/**
 * Reads meta robots and X-Robots-Tag. A value that starts with another crawler's name is ignored. If several values apply, the
 * strictest one wins, as with the large search engines, whose unstandardised rules these are. `noarchive` and `nocache` forbid
 * showing a copy, which Nearcrawl never does. `noimageindex`, `notranslate` and the like also concern things that it does not
 * do.
 */
export interface RobotsDirectives {
  readonly noindex: boolean;
  readonly nofollow: boolean;
  /** Maximum length of an excerpt that may be shown. 0 means none (nosnippet). */
  readonly excerptCharacters: number;
}

export function robotsDirectives(said: {
  readonly metas: readonly string[];
  readonly header: string | readonly string[] | undefined;
  readonly nowMs: number;
}): RobotsDirectives {
  const headers = [said.header ?? []].flat().slice(0, maxValues);
  const rules = [...said.metas, ...headers].flatMap((value) => oursOf(value.slice(0, maxCharacters)));
  const says = (...names: readonly string[]) => rules.some(({ name }) => names.includes(name));
  const isOver = rules.some(({ name, value }) => name === "unavailable_after" && isPast(value, said.nowMs));
  return {
    noindex: isOver || says("noindex", "none"),
    nofollow: says("nofollow", "none"),
    excerptCharacters: says("nosnippet") ? 0 : maxSnippet(rules),
  };
}

export function directiveNames(values: string | readonly string[] | undefined): string[] {
  const bounded = [values ?? []].flat().slice(0, maxValues);
  return bounded.flatMap((value) => oursOf(value.slice(0, maxCharacters))).map(({ name }) => name);
}

interface Rule {
  readonly name: string;
  readonly value: string;
}

const maxValues = 50;
const maxCharacters = 2000;

/** Also matches `Nearcrawl*`, a form that robots.txt allows. */
const ourName = /^(?:nearcrawl(?![a-z_-]).*|robots|\*)$/;

/** These rules have a value after a colon, so they must not be taken for a crawler's name. */
const valued = new Set(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"]);

/** Splits one value into rules, because `nofollow, otherbot: noindex` addresses two crawlers. */
function oursOf(value: string): Rule[] {
  const rules: Rule[] = [];
  let isOurs = true;
  for (const part of value.toLowerCase().split(/[,;]/)) {
    const [, name, rest] = /^\s*([a-z0-9_*-]{1,60})\s*:(.*)$/s.exec(part) ?? [];
    if (name !== undefined && valued.has(name)) {
      if (isOurs) rules.push({ name, value: rest!.trim() });
      continue;
    }
    const last = rules.at(-1);
    if (isOurs && last?.name === "unavailable_after" && /^\s*\d/.test(part)) {
      // The comma belongs to the date, as in "Wednesday, 25-Jun-30 15:00:00 PST".
      rules[rules.length - 1] = { ...last, value: `${last.value}, ${part.trim()}` };
      continue;
    }
    if (name !== undefined) isOurs = ourName.test(name);
    if (isOurs) for (const word of (rest ?? part).trim().split(/\s+/)) rules.push({ name: word, value: "" });
  }
  return rules;
}

/** Reads RFC 822, RFC 850 and ISO 8601. An unreadable date does not expire the page. */
function isPast(date: string, nowMs: number): boolean {
  const at = foreignDateMs(date);
  return at !== null && at < nowMs;
}

/** Reads `max-snippet:n`, where -1 means no limit. */
function maxSnippet(rules: readonly Rule[]): number {
  const bounds = rules
    .filter(({ name, value }) => name === "max-snippet" && /^-?\d{1,9}$/.test(value))
    .map(({ value }) => (Number(value) < 0 ? Number.POSITIVE_INFINITY : Number(value)));
  return Math.min(Number.POSITIVE_INFINITY, ...bounds);
}
