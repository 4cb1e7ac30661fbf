/** The page of tokens: those that are there, and a form that makes one. */

import type { OperatorToken } from "#core/access-types";
import type { Scope } from "#core/actor";
import { ago, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { allScopes, scopeWords } from "./account-page.ts";

export interface TokenForm {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly days: number;
  readonly fault: string | null;
}

export const emptyTokenForm: TokenForm = { name: "", scopes: [], days: 365, fault: null };

export function tokensBody(
  { tokens, now }: { readonly tokens: readonly OperatorToken[]; readonly now: Date },
  form: TokenForm,
  viewer: PageViewer,
): Html {
  return html`<h1>Tokens</h1>
<p class="lead">Programs show a token with each request: <code>Authorization: Bearer TOKEN</code>. What can be asked is on <a href="/api">the page of the API</a>.</p>
${tokens.length === 0 ? noTokens : tokenTable(tokens, now, viewer)}
<section id="new"><h2>A new token</h2>${viewer.formToken === null ? noForm : tokenForm(form, viewer)}</section>`;
}

const noTokens = html`<div class="empty"><p>There are no tokens. The first one is made below, or by <code>nearcrawl operator-token create NAME</code>.</p></div>`;
const noForm = html`<p>Sign in to make one, or type <code>nearcrawl operator-token create NAME --scope SCOPE</code>.</p>`;

function tokenTable(tokens: readonly OperatorToken[], now: Date, viewer: PageViewer): Html {
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Token</th><th scope="col">State</th><th scope="col">Good for</th><th scope="col">Good until</th><th scope="col">Last used</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${tokens.map((token) => tokenRow(token, now, viewer))}</tbody></table></div>`;
}

function tokenRow(token: OperatorToken, now: Date, viewer: PageViewer): Html {
  const state = stateOf(token, now);
  const { name, lastUsedAt, expiresAt } = token;
  return html`<tr><th scope="row">${name}</th><td>${state}</td><td>${token.scopes.join(", ")}</td>
<td class="nowrap">${expiresAt === null ? "revoked" : instant(expiresAt.toISOString())}</td>
<td class="nowrap">${lastUsedAt === null ? "never" : ago(lastUsedAt.toISOString(), now.toISOString())}</td>
<td>${state === "good" && viewer.formToken !== null ? revokeButton(name, viewer) : nothing}</td></tr>`;
}

export function stateOf({ revokedAt, expiresAt }: OperatorToken, now: Date): "good" | "revoked" | "expired" {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && expiresAt <= now ? "expired" : "good";
}

function revokeButton(name: string, viewer: PageViewer): Html {
  return html`<form method="post" action="/tokens/${encodeURIComponent(name)}/revoke">${formToken(viewer)}<button class="slim quiet">Revoke<span class="hidden"> ${name}</span></button></form>`;
}

function tokenForm(form: TokenForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/tokens#new">${formToken(viewer)}
${form.fault === null ? nothing : html`<p class="fault" role="alert">${form.fault}</p>`}
<div><label for="token-name">Name</label><p class="small" id="token-name-hint">What it is for, such as prometheus; the audit log names it so.</p>
<input id="token-name" name="name" value="${form.name}" maxlength="63" required autocomplete="off" spellcheck="false" aria-describedby="token-name-hint"></div>
<fieldset><legend>Good for</legend>${allScopes.map((scope) => scopeChoice(scope, form))}</fieldset>
<div><label for="token-days">Good for (days)</label><input class="number" id="token-days" name="days" type="number" min="1" max="3650" value="${form.days}" required></div>
<button>Make the token</button></form>`;
}

function scopeChoice(scope: Scope, form: TokenForm): Html {
  return html`<label class="choice"><input type="checkbox" name="scope-${scope}"${form.scopes.includes(scope) ? html` checked` : nothing}><span>${scope} <span class="small">${scopeWords[scope]}</span></span></label>`;
}

/** Shown this once. */
export function madeTokenBody(made: {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt: Date;
  readonly token: string;
}): Html {
  return html`<h1>Token ${made.name}</h1>
<p class="lead">Copy it now: it is not shown again. Good for ${made.scopes.join(", ")}, until ${instant(made.expiresAt.toISOString())}.</p>
<pre><code>${made.token}</code></pre>
<p><a href="/tokens">Back to the tokens</a></p>`;
}
