/** The pages /access, for operators: who has access by session or unused link; and /account, for everybody: one's own account. */
import { z } from "zod";
import {
  linkMinutes,
  type Secrets,
  type Session,
  type SessionStore,
  type SignInLink,
  type SignInLinkStore,
} from "#core/access-types";
import { cannotGive, roles, type Scope, scopesOfPerson } from "#core/actor";
import { UsageError } from "#core/errors";
import {
  actions,
  code,
  column,
  empty,
  form,
  lead,
  note,
  picture,
  plain,
  section,
  table,
} from "../../ask/document.ts";
import { type Action, type Column, Fault, type Node, operationsOf } from "../../ask/operation.ts";
import type { Visit } from "../../web/access.ts";
import { answer, dateTime, isName, nothingBody, record } from "../../web/api-operation.ts";
import { pageScript } from "../../web/assets.ts";
import { crawlerPath } from "../../web/components.ts";
import { ago, crawlerLink, instant } from "../../web/format.ts";
import { type Html, html } from "../../web/html.ts";
import { formToken, type PageViewer } from "../../web/page-frame.ts";
import {
  type IssuedLink,
  issueSignInLink as issueLink,
  linkIssued,
  mostCrawlersOfPartner,
} from "./sign-in.ts";
import { scope } from "./tokens-ask.ts";

const role = z.enum(roles).meta({
  ...{ id: "Role", title: "Role" },
  description:
    "partner: sees and controls its own crawlers. staff: reads everything, submits URLs. operator: changes everything.",
});

const person = { name: z.string(), role, crawlers: z.array(z.string()) };

const session = record("Session", {
  ...{ sessionId: z.int(), ...person },
  issuedBy: z.string().describe("Who issued the link."),
  startedAt: dateTime(),
  lastUsedAt: dateTime(),
  endsAt: dateTime().describe("At the latest; earlier after 8 hours unused."),
  remoteAddress: z.string().nullable().describe("Where it was last used."),
  userAgent: z.string(),
});

const openSignInLink = record("OpenSignInLink", {
  ...{ linkId: z.int(), ...person, issuedBy: z.string() },
  ...{ issuedAt: dateTime(), expiresAt: dateTime(), state: z.enum(["open", "used", "expired", "revoked"]) },
});

const issuedSignInLink = record("IssuedSignInLink", {
  ...{ linkId: z.int(), ...person, expiresAt: dateTime() },
  url: z.string().describe("Works once; shown only in this answer."),
});

const numbered = (what: string) =>
  nothingBody.extend({
    id: z
      .int()
      .min(1)
      .max(2 ** 31 - 1)
      .describe(`Number of the ${what}.`),
  });

interface LinkPorts {
  readonly links: Pick<SignInLinkStore, "issue">;
  readonly secrets: Secrets;
  /** Public address of the pages; null if no coordinator has stated one. */
  readonly webUrl: () => Promise<string | null>;
}

interface AccessPorts extends LinkPorts {
  readonly links: Pick<SignInLinkStore, "issue" | "open" | "revoke" | "unknownCrawlers">;
  readonly sessions: Pick<SessionStore, "list" | "end">;
}

const { get, post } = operationsOf<AccessPorts>();

/** Nobody may grant more than they may do themselves. */
function checkGiven({ actor }: Pick<Visit, "actor">, given: Parameters<typeof scopesOfPerson>[0]): void {
  const refused = cannotGive(actor, scopesOfPerson(given));
  if (refused !== null) throw new Fault(403, refused, "Not allowed");
}

const gone = (what: string, why: string) =>
  new Fault(404, `There is no ${what} with this number: ${why}.`, "Not there any more");

