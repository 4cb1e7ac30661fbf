/**
 * What a page's structured data says of the main thing on it: JSON-LD (schema.org), microdata, Open Graph. Read to a
 * bounded depth and size; where several things are described, an article goes before a product, and both before
 * the page, its site and the people.
 */
import type { PageNotes } from "./page-metadata.ts";
import { tidy } from "./read-links.ts";

export interface StructuredData {
  /** Without its namespace: `NewsArticle`; empty when it is not said. */
  readonly type: string;
  readonly name: string;
  readonly description: string;
  /** As written; null when it is not said. */
  readonly published: string | null;
  readonly modified: string | null;
}

/** Null when the page has none. */
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

/** Whether the page says that it is about one thing: an article, a recipe, a product. */
export function isArticle(notes: PageNotes): boolean {
  const types = [
    notes.metas.get("og:type"),
    ...notes.itemTypes.map(shortName),
    typeOf(mainThing(notes.jsonLd)),
  ];
  return types.some((type) => type != null && (rankOf(type) >= 3 || /^(?:article|product|video)/.test(type)));
}

/** Open Graph's title, without the site's name behind it. */
function ownTitle(metas: ReadonlyMap<string, string>): string | undefined {
  const title = metas.get("og:title") ?? metas.get("twitter:title") ?? metas.get("parsely-title");
  const site = metas.get("og:site_name")?.trim() ?? "";
  if (title === undefined || site === "" || !title.trim().endsWith(site)) return title;
  const before = title.trim().slice(0, -site.length);
  return /\S\s+[-–—|·»:]\s+$/.test(before) ? before.replace(/\s+[-–—|·»:]\s+$/, "") : title;
}

type Thing = Readonly<Record<string, unknown>>;

/** Nodes that are looked at, and how deep. */
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

/** Pages wrap their JSON in comments or CDATA marks, or leave line ends in its strings; null when it is none at all. */
function parsed(script: string): unknown {
  const text = unwrapped(script.trim());
  try {
    return JSON.parse(text);
  } catch {
    return parsedLoosely(text);
  }
}

function unwrapped(text: string): string {
  const before = wrapStart.exec(text.slice(0, maxWrapCharacters))?.[0].length ?? 0;
  const after = wrapEnd.exec(text.slice(-maxWrapCharacters))?.[0].length ?? 0;
  return text.slice(before, Math.max(before, text.length - after));
}

const maxWrapCharacters = 40;
const wrapStart = /^(?:<!--|(?:\/\/|\/\*)?\s*<!\[CDATA\[(?:\s*\*\/)?)/;
const wrapEnd = /(?:-->|(?:\/\/|\/\*)?\s*\]\]>(?:\s*\*\/)?)$/;

function parsedLoosely(text: string): unknown {
  try {
    return JSON.parse(text.replace(/\s/g, " ").replace(/;\s*$/, ""));
  } catch {
    return null;
  }
}

/** The objects with a type, breadth first: what stands outside is what the page is about. */
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

/** 0: says nothing of the page's own matter. */
function rankOf(type: string): number {
  if (/(?:Article|Posting|^Report|^Review|^Recipe|^Blog)$/.test(type)) return 4;
  if (things.has(type)) return 3;
  if (/Page$/.test(type)) return 2;
  return besideThings.has(type) ? 0 : 1;
}

/** Text of a property, of the first value of several; null for anything else. */
function textOf(value: unknown): string | null {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === "string" && first.trim() !== "" ? first.slice(0, 4000) : null;
}
