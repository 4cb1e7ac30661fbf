/** The page of who has access: sessions, links that are out, and a form that makes one. */
import { linkMinutes, type Session, type SignInLink } from "#core/access-types";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { sessionTable } from "./account-page.ts";
import type { IssuedLink } from "./sign-in.ts";

export interface WhoHasAccess {
  readonly sessions: readonly Session[];
  readonly links: readonly SignInLink[];
  /** ISO 8601. */
  readonly now: string;
}

/** What was typed, and what is wrong with it. */
export interface LinkForm {
  readonly name: string;
  readonly role: string;
  readonly crawlers: string;
  readonly minutes: number;
  readonly fault: string | null;
}

export const emptyLinkForm: LinkForm = {
  name: "",
  role: "staff",
  crawlers: "",
  minutes: linkMinutes.usual,
  fault: null,
};

export function accessBody(access: WhoHasAccess, form: LinkForm, viewer: PageViewer): Html {
  return html`<h1>Who has access</h1>
<p class="lead">People sign in by links that are good once; programs have <a href="/tokens">tokens</a>. Everything that is changed here is in the <a href="/audit">audit log</a>.</p>
<section><h2>Signed in</h2>${sessionsPart(access, viewer)}</section>
<section><h2>Links that are out</h2>${linksPart(access, viewer)}</section>
<section id="new"><h2>A link for somebody</h2>${viewer.formToken === null ? noForm : linkForm(form, viewer)}</section>`;
}

const noForm = html`<p>Sign in to make one, or type <code>nearcrawl sign-in --name NAME --role ROLE</code>.</p>`;

function sessionsPart({ sessions, now }: WhoHasAccess, viewer: PageViewer): Html {
  if (sessions.length === 0) return html`<div class="empty"><p>Nobody is signed in.</p></div>`;
  const action = ({ sessionId, name }: Session) =>
    button(`/access/sessions/${sessionId}/end`, viewer, {
      words: "End it",
      of: `of ${name}, number ${sessionId}`,
    });
  return sessionTable(sessions, { now, withNames: true, action });
}

function linksPart({ links }: WhoHasAccess, viewer: PageViewer): Html {
  if (links.length === 0)
    return html`<div class="empty"><p>No link can be used now. A new one is made below.</p></div>`;
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">For</th><th scope="col">Role</th><th scope="col">Made by</th><th scope="col">Made</th><th scope="col">Good until</th><th scope="col"><span class="hidden">Action</span></th></tr></thead>
<tbody>${links.map(
    (
      link,
    ) => html`<tr><th scope="row">${link.name}</th><td>${link.role}${link.crawlers.length > 0 ? html` <span class="small">${link.crawlers.join(", ")}</span>` : nothing}</td>
<td>${link.issuedBy}</td><td class="nowrap">${instant(link.issuedAt.toISOString())}</td><td class="nowrap">${instant(link.expiresAt.toISOString())}</td>
<td>${button(`/access/links/${link.linkId}/revoke`, viewer, { words: "Withdraw", of: `for ${link.name}, number ${link.linkId}` })}</td></tr>`,
  )}</tbody></table></div>`;
}

function button(
  path: string,
  viewer: PageViewer,
  said: { readonly words: string; readonly of: string },
): Html {
  if (viewer.formToken === null) return nothing;
  return html`<form method="post" action="${path}">${formToken(viewer)}<button class="slim quiet">${said.words}<span class="hidden"> (${said.of})</span></button></form>`;
}

const roleChoices = [
  ["staff", "Staff", "looks at everything, changes nothing"],
  ["operator", "Operator", "changes everything"],
  ["partner", "Partner", "sees and steers the crawlers named below"],
] as const;

function linkForm(form: LinkForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/access/links#new">${formToken(viewer)}
${form.fault === null ? nothing : html`<p class="fault" role="alert">${form.fault}</p>`}
<div><label for="link-name">Name</label><p class="small" id="link-name-hint">As the audit log will have it, such as anna or anna@example.org.</p>
<input id="link-name" name="name" value="${form.name}" maxlength="63" required autocomplete="off" spellcheck="false" aria-describedby="link-name-hint"></div>
<fieldset><legend>Role</legend>${roleChoices.map(
    ([role, name, words]) =>
      html`<label class="choice"><input type="radio" name="role" value="${role}"${form.role === role ? html` checked` : nothing} required><span>${name} <span class="small">${words}</span></span></label>`,
  )}</fieldset>
<div><label for="link-crawlers">Crawlers of a partner</label><p class="small" id="link-crawlers-hint">Names, with spaces between; empty for staff and operators.</p>
<input id="link-crawlers" name="crawlers" value="${form.crawlers}" maxlength="1000" autocomplete="off" spellcheck="false" aria-describedby="link-crawlers-hint"></div>
<div><label for="link-minutes">Good for (minutes)</label><input class="number" id="link-minutes" name="minutes" type="number" min="${linkMinutes.least}" max="${linkMinutes.most}" value="${form.minutes}" required></div>
<button>Make the link</button></form>`;
}

/** Shown this once. */
export function issuedLinkBody({ name, role, url, expiresAt }: IssuedLink): Html {
  return html`<h1>A sign-in link for ${name}</h1>
<p class="lead">Send it to ${name} by a way that nobody else reads. It signs in as ${role}, once, until ${instant(expiresAt.toISOString())}, and is not shown again.</p>
<pre><code>${url}</code></pre>
<p><a href="/access">Back to who has access</a></p>`;
}
