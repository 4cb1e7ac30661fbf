/**
 * Programs: whoever shows a good token (RFC 6750) may do what its scopes say. Failures of one address are counted,
 * and beyond so many a minute its tokens are not looked at, right or not.
 */
import type { FastifyRequest } from "fastify";
import type { OperatorTokenStore } from "#core/access-types";
import type { Actor } from "#core/actor";
import type { Refusal } from "./access.ts";
import { ConnectionLimits, requesterOf } from "./limits.ts";

export interface BearerPorts {
  readonly tokens: Pick<OperatorTokenStore, "use">;
  readonly hash: (secret: string) => string;
  readonly now: () => Date;
}

/** Twice what somebody may need who pastes the wrong token; a guesser of 256 bits has no use for more. */
const failuresPerMinute = 10;
/** Looked up at once, which takes a millisecond each. */
const lookUps = { connections: 32, connectionsPerAddress: 16 };
/** Longer ones are none of ours. */
const maxTokenLength = 200;

export class BearerActor {
  readonly #ports: BearerPorts;
  readonly #limits = new ConnectionLimits(
    { ...lookUps, failuresPerAddressAndMinute: failuresPerMinute },
    () => performance.now(),
  );

  constructor(ports: BearerPorts) {
    this.#ports = ports;
  }

  /** Null: it shows no token (what a proxy asks for by another scheme is the proxy's). */
  async of(request: FastifyRequest): Promise<Actor | Refusal | null> {
    const { authorization = "" } = request.headers;
    if (!/^bearer\b/i.test(authorization)) return null;
    // Behind a proxy that does not say who asks, one stranger would shut out everybody.
    const address = requesterOf(request);
    const full = address === null ? null : this.#limits.open(address);
    if (full !== null) return { ...tooMany, words: `Not now: ${full}.` };
    try {
      const actor = await this.#actorOf(authorization);
      if (actor === null && address !== null) this.#limits.countFailure(address);
      return actor ?? badToken;
    } finally {
      if (address !== null) this.#limits.close(address);
    }
  }

  async #actorOf(authorization: string): Promise<Actor | null> {
    const [, token] = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization) ?? [];
    if (token === undefined || token.length > maxTokenLength) return null;
    const holder = await this.#ports.tokens.use(this.#ports.hash(token), this.#ports.now());
    if (holder === null) return null;
    return { name: `token ${holder.name}`, role: "program", scopes: holder.scopes, crawlers: [] };
  }
}

/** RFC 6750 section 3. */
export const bearerChallenge = { "www-authenticate": 'Bearer realm="nearcrawl"' };
const tooMany = { status: 429, title: "Too many", headers: { "retry-after": "60" } };
const badToken: Refusal = {
  status: 401,
  title: "Not a good token",
  words:
    "This token opens nothing: it is mistyped, expired or revoked. nearcrawl operator-token create makes one.",
  headers: bearerChallenge,
};
