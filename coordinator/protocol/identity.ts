/**
 * Who a crawler is, beyond the name that it states: an Ed25519 key pair of its own (RFC 8032), made on the
 * partner's machine and never leaving it, and what is signed with it. The texts that are signed are made here,
 * for both ends; each begins with a line of its own, so that no signature stands for anything else.
 */

import { createHash, createPublicKey, verify, X509Certificate } from "node:crypto";
import { TLSSocket } from "node:tls";
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";

/** The coordinator's answer to the WebSocket upgrade carries 32 random bytes in base64url under this header. */
export const challengeHeader = "nearcrawl-challenge";

/** 32 bytes in base64url, without padding. */
const bytes32 = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** The raw 32 bytes of an Ed25519 public key in base64url. */
export const publicKey = bytes32;

/** The 64 bytes of an Ed25519 signature in base64url. */
export const signature = z.string().regex(/^[A-Za-z0-9_-]{86}$/);

/** Random bytes that one side made, at least 32 of them, in base64url. */
export const challenge = z.string().regex(/^[A-Za-z0-9_-]{43,128}$/);

/** What a crawler shows at its next session to have been at this one; new with every welcome. */
export const ticket = bytes32;

/** What a key is good for. `probe`: measurements; `crawl`: leases and results, too. */
export const keyScopes = ["probe", "crawl"] as const;

export const keyScope = z.enum(keyScopes);
export type KeyScope = z.infer<typeof keyScope>;

export const helloIdentity = z.object({
  publicKey,
  /** Of `helloText`, with the challenge of this connection. */
  signature,
  /** Of the process: another one with the same identity at the same time is a copy of its folder. */
  instanceId: z.uuid(),
  /** Of the last welcome that was kept; null at first. */
  ticket: ticket.nullable(),
  /** `tlsBindingOf` this connection, as the crawler sees it; null: it has no TLS. Absent: of a crawler before 0.2.0. */
  binding: bytes32.nullable().optional(),
});

/** What a coordinator wants signed, and for which connection. */
export interface ChallengedConnection {
  readonly challenge: string;
  /** See `tlsBindingOf`. */
  readonly binding: string | null;
}

/** What is signed to show, now and on this connection, that the crawler holds its private key. */
export function helloText(said: {
  readonly challenge: string;
  readonly name: string;
  readonly spoolId: string;
  readonly instanceId: string;
  readonly ticket: string | null;
  /** Undefined: signed without, as crawlers before 0.2.0 do. */
  readonly binding?: string | null | undefined;
}): string {
  const { challenge: given, name, spoolId, instanceId, ticket: kept, binding } = said;
  const rest = [given, name, spoolId, instanceId, kept ?? "-"];
  if (binding === undefined) return ["nearcrawl hello 3", ...rest].join("\n");
  return ["nearcrawl hello 4", ...rest, binding ?? "-"].join("\n");
}

/**
 * What both ends of one TLS connection know and nobody else (RFC 9266, tls-exporter), in base64url: a hello that is
 * signed over it is worth nothing on another connection, so whoever opens TLS on the way cannot pass it on. Null: the
 * socket has no TLS.
 */
export function tlsBindingOf(socket: unknown): string | null {
  if (!(socket instanceof TLSSocket)) return null;
  const empty = Buffer.alloc(0);
  return socket.exportKeyingMaterial(32, "EXPORTER-Channel-Binding", empty).toString("base64url");
}

/**
 * What is signed for results in a row, `first` to `last` of a spool: `digest` is the SHA-256 (hex) over the bytes
 * in which they were packed, in order.
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

// What a crawler knows its coordinator's TLS key by (RFC 7469 section 2.4), self-signed certificate or not.

/** SHA-256 of a certificate's SubjectPublicKeyInfo in base64url. `certificate`: PEM (of a chain, the first) or DER. */
export function pinOf(certificate: string | Uint8Array | X509Certificate): string {
  const parsed =
    certificate instanceof X509Certificate ? certificate : new X509Certificate(certificate as Buffer);
  const spki = parsed.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("base64url");
}

// Ed25519 (RFC 8032): does this key's holder stand behind this text? Of identities and of releases.

/**
 * `publicKey`: 32 raw bytes, `signature`: 64, both in base64url; a string counts as UTF-8. False for whatever is no
 * key or no signature.
 */
export function isSignedBy(publicKey: string, text: string | Uint8Array, signature: string): boolean {
  const bytes = Buffer.from(signature, "base64url");
  // The last character has bits to spare: of the texts that mean the same bytes, one is right.
  if (bytes.toString("base64url") !== signature) return false;
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    return verify(null, typeof text === "string" ? Buffer.from(text, "utf8") : text, key, bytes);
  } catch {
    return false;
  }
}

// How sites find a crawler's public key: the URL of the key set, and the key's name there and in the signatures that
// it makes (draft-ietf-webbotauth-httpsig-protocol-01, October 2026).

const maxKeySetUrl = 200;
const wellKnownPath = "/.well-known/http-message-signatures-directory";

/**
 * An http or https URL in its canonical form, without userinfo, query and fragment: it goes into a header as it
 * stands, between quotation marks. A coordinator of version 0.1 states an origin instead.
 */
export const signatureAgent = z.string().max(maxKeySetUrl).refine(isSignatureAgent, {
  error: "signatureAgent must be an http or https URL without user, query and fragment",
});

/** Where the coordinator at this URL publishes the fleet's keys; null: not by https, or at no URL that fits. */
export function keySetUrlAt(coordinator: URL): string | null {
  const url = coordinator.origin + wellKnownPath;
  return coordinator.protocol === "https:" && url.length <= maxKeySetUrl ? url : null;
}

/** The key set that a welcome's `signatureAgent` means; null: none that a verifier may use. */
export function keySetUrlOf(agent: string): string | null {
  const url = new URL(agent);
  if (url.pathname === "/") return keySetUrlAt(url);
  return url.protocol === "https:" ? url.href : null;
}

/** Checked again where the header is written. */
export function isSignatureAgent(text: string): boolean {
  // What a string of a structured field cannot hold as it stands (RFC 9651 section 3.3.3) is no part of such a URL.
  if (!/^https?:\/\/[!#-[\]-~]+$/.test(text) || !canParseUrl(text)) return false;
  const { origin, pathname } = new URL(text);
  return text === origin || text === origin + pathname;
}

/**
 * The JWK thumbprint (RFC 7638; RFC 8037 appendix A.3): SHA-256 over the required members in the order of their
 * names, in base64url. `publicKey`: the raw 32 bytes of an Ed25519 key in base64url.
 */
export function keyThumbprint(publicKey: string): string {
  const jwk = JSON.stringify({ crv: "Ed25519", kty: "OKP", x: publicKey });
  return createHash("sha256").update(jwk).digest("base64url");
}
