/** How a crawler's public key is named, in the signatures that it makes and in the directory that lists it. */
import { createHash } from "node:crypto";

/**
 * The JWK thumbprint (RFC 7638; RFC 8037 appendix A.3): SHA-256 over the required members in the order of their
 * names, in base64url. `publicKey`: the raw 32 bytes of an Ed25519 key in base64url.
 */
export function keyThumbprint(publicKey: string): string {
  const jwk = JSON.stringify({ crv: "Ed25519", kty: "OKP", x: publicKey });
  return createHash("sha256").update(jwk).digest("base64url");
}
