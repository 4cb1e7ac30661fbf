/** What a crawler knows its coordinator's TLS key by (RFC 7469 section 2.4), self-signed certificate or not. */
import { createHash, X509Certificate } from "node:crypto";

/** SHA-256 of a certificate's SubjectPublicKeyInfo in base64url. `certificate`: PEM (of a chain, the first) or DER. */
export function pinOf(certificate: string | Uint8Array | X509Certificate): string {
  const parsed =
    certificate instanceof X509Certificate ? certificate : new X509Certificate(certificate as Buffer);
  const spki = parsed.publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest("base64url");
}
