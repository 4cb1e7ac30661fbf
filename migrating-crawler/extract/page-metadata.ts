/**
 * Collects what a page says about itself outside its text: metas, head links, JSON-LD, microdata and times. Values are kept as
 * written, within limits. Structured data and page-dates interpret them.
 */

import { jsonOf } from "../core/json.ts";
import { isLicense, maxLicenseCharacters } from "../preferences/rsl.ts";
import { type TagAttributes, tidy } from "./read-links.ts";

const maxMetas = 300;
const maxMetaCharacters = 4000;
const maxRobotsMetas = 10;
const maxFeeds = 100;
const maxTimes = 50;
const maxItemTypes = 20;
/** Longer JSON-LD is ignored. On real pages it has less than 100 KB. */
const maxJsonCharacters = 512 * 1024;
const maxJsonScripts = 20;
const maxTdmMetas = 10;
const maxLicenseLinks = 5;

/** A `time` element, or any element with a date property. */
export interface NotedTime {
  /** The `datetime` or `content` attribute, or else the text. */
  readonly value: string;
  readonly says: string;
  /** False inside navigation, asides and the like. */
  readonly isInMain: boolean;
  readonly isInArticle: boolean;
}

export class PageNotes {
  description: string | null = null;
  canonical: string | null = null;
  base: string | null = null;
  language: string | null = null;
  contentLanguage: string | null = null;
  readonly itemTypes: string[] = [];
  /** The robots metas that address all crawlers or this one by name. */
  readonly robots: string[] = [];
  readonly tdm = { reservation: [] as string[], policy: [] as string[] };
  readonly licenseLinks: string[] = [];
  license = "";
  readonly feeds: string[] = [];
  refresh: DeclaredRefresh | null = null;
  readonly jsonLd: string[] = [];
  readonly times: NotedTime[] = [];
  /** The first meta of each name or property, in lower case. */
  readonly metas = new Map<string, string>();
  /** The first value of each property of the page's own microdata item. */
  readonly items = new Map<string, string>();
  readonly #itemsAside = new Set<string>();
  #jsonCharacters = 0;

  noteMeta(tag: TagAttributes): void {
    const content = tag.attribute("content");
    if (content === null) return;
    const equivalent = tag.attribute("http-equiv")?.trim().toLowerCase();
    if (equivalent === "content-language") this.contentLanguage ??= content.slice(0, 200);
    if (equivalent === "refresh") this.refresh ??= declaredRefresh(content);
    this.#keepMeta(tag.attribute("name"), content, true);
    this.#keepMeta(tag.attribute("property") ?? tag.attribute("itemprop"), content, false);
  }

  noteLinkElement(tag: TagAttributes): void {
    const href = tag.attribute("href");
    const rel = tag.attribute("rel");
    if (href === null || rel === null || href.length > 8192) return;
    if (isLicense(rel, tag.attribute("type")) && this.licenseLinks.length < maxLicenseLinks)
      this.licenseLinks.push(href);
    const relations = rel.toLowerCase().split(/\s+/);
    if (relations.includes("canonical")) this.canonical ??= href;
    const isFeed = relations.includes("alternate") && feedType.test(tag.attribute("type") ?? "");
    if (isFeed && this.feeds.length < maxFeeds) this.feeds.push(href);
  }

  noteHtml(tag: TagAttributes): void {
    this.language ??= tag.attribute("lang") ?? tag.attribute("xml:lang");
  }

  noteTime(time: NotedTime): void {
    if (this.times.length < maxTimes) this.times.push(time);
  }

  noteItemType(type: string): void {
    if (this.itemTypes.length < maxItemTypes) this.itemTypes.push(type);
  }

