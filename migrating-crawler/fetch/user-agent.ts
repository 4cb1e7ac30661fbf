/**
 * How this crawler introduces itself to sites: by the User-Agent that the coordinator's latest welcome states, and
 * by a signature where it asks for one. Before the first welcome there is no introduction, and so no request.
 */
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import { keySetUrlOf } from "#protocol/identity";
import type { Identity } from "../membership/identity.ts";
import type { SigningKeys } from "../membership/signing-keys.ts";
import { requestSigner, type SignRequest } from "./sign-request.ts";

export class Introduction {
  readonly #identity: Identity | null;
  readonly #keys: Pick<SigningKeys, "current"> | null;
  #userAgent: string | null = null;
  #sign: SignRequest | null = null;

  /** Null: the crawler has no key of its own, so its requests cannot be signed. */
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
    // An older coordinator publishes identities alone.
    const key = signingKeys ? () => keys?.current ?? null : () => identity && { ...identity, until: null };
    this.#sign = keySetUrl === null ? null : requestSigner({ key, keySetUrl });
  }

  /** Throws before the first welcome. */
  readonly userAgent = (): string => {
    if (this.#userAgent === null) throw new Error("no site is asked before the coordinator's welcome");
    return this.#userAgent;
  };

  /** No fields where requests are not signed. */
  readonly sign: SignRequest = (url) => this.#sign?.(url) ?? {};
}
