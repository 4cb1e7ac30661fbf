/**
 * Signing in and out. A link's page is only looked at; the button on it sends the form that uses the link up, so
 * that previews of mail programs and browsers that look ahead spend nothing. Every sign-in makes a new session, and
 * ends the one that this browser had (OWASP: session fixation).
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SessionStore, SignInLinkStore } from "#core/access-types";
import type { AuditLog, Change } from "#core/audit";
import type { Secrets } from "../crawlers/admit-crawler.ts";
import type { WebPart } from "../http-server.ts";
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
} from "../web/access.ts";
import { formTokenField, formValues } from "../web/actions.ts";
import { sendError } from "../web/guard.ts";
import type { Html } from "../web/html.ts";
import { isFromElsewhere, whenceOf } from "../web/limits.ts";
import { pageFrame } from "../web/page-frame.ts";
import { homeOf } from "../web/session-access.ts";
import { queryOf } from "../web/views.ts";
import { type BegunSession, redeemLink } from "./sign-in.ts";
import { confirmBody, linkOverBody, signInBody } from "./sign-in-page.ts";

export interface SignInPorts {
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
  return sendPage(reply, { title: "Sign in", body, visit, version: ports.version });
}

async function showLink(request: FastifyRequest, reply: FastifyReply, ports: SignInPorts) {
  const { link: secret = "" } = request.params as { link?: string };
  const link = await ports.links.find(ports.secrets.hash(secret), ports.now());
  const visit = await visitOf(request, ports);
  if (link?.state !== "open") return sendLinkOver(reply, { state: link?.state ?? null, visit, ports });
  const body = confirmBody(link, secret, visit.signedInAs);
  return sendPage(reply, { title: `Sign in as ${link.name}`, body, visit, version: ports.version });
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

/** The page that was wanted; a partner's own crawlers and account are all that it may want. */
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

/** The session of this browser's cookie, if it is one. */
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
    title: "No sign-in",
    body: linkOverBody(over.state),
    visit: over.visit,
    version: over.ports.version,
  };
  return sendPage(reply.code(410), page);
}

interface Page {
  readonly title: string;
  readonly body: Html;
  readonly visit: Visit;
  readonly version: string;
}

function sendPage(reply: FastifyReply, { visit, ...page }: Page): FastifyReply {
  return reply
    .header("cache-control", "no-store")
    .header("x-robots-tag", "noindex")
    .type("text/html; charset=utf-8")
    .send(pageFrame({ ...page, section: null, viewer: visit }));
}

const notOurForm = {
  status: 403,
  title: "Send it once more",
  words: "This form did not come from a page of ours. Open the page again, and send it from there.",
};
