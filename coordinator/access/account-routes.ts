/** /account: who one is here, and one's own sessions, which can be ended. */

import { z } from "zod";
import type { Session, SessionStore } from "#core/access-types";
import { type Scope, scopesOf } from "#core/actor";
import type { Visit } from "../web/access.ts";
import type { ActionFault, Outcome, WebPart } from "../web/actions.ts";
import { tableOf } from "../web/components.ts";
import { ago, crawlerLink, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { accessApi } from "./access-api.ts";

interface AccountPorts {
  readonly sessions: Pick<SessionStore, "list" | "end">;
}

/** As JSON and on the page. */
interface Account {
  /** As the audit log names who asks. */
  readonly name: string;
  readonly role: Visit["actor"]["role"];
  readonly scopes: readonly Scope[];
  readonly crawlers: readonly string[];
  readonly sessions: readonly (Session & { readonly isThisOne: boolean })[];
}

export function accountRoutes(ports: AccountPorts): WebPart {
  return ({ views, actions }) => {
    views.describe({
      path: "/account",
      operation: accessApi.account,
      view: async ({ visit, now }) => {
        const account = await accountOf(visit, ports, now);
        const status = visit.actor.role === "anybody" ? 401 : 200;
        const body = () => accountBody(account, visit, now.toISOString());
        return { status, value: account, title: "Your account", body };
      },
    });
    actions.add({
      path: "/account/sessions/:id/end",
      api: null,
      needs: null,
      body: z.object({}),
      act: async ({ visit, param, now }) => await endOwn(Number(param("id")), visit, { ports, now }),
    });
    actions.add({
      path: "/account/sessions/end-others",
      api: null,
      needs: null,
      body: z.object({}),
      act: async ({ visit, now }) => await endOthers(visit, ports, now),
    });
  };
}

async function accountOf(visit: Visit, ports: AccountPorts, now: Date): Promise<Account> {
  const { name, role, scopes, crawlers } = visit.actor;
  const own = await ownSessions(visit, ports, now);
  const sessions = own.map((session) => ({ ...session, isThisOne: session.sessionId === visit.sessionId }));
  return { name, role, scopes, crawlers, sessions };
}

/** Of the same name and role: an operator's anna is nobody else's anna. */
async function ownSessions({ signedInAs, actor }: Visit, ports: AccountPorts, now: Date): Promise<Session[]> {
  if (signedInAs === null) return [];
  const sessions = await ports.sessions.list(now, signedInAs);
  return sessions.filter(({ role }) => role === actor.role);
}

async function endOwn(
  sessionId: number,
  visit: Visit,
  { ports, now }: { readonly ports: AccountPorts; readonly now: Date },
): Promise<Outcome> {
  const own = await ownSessions(visit, ports, now);
  if (!own.some((session) => session.sessionId === sessionId)) return noSession;
  await ports.sessions.end({ sessionId });
  return ended(visit, 1);
}

async function endOthers(visit: Visit, ports: AccountPorts, now: Date): Promise<Outcome> {
  const others = (await ownSessions(visit, ports, now)).filter((one) => one.sessionId !== visit.sessionId);
  for (const { sessionId } of others) await ports.sessions.end({ sessionId });
  return ended(visit, others.length);
}

function ended({ signedInAs }: Visit, count: number): Outcome {
  const said = count === 1 ? "The session was ended." : `${count} sessions were ended.`;
  const change = { action: "session-ended", target: signedInAs, words: `${said} By their owner.` };
  return { type: "done", value: null, goTo: "/account", said, change: count === 0 ? null : change };
}

const noSession: ActionFault = {
  type: "fault",
  status: 404,
  title: "Not there any more",
  words: "You have no session with this number; it may have ended already.",
};

/** `now` as ISO 8601. */
function accountBody(account: Account, viewer: PageViewer, now: string): Html {
  if (viewer.signedInAs === null) return notSignedIn(account);
  return html`<h1>${account.name}</h1>
<p class="lead">Signed in as <strong>${account.role}</strong>: ${roleWords(account)}</p>
<div class="actions"><form method="post" action="/sign-out">${formToken(viewer)}<button>Sign out</button></form>${accessLinks(viewer)}</div>
<section><h2>Your sessions</h2>
<p class="small">A session ends after 8 hours without use, and after 7 days at the latest.</p>
${sessionTable(account.sessions, { now, action: (session) => endOwnForm(session, viewer) })}
${account.sessions.length > 1 ? endOthersForm(viewer) : nothing}</section>`;
}

function notSignedIn({ name, role }: Account): Html {
  return role === "program"
    ? html`<h1>${name}</h1><p>A program's token; it has no sessions.</p>`
    : html`<h1>Your account</h1><div class="empty"><p>You are not signed in. <a href="/sign-in?to=%2Faccount">How to sign in</a></p></div>`;
}

function roleWords({ role, crawlers }: Account): Html {
  if (role === "partner")
    return html`you see and control ${crawlers.map((name, index) => html`${index > 0 ? ", " : ""}${crawlerLink(name)}`)}.`;
  return role === "staff"
    ? html`you see everything and change nothing.`
    : html`you see and change everything.`;
}

function accessLinks({ actor }: PageViewer): Html {
  return actor.scopes.includes("access-write")
    ? html`<a class="button quiet" href="/access">Who has access</a><a class="button quiet" href="/tokens">Tokens</a>`
    : nothing;
}

interface SessionTable {
  readonly now: string;
  readonly withNames?: boolean;
  readonly action: (session: Session & { readonly isThisOne?: boolean }) => Html;
}

export function sessionTable(
  sessions: readonly (Session & { readonly isThisOne?: boolean })[],
  table: SessionTable,
): Html {
  const { now, withNames = false, action } = table;
  const named = [withNames && "Name", withNames && "Role"];
  const seen = [
    "Last used .nowrap",
    "Address .mono",
    "Browser",
    "Since .nowrap",
    "Expires .nowrap",
    "(Action)",
  ];
  return tableOf("Sessions", [...named, ...seen], sessions, (one) => [
    ...[one.name, roleCell(one), ago(one.lastUsedAt, now), one.remoteAddress ?? "unknown"],
    html`<span title="${one.userAgent}">${browserName(one.userAgent)}</span>`,
    ...[instant(one.startedAt), instant(one.endsAt), action(one)],
  ]);
}

function roleCell({ role, crawlers }: Session): Html {
  return html`${role}${crawlers.length > 0 ? html` <span class="small">${crawlers.join(", ")}</span>` : nothing}`;
}

function endOwnForm(session: Session & { readonly isThisOne?: boolean }, viewer: PageViewer): Html {
  if (session.isThisOne) return html`<span class="small">this session</span>`;
  return html`<form method="post" action="/account/sessions/${session.sessionId}/end">${formToken(viewer)}<button
class="slim quiet">Sign out<span class="hidden"> (number ${session.sessionId})</span></button></form>`;
}

function endOthersForm(viewer: PageViewer): Html {
  return html`<form class="after-table" method="post"
action="/account/sessions/end-others">${formToken(viewer)}<button class="quiet">Sign out all others</button></form>`;
}

/** Enough of a User-Agent to know one's own by. */
function browserName(userAgent: string): string {
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
  "url-write": "submit URLs and have them fetched again",
  "site-recrawl": "have pages fetched again of sites whose DNS names this token",
  "metrics-read": "/metrics, for Prometheus",
  "fleet-read": "keys, invitations and incidents of the fleet",
  "fleet-write": "invite, rotate, drain, move, revoke",
  "registry-write": "plan, apply and roll back the registry",
  "policy-write": "the coordinator's policies",
  "audit-read": "who changed what",
  "access-write": "tokens, and other people's sign-in",
};

export const allScopes = scopesOf.operator;
