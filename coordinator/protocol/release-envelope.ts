/**
 * An envelope is signed offline and served by the coordinator. It holds a text and the Ed25519 signatures over it (RFC 8032).
 * The text is signed as it is, so no canonical JSON is needed. Its kind is prepended for signing, so no signature can be used
 * for another kind. A file has exactly one valid form (`formatEnvelope`).
 */
import { createPublicKey, type KeyObject, sign } from "node:crypto";
import { z } from "zod";
import { isSignedBy, publicKey, signature } from "./identity.ts";

/** Maximum length of an envelope's text in characters. A list of 1000 revoked digests takes 67,000. */
const maxBodyCharacters = 100_000;

/** Maximum size of an envelope file, which fits even if every character of the text is escaped. */
export const maxEnvelopeBytes = 1024 * 1024;

export const maxSignatures = 4;

export const envelope = z.strictObject({
  /** The signed JSON text. It is ASCII with other characters escaped, so that no two texts have the same bytes. */
  body: z
    .string()
    .min(2)
    .max(maxBodyCharacters)
    .regex(/^[ -~]+$/),
  signatures: z
    .array(z.strictObject({ key: publicKey, signature }))
    .min(1)
    .max(maxSignatures),
});

export type Envelope = z.infer<typeof envelope>;

export type SignedKind = "release" | "revocations" | "key" | "root" | "timestamp";

/** Whose signatures count for a text, and how many are needed (The Update Framework 1.0.33, section 2.1). */
export interface Role {
  readonly keys: readonly string[];
  readonly threshold: number;
}

export const anyOf = (keys: readonly string[]): Role => ({ keys, threshold: 1 });

export interface Refused {
  readonly refused: string;
  /** Set if no key of the role has signed it. */
  readonly isUntrusted?: true;
}

export function formatEnvelope({ body, signatures }: Envelope): string {
  const inOrder = signatures.map(({ key, signature: made }) => ({ key, signature: made }));
  return `${JSON.stringify({ body, signatures: inOrder })}\n`;
}

/** Reads a file or a network answer without verifying it. */
export function readEnvelope(text: string): Envelope | Refused {
  if (text.length > maxEnvelopeBytes)
    return { refused: `${text.length} characters are more than a signed file has` };
  const checked = envelope.safeParse(parseJson(text));
  if (!checked.success) return { refused: "this is not a signed file" };
  if (formatEnvelope(checked.data) !== text)
    return { refused: "the signed file is not written in its one form" };
  return checked.data;
}

/** `key` is an Ed25519 private key. */
export function signBody(kind: SignedKind, value: unknown, key: KeyObject): Envelope {
  return coSign({ body: asciiJson(value), signatures: [] }, kind, key);
}

export function rawPublicKey(key: KeyObject): string {
  const { x } = (key.type === "private" ? createPublicKey(key) : key).export({ format: "jwk" });
  if (typeof x !== "string" || key.asymmetricKeyType !== "ed25519") throw new TypeError("not an Ed25519 key");
  return x;
}

/**
 * Returns the text's JSON if enough keys of the role have signed it and none of their signatures is wrong. Signatures by
 * other keys are ignored.
 */
export function openEnvelope<Schema extends z.ZodType>(
  { body, signatures }: Envelope,
  expected: { readonly kind: SignedKind; readonly role: Role; readonly schema: Schema },
): { readonly value: z.infer<Schema>; readonly signers: readonly string[] } | Refused {
  const { kind, role } = expected;
  const trusted = signatures.filter(({ key }) => role.keys.includes(key));
  if (trusted.length === 0)
    return {
      refused: `it is not signed by a trusted key, but by ${keyList(signatures)}`,
      isUntrusted: true,
    };
  const signed = signedBytes(kind, body);
  const wrong = trusted.find((made) => !isSignedBy(made.key, signed, made.signature));
  if (wrong)
    return { refused: `the signature by ${wrong.key} is wrong: the text was changed, or it is another's` };
  // A key that has signed twice counts once.
  const signers = [...new Set(trusted.map(({ key }) => key))];
  if (signers.length < role.threshold)
    return { refused: `it takes ${role.threshold} trusted keys, and ${signers.length} of them signed it` };
  const value = expected.schema.safeParse(parseJson(body));
  if (!value.success) return { refused: `the signed text is not as expected: ${fault(value.error)}` };
  return { value: value.data, signers };
}

/** Adds this key's signature, or replaces its earlier one. */
export function coSign({ body, signatures }: Envelope, kind: SignedKind, key: KeyObject): Envelope {
  const made = {
    key: rawPublicKey(key),
    signature: sign(null, signedBytes(kind, body), key).toString("base64url"),
  };
  return { body, signatures: [...signatures.filter((one) => one.key !== made.key), made] };
}

/** Returns the text's content without verifying any signature, for display only. */
export function unverifiedBody({ body }: Envelope): unknown {
  return parseJson(body);
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function signedBytes(kind: SignedKind, body: string): Buffer {
  return Buffer.from(`nearcrawl ${kind} 1\n${body}`, "utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function keyList(signatures: Envelope["signatures"]): string {
  return signatures.map(({ key }) => key).join(", ");
}

function fault(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue ? `${issue.path.join(".") || "all of it"}: ${issue.message.slice(0, 200)}` : "unknown";
}
