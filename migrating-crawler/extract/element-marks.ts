/**
 * What an element says of the text inside it: that it is not to be seen, that it is navigation, a footer or a
 * notice, or that it is the main part. Said by its name, its role (WAI-ARIA 1.2), its style, its class and id.
 */
import type { HtmlTag } from "./html-tags.ts";
import { mark } from "./open-elements.ts";

export interface TagAttributes {
  /** The attribute's value; null when the tag has none of this name. */
  attribute(name: string): string | null;
  hasAttributes(): boolean;
}

/** The element's own marks (`mark`), 0 for most. */
export function marksOf(tag: HtmlTag, attributes: TagAttributes): number {
  let marks = tag.isUnseen ? mark.unseen : 0;
  if (tag.index !== -1) marks |= byName.get(tag.name) ?? 0;
  if (!attributes.hasAttributes() || neverHidden.has(tag.name)) return marks;
  if (isHidden(attributes)) marks |= mark.hidden;
  const role = attributes.attribute("role");
  if (role !== null) marks |= byRole.get(role.trim().toLowerCase()) ?? 0;
  if (attributes.attribute("itemprop") !== null && attributes.attribute("itemscope") !== null)
    marks |= mark.partOfItem;
  return containers.has(tag.name) && saysFurniture(attributes) ? marks | mark.likelyFurniture : marks;
}

const byName = new Map<string, number>([
  ["template", mark.inert],
  ["svg", mark.foreign],
  ["math", mark.foreign],
  ["nav", mark.furniture],
  ["footer", mark.furniture],
  ["aside", mark.furniture],
  ["menu", mark.furniture],
  ["dialog", mark.furniture],
  ["button", mark.furniture],
  ["search", mark.furniture],
  ["article", mark.main],
  ["main", mark.main],
]);
const furnitureRoles =
  "navigation contentinfo banner complementary search dialog alertdialog menu menubar toolbar tooltip button";
const byRole = new Map<string, number>([
  ...furnitureRoles.split(" ").map((role) => [role, mark.furniture] as const),
  ["main", mark.main],
  ["article", mark.main],
]);
const neverHidden = new Set(["html", "body"]);
const containers = new Set(["div", "section", "ul", "ol", "dl", "table", "form", "header", "td"]);

function isHidden(attributes: TagAttributes): boolean {
  if (attributes.attribute("hidden") !== null) return true;
  const style = attributes.attribute("style");
  return style !== null && /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

/** Words that stand at the beginning of a class or id, or behind a `-` or `_`. */
const furnitureName =
  /(?:^|[\s_-])(?:nav|navbar|navigation|menu|submenu|footer|sidebar|side-?bar|breadcrumbs?|cookies?|consent|gdpr|social|share|sharing|sharedaddy|related|recommended|recommendations|comments?|commentlist|respond|disqus|newsletter|subscribe|subscription|signup|login|promo|advert|advertisement|ads?|sponsored|banner|popup|modal|overlay|widget|pagination|pager|skip-?links?|toolbar|tagcloud|copyright|masthead|outbrain|taboola|author-?box|author-?bio)(?=$|[\s_-])/i;

function saysFurniture(attributes: TagAttributes): boolean {
  const className = attributes.attribute("class");
  if (className !== null && furnitureName.test(className)) return true;
  const id = attributes.attribute("id");
  return id !== null && furnitureName.test(id);
}
