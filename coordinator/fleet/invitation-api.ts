/** The API of invitations: what it takes and answers. */
import { z } from "zod";
import { keyScopes } from "#protocol/identity";
import { crawlerName } from "#protocol/invitation";
import { invitationHours } from "../access/invitations.ts";
import {
  type ApiOperations,
  answer,
  dateTime,
  errorAnswer,
  get,
  orNull,
  post,
  type ReadOf,
  record,
} from "../web/api-operation.ts";
import { bytesPerDay, nothingBody, pagesPerDay } from "../web/form-fields.ts";

export const invitationStepNames = ["downloaded", "checked", "joined", "running", "first-page"] as const;

const invitationRequest = record("InvitationRequest", {
  name: crawlerName,
  renews: z.boolean().default(false).describe("A new identity for a crawler that is there."),
  scopes: z
    .array(z.enum(keyScopes))
    .min(1)
    .max(keyScopes.length)
    .default([...keyScopes])
    .describe("probe: measurements; crawl: leases and results, too. Both by default."),
  pagesPerDay: pagesPerDay.nullable().default(null).describe("At most; null: what the partner allows."),
  bytesPerDay: bytesPerDay.nullable().default(null),
  expiresHours: z
    .number()
    .min(invitationHours.least)
    .max(invitationHours.most)
    .default(invitationHours.usual),
});

const joinCommands = record("JoinCommands", {
  download: z.string().describe("Needs Node.js and nothing else; reads the token from standard input."),
  installed: z.string().describe("Where nearcrawl is installed; reads the token from standard input."),
});

const issuedInvitation = record("IssuedInvitation", {
  invitationId: z.int(),
  name: z.string(),
  renews: z.boolean(),
  coordinatorUrl: z.string(),
  certificatePin: orNull(
    z.string(),
    "SHA-256 of the SubjectPublicKeyInfo, base64url; null: public authorities vouch for the coordinator.",
  ),
  releaseKeys: z.array(z.string()).min(1),
  releaseThreshold: z.int().min(1).describe("How many of these keys together say who signs releases."),
  firstRelease: orNull(
    z.string(),
    "The release that the crawler starts with; null: none is offered to all yet, and it waits for one.",
  ),
  expiresAt: dateTime(),
  token: z.string(),
  commands: joinCommands,
});

const invitation = record("Invitation", {
  invitationId: z.int(),
  name: z.string(),
  renews: z.boolean(),
  scopes: z.array(z.enum(keyScopes)),
  pagesPerDay: z.int().nullable(),
  bytesPerDay: z.int().nullable(),
  createdBy: z.string(),
  createdAt: dateTime(),
  expiresAt: dateTime(),
  redeemedAt: dateTime().nullable(),
  revokedAt: dateTime().nullable(),
  state: z.enum(["open", "joining", "joined", "expired", "revoked"]),
});

const invitations = record("Invitations", { invitations: z.array(invitation) });

const invitationProgress = record("InvitationProgress", {
  invitationId: z.int(),
  name: z.string(),
  steps: z.array(
    z.strictObject({
      name: z.enum(invitationStepNames),
      words: z.string(),
      isDone: z.boolean(),
      at: orNull(
        z.string().meta({ format: "date-time" }),
        "Null: it has not happened, or the time was not recorded.",
      ),
    }),
  ),
  waitsFor: z.string().nullable().describe("What blocks the next step; null: all are done."),
  isOver: z.boolean().describe("No further step is possible."),
});

const inviteBounds = record("InviteBounds", {
  scopes: z.array(z.enum(keyScopes)),
  expiresHours: z.strictObject({ least: z.int(), most: z.int(), usual: z.int() }),
});

export type InvitationProgress = ReadOf<typeof invitationProgress>;

export const invitationApi = {
  invitations: {
    ...get("/api/fleet/invitations", "fleet-read"),
    summary: "Invitations, the latest first",
    answers: { 200: answer(invitations) },
  },
  invite: {
    ...post("/api/fleet/invitations", "fleet-write"),
    summary: "Invite a crawler",
    description: "The token is shown only in this answer; only a hash of its secret is kept.",
    body: { schema: invitationRequest, example: { name: "athens", pagesPerDay: 50000, expiresHours: 72 } },
    answers: {
      201: answer(issuedInvitation),
      404: errorAnswer("There is no crawler of this name to renew"),
      409: errorAnswer(
        "The name is taken, the public address of the coordinator is not known, or there is no release key to pin",
      ),
      415: errorAnswer("The body is not application/json"),
    },
  },
  inviteBounds: {
    ...get("/api/fleet/invite", "fleet-write"),
    summary: "What an invitation may contain",
    answers: { 200: answer(inviteBounds) },
  },
  invitation: {
    ...get("/api/fleet/invitations/{number}", "fleet-read"),
    summary: "Progress of an invitation",
    description: "Each step from the download to the first page, and what blocks the next.",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 7 }) } },
    answers: {
      200: answer(invitationProgress),
      404: errorAnswer("There is no invitation of this number"),
    },
  },
  revokeInvitation: {
    ...post("/api/fleet/invitations/{number}/revoke", "fleet-write"),
    summary: "Withdraw an invitation",
    parameters: { path: { number: z.int().meta({ description: "As listed.", example: 7 }) } },
    body: { schema: nothingBody, example: {} },
    answers: {
      200: answer(z.strictObject({ revoked: z.int() })),
      404: errorAnswer("It can no longer be used, or does not exist"),
    },
  },
} satisfies ApiOperations;
