/** A planned page as HTML: the same plan gives the same bytes. */

import type { Furniture } from "./page-furniture.ts";
import { SeededRandom } from "./seeded-random.ts";
import { sentencePool } from "./sentences.ts";
import type { PageLink, PlannedPage, SitePlan } from "./site-plan.ts";

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

const style =
  "<style>body{font:1rem/1.5 serif;max-width:44rem;margin:auto;padding:1rem}nav ul{display:flex;gap:1rem;padding:0;list-style:none}h1,h2{line-height:1.2}footer{margin-top:3rem;color:#555}</style>";

function titleOf(plan: SitePlan, page: PlannedPage): string {
  return page.title === plan.name ? plan.name : `${page.title} – ${plan.name}`;
}

/** The first pages, on every page. */
function navigation(plan: SitePlan): string {
  return plan.pages
    .slice(0, 4)
    .map((page) => item({ href: page.path, text: page.title, nofollow: false }))
    .join("");
}

function item({ href, text, nofollow }: PageLink): string {
  return `<li><a href="${escapeHtml(href)}"${nofollow ? ' rel="nofollow"' : ""}>${escapeHtml(text)}</a></li>`;
}

/** Paragraphs with a heading now and then, until the planned size is reached. */
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

/** The sentences themselves hold nothing that HTML would read as markup. */
function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
