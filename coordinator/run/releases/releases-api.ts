/** API operations for releases: the files that crawlers fetch. */
import { z } from "zod";
import { type ApiOperations, answer, get, record } from "../../web/api-operation.ts";

const releaseDigest = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .describe("SHA-256 of the bundle, hex.");

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
