/** /access: who is signed in, which links are out, and links for others. For operators. */

import {
  linkMinutes,
  type Secrets,
  type Session,
  type SessionStore,
  type SignInLink,
  type SignInLinkStore,
} from "#core/access-types";
import { cannotGive, scopesOfPerson } from "#core/actor";
import { UsageError } from "#core/errors";
import type { Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome, WebPart } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { column, dataTable } from "../web/components.ts";
import { instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { accessApi } from "./access-api.ts";
import { sessionTable } from "./account-routes.ts";
import { type IssuedLink, issueSignInLink, linkIssued } from "./sign-in.ts";

interface AccessRoutePorts {
  readonly links: Pick<SignInLinkStore, "issue" | "open" | "revoke">;
  readonly sessions: Pick<SessionStore, "list" | "end">;
  readonly secrets: Secrets;
  /** The address that people reach the pages at. */
  readonly webUrl: () => Promise<string>;
}

type LinkBody = BodyOf<typeof accessApi.issueSignInLink>;

export function accessRoutes(ports: AccessRoutePorts): WebPart {
  return ({ views, actions }) => {
    views.describe({
      path: "/access",
      operation: accessApi.access,
      view: async ({ now }) => {
        const value = await whoHasAccess(ports, now);
        const body = (visit: Visit) => accessBody({ ...value, now: now.toISOString() }, emptyLinkForm, visit);
        return { status: 200, value, title: "Who has access", body };
      },
    });
    actions.describe({
      path: "/access/links",
      operation: accessApi.issueSignInLink,
      fromForm: ({ name = "", role = "", crawlers = "", minutes = "" }) => ({
        name: name.trim(),
        role,
        crawlers: crawlers.split(/[\s,]+/).filter((one) => one !== ""),
        minutes: Number(minutes),
      }),
      act: async (asked) => await issue(asked, ports),
    });
    actions.describe({
      path: "/access/links/:id/revoke",
      operation: accessApi.revokeSignInLink,
      act: async ({ param, now }) => await revokeLink(param("id"), ports, now),
    });
    actions.describe({
      path: "/access/sessions/:id/end",
      operation: accessApi.endSession,
      act: async ({ param, now }) => await endSession(param("id"), ports, now),
    });
  };
}

async function whoHasAccess({ sessions, links }: AccessRoutePorts, now: Date) {
  return { sessions: await sessions.list(now), links: await links.open(now) };
}

async function issue(asked: AskedAction<LinkBody>, ports: AccessRoutePorts): Promise<Outcome> {
  const { actor, body, now } = asked;
  const refused = cannotGive(actor, scopesOfPerson(body));
  if (refused !== null) return { type: "fault", status: 403, title: "Not allowed", words: refused };
  const request = { ...body, issuedBy: actor.name };
  try {
    const link = await issueSignInLink(request, { ...ports, webUrl: await ports.webUrl() }, now);
    return {
      type: "shown",
      status: 201,
      value: link,
      title: "A sign-in link",
      body: () => issuedLinkBody(link),
      change: linkIssued(link),
    };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return await notIssued(error.message, asked, ports);
  }
}

/** The page again, with what was typed. */
async function notIssued(
  words: string,
  { body, now }: AskedAction<LinkBody>,
  ports: AccessRoutePorts,
): Promise<ActionFault> {
  const value = await whoHasAccess(ports, now);
  const form: LinkForm = { ...body, crawlers: body.crawlers.join(" "), fault: words };
  const again = (visit: Visit) => accessBody({ ...value, now: now.toISOString() }, form, visit);
  return { type: "fault", status: 422, title: "Link not created", words, again };
}

async function revokeLink(id: string, { links }: AccessRoutePorts, now: Date): Promise<Outcome> {
  const link = isNumber(id) ? await links.revoke(Number(id), now) : null;
  if (link === null) return notThere("link", "it was used, withdrawn or expired");
  const said = `The link for ${link.name} no longer works.`;
  const change = {
    action: "sign-in-link-revoked",
    target: link.name,
    words: said,
    before: { linkId: link.linkId },
  };
  return { type: "done", value: { linkId: link.linkId, revoked: true }, goTo: "/access", said, change };
}

async function endSession(id: string, { sessions }: AccessRoutePorts, now: Date): Promise<Outcome> {
  const sessionId = isNumber(id) ? Number(id) : 0;
  const session = (await sessions.list(now)).find((one) => one.sessionId === sessionId);
  if (!session || (await sessions.end({ sessionId })) === 0)
    return notThere("session", "it has already ended");
  const { name, role } = session;
  const said = `A session of ${name} was ended.`;
  const change = { action: "session-ended", target: name, words: said, before: { sessionId, role } };
  return { type: "done", value: { sessionId, ended: true }, goTo: "/access", said, change };
}

const isNumber = (text: string) => /^\d{1,9}$/.test(text);

const notThere = (what: string, why: string): ActionFault => ({
  type: "fault",
  status: 404,
  title: "Not there any more",
  words: `There is no ${what} with this number: ${why}.`,
});

interface WhoHasAccess {
  readonly sessions: readonly Session[];
  readonly links: readonly SignInLink[];
  /** ISO 8601. */
  readonly now: string;
}

/** What was typed, and what is wrong with it. */
interface LinkForm {
  readonly name: string;
  readonly role: string;
  readonly crawlers: string;
  readonly minutes: number;
  readonly fault: string | null;
}

const emptyLinkForm: LinkForm = {
  name: "",
  role: "staff",
  crawlers: "",
  minutes: linkMinutes.usual,
  fault: null,
};

function accessBody(access: WhoHasAccess, form: LinkForm, viewer: PageViewer): Html {
  return html`<h1>Who has access</h1>
<p class="lead">People sign in with single-use links; programs use <a href="/tokens">tokens</a>.
Every change made here is in the <a href="/audit">audit log</a>.</p>
<section><h2>Signed in</h2>${sessionsPart(access, viewer)}</section>
<section><h2>Unused sign-in links</h2>${linksPart(access, viewer)}</section>
<section id="new"><h2>New sign-in link</h2>${viewer.formToken === null ? noForm : linkForm(form, viewer)}</section>`;
}

const noForm = html`<p>Sign in to create one, or run <code>nearcrawl sign-in --name NAME --role ROLE</code>.</p>`;

function sessionsPart({ sessions, now }: WhoHasAccess, viewer: PageViewer): Html {
  if (sessions.length === 0) return html`<div class="empty"><p>Nobody is signed in.</p></div>`;
  const action = ({ sessionId, name }: Session) =>
    button(`/access/sessions/${sessionId}/end`, viewer, {
      words: "Sign out",
      of: `of ${name}, number ${sessionId}`,
    });
  return sessionTable(sessions, { now, withNames: true, action });
}

function linksPart({ links }: WhoHasAccess, viewer: PageViewer): Html {
  if (links.length === 0) return html`<div class="empty"><p>No unused links. Create one below.</p></div>`;
  const withdraw = ({ linkId, name }: SignInLink) =>
    button(`/access/links/${linkId}/revoke`, viewer, {
      words: "Withdraw",
      of: `for ${name}, number ${linkId}`,
    });
  const roleOf = ({ role, crawlers }: SignInLink) =>
    html`${role}${crawlers.length === 0 ? nothing : html` <span class="small">${crawlers.join(", ")}</span>`}`;
  return dataTable(
    "Unused sign-in links",
    [
      column("For", ({ name }: SignInLink) => name),
      column("Role", roleOf),
      column("Created by", ({ issuedBy }: SignInLink) => issuedBy),
      column("Created", ({ issuedAt }: SignInLink) => instant(issuedAt)),
      column("Valid until", ({ expiresAt }: SignInLink) => instant(expiresAt)),
      column("Action", withdraw),
    ],
    links,
  );
}

function button(
  path: string,
  viewer: PageViewer,
  said: { readonly words: string; readonly of: string },
): Html {
  if (viewer.formToken === null) return nothing;
  return html`<form method="post" action="${path}">${formToken(viewer)}
<button class="slim quiet">${said.words}<span class="hidden"> (${said.of})</span></button></form>`;
}

const roleChoices = [
  ["staff", "Staff", "reads everything, changes nothing"],
  ["operator", "Operator", "changes everything"],
  ["partner", "Partner", "sees and controls the crawlers named below"],
] as const;

function linkForm(form: LinkForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/access/links#new">${formToken(viewer)}
${form.fault === null ? nothing : html`<p class="fault" role="alert">${form.fault}</p>`}
<div><label for="link-name">Name</label>
<p class="small" id="link-name-hint">Shown in the audit log, such as anna or anna@example.org.</p>
<input id="link-name" name="name" value="${form.name}" maxlength="63" required autocomplete="off" spellcheck="false"
aria-describedby="link-name-hint"></div>
<fieldset><legend>Role</legend>${roleChoices.map(
    ([role, name, words]) =>
      html`<label class="choice"><input type="radio" name="role" value="${role}"${form.role === role ? html` checked` : nothing}
required><span>${name} <span class="small">${words}</span></span></label>`,
  )}</fieldset>
<div><label for="link-crawlers">The partner's crawlers</label>
<p class="small" id="link-crawlers-hint">Names, separated by spaces; empty for staff and operators.</p>
<input id="link-crawlers" name="crawlers" value="${form.crawlers}" maxlength="1000" autocomplete="off" spellcheck="false"
aria-describedby="link-crawlers-hint"></div>
<div><label for="link-minutes">Valid for (minutes)</label>
<input class="number" id="link-minutes" name="minutes" type="number" min="${linkMinutes.least}" max="${linkMinutes.most}"
value="${form.minutes}" required></div>
<button>Create link</button></form>`;
}

/** Shown this once. */
function issuedLinkBody({ name, role, url, expiresAt }: IssuedLink): Html {
  return html`<h1>A sign-in link for ${name}</h1>
<p class="lead">Send it to ${name} over a channel that nobody else reads.
It signs in as ${role}, once, until ${instant(expiresAt)}, and is not shown again.</p>
<pre><code>${url}</code></pre>
<p><a href="/access">Back to who has access</a></p>`;
}
