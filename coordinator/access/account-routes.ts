/** /account: who one is here, and one's own sessions, which can be ended. */
import { z } from "zod";
import type { Session, SessionStore } from "#core/access-types";
import type { WebPart } from "../http-server.ts";
import type { Visit } from "../web/access.ts";
import type { ActionFault, Outcome } from "../web/actions.ts";
import { accountBody } from "./account-page.ts";

export interface AccountPorts {
  readonly sessions: Pick<SessionStore, "list" | "end">;
}

/** As JSON and on the page. */
export interface Account {
  /** As the audit log names who asks. */
  readonly name: string;
  readonly role: Visit["actor"]["role"];
  readonly scopes: readonly string[];
  readonly crawlers: readonly string[];
  readonly sessions: readonly (Session & { readonly isThisOne: boolean })[];
}

export function accountRoutes(ports: AccountPorts): WebPart {
  return ({ views, actions }) => {
    views.add({
      path: "/account",
      api: "/api/account",
      section: null,
      needs: null,
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
      section: null,
      needs: null,
      body: z.object({}),
      act: async ({ visit, param, now }) => await endOwn(Number(param("id")), visit, { ports, now }),
    });
    actions.add({
      path: "/account/sessions/end-others",
      api: null,
      section: null,
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
  const said = count === 1 ? "The session is ended." : `${count} sessions are ended.`;
  const change = { action: "session-ended", target: signedInAs, words: `${said} They were their own.` };
  return { type: "done", value: null, goTo: "/account", said, change: count === 0 ? null : change };
}

const noSession: ActionFault = {
  type: "fault",
  status: 404,
  title: "Not there any more",
  words: "There is no session of yours of this number; it may have ended meanwhile.",
};
