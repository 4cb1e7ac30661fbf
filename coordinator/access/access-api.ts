/** The API of access: tokens, sign-in links, sessions and the audit log. */
import { z } from "zod";
import { linkMinutes } from "#core/access-types";
import { roles, scopes } from "#core/actor";
import { type ApiOperations, answer, dateTime, errorAnswer } from "../web/api-operation.ts";
import { nothingBody } from "../web/form-fields.ts";
import { mostCrawlersOfPartner } from "./sign-in.ts";

const role = z.enum(roles).meta({
  id: "Role",
  description:
    "partner: sees and controls its own crawlers. staff: reads everything, submits URLs. operator: changes everything.",
});

const scope = z.enum(scopes).meta({ id: "Scope", description: "What a token may do." });

const auditEntry = z
  .strictObject({
    entryId: z.int(),
    at: dateTime(),
    actor: z.string(),
    via: z.enum(["page", "api", "command", "coordinator"]),
    action: z.string().describe("Kebab-case, past tense."),
    target: z.string().nullable().describe("Null: all of it."),
    words: z.string(),
    before: z.unknown().describe("Value before; any JSON.").optional(),
    after: z.unknown().describe("Value after; any JSON.").optional(),
    remoteAddress: z.string().nullable(),
  })
  .meta({ id: "AuditEntry" });

const auditLog = z
  .strictObject({ entries: z.array(auditEntry), more: z.boolean().describe("There are earlier entries.") })
  .meta({ id: "AuditLog" });

const session = z
  .strictObject({
    sessionId: z.int(),
    name: z.string(),
    role,
    crawlers: z.array(z.string()),
    issuedBy: z.string().describe("Who issued the link."),
    startedAt: dateTime(),
    lastUsedAt: dateTime(),
    endsAt: dateTime().describe("At the latest; earlier after 8 hours unused."),
    remoteAddress: z.string().nullable().describe("Where it was last used."),
    userAgent: z.string(),
  })
  .meta({ id: "Session" });

const ownSession = z
  .strictObject({
    sessionId: z.int(),
    name: z.string(),
    role,
    crawlers: z.array(z.string()),
    issuedBy: z.string().describe("Who issued the link."),
    startedAt: dateTime(),
    lastUsedAt: dateTime(),
    endsAt: dateTime().describe("At the latest; earlier after 8 hours unused."),
    remoteAddress: z.string().nullable().describe("Where it was last used."),
    userAgent: z.string(),
    isThisOne: z.boolean(),
  })
  .meta({ id: "OwnSession" });

const openSignInLink = z
  .strictObject({
    linkId: z.int(),
    name: z.string(),
    role,
    crawlers: z.array(z.string()),
    issuedBy: z.string(),
    issuedAt: dateTime(),
    expiresAt: dateTime(),
    state: z.enum(["open", "used", "expired", "revoked"]),
  })
  .meta({ id: "OpenSignInLink" });

const whoHasAccess = z
  .strictObject({ sessions: z.array(session), links: z.array(openSignInLink) })
  .meta({ id: "WhoHasAccess" });

const signInLinkRequest = z
  .strictObject({
    name: z.string().max(80).describe("As shown in the audit log."),
    role,
    crawlers: z.array(z.string().max(63)).max(mostCrawlersOfPartner).default([]).describe("For a partner."),
    minutes: z.number().min(linkMinutes.least).max(linkMinutes.most).default(linkMinutes.usual),
  })
  .meta({ id: "SignInLinkRequest" });

const issuedSignInLink = z
  .strictObject({
    linkId: z.int(),
    name: z.string(),
    role,
    crawlers: z.array(z.string()),
    url: z.string(),
    expiresAt: dateTime(),
  })
  .meta({ id: "IssuedSignInLink" });

const revokedSignInLink = z
  .strictObject({ linkId: z.int(), revoked: z.boolean() })
  .meta({ id: "RevokedSignInLink" });

const endedSession = z.strictObject({ sessionId: z.int(), ended: z.boolean() }).meta({ id: "EndedSession" });

const account = z
  .strictObject({
    name: z.string().describe("As in the audit log."),
    role: z.enum(["partner", "staff", "operator", "program", "anybody"]),
    scopes: z.array(scope),
    crawlers: z.array(z.string()),
    sessions: z.array(ownSession),
  })
  .meta({ id: "Account" });

const token = z
  .strictObject({
    name: z.string(),
    scopes: z.array(scope),
    createdAt: dateTime(),
    expiresAt: dateTime().nullable().describe("Null: it is revoked."),
    lastUsedAt: dateTime().nullable(),
    revokedAt: dateTime().nullable(),
  })
  .meta({ id: "Token" });

const tokens = z.strictObject({ tokens: z.array(token) }).meta({ id: "Tokens" });

export const tokenRequest = z
  .strictObject({
    name: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9._-]{0,62}$/,
        "must be lower-case letters, digits, dots, dashes and underscores, at most 63",
      ),
    scopes: z.array(scope).min(1, "choose at least one").max(scopes.length),
    days: z.number().min(0.01).max(3650).default(365),
  })
  .meta({ id: "TokenRequest" });

const createdToken = z
  .strictObject({ name: z.string(), scopes: z.array(scope), expiresAt: dateTime(), token: z.string() })
  .meta({ id: "CreatedToken" });

