/** Ed25519 (RFC 8032): does this key's holder stand behind this text? Of identities and of releases. */
import { createPublicKey, verify } from "node:crypto";

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
