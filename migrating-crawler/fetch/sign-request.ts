/**
 * Signs requests so that sites can verify them: HTTP Message Signatures (RFC 9421) in the profile of Web Bot Auth
 * (draft-ietf-webbotauth-httpsig-protocol-01, October 2026). The signature covers the site's authority, so that a request
 * cannot be replayed to another site, and the URL of the key set, which verifiers fetch. The parameters contain time, key and
 * nonce. The key's name is its JWK thumbprint (RFC 7638, RFC 8037 appendix A.3), as in the key directory.
 */
import { randomBytes } from "node:crypto";
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import { isSignatureAgent, keySetUrlOf, keyThumbprint } from "#protocol/identity";
import { signatureSeconds } from "#protocol/signing-key";
import type { Identity } from "../membership/identity.ts";
import type { RequestKey, SigningKeys } from "../membership/signing-keys.ts";

/**
 * Returns header fields (names in lower case) for one request to this URL's origin. A plain http URL gets none, because
 * anybody on the way could reuse the signature, and verifiers must refuse it (section "Use of TLS").
 */
export type SignRequest = (url: URL) => Readonly<Record<string, string>>;

/** A signature with less validity might expire before it is verified. */
const leastSeconds = 30;
/** The draft leaves the nonce to the signer (RFC 9421 section 7.2.2). */
const nonceBytes = 64;
const label = "sig1";

interface SignerSettings {
  /** Is called for each request. Returns null if no site could verify a signature. */
  readonly key: () => RequestKey | null;
  /** Example: https://crawl.example.org/.well-known/http-message-signatures-directory */
  readonly keySetUrl: string;
  readonly now?: () => Date;
  readonly random?: (bytes: number) => Uint8Array;
}

/** Throws if `keySetUrl` is not valid in the header. */
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

/** The signature base (RFC 9421 section 2.5). */
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

// Identifies this crawler to sites by the User-Agent from the coordinator's latest welcome and, if requested, by a signature.
// No site is asked before the first welcome.

export class Introduction {
  readonly #identity: Identity | null;
  readonly #keys: Pick<SigningKeys, "current"> | null;
  #userAgent: string | null = null;
  #sign: SignRequest | null = null;

  /** A crawler without a key of its own cannot sign requests. */
  constructor(identity: Identity | null, keys: Pick<SigningKeys, "current"> | null = null) {
    this.#identity = identity;
    this.#keys = keys;
  }

  onWelcome({
    userAgent,
    signatureAgent,
    signingKeys,
  }: Pick<CoordinatorWelcome, "userAgent" | "signatureAgent" | "signingKeys">): void {
    const [identity, keys] = [this.#identity, this.#keys];
    this.#userAgent = userAgent;
    const keySetUrl = signatureAgent === undefined ? null : keySetUrlOf(signatureAgent);
    // An older coordinator publishes only identities.
    const key = signingKeys ? () => keys?.current ?? null : () => identity && { ...identity, until: null };
    this.#sign = keySetUrl === null ? null : requestSigner({ key, keySetUrl });
  }

  /** Throws before the first welcome. */
  readonly userAgent = (): string => {
    if (this.#userAgent === null) throw new Error("no site is asked before the coordinator's welcome");
    return this.#userAgent;
  };

  readonly sign: SignRequest = (url) => this.#sign?.(url) ?? {};
}
