/**
 * What is signed offline and served by the coordinator: a text and the Ed25519 signatures over it (RFC 8032).
 * The text is signed as it stands, so nobody has to agree on one way of writing JSON. What a text is for stands
 * in front of it when it is signed, so no signature stands for anything else. A file has exactly one form
 * (`formatEnvelope`): any other byte is refused.
 */
import { createPublicKey, type KeyObject, sign } from "node:crypto";
import { z } from "zod";
import { isSignedBy, publicKey, signature } from "./identity.ts";

/** Longest text of an envelope, in characters: a list of 1000 revoked digests is 67,000. */
const maxBodyCharacters = 100_000;

/** Longest file that holds one envelope: every character of the text escaped, and its signatures. */
export const maxEnvelopeBytes = 1024 * 1024;

const maxSignatures = 4;

export const envelope = z.strictObject({
  /** JSON text, signed as it stands: ASCII, other characters escaped, so that no two texts have the same bytes. */
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

/** What a signed text is. */
export type SignedKind = "release" | "revocations" | "key";

/** Something was not as it should be, in words. */
export interface Refused {
  readonly refused: string;
}

/** The one form of an envelope as a file. */
export function formatEnvelope({ body, signatures }: Envelope): string {
  const inOrder = signatures.map(({ key, signature: made }) => ({ key, signature: made }));
  return `${JSON.stringify({ body, signatures: inOrder })}\n`;
}

/** Of a file or an answer from the network; nothing is verified yet. */
export function readEnvelope(text: string): Envelope | Refused {
  if (text.length > maxEnvelopeBytes)
    return { refused: `${text.length} characters are more than a signed file has` };
  const checked = envelope.safeParse(parseJson(text));
  if (!checked.success) return { refused: "this is not a signed file" };
  if (formatEnvelope(checked.data) !== text)
    return { refused: "the signed file is not written in its one form" };
  return checked.data;
}

/** `key`: an Ed25519 private key. */
export function signBody(kind: SignedKind, value: unknown, key: KeyObject): Envelope {
  const body = asciiJson(value);
  const made = sign(null, signedBytes(kind, body), key).toString("base64url");
  return { body, signatures: [{ key: rawPublicKey(key), signature: made }] };
}

/** The 32 bytes of the public half of an Ed25519 key, in base64url. */
export function rawPublicKey(key: KeyObject): string {
  const { x } = (key.type === "private" ? createPublicKey(key) : key).export({ format: "jwk" });
  if (typeof x !== "string" || key.asymmetricKeyType !== "ed25519") throw new TypeError("not an Ed25519 key");
  return x;
}

/**
 * The text's JSON when one of the keys has signed it, and no trusted key's signature on it is wrong. Signatures of
 * keys that are not trusted (yet, or any more) are passed over.
 */
export function openEnvelope<Schema extends z.ZodType>(
  { body, signatures }: Envelope,
  expected: { readonly kind: SignedKind; readonly keys: readonly string[]; readonly schema: Schema },
): { readonly value: z.infer<Schema>; readonly signers: readonly string[] } | Refused {
  const trusted = signatures.filter(({ key }) => expected.keys.includes(key));
  if (trusted.length === 0)
    return { refused: `it is not signed by a trusted key, but by ${keyList(signatures)}` };
  const signed = signedBytes(expected.kind, body);
  const wrong = trusted.find((made) => !isSignedBy(made.key, signed, made.signature));
  if (wrong)
    return { refused: `the signature by ${wrong.key} is wrong: the text was changed, or it is another's` };
  const value = expected.schema.safeParse(parseJson(body));
  if (!value.success) return { refused: `the signed text is not as expected: ${fault(value.error)}` };
  return { value: value.data, signers: trusted.map(({ key }) => key) };
}

/** What the text says, before anybody has looked at a signature: to name it, never to act on it. */
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

// Which keys a dock takes releases from: those that its invitation pinned, carried on by rotations. A rotation
// names a new key, may retire an old one, and is signed by a key that is trusted at that moment. Their numbers
// grow, and a dock keeps those that it has followed: whoever finds a retired key later can put nothing in the
// place of one. A dock that joined later has pinned a later key, and passes over what came before.

/** Rotations that are followed, at most: one a month for eight years. */
export const maxRotations = 100;

export const keyRotation = z.strictObject({
  product: z.literal("nearcrawl-crawler"),
  sequence: z.int().min(1),
  newKey: publicKey,
  /** Counts no more from now on; null: both keys count. */
  retires: publicKey.nullable(),
  createdAt: z.iso.datetime(),
});

export type KeyRotation = z.infer<typeof keyRotation>;

/** `/releases/keys.json`: all of them, in order. */
export const keysFile = z.object({ rotations: z.array(envelope).max(maxRotations) });

export type KeysFile = z.infer<typeof keysFile>;

interface FollowedKeys {
  /** Trusted after the last rotation that could be followed. */
  readonly keys: readonly string[];
  /** Trusted at some time, those that were retired since included. */
  readonly everTrusted: readonly string[];
  /** The rotations that could be followed, in order: these are worth keeping. */
  readonly followed: readonly Envelope[];
}

/** `rotations`: in order, those that were kept first; what was served may repeat them. */
export function trustedKeys(pinned: readonly string[], rotations: readonly Envelope[]): readonly string[] {
  return followRotations(pinned, rotations).keys;
}

/** Passes over what is not signed by a key trusted by then, and what is numbered no higher than the last followed. */
export function followRotations(pinned: readonly string[], rotations: readonly Envelope[]): FollowedKeys {
  const followed: Envelope[] = [];
  const everTrusted = new Set(pinned);
  let keys = pinned;
  let last = 0;
  // Twice: what was kept, and what was served.
  for (const signed of rotations.slice(0, 2 * maxRotations)) {
    const opened = openEnvelope(signed, { kind: "key", keys, schema: keyRotation });
    if ("refused" in opened || opened.value.sequence <= last) continue;
    const { sequence, newKey, retires } = opened.value;
    if (newKey === retires) continue;
    keys = [...new Set([...keys, newKey])].filter((key) => key !== retires);
    everTrusted.add(newKey);
    followed.push(signed);
    last = sequence;
  }
  return { keys, everTrusted: [...everTrusted], followed };
}
