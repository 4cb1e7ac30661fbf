/** Renders a planned page as HTML. The same plan gives the same bytes. */

import { SeededRandom } from "./seeded-random.ts";
import { type PageLink, type PlannedPage, type SitePlan, sentencePool } from "./site-plan.ts";

export function pageHtml(plan: SitePlan, page: PlannedPage, furniture: Furniture): string {
  const random = new SeededRandom(page.seed);
  const text = bodyText(page, plan.name, random);
  const language = plan.saysLanguage ? ` lang="${page.language}"` : "";
  const robots = page.noindex ? '\n<meta name="robots" content="noindex">' : "";
  return `<!doctype html>
<html${language}>
<head>
<meta charset="utf-8">
<title>${escapeHtml(titleOf(plan, page))}</title>
<meta name="description" content="${escapeHtml(random.pick(sentencePool(page.language)))}">
<meta name="viewport" content="width=device-width">${robots}
${style}
${furniture.head}
</head>
<body>
<header><p>${escapeHtml(plan.name)}</p>
<nav><ul>${navigation(plan)}</ul></nav></header>
${furniture.menu}
<main>
<h1>${escapeHtml(page.title)}</h1>
${text}
<ul>${page.links.map(item).join("")}</ul>
</main>
<footer><p>${escapeHtml(plan.name)} · <a href="mailto:office@${plan.site.host}">office@${plan.site.host}</a></p></footer>
${furniture.foot}
</body>
</html>
`;
}

const style = `<style>${[
  "body{font:1rem/1.5 serif;max-width:44rem;margin:auto;padding:1rem}",
  "nav ul{display:flex;gap:1rem;padding:0;list-style:none}",
  "h1,h2{line-height:1.2}",
  "footer{margin-top:3rem;color:#555}",
].join("")}</style>`;

function titleOf(plan: SitePlan, page: PlannedPage): string {
  return page.title === plan.name ? plan.name : `${page.title} – ${plan.name}`;
}

/** Links to the first pages, which every page has. */
function navigation(plan: SitePlan): string {
  return plan.pages
    .slice(0, 4)
    .map((page) => item({ href: page.path, text: page.title, nofollow: false }))
    .join("");
}

function item({ href, text, nofollow }: PageLink): string {
  return `<li><a href="${escapeHtml(href)}"${nofollow ? ' rel="nofollow"' : ""}>${escapeHtml(text)}</a></li>`;
}

/** Writes paragraphs with occasional headings, up to the planned size. */
function bodyText(page: PlannedPage, siteName: string, random: SeededRandom): string {
  const pool = sentencePool(page.language);
  const parts: string[] = [`<p><strong>${escapeHtml(siteName)}:</strong> ${random.pick(pool)}</p>`];
  for (let bytes = 0; bytes < page.textBytes; ) {
    const sentences = Array.from({ length: random.integer(3, 7) }, () => random.pick(pool));
    const paragraph = `<p>${sentences.join(" ")}</p>`;
    if (random.chance(0.2)) parts.push(`<h2>${random.pick(pool).slice(0, -1)}</h2>`);
    parts.push(paragraph);
    bytes += paragraph.length;
  }
  return parts.join("\n");
}

/** Escapes names and titles. The sentences contain no markup characters. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

// The markup around a real page's text: inline styles, script data, menus with classes, icons. It makes up most of a
// page's bytes (the median page has about ten times as much markup as visible text), which a crawler reads but does not
// ship. It is the same on all pages of a site.

export interface Furniture {
  /** Goes inside `<head>`. */
  readonly head: string;
  /** Goes between the header and the text. */
  readonly menu: string;
  /** Goes before `</body>`. */
  readonly foot: string;
}

const medianBytes = 34_000;
const leastBytes = 6_000;
const mostBytes = 160_000;

/** The size is drawn from a log-normal distribution. The seed determines everything. */
export function siteFurniture(seed: number): Furniture {
  const random = new SeededRandom(seed);
  const size = Math.min(mostBytes, Math.max(leastBytes, medianBytes * Math.exp(0.6 * random.normal())));
  const classes = Array.from({ length: 60 }, () => className(random));
  return {
    head: `<style>${repeated(size * 0.4, () => cssRule(random, classes))}</style>`,
    menu: `<div class="${random.pick(classes)}" role="navigation">${repeated(size * 0.35, () => menuEntry(random, classes))}</div>`,
    foot: `<script>window.__state={"build":"${hex(random, 16)}","items":[${repeated(size * 0.25, () => stateItem(random, classes)).slice(0, -1)}]}</script>`,
  };
}

function repeated(bytes: number, make: () => string): string {
  const parts: string[] = [];
  for (let length = 0; length < bytes; ) {
    const part = make();
    parts.push(part);
    length += part.length;
  }
  return parts.join("");
}

const properties = ["margin", "padding", "gap", "top", "width", "border-radius", "line-height", "flex-basis"];

function cssRule(random: SeededRandom, classes: readonly string[]): string {
  const declarations = Array.from(
    { length: random.integer(2, 6) },
    () => `${random.pick(properties)}:${random.integer(0, 64)}px`,
  );
  return `.${random.pick(classes)} .${random.pick(classes)}:hover{${declarations.join(";")};color:#${hex(random, 6)}}`;
}

/** An icon and a box without a word, since menus must not add to the text. */
function menuEntry(random: SeededRandom, classes: readonly string[]): string {
  const path = Array.from({ length: 8 }, () => `${random.integer(0, 24)}.${random.integer(0, 9)}`).join(" ");
  const [first, second, id, icon] = [
    random.pick(classes),
    random.pick(classes),
    hex(random, 8),
    random.pick(classes),
  ];
  const drawing = `<svg viewBox="0 0 24 24"><path d="M${path}z"/></svg>`;
  return `<div class="${first} ${second}" data-id="${id}"><span class="${icon}" aria-hidden="true">${drawing}</span></div>`;
}

function stateItem(random: SeededRandom, classes: readonly string[]): string {
  return `{"id":"${hex(random, 12)}","type":"${random.pick(classes)}","rank":${random.integer(1, 999)},"visible":${random.chance(0.5)}},`;
}

function className(random: SeededRandom): string {
  const parts = ["nav", "card", "grid", "item", "row", "col", "hero", "list", "btn", "wrap", "inner", "tile"];
  return `${random.pick(parts)}-${random.pick(parts)}__${hex(random, 4)}`;
}

function hex(random: SeededRandom, digits: number): string {
  return Array.from({ length: digits }, () => random.integer(0, 15).toString(16)).join("");
}
