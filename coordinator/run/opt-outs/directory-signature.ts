/**
 * The key set is signed (draft-ietf-webbotauth-httpsig-protocol-01, October 2026, appendix "Validating the Domain
 * Binding"; RFC 9421): whoever passes it on can show that this authority stands behind it, and nobody can serve it under
 * another name. The draft recommends a signature by each key. Ours are by the thousand, and of each the private half
 * is on a partner's machine, so one key signs for all: the coordinator's own, which is in the set and signs nothing else. It
 * lives in the memory of this process alone: an answer has both the key and the signature, so others need to know nothing of it.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { keyThumbprint } from "#protocol/identity";
import { keySetMaxAgeSeconds } from "#protocol/signing-key";
import type { PublicKey } from "../../place/crawlers/public-list-reads.ts";

const label = "directory";

/** The longest that a copy may be used, if it was sent at the last moment. */
const validSeconds = 2 * keySetMaxAgeSeconds;

const keyDays = 7;
/** A certificate that ends sooner is replaced. */
const leastLeftDays = 1;
const dayMs = 86_400_000;

/** Header fields; `bodyFields` are for an answer with the body alone. */
interface DirectorySignature {
  readonly "signature-input": string;
  readonly signature: string;
  readonly bodyFields: { readonly "content-digest": string };
}

interface DirectoryKey extends PublicKey {
  readonly from: Date;
  readonly until: Date;
  readonly privateKey: KeyObject;
}

export class DirectorySigner {
  readonly #authority: string;
  #key: DirectoryKey | null = null;
  #latest: {
    readonly fields: DirectorySignature;
    readonly digest: string;
    readonly madeAtMs: number;
  } | null = null;

  /** `authority` is our configured name; a request's Host is ignored, so nobody gets a signature for their own name. */
  constructor(authority: string) {
    this.#authority = authority.toLowerCase();
  }

  /** The key that must be in the signed set. */
  key(now: Date): PublicKey {
    return this.#keyAt(now);
  }

  /** The fields for this body, renewed before a copy could outlive them. */
  fields(body: Buffer, now: Date): DirectorySignature {
    const digest = createHash("sha256").update(body).digest("base64");
    const ageMs = this.#latest === null ? 0 : now.getTime() - this.#latest.madeAtMs;
    const isFresh = ageMs >= 0 && ageMs < (validSeconds - keySetMaxAgeSeconds) * 1000;
    if (this.#latest?.digest !== digest || !isFresh)
      this.#latest = { fields: this.#sign(digest, now), digest, madeAtMs: now.getTime() };
    return this.#latest.fields;
  }

  #sign(digest: string, now: Date): DirectorySignature {
    const { publicKey, privateKey } = this.#keyAt(now);
    const created = Math.floor(now.getTime() / 1000);
    const contentDigest = `sha-256=:${digest}:`;
    const parameters = [
      '("@authority";req "content-digest")',
      `created=${created}`,
      `expires=${created + validSeconds}`,
      `keyid="${keyThumbprint(publicKey)}"`,
      'tag="http-message-signatures-directory"',
    ].join(";");
    const base = [
      `"@authority";req: ${this.#authority}`,
      `"content-digest": ${contentDigest}`,
      `"@signature-params": ${parameters}`,
    ].join("\n");
    const signature = sign(null, Buffer.from(base), privateKey).toString("base64");
    return {
      "signature-input": `${label}=${parameters}`,
      signature: `${label}=:${signature}:`,
      bodyFields: { "content-digest": contentDigest },
    };
  }

  #keyAt(now: Date): DirectoryKey {
    const left = (this.#key?.until.getTime() ?? 0) - now.getTime();
    if (this.#key === null || left < leastLeftDays * dayMs || left > keyDays * dayMs) {
      const { privateKey } = generateKeyPairSync("ed25519");
      const { x = "" } = privateKey.export({ format: "jwk" });
      const from = new Date(Math.floor(now.getTime() / 1000) * 1000);
      this.#key = { publicKey: x, privateKey, from, until: new Date(from.getTime() + keyDays * dayMs) };
    }
    return this.#key;
  }
}