const issueSignInLink = post({
  ...{ path: "/api/access/links", needs: "access-write" },
  label: "Create link",
  summary: "Create a sign-in link that works once",
  description:
    "Scope access-write, and the scopes of the role that it gives (fleet-write for a partner). The link is shown only in this answer.",
  input: z.object({
    name: z
      .string()
      .trim()
      .max(80)
      .meta({ title: "Name", description: "As shown in the audit log.", example: "anna" }),
    role,
    crawlers: z.array(z.string().max(63)).max(mostCrawlersOfPartner).default([]).meta({
      title: "The partner's crawlers",
      description: "Names, separated by spaces; empty for staff and operators.",
    }),
    minutes: z
      .number()
      .min(linkMinutes.least)
      .max(linkMinutes.most)
      .default(linkMinutes.usual)
      .meta({
        title: "Valid for (minutes)",
        description: `From ${linkMinutes.least} to ${linkMinutes.most}; usually ${linkMinutes.usual}.`,
      }),
  }),
  output: issuedSignInLink,
  example: { name: "ben", role: "partner", crawlers: ["athens"], minutes: 60 },
  answer: { status: 201, description: "Created" },
  faults: { 422: "A name or crawlers that do not fit the role" },
  command: {
    ...{ name: "sign-in", says: "print a link that signs in to the web pages, once; there are no passwords" },
    named: { crawlers: "crawler" },
    usual: (name) => ({ name, role: "operator" }),
    help: `

Examples:
  nearcrawl sign-in
  nearcrawl sign-in --role staff --name anna --minutes 60
  nearcrawl sign-in --role partner --name ben --crawler athens`,
  },
  run: async ({ input, ports, visit, now }) => {
    checkGiven(visit, input);
    const unknown = await ports.links.unknownCrawlers(input.crawlers, now);
    if (input.role === "partner" && unknown.length > 0) {
      const words = `no crawler is named ${unknown.join(" or ")}, and nobody was invited by that name`;
      throw new UsageError(words);
    }
    const webUrl = (await ports.webUrl()) ?? "http://127.0.0.1:7411";
    return await issueLink({ ...input, issuedBy: visit.actor.name }, { ...ports, webUrl }, now);
  },
  change: linkIssued,
  view: ({ name, role: of, url, expiresAt }) => ({
    title: `A sign-in link for ${name}`,
    nodes: [
      lead(html`Send it to ${name} over a channel that nobody else reads.
It signs in as ${of}, once, until ${instant(expiresAt)}, and is not shown again.`),
      code(url),
      picture(html`<p><a href="/access">Back to who has access</a></p>`),
    ],
  }),
});

const revokeSignInLink = post({
  ...{ path: "/api/access/links/{id}/revoke", needs: "access-write" },
  summary: "Withdraw a link",
  input: numbered("link"),
  output: record("RevokedSignInLink", { linkId: z.int(), revoked: z.boolean() }),
  example: {},
  faults: { 404: "No open link of this number" },
  command: { name: "access withdraw", says: "withdraw an unused sign-in link" },
  run: async ({ input: { id }, ports, now }) => {
    const link = await ports.links.revoke(id, now);
    if (link === null) throw gone("link", "it was used, withdrawn or expired");
    return { linkId: id, revoked: true, name: link.name };
  },
  told: ({ name: _, ...told }) => told,
  goTo: () => "/access",
  change: ({ name, linkId }) => ({
    ...{ action: "sign-in-link-revoked", target: name, before: { linkId } },
    words: `The link for ${name} no longer works.`,
  }),
});

const endSession = post({
  ...{ path: "/api/access/sessions/{id}/end", needs: "access-write" },
  summary: "End a session at once",
  input: numbered("session"),
  output: record("EndedSession", { sessionId: z.int(), ended: z.boolean() }),
  example: {},
  faults: { 404: "No session of this number" },
  command: { name: "access end", says: "sign somebody out at once" },
  run: async ({ input: { id: sessionId }, ports: { sessions }, now }) => {
    const found = (await sessions.list(now)).find((one) => one.sessionId === sessionId);
    if (!found || (await sessions.end({ sessionId })) === 0) throw gone("session", "it has already ended");
    return { sessionId, ended: true, name: found.name, role: found.role };
  },
  told: ({ sessionId, ended }) => ({ sessionId, ended }),
  goTo: () => "/access",
  change: ({ name, sessionId, role: of }) => ({
    ...{ action: "session-ended", target: name, before: { sessionId, role: of } },
    words: `A session of ${name} was ended.`,
  }),
});