  /** Values in the main part replace those from asides. */
  noteItem(property: string, value: string, isInMain: boolean): void {
    const isKnown = this.items.has(property) && !(isInMain && this.#itemsAside.has(property));
    if (isKnown || (this.items.size >= maxMetas && !this.items.has(property))) return;
    this.items.set(property, value);
    if (isInMain) this.#itemsAside.delete(property);
    else this.#itemsAside.add(property);
  }

  noteJsonLd(text: string): void {
    this.#jsonCharacters += text.length;
    if (this.#jsonCharacters <= maxJsonCharacters && this.jsonLd.length < maxJsonScripts)
      this.jsonLd.push(text);
  }

  noteLicense(xml: string): void {
    if (this.license === "") this.license = xml.slice(0, maxLicenseCharacters);
  }

  #keepMeta(written: string | null, content: string, isName: boolean): void {
    if (written === null || written.length > 100) return;
    const name = written.trim().toLowerCase();
    if (name === "description" && isName) this.description ??= content.slice(0, maxMetaCharacters);
    if (isName && robotNames.has(name)) {
      if (this.robots.length < maxRobotsMetas) this.robots.push(content.slice(0, 500));
    } else if (isName && (name === "tdm-reservation" || name === "tdm-policy")) {
      const values = name === "tdm-reservation" ? this.tdm.reservation : this.tdm.policy;
      if (values.length < maxTdmMetas) values.push(content.slice(0, 500));
    } else if (name !== "" && this.metas.size < maxMetas && !this.metas.has(name)) {
      this.metas.set(name, content.slice(0, maxMetaCharacters));
    }
  }
}

const robotNames = new Set(["robots", "nearcrawl"]);
const feedType = /^\s*(?:application|text)\/(?:rss|atom)\+xml\b/i;

// Reads a meta refresh or Refresh header (WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps").

interface DeclaredRefresh {
  readonly seconds: number;
  /** The target as written, to be resolved against the page's base. */
  readonly reference: string;
}

const maxRefreshCharacters = 10_000;
const mostSeconds = 1e9;

/** Returns null if there is no refresh, or if it reloads the page itself. */
export function declaredRefresh(content: string): DeclaredRefresh | null {
  const written = content.slice(0, maxRefreshCharacters);
  const time = /^[\t\n\f\r ]*(?:(\d+)(?:\.[\d.]*)?|\.[\d.]*)(?=[\t\n\f\r ;,])/.exec(written);
  if (time === null) return null;
  const rest = written.slice(time[0].length).replace(/^[\t\n\f\r ]*[;,]?[\t\n\f\r ]*/, "");
  const named = /^url[\t\n\f\r ]*=[\t\n\f\r ]*/i.exec(rest);
  const reference = unquoted(named === null ? rest : rest.slice(named[0].length));
  if (reference === "") return null;
  return { seconds: Math.min(mostSeconds, Number(time[1] ?? 0)), reference };
}

/** Ends at the matching quote. If there is no quote, takes the whole text. */
function unquoted(text: string): string {
  const [quote] = text;
  if (quote !== "'" && quote !== '"') return text;
  const end = text.indexOf(quote, 1);
  return text.slice(1, end < 0 ? undefined : end);
}

// Reads what structured data say about a page's main subject, to a limited depth and size: JSON-LD (schema.org), microdata,
// Open Graph. An article ranks before a product, and both rank before the page, its site and people.

export interface StructuredData {
  /** The type without its namespace, such as `NewsArticle`, or an empty string. */
  readonly type: string;
  readonly name: string;
  readonly description: string;
  readonly published: string | null;
  readonly modified: string | null;
}

export function structuredData(notes: PageNotes): StructuredData | null {
  const thing = mainThing(notes.jsonLd);
  const { items, metas } = notes;
  const itemType = notes.itemTypes.map(shortName).find((name) => rankOf(name) > 0) ?? null;
  const type = typeOf(thing) ?? itemType ?? metas.get("og:type") ?? "";
  const name = textOf(thing?.headline) ?? textOf(thing?.name) ?? items.get("headline");
  const described = textOf(thing?.description) ?? items.get("description") ?? metas.get("og:description");
  const data = {
    type: tidy(type).slice(0, 80),
    name: tidy(name ?? ownTitle(metas) ?? items.get("name") ?? ""),
    description: tidy(described ?? ""),
    published:
      textOf(thing?.datePublished) ?? textOf(thing?.dateCreated) ?? textOf(thing?.uploadDate) ?? null,
    modified: textOf(thing?.dateModified) ?? null,
  };
  return thing === null && data.type === "" && data.name === "" ? null : data;
}

/** Returns whether the page says that it is about a single thing, such as an article, a recipe or a product. */
export function isArticle(notes: PageNotes): boolean {
  const types = [
    notes.metas.get("og:type"),
    ...notes.itemTypes.map(shortName),
    typeOf(mainThing(notes.jsonLd)),
  ];
  return types.some((type) => type != null && (rankOf(type) >= 3 || /^(?:article|product|video)/.test(type)));
}

function ownTitle(metas: ReadonlyMap<string, string>): string | undefined {
  const title = metas.get("og:title") ?? metas.get("twitter:title") ?? metas.get("parsely-title");
  const site = metas.get("og:site_name")?.trim() ?? "";
  if (title === undefined || site === "" || !title.trim().endsWith(site)) return title;
  const before = title.trim().slice(0, -site.length);
  return /\S\s+[-–—|·»:]\s+$/.test(before) ? before.replace(/\s+[-–—|·»:]\s+$/, "") : title;
}

type Thing = Readonly<Record<string, unknown>>;

const maxThings = 2000;
const maxDepth = 12;

function mainThing(scripts: readonly string[]): Thing | null {
  let best: Thing | null = null;
  let rank = 0;
  for (const script of scripts) {
    for (const thing of thingsIn(parsed(script))) {
      const its = rankOf(typeOf(thing) ?? "");
      if (its > rank) [best, rank] = [thing, its];
    }
  }
  return best;
}

/** Accepts comments or CDATA marks around JSON and line ends inside its strings. Returns null for invalid JSON. */
function parsed(script: string): unknown {
  const text = unwrapped(script.trim());
  return jsonOf(text) ?? jsonOf(text.replace(/\s/g, " ").replace(/;\s*$/, ""));
}

function unwrapped(text: string): string {
  const before = wrapStart.exec(text.slice(0, maxWrapCharacters))?.[0].length ?? 0;
  const after = wrapEnd.exec(text.slice(-maxWrapCharacters))?.[0].length ?? 0;
  return text.slice(before, Math.max(before, text.length - after));
}

const maxWrapCharacters = 40;
const wrapStart = /^(?:<!--|(?:\/\/|\/\*)?\s*<!\[CDATA\[(?:\s*\*\/)?)/;
const wrapEnd = /(?:-->|(?:\/\/|\/\*)?\s*\]\]>(?:\s*\*\/)?)$/;

/** Lists typed objects breadth first, because outer objects are what the page is about. */
function thingsIn(json: unknown): Thing[] {
  const things: Thing[] = [];
  let level: unknown[] = [json];
  let met = 0;
  for (let depth = 0; depth < maxDepth && level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const value of level) {
      if (++met > maxThings) return things;
      if (!isObject(value)) continue;
      if (!Array.isArray(value) && typeOf(value) !== null) things.push(value);
      next.push(...Object.values(value).filter(isObject).slice(0, maxThings));
    }
    level = next;
  }
  return things;
}

