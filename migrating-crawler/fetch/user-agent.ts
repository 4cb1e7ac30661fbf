/**
 * Identifies this crawler to sites by the User-Agent of the coordinator's latest welcome and, if asked for, a
 * signature. Nothing is requested before the first welcome.
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

  /** Without its own key a crawler cannot sign requests. */
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

  /** Returns no fields when requests are not signed. */
  readonly sign: SignRequest = (url) => this.#sign?.(url) ?? {};
}
