/**
 * The token with which a partner's crawler joins: `nc1.` and base64url of JSON. It carries a one-time secret with an expiry and
 * pins the coordinator's TLS key and the release signing keys.
 */
import { z } from "zod";
import { UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";
import { publicKey } from "./identity.ts";
import { maxSignatures } from "./release-envelope.ts";

/** Maximum length of a token in characters. A usual one has about 400. */
const maxTokenLength = 4000;

const prefix = "nc1.";

/** A crawler's name has 1 to 63 of a-z, 0-9, '.', '_', '-' and begins with a letter or digit. */
export const crawlerName = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/);

/** SHA-256 of the TLS key's SubjectPublicKeyInfo (RFC 7469 section 2.4) in base64url (43 characters). */
export const certificatePin = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Keys that releases are signed with: raw Ed25519 public keys in base64url. */
export const releaseKeys = z.array(publicKey).max(16);

/** How many keys must sign together. It is 1 for invitations and folders that do not state it. */
export const releaseThreshold = z.int().min(1).max(maxSignatures).default(1);

const invitationSchema = z.object({
  /** `wss://HOST/crawler`; `ws://` only on loopback. */
  coordinatorUrl: z
    .string()
    .max(1000)
    .refine(isCoordinatorUrl, { error: "must be wss://host[:port][/path], or ws:// on this machine" }),
  name: crawlerName,
  /** Presented in the hello in place of a key: `inv_…`. */
  secret: z
    .string()
    .max(200)
    .regex(/^inv_[A-Za-z0-9_-]{16,}$/),
  /** Null if a public authority issued the coordinator's certificate, which is then verified as browsers do. */
  certificatePin: certificatePin.nullable(),
  releaseKeys,
  releaseThreshold,
  expiresAt: z.iso.datetime(),
});

export type Invitation = Readonly<z.infer<typeof invitationSchema>>;

export function formatInvitation(invitation: z.input<typeof invitationSchema>): string {
  const checked = invitationSchema.parse(invitation);
  return prefix + Buffer.from(JSON.stringify(checked)).toString("base64url");
}

/**
 * Throws a UsageError that addresses the person who pasted the token. Whitespace within it, which mail programs add, is
 * accepted. The caller checks `expiresAt`.
 */
export function parseInvitation(token: string): Invitation {
  const text = token.replace(/\s+/g, "");
  const version = /^nc(\d{1,4})\./.exec(text)?.[1];
  if (version === undefined) {
    throw new UsageError(
      `this is no invitation: it begins with "${printableStart(text)}", an invitation with "${prefix}"`,
    );
  }
  if (version !== "1") {
    throw new UsageError(
      `this invitation is of version ${version}, and this program knows version 1: get the newest nearcrawl-crawler.mjs from your coordinator`,
    );
  }
  if (text.length > maxTokenLength) {
    throw new UsageError(`this invitation has ${text.length} characters; none has over ${maxTokenLength}`);
  }
  return checkedInvitation(text.slice(prefix.length));
}

function checkedInvitation(encoded: string): Invitation {
  const strange = /[^A-Za-z0-9_-]/.exec(encoded);
  if (strange) {
    throw new UsageError(
      `this invitation has a character that none has, ${JSON.stringify(strange[0])}, at place ${prefix.length + strange.index + 1}: copy it again`,
    );
  }
  const checked = invitationSchema.safeParse(jsonOf(encoded));
  if (checked.success) return checked.data;
  const [fault] = checked.error.issues;
  throw new UsageError(
    `this invitation is damaged (${fault?.path.join(".")}: ${fault?.message}): copy it again, or ask for another`,
  );
}

function jsonOf(encoded: string): unknown {
  try {
    return JSON.parse(Buffer.from(encoded, "base64url").toString("utf8"));
  } catch {
    throw new UsageError(
      "this invitation is cut off or damaged: copy the whole of it, from its first to its last character, or ask for another",
    );
  }
}

const printableStart = (text: string) => text.slice(0, 12).replace(/[^\x20-\x7e]/g, "?");

// Accepts `wss://host[:port][/path]`, and `ws://` only to this machine, so that no key travels unencrypted.

export function isCoordinatorUrl(text: string): boolean {
  if (!canParseUrl(text)) return false;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return false;
  return url.protocol === "wss:" || (url.protocol === "ws:" && isLoopbackHost(url.hostname));
}

/** Accepts IPv6 with or without brackets. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "[::1]" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
