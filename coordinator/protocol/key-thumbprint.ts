/**
 * How sites find a crawler's public key: the URL of the key set, and the key's name there and in the signatures that
 * it makes (draft-ietf-webbotauth-httpsig-protocol-01, October 2026).
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { canParseUrl } from "#core/ip/url-host";

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