const access = get({
  ...{ path: "/api/access", needs: "access-write" },
  navigation: { group: null, entry: "Access" },
  alsoFound: "signed in sign-in links",
  summary: "Who is signed in, and the unused sign-in links",
  input: z.object({}),
  output: record("WhoHasAccess", { sessions: z.array(session), links: z.array(openSignInLink) }),
  command: {
    name: "access list",
    group: { says: "who is signed in to the pages, and unused sign-in links; end either" },
  },
  run: async ({ ports: { sessions, links }, now }) => ({
    ...{ sessions: await sessions.list(now), links: await links.open(now) },
  }),
  view: ({ sessions, links }, { now }) => ({
    title: "Who has access",
    nodes: [
      lead(html`People sign in with single-use links; programs use <a href="/tokens">tokens</a>.
Every change made here is in the <a href="/audit">audit log</a>.`),
      section("Signed in", [
        sessionTable(sessions, now, {
          of: ({ sessionId }) => ({
            ...{ operation: endSession, path: { id: sessionId }, label: "Sign out" },
          }),
        }),
      ]),
      section("Unused sign-in links", [
        table<SignInLink>({
          ...{ label: "Unused sign-in links", rows: links },
          columns: [
            column("link_id", "Number", ({ linkId }) => linkId, { kind: "number", offPage: true }),
            ...personColumns<SignInLink>("For"),
            column("issued_by", "Created by", ({ issuedBy }) => issuedBy),
            column("issued_at", "Created", ({ issuedAt }) => issuedAt),
            column("expires_at", "Valid until", ({ expiresAt }) => expiresAt),
          ],
          empty: ["No unused links.", "Create one below."],
          actions: ({ linkId: id }) => [{ operation: revokeSignInLink, path: { id }, label: "Withdraw" }],
        }),
      ]),
      form({
        ...{ operation: issueSignInLink, title: "New sign-in link" },
        values: { role: "staff" },
      }),
    ],
  }),
});

const personColumns = <Row extends SignInLink | Session>(title: string): Column<Row>[] => [
  column("name", title, ({ name }) => name),
  column("role", "Role", ({ role: of }) => of, { more: ({ crawlers }) => crawlers.join(", ") }),
];

type OwnSession = Session & { readonly isThisOne?: boolean };

function sessionTable(
  sessions: readonly OwnSession[],
  now: Date,
  { of, own = false }: { readonly of: (session: OwnSession) => Action; readonly own?: boolean },
): Node {
  return table<OwnSession>({
    ...{ label: "Sessions", rows: sessions, empty: ["Nobody is signed in.", ""] },
    columns: [
      column("session_id", "Number", ({ sessionId }) => sessionId, { kind: "number", offPage: true }),
      ...(own ? [] : personColumns<OwnSession>("Name")),
      column("last_used_at", "Last used", ({ lastUsedAt }) => ago(lastUsedAt, now.toISOString()), {
        ...{ kind: "nowrap", value: ({ lastUsedAt }) => lastUsedAt },
        more: ({ isThisOne }) => isThisOne && " this session",
      }),
      column("remote_address", "Address", ({ remoteAddress }) => remoteAddress, { none: "unknown" }),
      column(
        "browser",
        "Browser",
        ({ userAgent }) => html`<span title="${userAgent}">${browserName(userAgent)}</span>`,
        { value: ({ userAgent }) => userAgent },
      ),
      column("started_at", "Since", ({ startedAt }) => startedAt, { kind: "nowrap" }),
      column("ends_at", "Expires", ({ endsAt }) => endsAt, { kind: "nowrap" }),
    ],
    actions: (one) => (one.isThisOne ? [] : [of(one)]),
  });
}

/** Shortens a User-Agent to what its owner recognises. */
function browserName(userAgent: string): string {
  const [, name] =
    /(Firefox|Edg|OPR|Chrome|Safari|curl)\//.exec(userAgent.replace(/HeadlessChrome/, "Chrome")) ?? [];
  const [, system] = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(userAgent) ?? [];
  const shown = { Edg: "Edge", OPR: "Opera" }[name ?? ""] ?? name;
  return [shown ?? (userAgent === "" ? "unknown" : userAgent.slice(0, 40)), system && `on ${system}`]
    .filter(Boolean)
    .join(" ");
}

