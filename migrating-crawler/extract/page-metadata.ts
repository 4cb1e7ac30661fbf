/**
 * Collects what a page says about itself outside its text: metas, head links, JSON-LD, microdata and times. Values stay
 * as written, within bounds; page-dates, structured-data and robots-directives interpret them.
 */
import { isLicense, maxLicenseCharacters } from "../preferences/rsl.ts";
import type { TagAttributes } from "./read-links.ts";

const maxMetas = 300;
const maxMetaCharacters = 4000;
const maxRobotsMetas = 10;
const maxFeeds = 100;
const maxTimes = 50;
const maxItemTypes = 20;
/** Longer JSON-LD is ignored; real pages have under 100 KB. */
const maxJsonCharacters = 512 * 1024;
const maxJsonScripts = 20;
const maxTdmMetas = 10;
const maxLicenseLinks = 5;

/** A `time` element, or any element with a date property. */
export interface NotedTime {
  /** The `datetime` or `content` attribute, else the text. */
  readonly value: string;
  /** The itemprop and class in lower case. */
  readonly says: string;
  /** False inside navigation, asides and the like. */
  readonly isInMain: boolean;
  readonly isInArticle: boolean;
}

export class PageNotes {
  description: string | null = null;
  canonical: string | null = null;
  base: string | null = null;
  /** The `lang` attribute of the html element. */
  language: string | null = null;
  /** The `Content-Language` meta. */
  contentLanguage: string | null = null;
  readonly itemTypes: string[] = [];
  /** The robots metas for all crawlers and for our name. */
  readonly robots: string[] = [];
  /** The metas `tdm-reservation` and `tdm-policy`. */
  readonly tdm = { reservation: [] as string[], policy: [] as string[] };
  /** Link elements that name the page's license (RSL). */
  readonly licenseLinks: string[] = [];
  /** The first license in a script element (RSL). */
  license = "";
  readonly feeds: string[] = [];
  /** The first meta refresh with a target. */
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

  /** Values in the main part replace values from asides. */
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

/** Returns null for no refresh, or for one that reloads the page itself. */
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

/** Ends at the matching quote, or without one takes the whole text. */
function unquoted(text: string): string {
  const [quote] = text;
  if (quote !== "'" && quote !== '"') return text;
  const end = text.indexOf(quote, 1);
  return text.slice(1, end < 0 ? undefined : end);
}
