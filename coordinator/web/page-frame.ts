/** What every page has around it: head, navigation, footer. No inline script or style, so that the policy can forbid them. */
import { type Html, html } from "./html.ts";

export interface PageFrame {
  readonly title: string;
  /** Path of the current section, for the navigation. */
  readonly section: "/" | "/who" | "/search" | "/about-crawler" | null;
  readonly body: Html;
  readonly version: string;
  /** Path of the same content as JSON. */
  readonly json?: string;
}

const sections = [
  ["/", "Overview"],
  ["/who", "Look up"],
  ["/search", "Search"],
  ["/about-crawler", "About"],
] as const;

const styleSheets = ["base", "figures", "answers", "search", "contact"];

export function pageFrame(frame: PageFrame): string {
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${frame.title} · Nearcrawl</title>
<link rel="icon" href="/assets/nearcrawl.svg" type="image/svg+xml">
${styleSheets.map((name) => html`<link rel="stylesheet" href="/assets/${name}.css">`)}
<script src="/assets/nearcrawl.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<div class="width">
<a class="brand" href="/">${brandMark}<span>Nearcrawl</span></a>
<nav class="sections" aria-label="Sections">${sections.map(([path, name]) => html`<a href="${path}"${current(path, frame)}>${name}</a>`)}</nav>
</div>
</header>
<main id="content" class="width">
${frame.body}
</main>
<footer class="width">
<p>Nearcrawl ${frame.version}: every page is fetched by the nearest crawler. ${
    frame.json ? html`<a href="${frame.json}">This page as JSON</a> · ` : ""
  }<a href="/api/openapi.json">API</a></p>
</footer>
</body>
</html>
`;
  return page.markup;
}

function current(path: string, frame: PageFrame): Html | null {
  return path === frame.section ? html` aria-current="page"` : null;
}

const brandMark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 27a23 23 0 0 1 23-23M10 27a17 17 0 0 1 17-17M16 27a11 11 0 0 1 11-11"/><circle cx="25" cy="25" r="4"/></svg>`;