/** Compares name and role, because an operator and a partner may have the same name. */
async function ownSessions(
  { signedInAs, actor }: Visit,
  { sessions }: AccessPorts,
  now: Date,
): Promise<Session[]> {
  if (signedInAs === null) return [];
  return (await sessions.list(now, signedInAs)).filter(({ role: of }) => of === actor.role);
}

interface EndedOwn {
  readonly signedInAs: string | null;
  readonly count: number;
}

/** Only people may use these, not programs. */
const ofOwn = {
  ...{ needs: null, goTo: () => "/account" },
  output: z.object({ signedInAs: z.string().nullable(), count: z.int() }),
  change: ({ signedInAs, count }: EndedOwn) =>
    count === 0
      ? null
      : { action: "session-ended", target: signedInAs, words: `${endedWords({ count })} By their owner.` },
  said: endedWords,
} as const;

function endedWords({ count }: Pick<EndedOwn, "count">): string {
  return count === 1 ? "The session was ended." : `${count} sessions were ended.`;
}

const endOwnSession = post({
  ...{ path: "/account/sessions/{id}/end", summary: "Sign out", ...ofOwn },
  input: numbered("session"),
  run: async ({ input: { id: sessionId }, ports, visit, now }) => {
    const own = await ownSessions(visit, ports, now);
    if (!own.some((one) => one.sessionId === sessionId))
      throw new Fault(
        404,
        "You have no session with this number; it may have ended already.",
        "Not there any more",
      );
    await ports.sessions.end({ sessionId });
    return { signedInAs: visit.signedInAs, count: 1 };
  },
});

const endOtherSessions = post({
  ...{ path: "/account/sessions/end-others", summary: "Sign out all others", ...ofOwn },
  input: nothingBody,
  run: async ({ ports, visit, now }) => {
    const own = await ownSessions(visit, ports, now);
    const others = own.filter(({ sessionId }) => sessionId !== visit.sessionId);
    for (const { sessionId } of others) await ports.sessions.end({ sessionId });
    return { signedInAs: visit.signedInAs, count: others.length };
  },
});

const account = record("Account", {
  name: z.string().describe("As in the audit log."),
  role: z.enum(["partner", "staff", "operator", "program", "anybody"]),
  scopes: z.array(scope),
  crawlers: z.array(z.string()),
  sessions: z.array(session.extend({ isThisOne: z.boolean() }).meta({ id: "OwnSession" })),
});

interface Account extends Pick<Visit["actor"], "name" | "role" | "crawlers"> {
  readonly scopes: readonly Scope[];
  readonly sessions: readonly (Session & { readonly isThisOne: boolean })[];
}

const ownAccount = get({
  ...{ path: "/api/account", needs: null, tokenToo: true },
  summary: "Who you are, and what you may do",
  description: "Open to everybody. For a token: its name and scopes. After a sign-in: also one's sessions.",
  input: z.object({}),
  output: account,
  answers: { 401: answer(account, "Not signed in, and no token was sent") },
  run: async ({ ports, visit, now }): Promise<Account> => {
    const { name, role: of, scopes, crawlers } = visit.actor;
    const own = await ownSessions(visit, ports, now);
    const sessions = own.map((one) => ({ ...one, isThisOne: one.sessionId === visit.sessionId }));
    return { name, role: of, scopes, crawlers, sessions };
  },
  status: ({ role: of }) => (of === "anybody" ? 401 : 200),
  view: (of, { viewer, now }) => {
    if (of.role === "program")
      return { title: of.name, nodes: [plain("A program's token; it has no sessions.")] };
    if (viewer.signedInAs === null) return { title: "Your account", nodes: [notSignedIn] };
    const end = ({ sessionId: id }: Session) => ({ operation: endOwnSession, path: { id } });
    return {
      title: of.name,
      nodes: [
        lead(html`Signed in as <strong>${of.role}</strong>: ${roleWords(of)}`),
        picture(ownDeeds(viewer)),
        section("Your sessions", [
          note("A session ends after 8 hours without use, and after 7 days at the latest."),
          sessionTable(of.sessions, now, { of: end, own: true }),
          actions(of.sessions.length > 1 && { operation: endOtherSessions }),
        ]),
      ],
    };
  },
});

const notSignedIn = empty(
  "You are not signed in.",
  html`<a href="/sign-in?to=%2Faccount">How to sign in</a>`,
);

