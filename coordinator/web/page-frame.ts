/** What every page has around it: head, navigation, footer. No inline script or style, so that the policy can forbid them. */
import { type Actor, anybody, mayDo, type Scope } from "#core/actor";
import { type Html, html, nothing } from "./html.ts";

export interface PageFrame {
  readonly title: string;
  /** Path of the current section, for the navigation. */
  readonly section: SectionPath | null;
  readonly body: Html;
  readonly version: string;
  /** Who looks; left out on pages that are for everybody. */
  readonly viewer?: PageViewer;
  /** Paths of the same content as JSON and as CSV. */
  readonly json?: string;
  readonly csv?: string;
}

export interface PageViewer {
  readonly actor: Actor;
  /** Null: nobody has signed in. */
  readonly signedInAs: string | null;
  /** Goes into every form of this session; null: there is no session, and no form that changes anything. */
  readonly formToken: string | null;
  /** What the last action has to say. */
  readonly said: string | null;
}

const sections = [
  ["/", "Overview", "read"],
  ["/who", "Look up", "read"],
  ["/explore", "Explore", "read"],
  ["/search", "Search", "read"],
  ["/changes", "Changes", "read"],
  ["/fleet", "Fleet", "read"],
  ["/registry", "Registry", "read"],
  ["/policies", "Policies", "read"],
  ["/audit", "Audit log", "audit-read"],
  ["/about-crawler", "About", null],
] as const satisfies readonly (readonly [string, string, Scope | null])[];

export type SectionPath = (typeof sections)[number][0];

const styleSheets = [
  "base",
  "frame",
  "controls",
  "figures",
  "charts",
  "overview",
  "answers",
  "fleet",
  "search",
  "contact",
  "api",
  "access",
  "registry",
  "policies",
  "explore",
  "feed",
];

const styleLinks = html`${styleSheets.map((name) => html`<link rel="stylesheet" href="/assets/${name}.css">`)}`;

export const nobody: PageViewer = { actor: anybody(true), signedInAs: null, formToken: null, said: null };

export function pageFrame(frame: PageFrame): string {
  const viewer = frame.viewer ?? nobody;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${frame.title} · Nearcrawl</title>
<link rel="icon" href="/assets/nearcrawl.svg" type="image/svg+xml">
${styleLinks}
<script src="/assets/nearcrawl.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<div class="width">
<a class="brand" href="${homeOf(viewer)}">${brandMark}<span>Nearcrawl</span></a>
<nav class="sections" aria-label="Sections">${navigation(frame, viewer)}</nav>
${frame.viewer ? account(viewer) : nothing}
</div>
</header>
<main id="content" class="width">
${viewer.said === null ? nothing : html`<p class="said" role="status">${viewer.said}</p>`}
${frame.body}
</main>
<footer class="width">
<div class="foot">
<p>Nearcrawl ${frame.version}: every page is fetched by the nearest crawler.</p>
<p>${otherForms(frame)}<a href="/api">API</a></p>
</div>
</footer>
</body>
</html>
`;
  return page.markup;
}

function navigation(frame: PageFrame, { actor }: PageViewer): Html[] {
  const open = sections.filter(([, , scope]) => mayDo(actor, scope));
  return [
    ...ownCrawlers(actor).map((name) => html`<a href="/crawlers/${encodeURIComponent(name)}">${name}</a>`),
    ...open.map(([path, name]) => html`<a href="${path}"${current(path, frame)}>${name}</a>`),
  ];
}

/** What a partner has in place of the sections; the account lists all of them. */
function ownCrawlers({ role, crawlers }: Actor): readonly string[] {
  return role === "partner" ? crawlers.slice(0, 5) : [];
}

function homeOf({ actor }: PageViewer): string {
  const [own] = ownCrawlers(actor);
  return own === undefined ? "/" : `/crawlers/${encodeURIComponent(own)}`;
}

function current(path: string, frame: PageFrame): Html | null {
  return path === frame.section ? html` aria-current="page"` : null;
}

function account({ signedInAs, actor }: PageViewer): Html {
  if (signedInAs === null) return html`<p class="account"><a href="/sign-in">Sign in</a></p>`;
  return html`<p class="account"><a href="/account">${signedInAs}</a> <span class="small">${actor.role}</span></p>`;
}

function otherForms({ json, csv }: PageFrame): Html {
  return html`${json ? html`<a href="${json}">This page as JSON</a> · ` : nothing}${csv ? html`<a href="${csv}">as CSV</a> · ` : nothing}`;
}

/** The hidden field of every form that changes something; forms are shown to those who may. */
export function formToken({ formToken: token }: PageViewer): Html {
  return html`<input type="hidden" name="form-token" value="${token ?? ""}">`;
}

const brandMark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path d="M4 27a23 23 0 0 1 23-23M10 27a17 17 0 0 1 17-17M16 27a11 11 0 0 1 11-11"/><circle cx="25" cy="25" r="4"/></svg>`;

// What a page says when it cannot be shown.

export interface PageError {
  readonly status: number;
  readonly title: string;
  readonly words: string;
}

export function errorBody(error: PageError): Html {
  return html`<div class="error"><p class="status">${error.status}</p><h1>${error.title}</h1><p>${error.words}</p><p><a href="/">To the overview</a></p></div>`;
}
