/** /access: who is signed in, which links are out, and links for others. For operators. */
import { z } from "zod";
import { linkMinutes, type SessionStore, type SignInLinkStore } from "#core/access-types";
import { roles } from "#core/actor";
import { cannotGive, scopesOfPerson } from "#core/delegable-scopes";
import { UsageError } from "#core/errors";
import type { Secrets } from "../crawlers/admit-crawler.ts";
import type { WebPart } from "../http-server.ts";
import type { Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome } from "../web/actions.ts";
import { accessBody, emptyLinkForm, issuedLinkBody, type LinkForm } from "./access-page.ts";
import { issueSignInLink, linkIssued, mostCrawlersOfPartner } from "./sign-in.ts";

export interface AccessRoutePorts {
  readonly links: Pick<SignInLinkStore, "issue" | "open" | "revoke">;
  readonly sessions: Pick<SessionStore, "list" | "end">;
  readonly secrets: Secrets;
  /** The address that people reach the pages at. */
  readonly webUrl: () => Promise<string>;
}

const linkBody = z.strictObject({
  name: z.string().max(80),
  role: z.enum(roles),
  crawlers: z.array(z.string().max(63)).max(mostCrawlersOfPartner).default([]),
  minutes: z.number().min(linkMinutes.least).max(linkMinutes.most).default(linkMinutes.usual),
});
type LinkBody = z.infer<typeof linkBody>;

export function accessRoutes(ports: AccessRoutePorts): WebPart {
  return ({ views, actions }) => {
    views.add({
      path: "/access",
      api: "/api/access",
      section: null,
      needs: "access-write",
      view: async ({ now }) => {
        const value = await whoHasAccess(ports, now);
        const body = (visit: Visit) => accessBody({ ...value, now: now.toISOString() }, emptyLinkForm, visit);
        return { status: 200, value, title: "Who has access", body };
      },
    });
    actions.add({
      path: "/access/links",
      api: "/api/access/links",
      section: null,
      needs: "access-write",
      body: linkBody,
      fromForm: ({ name = "", role = "", crawlers = "", minutes = "" }) => ({
        name: name.trim(),
        role,
        crawlers: crawlers.split(/[\s,]+/).filter((one) => one !== ""),
        minutes: Number(minutes),
      }),
      act: async (asked) => await issue(asked, ports),
    });
    actions.add({
      path: "/access/links/:id/revoke",
      api: "/api/access/links/:id/revoke",
      section: null,
      needs: "access-write",
      body: z.strictObject({}),
      act: async ({ param, now }) => await revokeLink(param("id"), ports, now),
    });
    actions.add({
      path: "/access/sessions/:id/end",
      api: "/api/access/sessions/:id/end",
      section: null,
      needs: "access-write",
      body: z.strictObject({}),
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
  if (refused !== null) return { type: "fault", status: 403, title: "Not yours to give", words: refused };
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
  return { type: "fault", status: 422, title: "No link was made", words, again };
}

async function revokeLink(id: string, { links }: AccessRoutePorts, now: Date): Promise<Outcome> {
  const link = isNumber(id) ? await links.revoke(Number(id), now) : null;
  if (link === null) return notThere("link", "it was used or withdrawn, or its time was over");
  const said = `The link for ${link.name} opens nothing any more.`;
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
    return notThere("session", "it has ended meanwhile");
  const { name, role } = session;
  const said = `A session of ${name} is ended.`;
  const change = { action: "session-ended", target: name, words: said, before: { sessionId, role } };
  return { type: "done", value: { sessionId, ended: true }, goTo: "/access", said, change };
}

const isNumber = (text: string) => /^\d{1,9}$/.test(text);

const notThere = (what: string, why: string): ActionFault => ({
  type: "fault",
  status: 404,
  title: "Not there any more",
  words: `There is no ${what} of this number: ${why}.`,
});
