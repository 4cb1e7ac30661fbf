/**
 * The frame of every page: head, navigation, footer. It has no inline script or style, so that the content security policy
 * can forbid them.
 */
import type { FastifyReply } from "fastify";
import { type Actor, anybody, mayDo } from "#core/actor";
import { assetAddress, pageScript } from "./assets.ts";
import { type Html, html, nothing, withCellLabels } from "./html.ts";
import {
  type Listed,
  type NavigationEntry,
  type NavigationGroup,
  type NavigationPlace,
  navigationFor,
  navigationOf,
  ownCrawlers,
  placeOf,
} from "./navigation.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** The operations that the navigation is made from. */
    pages?: Listed[];
  }
}

interface PageFrame {
  readonly title: string;
  /** The page's path, which the navigation highlights. Its query is ignored. */
  readonly path: string;
  readonly body: Html;
  readonly version: string;
  /** Absent on public pages. */
  readonly viewer?: PageViewer;
  readonly notice?: Html;
  readonly json?: string;
  readonly csv?: string;
}

export interface PageViewer {
  readonly actor: Actor;
  /** Null when nobody is signed in. */
  readonly signedInAs: string | null;
  /** Sent with every form of the session; null without a session. */
  readonly formToken: string | null;
  /** The result of the last action. */
  readonly said: string | null;
}

export const nobody: PageViewer = { actor: anybody(true), signedInAs: null, formToken: null, said: null };

export const sendPage = (reply: FastifyReply, frame: PageFrame): FastifyReply =>
  reply.type("text/html; charset=utf-8").send(pageFrame(frame, reply.server.pages));

export function pageFrame(frame: PageFrame, pages: readonly Listed[] = []): string {
  const viewer = frame.viewer ?? nobody;
  const groups = navigationFor(viewer.actor, navigationOf(pages));
  const place = placeOf(frame.path.replace(/\?.*$/s, ""), groups);
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${frame.title} · Nearcrawl</title>
<link rel="icon" href="${assetAddress("nearcrawl.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="${assetAddress("nearcrawl.css")}">
${pageScript("nearcrawl.js")}
${pageScript("find.js")}
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<div class="width">
<a class="brand" href="${homeOf(viewer)}">${brandMark}<span>Nearcrawl</span></a>
<nav class="groups" aria-label="Sections">${groups.map((group, at) => groupPart(group, place, place === null && at === 0))}</nav>
${mayDo(viewer.actor, "read") || viewer.signedInAs !== null ? findBox : nothing}
${frame.viewer ? account(viewer) : nothing}
</div>
</header>
${tabsOf(place)}
<main id="content" class="width">
${viewer.said === null ? nothing : html`<p class="said" role="status">${viewer.said}</p>`}
${frame.notice ?? nothing}${frame.body}
</main>
<footer class="width">
<div class="foot">
<p>Nearcrawl ${frame.version}: every page is fetched by the nearest crawler.</p>
<p>${otherForms(frame)}<a href="/api">API</a> · <a href="/about-crawler">About this crawler</a></p>
</div>
</footer>
</body>
</html>
`;
  return withCellLabels(page.markup);
}

/** The current group (or the first one) is open. The others open in place. */
function groupPart(group: NavigationGroup, place: NavigationPlace | null, isFirst: boolean): Html {
  const isCurrent = group === place?.group;
  const open = isCurrent || isFirst ? html` open` : nothing;
  return html`<details name="group"${open}><summary${isCurrent ? html` aria-current="true"` : nothing}>${group.name}</summary>
<ul>${group.entries.map((entry) => html`<li>${entryLink(entry, place)}</li>`)}</ul></details>`;
}

function entryLink(entry: NavigationEntry, place: NavigationPlace | null): Html {
  if (entry !== place?.entry) return html`<a href="${entry.path}">${entry.name}</a>`;
  const isPage = place.tab === null || place.tab.path === entry.path;
  return html`<a href="${entry.path}" aria-current="${isPage ? "page" : "true"}">${entry.name}</a>`;
}

function tabsOf(place: NavigationPlace | null): Html {
  const { tab, entry } = place ?? {};
  if (!tab || !entry?.tabs || entry.tabs.length < 2) return nothing;
  return html`<div class="width tab-row"><nav class="tabs" aria-label="${entry.name}">${entry.tabs.map(
    (one) => html`<a href="${one.path}"${one === tab ? html` aria-current="page"` : nothing}>${one.name}</a>`,
  )}</nav></div>`;
}

/** The search box. "/" focuses it, and a script shows results while one types. */
const findBox = html`<form class="find" role="search" action="/find" method="get">
<label class="hidden" for="find">Find pages, crawlers, hosts and settings</label><input id="find" name="q" type="search"
 maxlength="2048" placeholder="Search or jump to (/)" autocomplete="off" spellcheck="false">
</form>`;

function homeOf({ actor }: PageViewer): string {
  const [own] = ownCrawlers(actor);
  return own === undefined ? "/" : `/crawlers/${encodeURIComponent(own)}`;
}

function account({ signedInAs, actor }: PageViewer): Html {
  if (signedInAs === null) return html`<p class="account"><a href="/sign-in">Sign in</a></p>`;
  return html`<p class="account"><a href="/account">${signedInAs}</a> <span class="small">${actor.role}</span></p>`;
}

function otherForms({ json, csv }: PageFrame): Html {
  return html`${json ? html`<a href="${json}">This page as JSON</a> · ` : nothing}${csv ? html`<a href="${csv}">as CSV</a> · ` : nothing}`;
}

/** The hidden field that every changing form needs. */
export function formToken({ formToken: token }: PageViewer): Html {
  return html`<input type="hidden" name="form-token" value="${token ?? ""}">`;
}

const brandMark = html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path
 d="M4 27a23 23 0 0 1 23-23M10 27a17 17 0 0 1 17-17M16 27a11 11 0 0 1 11-11"/><circle cx="25" cy="25" r="4"/></svg>`;

export interface PageError {
  readonly status: number;
  readonly title: string;
  readonly words: string;
  /** Additional JSON fields, such as where to continue. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The page reloads after this many seconds. */
  readonly refreshSeconds?: number;
}

export function errorBody(error: PageError): Html {
  return html`<div class="error"><p class="status">${error.status}</p><h1>${error.title}</h1><p>${error.words}</p><p><a href="/">To the overview</a></p></div>`;
}
