/**
 * Reads what structured data say about a page's main subject: JSON-LD (schema.org), microdata, Open Graph, to a limited
 * depth and size. An article ranks before a product, and both before the page, its site and people.
 */
import { jsonOf } from "../core/json.ts";
import type { PageNotes } from "./page-metadata.ts";
import { tidy } from "./read-links.ts";

export interface StructuredData {
  /** The type without its namespace, such as `NewsArticle`, or empty. */
  readonly type: string;
  readonly name: string;
  readonly description: string;
  /** The date as written, or null. */
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

/** Returns whether the page says that it is about one thing: an article, a recipe, a product. */
export function isArticle(notes: PageNotes): boolean {
  const types = [
    notes.metas.get("og:type"),
    ...notes.itemTypes.map(shortName),
    typeOf(mainThing(notes.jsonLd)),
  ];
  return types.some((type) => type != null && (rankOf(type) >= 3 || /^(?:article|product|video)/.test(type)));
}

/** Drops the site's name after Open Graph's title. */
function ownTitle(metas: ReadonlyMap<string, string>): string | undefined {
  const title = metas.get("og:title") ?? metas.get("twitter:title") ?? metas.get("parsely-title");
  const site = metas.get("og:site_name")?.trim() ?? "";
  if (title === undefined || site === "" || !title.trim().endsWith(site)) return title;
  const before = title.trim().slice(0, -site.length);
  return /\S\s+[-–—|·»:]\s+$/.test(before) ? before.replace(/\s+[-–—|·»:]\s+$/, "") : title;
}

type Thing = Readonly<Record<string, unknown>>;

/** Limits the nodes visited and their depth. */
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

/** Tolerates comments or CDATA marks around JSON and line ends inside its strings; returns null for invalid JSON. */
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

/** A 0 means that the type says nothing about the page's subject. */
function rankOf(type: string): number {
  if (/(?:Article|Posting|^Report|^Review|^Recipe|^Blog)$/.test(type)) return 4;
  if (things.has(type)) return 3;
  if (/Page$/.test(type)) return 2;
  return besideThings.has(type) ? 0 : 1;
}

/** Returns the text of the first value, or null. */
function textOf(value: unknown): string | null {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" && first.trim() !== "" ? first.slice(0, 4000) : null;
}
