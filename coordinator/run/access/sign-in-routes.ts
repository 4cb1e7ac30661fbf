/**
 * Signing in and out. Opening a link changes nothing; only the form on its page uses it up, so that mail programs and
 * browsers may preview it. Every sign-in creates a new session and ends this browser's old one (OWASP: session
 * fixation).
 */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Secrets, SessionStore, SignInLink, SignInLinkStore } from "#core/access-types";
import type { AuditLog, Change } from "#core/audit";
import type { WebPart } from "../../ask/add-operations.ts";
import { formTokenField, formValues } from "../../ask/deeds.ts";
import { queryOf } from "../../ask/views.ts";
import {
  type Access,
  anonymousVisit,
  endedSessionCookie,
  isRefusal,
  localPath,
  sessionCookie,
  sessionSecretOf,
  type Visit,
  wantedPathCookie,
  wantedPathOf,
} from "../../web/access.ts";
import { instant } from "../../web/format.ts";
import { sendError } from "../../web/guard.ts";
import { type Html, html, nothing } from "../../web/html.ts";
import { isFromElsewhere, whenceOf } from "../../web/limits.ts";
import { sendPage } from "../../web/page-frame.ts";
import { homeOf } from "../../web/session-access.ts";
import { type BegunSession, redeemLink } from "./sign-in.ts";

interface SignInPorts {
  readonly links: Pick<SignInLinkStore, "find" | "redeem">;
  readonly sessions: Pick<SessionStore, "use" | "end">;
  readonly audit: Pick<AuditLog, "record">;
  readonly access: Access;
  readonly secrets: Secrets;
  readonly version: string;
  readonly now: () => Date;
}

const formType = "application/x-www-form-urlencoded";
const config = { takes: formType } as const;

export function signInRoutes(ports: SignInPorts): WebPart {
  return ({ app }) => {
    app.get("/sign-in", async (request, reply) => await start(request, reply, ports));
    app.get("/sign-in/:link", async (request, reply) => await showLink(request, reply, ports));
    app.register(async (forms) => {
      forms.addContentTypeParser(formType, { parseAs: "string" }, (_request, body, done) => done(null, body));
      forms.post("/sign-in", { config }, async (request, reply) => await signIn(request, reply, ports));
      forms.post("/sign-out", { config }, async (request, reply) => await signOut(request, reply, ports));
    });
  };
}

async function start(request: FastifyRequest, reply: FastifyReply, ports: SignInPorts) {
  const to = localPath(queryOf(request, "to"));
  if (to !== null) reply.header("set-cookie", wantedPathCookie(request, to));
  const visit = await visitOf(request, ports);
  const body = signInBody(visit.signedInAs, queryOf(request, "out") !== "");
  return sendSignInPage(reply, { title: "Sign in", body, visit, version: ports.version });
}

async function showLink(request: FastifyRequest, reply: FastifyReply, ports: SignInPorts) {
  const { link: secret = "" } = request.params as { link?: string };
  const link = await ports.links.find(ports.secrets.hash(secret), ports.now());
  const visit = await visitOf(request, ports);
  if (link?.state !== "open") return sendLinkOver(reply, { state: link?.state ?? null, visit, ports });
  const body = confirmBody(link, secret, visit.signedInAs);
  return sendSignInPage(reply, { title: `Sign in as ${link.name}`, body, visit, version: ports.version });
}

async function signIn(request: FastifyRequest, reply: FastifyReply, ports: SignInPorts) {
  if (isFromElsewhere(request)) return sendError(request, reply, notOurForm, ports);
  const { link = "" } = formValues(request);
  const begun = await redeemLink(link, ports, { whence: whenceOf(request), now: ports.now() });
  if (begun === null) {
    const found = await ports.links.find(ports.secrets.hash(link), ports.now());
    return sendLinkOver(reply, { state: found?.state ?? null, visit: anonymousVisit, ports });
  }
  await endSessionOf(request, ports);
  await recordFor(request, begun.session.name, signedIn(begun), ports);
  return reply
    .header("cache-control", "no-store")
    .header("set-cookie", sessionCookie(request, begun.secret))
    .header("set-cookie", wantedPathCookie(request, null))
    .redirect(whereTo(request, begun), 303);
}

/** Returns the requested page. Partners are sent only to their own crawlers and account. */
function whereTo(request: FastifyRequest, { session }: BegunSession): string {
  const home = homeOf(session.role, session.crawlers);
  const wanted = wantedPathOf(request) ?? home;
  return session.role !== "partner" || /^\/(crawlers\/|account)/.test(wanted) ? wanted : home;
}

async function signOut(request: FastifyRequest, reply: FastifyReply, ports: SignInPorts) {
  const visit = await visitOf(request, ports);
  if (!ports.access.isOwnForm(request, formValues(request)[formTokenField] ?? "")) {
    return sendError(request, reply, notOurForm, { version: ports.version, viewer: visit });
  }
  await endSessionOf(request, ports);
  const words = `${visit.signedInAs} signed out.`;
  await recordFor(
    request,
    visit.actor.name,
    { action: "signed-out", target: visit.signedInAs, words },
    ports,
  );
  return reply
    .header("cache-control", "no-store")
    .header("clear-site-data", '"cache"')
    .header("set-cookie", endedSessionCookie(request))
    .redirect("/sign-in?out=1", 303);
}