const ownDeeds = (viewer: PageViewer) =>
  html`<div class="actions"><form method="post" action="/sign-out">${formToken(viewer)}<button>Sign out</button></form>${
    viewer.actor.scopes.includes("access-write") &&
    html`<a class="button quiet" href="/access">Who has access</a><a class="button quiet" href="/tokens">Tokens</a>`
  }</div>`;

function roleWords({ role: of, crawlers }: Account): Html {
  if (of === "partner")
    return html`you see and control ${crawlers.map((name, index) => html`${index > 0 ? ", " : ""}${crawlerLink(name)}`)}.`;
  return of === "staff" ? html`you see everything and change nothing.` : html`you see and change everything.`;
}

// Issues a sign-in link for a crawler's partner, from the crawler's page.

interface PartnerPorts extends LinkPorts {
  readonly reads: { crawler(name: string, now: Date): Promise<unknown> };
}

type PartnerLink = IssuedLink & { readonly role: "partner" };

const partnerSignInLink = operationsOf<PartnerPorts>().post({
  ...{
    path: "/api/fleet/crawlers/{name}/sign-in-link",
    page: "/crawlers/:name/sign-in-link",
    needs: "access-write",
  },
  summary: "Create a sign-in link for a crawler's partner, which works once",
  input: z.object({
    name: z.string().meta({ description: "The crawler's name.", example: "athens" }),
    person: z.string().trim().min(1).max(63).meta({ title: "Name of the person" }),
    minutes: z
      .int()
      .min(linkMinutes.least)
      .max(linkMinutes.most)
      .default(linkMinutes.most)
      .meta({ title: "Valid for (minutes)" }),
  }),
  output: issuedSignInLink.extend({ role: z.enum(["partner"]) }).meta({ id: "SignInLink" }),
  example: { person: "chris", minutes: 60 },
  answer: { status: 201 },
  faults: {
    404: "There is no crawler of this name",
    409: "The public address of the pages is not known",
  },
  run: async ({ input: { name, person: called, minutes }, ports, visit, now }): Promise<PartnerLink> => {
    checkGiven(visit, { role: "partner" });
    if (!isName(name) || (await ports.reads.crawler(name, now)) === null)
      throw new Fault(404, `There is no crawler named ${name.slice(0, 63)}.`);
    const webUrl = await ports.webUrl();
    if (webUrl === null) throw new Fault(409, notStarted, "Public address not known");
    const wanted = { name: called, role: "partner", crawlers: [name], minutes } as const;
    try {
      const link = await issueLink({ ...wanted, issuedBy: visit.actor.name }, { ...ports, webUrl }, now);
      return { ...link, role: "partner" as const };
    } catch (error) {
      if (error instanceof UsageError) throw new Fault(400, error.message);
      throw error;
    }
  },
  change: (link: PartnerLink) => linkIssued(link),
  view: ({ url, name, crawlers: [crawler = ""], expiresAt }: PartnerLink) => ({
    title: `A sign-in link for ${name}`,
    nodes: [
      picture(pageScript("fleet.js")),
      lead(html`Send it to ${name} only: whoever opens it first is signed in as the partner of <a
href="${crawlerPath(crawler)}">${crawler}</a>. It is <strong>shown only once</strong> and works once, until ${instant(expiresAt)}.`),
      picture(
        html`<label class="hidden" for="link">The link</label>
<textarea class="letter mono" id="link" readonly rows="2" spellcheck="false">${url}</textarea>
<p class="actions"><button class="quiet slim" type="button" data-copy="link" hidden>Copy the link</button></p>`,
        code(url),
      ),
      plain(
        `${name} sees this crawler and its history, may drain and resume it, and sees nothing of other partners.`,
      ),
    ],
  }),
});

const notStarted =
  "The public address of the pages is not known: set publicUrl in the coordinator's settings.";

export const accessOperations = { access, endSession, revokeSignInLink };
export const accountOperations = { account: ownAccount };
/** Forms about one's own sessions, which programs never send. */
export const ownSessionForms = { endOwnSession, endOtherSessions };
export const signInLinkOperations = { issueSignInLink };
export const partnerAccessOperations = { partnerSignInLink };
