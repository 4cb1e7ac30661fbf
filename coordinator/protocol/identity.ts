/**
 * A crawler's identity, an Ed25519 key pair (RFC 8032) that is made on the partner's machine and never leaves it, and the
 * texts that it signs. Both ends build these texts here. Each begins with a line of its own, so that no signature can be used
 * for another text.
 */

import { createHash, createPublicKey, verify, X509Certificate } from "node:crypto";
import { TLSSocket } from "node:tls";
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";

/** This header of the coordinator's answer to the WebSocket upgrade carries 32 random bytes in base64url. */
export const challengeHeader = "nearcrawl-challenge";

const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** The raw 32 bytes of an Ed25519 public key in base64url. */
export const publicKey = bytes32;

export const signature = z.string().regex(/^[A-Za-z0-9_-]{86}$/);

export const challenge = z.string().regex(/^[A-Za-z0-9_-]{43,128}$/);

/** Presented at the next session, it proves that the crawler took part in this one. Every welcome brings a new one. */
export const ticket = bytes32;

/** What a key permits: `probe` means measurements, `crawl` means leases and results as well. */
export const keyScopes = ["probe", "crawl"] as const;

export const keyScope = z.enum(keyScopes);
export type KeyScope = z.infer<typeof keyScope>;

export const helloIdentity = z.object({
  publicKey,
  /** The signature of `helloText` with this connection's challenge. */
  signature,
  /** Identifies the process. A second process with the same identity at the same time runs from a copied folder. */
  instanceId: z.uuid(),
  /** The ticket of the last stored welcome; null before the first. */
  ticket: ticket.nullable(),
  /** What `tlsBindingOf` returns for this connection on the crawler's side. Crawlers before 0.2.0 omit it. */
  binding: bytes32.nullable().optional(),
});

export interface ChallengedConnection {
  readonly challenge: string;
  readonly binding: string | null;
}

/** Returns the text whose signature proves that the crawler holds its private key now and on this connection. */
export function helloText(said: {
  readonly challenge: string;
  readonly name: string;
  readonly spoolId: string;
  readonly instanceId: string;
  readonly ticket: string | null;
  /** If undefined, the text does not mention it (crawlers before 0.2.0). */
  readonly binding?: string | null | undefined;
}): string {
  const { challenge: given, name, spoolId, instanceId, ticket: kept, binding } = said;
  const rest = [given, name, spoolId, instanceId, kept ?? "-"];
  if (binding === undefined) return ["nearcrawl hello 3", ...rest].join("\n");
  return ["nearcrawl hello 4", ...rest, binding ?? "-"].join("\n");
}

/**
 * Returns a secret that only the two ends of one TLS connection share (RFC 9266, tls-exporter), in base64url, or null without
 * TLS. A hello signed over it is worthless on another connection, so an intercepting proxy cannot pass it on.
 */
export function tlsBindingOf(socket: unknown): string | null {
  if (!(socket instanceof TLSSocket)) return null;
  const empty = Buffer.alloc(0);
  return socket.exportKeyingMaterial(32, "EXPORTER-Channel-Binding", empty).toString("base64url");
}

/**
 * Returns the text that is signed for consecutive results, `first` to `last` of a spool. `digest` is the SHA-256 (hex) over
 * their packed bytes in order.
 */
export function sealText(sealed: {
  readonly spoolId: string;
  readonly first: number;
  readonly last: number;
  readonly digest: string;
}): string {
  const { spoolId, first, last, digest } = sealed;
  return ["nearcrawl results 3", spoolId, first, last, digest].join("\n");
}

// A pin identifies a coordinator's TLS key (RFC 7469 section 2.4), whether its certificate is self-signed or not.

/** Returns the SHA-256 of a SubjectPublicKeyInfo in base64url. `certificate` is PEM (the first of a chain counts) or DER. */
export function pinOf(certificate: string | Uint8Array | X509Certificate): string {
  const parsed =
    certificate instanceof X509Certificate ? certificate : new X509Certificate(certificate as Buffer);
  const spki = parsed.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("base64url");
}

// Verifies Ed25519 signatures (RFC 8032) of identities and releases.

/**
 * `publicKey` is 32 raw bytes and `signature` 64, both in base64url. A string is signed as its UTF-8 bytes. Returns false for
 * malformed keys and signatures.
 */
export function isSignedBy(publicKey: string, text: string | Uint8Array, signature: string): boolean {
  const bytes = Buffer.from(signature, "base64url");
  // The last character has unused bits. Only one of the equivalent spellings is accepted.
  if (bytes.toString("base64url") !== signature) return false;
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    return verify(null, typeof text === "string" ? Buffer.from(text, "utf8") : text, key, bytes);
  } catch {
    return false;
  }
}

// How sites find a crawler's public key: the URL of the key set, and the key's name in it and in signatures
// (draft-ietf-webbotauth-httpsig-protocol-01, October 2026).

const maxKeySetUrl = 200;
const wellKnownPath = "/.well-known/http-message-signatures-directory";

/**
 * An http or https URL in canonical form without userinfo, query and fragment, because it goes into a quoted header string. A
 * coordinator of version 0.1 states an origin instead.
 */
export const signatureAgent = z.string().max(maxKeySetUrl).refine(isSignatureAgent, {
  error: "signatureAgent must be an http or https URL without user, query and fragment",
});

export function keySetUrlAt(coordinator: URL): string | null {
  const url = coordinator.origin + wellKnownPath;
  return coordinator.protocol === "https:" && url.length <= maxKeySetUrl ? url : null;
}

/** Returns the key set URL of a welcome's `signatureAgent`, or null when a verifier may not use it. */
export function keySetUrlOf(agent: string): string | null {
  const url = new URL(agent);
  if (url.pathname === "/") return keySetUrlAt(url);
  return url.protocol === "https:" ? url.href : null;
}

/** The header's writer checks it again. */
export function isSignatureAgent(text: string): boolean {
  // Characters that a structured field's string must escape (RFC 9651 section 3.3.3) are not allowed.
  if (!/^https?:\/\/[!#-[\]-~]+$/.test(text) || !canParseUrl(text)) return false;
  const { origin, pathname } = new URL(text);
  return text === origin || text === origin + pathname;
}

/**
 * Returns the JWK thumbprint (RFC 7638; RFC 8037 appendix A.3): SHA-256 over the required members in the order of their
 * names, in base64url. `publicKey` is the raw 32 bytes of an Ed25519 key in base64url.
 */
export function keyThumbprint(publicKey: string): string {
  const jwk = JSON.stringify({ crv: "Ed25519", kty: "OKP", x: publicKey });
  return createHash("sha256").update(jwk).digest("base64url");
}