const isObject = (value: unknown): value is Thing => typeof value === "object" && value !== null;

function typeOf(thing: Thing | null): string | null {
  const type = [thing?.["@type"] ?? []].flat().find((one) => typeof one === "string");
  return typeof type === "string" ? shortName(type) : null;
}

function shortName(type: string): string {
  return type.slice(Math.max(type.lastIndexOf("/"), type.lastIndexOf("#"), type.lastIndexOf(":")) + 1);
}

const things = new Set(
  (
    "Product Event Course Book Movie JobPosting HowTo FAQPage QAPage Dataset SoftwareApplication " +
    "CreativeWork Place LocalBusiness VideoObject NewsMediaObject Episode Question"
  ).split(" "),
);

const besideThings = new Set(
  (
    "Organization Person WebSite BreadcrumbList ListItem ImageObject SearchAction EntryPoint ReadAction " +
    "WPHeader WPFooter WPSideBar SiteNavigationElement Comment PostalAddress AggregateRating Rating Offer " +
    "Brand ItemList"
  ).split(" "),
);

/** 0 means that the type says nothing about the page's subject. */
function rankOf(type: string): number {
  if (/(?:Article|Posting|^Report|^Review|^Recipe|^Blog)$/.test(type)) return 4;
  if (things.has(type)) return 3;
  if (/Page$/.test(type)) return 2;
  return besideThings.has(type) ? 0 : 1;
}

function textOf(value: unknown): string | null {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" && first.trim() !== "" ? first.slice(0, 4000) : null;
}