/** Ends the session in this browser's cookie, if there is one. */
async function endSessionOf(request: FastifyRequest, ports: SignInPorts): Promise<void> {
  const secret = sessionSecretOf(request);
  if (secret === null) return;
  const session = await ports.sessions.use(ports.secrets.hash(secret), whenceOf(request), ports.now());
  if (session) await ports.sessions.end({ sessionId: session.sessionId });
}

async function recordFor(
  request: FastifyRequest,
  actor: string,
  change: Change,
  { audit, now }: SignInPorts,
): Promise<void> {
  await audit.record({
    ...change,
    actor,
    via: "page",
    remoteAddress: whenceOf(request).remoteAddress,
    at: now(),
  });
}

function signedIn({ session: { name, role, crawlers, issuedBy, sessionId } }: BegunSession): Change {
  return {
    action: "signed-in",
    target: name,
    words: `${name} signed in as ${role}, with a link of ${issuedBy}.`,
    after: { sessionId, role, crawlers },
  };
}

async function visitOf(request: FastifyRequest, { access }: SignInPorts): Promise<Visit> {
  const visit = await access.identify(request);
  return isRefusal(visit) ? anonymousVisit : visit;
}

function sendLinkOver(
  reply: FastifyReply,
  over: {
    readonly state: Parameters<typeof linkOverBody>[0];
    readonly visit: Visit;
    readonly ports: SignInPorts;
  },
): FastifyReply {
  const page = {
    title: "Cannot sign in",
    body: linkOverBody(over.state),
    visit: over.visit,
    version: over.ports.version,
  };
  return sendSignInPage(reply.code(410), page);
}

interface Page {
  readonly title: string;
  readonly body: Html;
  readonly visit: Visit;
  readonly version: string;
}

function sendSignInPage(reply: FastifyReply, { visit, ...page }: Page): FastifyReply {
  reply.header("cache-control", "no-store").header("x-robots-tag", "noindex");
  return sendPage(reply, { ...page, path: "/sign-in", viewer: visit });
}

const notOurForm = {
  status: 403,
  title: "Send it again",
  words: "This form was not sent from one of our pages. Open the page again and send it from there.",
};

/** `signedInAs` is null if nobody is signed in with this browser. `isOut` is true after a sign-out. */
function signInBody(signedInAs: string | null, isOut: boolean): Html {
  return html`<div class="sign-in"><h1>${isOut ? "You are signed out" : "Sign in"}</h1>
${signedInAs === null ? nothing : html`<p class="lead">You are signed in as <strong>${signedInAs}</strong>: <a href="/account">your account</a>.</p>`}
<p>There are no passwords. You sign in with a link that works once. Create one on the coordinator's machine:</p>
<pre><code>nearcrawl sign-in</code></pre>
<p>Run that there, or ask an operator for a link. The link is valid for 15 minutes; the session lasts 7 days, or until it has not been used for 8 hours.</p>
<section><h2>For others</h2>
<p>Operators create links for others the same way, or on <a href="/access">the access page</a>:</p>
<pre><code>nearcrawl sign-in --role staff --name anna
nearcrawl sign-in --role partner --name ben --crawler athens</code></pre>
<p class="small">Staff see everything and change nothing. A partner sees the crawlers that it hosts. Programs use
tokens: <code>nearcrawl operator-token create</code>.</p></section></div>`;
}

/** Viewing this page does not use up the link, because mail programs and browsers load pages in advance. */
function confirmBody(link: SignInLink, secret: string, signedInAs: string | null): Html {
  return html`<div class="sign-in"><h1>Sign in as ${link.name}</h1>
<p class="lead">${roleWords(link)} ${link.issuedBy} created this link; it works once, until ${instant(link.expiresAt)}.</p>
<form method="post" action="/sign-in" class="form">
<input type="hidden" name="link" value="${secret}">
<button autofocus>Sign in</button>
</form>
${signedInAs === null ? nothing : html`<p class="small">This browser is signed in as ${signedInAs}; that session will end.</p>`}
<p class="small">Not expecting this? Close the page; nothing has happened.</p></div>`;
}

function roleWords({ role, crawlers }: SignInLink): string {
  if (role === "operator") return "As an operator: sees and changes everything.";
  if (role === "staff") return "As staff: sees everything and changes nothing.";
  return `As a partner: sees and controls ${crawlers.join(", ")}.`;
}

/** `state` is null if no such link is stored. */
function linkOverBody(state: SignInLink["state"] | null): Html {
  return html`<div class="sign-in"><h1>${state === "used" ? "This link was already used" : "This link does not work"}</h1>
<p>${state === null ? overWords.unknown : overWords[state]}</p>
<p>Create another one on the coordinator's machine:</p>
<pre><code>nearcrawl sign-in</code></pre>
<p><a href="/sign-in">More about signing in</a></p></div>`;
}

const overWords = {
  used: "A link works once. If it was not you, sign in and end that session on your account page.",
  expired: "It has expired.",
  revoked: "It was withdrawn.",
  open: "It has just been used.",
  unknown: "It is incomplete, or expired long ago.",
} as const;
