/**
 * Requests that a site can verify: HTTP Message Signatures (RFC 9421) by the profile of Web Bot Auth
 * (draft-ietf-webbotauth-httpsig-protocol-01, October 2026). What is signed are the site's authority, so that a request
 * cannot be shown to another site, and the URL of the key set, which a verifier fetches as it stands; the parameters
 * say when and by which key, with a nonce.
 * The key is named by its JWK thumbprint (RFC 7638, RFC 8037 appendix A.3), as the key directory names it.
 */
import { randomBytes } from "node:crypto";
import { isSignatureAgent, keyThumbprint } from "#protocol/identity";
import { signatureSeconds } from "#protocol/signing-key";
import type { RequestKey } from "../membership/signing-keys.ts";

/**
 * Header fields (names in lower case) for one request to this URL's origin. None by plain http, where anybody on the
 * way could take the signature for a request of their own, and verifiers are to refuse it (section "Use of TLS").
 */
export type SignRequest = (url: URL) => Readonly<Record<string, string>>;

/** A signature that is good for less is none: it might be out of date when it is looked at. */
const leastSeconds = 30;
/** The draft leaves the nonce to the signer (RFC 9421 section 7.2.2). */
const nonceBytes = 64;
const label = "sig1";

interface SignerSettings {
  /** Asked for each request; null: none that a site could verify. */
  readonly key: () => RequestKey | null;
  /** https://crawl.example.org/.well-known/http-message-signatures-directory */
  readonly keySetUrl: string;
  readonly now?: () => Date;
  /** Uniform bytes, for the nonce. */
  readonly random?: (bytes: number) => Uint8Array;
}

/** Throws for a `keySetUrl` that cannot stand in the header. */
export function requestSigner({ key: keyNow, keySetUrl, now, random }: SignerSettings): SignRequest {
  if (!isSignatureAgent(keySetUrl)) throw new RangeError("keySetUrl is no URL that a header may name");
  const agent = `"${keySetUrl}"`;
  return ({ protocol, host: authority }) => {
    const key = protocol === "https:" ? keyNow() : null;
    if (key === null) return {};
    const created = Math.floor((now?.() ?? new Date()).getTime() / 1000);
    const keyEnd = key.until === null ? Number.POSITIVE_INFINITY : Math.floor(key.until.getTime() / 1000);
    const expires = Math.min(created + signatureSeconds, keyEnd);
    if (expires - created < leastSeconds) return {};
    const keyId = keyThumbprint(key.publicKey);
    const nonce = Buffer.from((random ?? randomBytes)(nonceBytes)).toString("base64");
    const parameters = [
      `("@authority" "signature-agent";key="${label}")`,
      `created=${created};expires=${expires}`,
      `keyid="${keyId}";alg="ed25519";nonce="${nonce}";tag="web-bot-auth"`,
    ].join(";");
    const signed = signatureBase({ authority, agent, parameters });
    const signature = Buffer.from(key.sign(signed), "base64url").toString("base64");
    return {
      "signature-agent": `${label}=${agent}`,
      "signature-input": `${label}=${parameters}`,
      signature: `${label}=:${signature}:`,
    };
  };
}

/** RFC 9421 section 2.5. */
function signatureBase(of: {
  readonly authority: string;
  readonly agent: string;
  readonly parameters: string;
}) {
  return [
    `"@authority": ${of.authority.toLowerCase()}`,
    `"signature-agent";key="${label}": ${of.agent}`,
    `"@signature-params": ${of.parameters}`,
  ].join("\n");
}
