/** The API of releases: the files that crawlers fetch, and who runs which version. */
import { z } from "zod";
import {
  type ApiOperations,
  answer,
  dateTime,
  errorAnswer,
  get,
  post,
  record,
} from "../web/api-operation.ts";
import { defaultSoakMinutes } from "./decide-stage.ts";

const releaseDigest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe("SHA-256 of the bundle, hex.");

const fleetVersions = record("FleetVersions", {
  releases: z.array(
    z.strictObject({
      version: z.string(),
      sequence: z.int(),
      digest: z.string(),
      expiresAt: dateTime(),
      publishedAt: dateTime(),
      revoked: z.boolean(),
      trusted: z.boolean(),
      stage: z.enum(["none", "one", "percent", "all"]),
      percent: z.number().nullable(),
      stageSince: dateTime().nullable(),
      stageWords: z.string(),
      soakMinutes: z.int().nullable(),
      firstCrawler: z.string().nullable(),
      crawlers: z.strictObject({
        offered: z.int(),
        refused: z.int(),
        pinned: z.int(),
        delayed: z.int(),
        running: z.int(),
        returned: z.int(),
      }),
      standing: z.string().nullable(),
    }),
  ),
  docks: z.array(
    z.strictObject({
      crawlerId: z.int(),
      name: z.string(),
      online: z.boolean(),
      digest: z.string(),
      runsVersion: z.string(),
      dockVersion: z.string(),
      policy: z.string(),
      reports: z.record(z.string(), z.string().nullable()),
    }),
  ),
});

const signedText = record("SignedText", {
  body: z.string().describe("JSON, signed as is."),
  signatures: z.array(
    z.strictObject({
      key: z.string().describe("Raw Ed25519 public key in base64url."),
      signature: z.string().describe("Base64url."),
    }),
  ),
});

export const releasesApi = {
  releaseBundle: {
    ...get("/releases/{digest}", null),
    summary: "The bundle of a release that is on offer; supervisors verify it by its signed manifest",
    parameters: { path: { digest: releaseDigest } },
    answers: {
      200: {
        description: "One JavaScript module; ETag and Repr-Digest are its SHA-256",
        schema: z.string(),
        type: "text/javascript",
      },
      404: { description: "Not published, held, or revoked" },
      503: { description: "Too many downloads at once; Retry-After says when to retry" },
    },
  },
  releaseManifest: {
    ...get("/releases/{digest}/manifest.json", null),
    summary: "The signed manifest of a release that is on offer",
    parameters: { path: { digest: releaseDigest } },
    answers: {
      200: answer(signedText, "A text and the Ed25519 signatures over it"),
      404: { description: "Not published, held, or revoked" },
    },
  },
  currentRelease: {
    ...get("/releases/current.json", null),
    summary:
      "What a supervisor without a release asks for: the newest release offered to all, and what verifies it",
    answers: {
      200: answer(
        z.strictObject({
          manifest: signedText.nullable(),
          revocations: signedText.nullable(),
          rotations: z.array(signedText),
        }),
        "Null where there is none",
      ),
    },
  },
  releaseKeys: {
    ...get("/releases/keys.json", null),
    summary: "The rotations of the keys that releases are signed with, in order",
    answers: {
      200: answer(
        z.strictObject({ rotations: z.array(signedText) }),
        "Each signed by a key that was valid before it",
      ),
    },
  },
  revokedReleases: {
    ...get("/releases/revocations.json", null),
    summary: "The signed list of releases that are never to run again",
    answers: {
      200: answer(signedText, "The list in force"),
      404: { description: "No release was ever revoked" },
    },
  },
  dockFile: {
    ...get("/releases/dock.mjs", null),
    summary: "The single file that a partner starts with",
    answers: {
      200: {
        description: "One JavaScript module; ETag and Repr-Digest are its SHA-256",
        schema: z.string(),
        type: "text/javascript",
      },
      404: { description: "It was not built on this coordinator" },
    },
  },
} satisfies ApiOperations;

const stage = z.enum(["none", "one", "percent", "all"]);

const stagedRelease = z.strictObject({
  version: z.string(),
  stage,
  percent: z.number().nullable(),
  crawlers: z.array(z.string()),
});

const ofVersion = {
  path: { version: z.string().meta({ description: "A published release.", example: "1.4.0" }) },
};

const notOffered = { 409: errorAnswer("It cannot be offered; the message says why") };

export const versionsApi = {
  fleetVersions: {
    ...get("/api/fleet/versions", "fleet-read"),
    summary: "Releases, who is offered each, and who runs what",
    answers: { 200: answer(fleetVersions) },
  },
  stageRelease: {
    ...post("/api/fleet/versions/{version}/stage", "fleet-write"),
    summary: "Offer a release to one crawler, to a share of them, or to all",
    parameters: ofVersion,
    body: {
      schema: z.strictObject({
        to: z.string().min(1).max(68).describe("one, one=NAME, a percentage such as 5%, or all."),
        again: z.boolean().default(false).describe("Offer it again to crawlers that rolled back from it."),
      }),
      example: { to: "one=athens" },
    },
    answers: { 200: answer(stagedRelease), ...notOffered },
  },
  autoRelease: {
    ...post("/api/fleet/versions/{version}/auto", "fleet-write"),
    summary: "Offer a release to one crawler, then 5 %, then all, as long as all goes well",
    parameters: ofVersion,
    body: {
      schema: z.strictObject({ soakMinutes: z.int().min(1).max(100_000).default(defaultSoakMinutes) }),
      example: {},
    },
    answers: { 200: answer(stagedRelease), ...notOffered },
  },
  holdRelease: {
    ...post("/api/fleet/versions/{version}/hold", "fleet-write"),
    summary: "Hold a release",
    parameters: ofVersion,
    body: {
      schema: z.strictObject({ reason: z.string().min(1).max(500).default("held by an operator") }),
      example: { reason: "too many failures" },
    },
    answers: { 200: answer(z.strictObject({ version: z.string(), stage: z.enum(["none"]) })), ...notOffered },
  },
} satisfies ApiOperations;