const revokedToken = z.strictObject({ name: z.string(), revoked: z.boolean() }).meta({ id: "RevokedToken" });

const signInLink = z
  .strictObject({
    linkId: z.int(),
    name: z.string(),
    role: z.enum(["partner"]),
    crawlers: z.array(z.string()),
    url: z.string().describe("Works once; shown only in this answer."),
    expiresAt: dateTime(),
  })
  .meta({ id: "SignInLink" });

export const accessApi = {
  audit: {
    method: "get",
    path: "/api/audit",
    needs: "audit-read",
    summary: "Every change and who made it, the latest first",
    description:
      "Also as CSV: format=csv. An entry has no before or after where there is nothing to show; long values are cut off, secrets omitted.",
    parameters: {
      query: {
        actor: z
          .string()
          .max(300)
          .optional()
          .describe("Actor: `anna`, `token ci`, `root on db1` (a command), `coordinator`. Whole names only."),
        action: z.string().max(300).optional().describe("Action, such as crawler-drained."),
        target: z.string().max(300).optional().describe("Target: a crawler, `token …`, `release …`."),
        since: z.string().meta({ format: "date" }).optional().describe("From this day on, UTC."),
        until: z.string().meta({ format: "date" }).optional().describe("Through this day, UTC."),
        beforeId: z
          .int()
          .min(1)
          .optional()
          .describe("Only entries before this one: the last of the previous page."),
        limit: z.int().min(1).max(500).default(50).describe("How many."),
      },
    },
    answers: {
      200: answer(auditLog),
      400: errorAnswer("An invalid day, number or text"),
    },
  },
  account: {
    method: "get",
    path: "/api/account",
    needs: null,
    summary: "Who you are, and what you may do",
    tokenToo: true,
    description: "Open to everybody. For a token: its name and scopes. After a sign-in: also one's sessions.",
    answers: {
      200: answer(account),
      401: answer(account, "Not signed in, and no token was sent"),
    },
  },
  access: {
    method: "get",
    path: "/api/access",
    needs: "access-write",
    summary: "Who is signed in, and the unused sign-in links",
    answers: {
      200: answer(whoHasAccess),
    },
  },
  issueSignInLink: {
    method: "post",
    path: "/api/access/links",
    needs: "access-write",
    summary: "Create a sign-in link that works once",
    description:
      "Scope access-write, and the scopes of the role that it gives (fleet-write for a partner). The link is shown only in this answer.",
    body: {
      schema: signInLinkRequest,
      example: { name: "ben", role: "partner", crawlers: ["athens"], minutes: 60 },
    },
    answers: {
      201: answer(issuedSignInLink, "Created"),
      400: errorAnswer("An invalid field"),
      422: errorAnswer("A name or crawlers that do not fit the role"),
    },
  },
  revokeSignInLink: {
    method: "post",
    path: "/api/access/links/{id}/revoke",
    needs: "access-write",
    summary: "Withdraw a link",
    parameters: { path: { id: z.int().min(1).describe("Number of the link.") } },
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(revokedSignInLink),
      404: errorAnswer("No open link of this number"),
    },
  },
  endSession: {
    method: "post",
    path: "/api/access/sessions/{id}/end",
    needs: "access-write",
    summary: "End a session at once",
    parameters: { path: { id: z.int().min(1).describe("Number of the session.") } },
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(endedSession),
      404: errorAnswer("No session of this number"),
    },
  },
  tokens: {
    method: "get",
    path: "/api/tokens",
    needs: "access-write",
    summary: "The tokens, and when each was last used",
    answers: {
      200: answer(tokens),
    },
  },
  createToken: {
    method: "post",
    path: "/api/tokens",
    needs: "access-write",
    summary: "Create a token",
    description:
      "Scope access-write; grants only scopes that the caller has. The token is shown only in this answer.",
    body: { schema: tokenRequest, example: { name: "prometheus", scopes: ["metrics-read"], days: 365 } },
    answers: {
      201: answer(createdToken, "Created"),
      409: errorAnswer("The name is or was in use"),
      422: errorAnswer("An invalid field"),
    },
  },
  revokeToken: {
    method: "post",
    path: "/api/tokens/{name}/revoke",
    needs: "access-write",
    summary: "Revoke a token at once",
    parameters: { path: { name: z.string().describe("The token's name.") } },
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(revokedToken),
      404: errorAnswer("No valid token of this name"),
    },
  },
} satisfies ApiOperations;

const partnerLinkRequest = z.strictObject({
  person: z.string().min(1).max(63),
  minutes: z.int().min(linkMinutes.least).max(linkMinutes.most).default(linkMinutes.most),
});

export const partnerAccessApi = {
  partnerSignInLink: {
    method: "post",
    path: "/api/fleet/crawlers/{name}/sign-in-link",
    needs: "access-write",
    summary: "Create a sign-in link for a crawler's partner, which works once",
    parameters: {
      path: { name: z.string().meta({ description: "The crawler's name.", example: "athens" }) },
    },
    body: {
      schema: partnerLinkRequest,
      example: { person: "chris", minutes: 60 },
    },
    answers: {
      201: answer(signInLink),
      404: errorAnswer("There is no crawler of this name"),
      409: errorAnswer("The public address of the pages is not known"),
    },
  },
} satisfies ApiOperations;
