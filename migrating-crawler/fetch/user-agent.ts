/**
 * How this crawler introduces itself to sites: by the User-Agent that the coordinator's latest welcome states, and
 * by a signature where it asks for one. Before the first welcome there is no introduction, and so no request.
 */
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import { keySetUrlOf } from "#protocol/identity";
import type { Identity } from "../membership/identity.ts";
import { requestSigner, type SignRequest } from "./sign-request.ts";

export class Introduction {
  readonly #identity: Identity | null;
  #userAgent: string | null = null;
  #sign: SignRequest | null = null;

  /** Null: the crawler has no key of its own, so its requests cannot be signed. */
  constructor(identity: Identity | null) {
    this.#identity = identity;
  }

  onWelcome({ userAgent, signatureAgent }: Pick<CoordinatorWelcome, "userAgent" | "signatureAgent">): void {
    const identity = this.#identity;
    this.#userAgent = userAgent;
    const keySetUrl = signatureAgent === undefined ? null : keySetUrlOf(signatureAgent);
    this.#sign = identity && keySetUrl ? requestSigner({ identity, keySetUrl }) : null;
  }

  /** Throws before the first welcome. */
  readonly userAgent = (): string => {
    if (this.#userAgent === null) throw new Error("no site is asked before the coordinator's welcome");
    return this.#userAgent;
  };

  /** No fields where requests are not signed. */
  readonly sign: SignRequest = (authority) => this.#sign?.(authority) ?? {};
}
