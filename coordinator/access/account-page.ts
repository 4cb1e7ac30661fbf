/** The page of one's own account. */

import type { Session } from "#core/access-types";
import { type Scope, scopesOf } from "#core/actor";
import { ago, crawlerLink, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";

interface Account {
  readonly name: string;
  readonly role: string;
  readonly scopes: readonly string[];
  readonly crawlers: readonly string[];
  readonly sessions: readonly (Session & { readonly isThisOne: boolean })[];
}

/** `now` as ISO 8601. */
export function accountBody(account: Account, viewer: PageViewer, now: string): Html {
  if (viewer.signedInAs === null) return notSignedIn(account);
  return html`<h1>${account.name}</h1>
<p class="lead">Signed in as <strong>${account.role}</strong>: ${roleWords(account)}</p>
<div class="actions"><form method="post" action="/sign-out">${formToken(viewer)}<button>Sign out</button></form>${accessLinks(viewer)}</div>
<section><h2>Your sessions</h2>
<p class="small">A session ends when it was not used for 8 hours, and in any case after 7 days.</p>
${sessionTable(account.sessions, { now, action: (session) => endOwn(session, viewer) })}
${account.sessions.length > 1 ? endOthers(viewer) : nothing}</section>`;
}

function notSignedIn({ name, role }: Account): Html {
  return role === "program"
    ? html`<h1>${name}</h1><p>A program's token; it has no sessions.</p>`
    : html`<h1>Your account</h1><div class="empty"><p>You have not signed in. <a href="/sign-in?to=%2Faccount">How to sign in</a></p></div>`;
}

function roleWords({ role, crawlers }: Account): Html {
  if (role === "partner")
    return html`you see and steer ${crawlers.map((name, index) => html`${index > 0 ? ", " : ""}${crawlerLink(name)}`)}.`;
  return role === "staff"
    ? html`you see everything and change nothing.`
    : html`you see and change everything.`;
}

function accessLinks({ actor }: PageViewer): Html {
  return actor.scopes.includes("access-write")
    ? html`<a class="button quiet" href="/access">Who has access</a><a class="button quiet" href="/tokens">Tokens</a>`
    : nothing;
}

export interface SessionTable {
  readonly now: string;
  readonly withNames?: boolean;
  readonly action: (session: Session & { readonly isThisOne?: boolean }) => Html;
}

export function sessionTable(
  sessions: readonly (Session & { readonly isThisOne?: boolean })[],
  table: SessionTable,
): Html {
  const { now, withNames = false, action } = table;
  return html`<div class="scroll"><table>
<thead><tr>${withNames ? html`<th scope="col">Name</th><th scope="col">Role</th>` : nothing}<th scope="col">Last used</th><th scope="col">From</th><th scope="col">With</th><th scope="col">Since</th><th scope="col">Ends at the latest</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${sessions.map(
    (one) => html`<tr>${withNames ? html`<th scope="row">${one.name}</th><td>${roleCell(one)}</td>` : nothing}
<td class="nowrap">${ago(one.lastUsedAt.toISOString(), now)}</td><td class="mono">${one.remoteAddress ?? "unknown"}</td>
<td title="${one.userAgent}">${browserName(one.userAgent)}</td><td class="nowrap">${instant(one.startedAt.toISOString())}</td>
<td class="nowrap">${instant(one.endsAt.toISOString())}</td><td>${action(one)}</td></tr>`,
  )}</tbody></table></div>`;
}

function roleCell({ role, crawlers }: Session): Html {
  return html`${role}${crawlers.length > 0 ? html` <span class="small">${crawlers.join(", ")}</span>` : nothing}`;
}

function endOwn(session: Session & { readonly isThisOne?: boolean }, viewer: PageViewer): Html {
  if (session.isThisOne) return html`<span class="small">this one</span>`;
  return html`<form method="post" action="/account/sessions/${session.sessionId}/end">${formToken(viewer)}<button class="slim quiet">End it<span class="hidden"> (number ${session.sessionId})</span></button></form>`;
}

function endOthers(viewer: PageViewer): Html {
  return html`<form class="after-table" method="post" action="/account/sessions/end-others">${formToken(viewer)}<button class="quiet">End all others</button></form>`;
}

/** Enough of a User-Agent to know one's own by. */
export function browserName(userAgent: string): string {
  const [, name] =
    /(Firefox|Edg|OPR|Chrome|Safari|curl)\//.exec(userAgent.replace(/HeadlessChrome/, "Chrome")) ?? [];
  const [, system] = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(userAgent) ?? [];
  const shown = { Edg: "Edge", OPR: "Opera" }[name ?? ""] ?? name;
  return [shown ?? (userAgent === "" ? "unknown" : userAgent.slice(0, 40)), system && `on ${system}`]
    .filter(Boolean)
    .join(" ");
}

/** What a scope is good for, beside its name. */
export const scopeWords: Readonly<Record<Scope, string>> = {
  read: "the crawl, the index, who crawls what and why",
  "metrics-read": "/metrics, for Prometheus",
  "fleet-read": "keys, invitations and incidents of the fleet",
  "fleet-write": "invite, rotate, drain, move, shut out",
  "registry-write": "plan, apply and roll back the registry",
  "policy-write": "the coordinator's policies",
  "audit-read": "who changed what",
  "access-write": "tokens and others' sign-in",
};

export const allScopes = scopesOf.operator;
