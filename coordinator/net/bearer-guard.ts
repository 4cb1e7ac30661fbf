/**
 * Who may change something over HTTP (RFC 6750): whoever shows a good token of the right scope. Failures of one
 * address are counted, and beyond so many a minute it is not listened to, right token or not.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OperatorScope, OperatorToken, OperatorTokenStore } from "../flows/operator-ports.ts";
import { ConnectionLimits } from "./connection-limits.ts";
import { sendError } from "./http-guard.ts";

export type TokenHolder = Pick<OperatorToken, "name" | "scopes">;

export interface BearerPorts {
  readonly tokens: Pick<OperatorTokenStore, "use">;
  readonly secrets: { hash(secret: string): string };
  readonly now: () => Date;
  readonly version: string;
  readonly failuresPerMinute?: number;
}

/** Twice what somebody may need who pastes the wrong token; a guesser of 256 bits has no use for more. */
const usualFailuresPerMinute = 10;
const requestsAtOnce = { connections: 16, connectionsPerAddress: 8 };

export class BearerGuard {
  readonly #ports: BearerPorts;
  readonly #limits: ConnectionLimits;
  readonly #holders = new WeakMap<FastifyRequest, TokenHolder>();

  constructor(ports: BearerPorts) {
    this.#ports = ports;
    const failuresPerAddressAndMinute = ports.failuresPerMinute ?? usualFailuresPerMinute;
    this.#limits = new ConnectionLimits({ ...requestsAtOnce, failuresPerAddressAndMinute }, () =>
      performance.now(),
    );
  }

  /** For `onRequest`: the request goes on, or is answered with why not. */
  async check(request: FastifyRequest, reply: FastifyReply, scope: OperatorScope): Promise<unknown> {
    const full = this.#limits.open(request.ip);
    if (full !== null) {
      reply.header("retry-after", "60");
      return this.#refuse(request, reply, { status: 429, title: "Too many", words: `Not now: ${full}.` });
    }
    reply.raw.once("close", () => this.#limits.close(request.ip));
    const { tokens, secrets, now } = this.#ports;
    const token = bearerOf(request);
    const holder = token === null ? null : await tokens.use(secrets.hash(token), now());
    if (holder === null) {
      this.#limits.countFailure(request.ip);
      reply.header("www-authenticate", 'Bearer realm="nearcrawl"');
      return this.#refuse(request, reply, noToken);
    }
    if (!holder.scopes.includes(scope)) return this.#refuse(request, reply, wrongScope(scope));
    this.#holders.set(request, holder);
  }

  /** Of a request that `check` has let pass. */
  holderOf(request: FastifyRequest): TokenHolder {
    const holder = this.#holders.get(request);
    if (!holder) throw new TypeError("a request that nobody checked");
    return holder;
  }

  #refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    fault: Parameters<typeof sendError>[2],
  ): FastifyReply {
    return sendError(request, reply, fault, this.#ports);
  }
}

/** Longer ones are none of ours. */
const maxTokenLength = 200;

function bearerOf(request: FastifyRequest): string | null {
  const [, token] = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i.exec(request.headers.authorization ?? "") ?? [];
  return token !== undefined && token.length <= maxTokenLength ? token : null;
}

const noToken = {
  status: 401,
  title: "A token is needed",
  words: "Send Authorization: Bearer TOKEN, with a token of nearcrawl operator-token create.",
};
const wrongScope = (scope: OperatorScope) => ({
  status: 403,
  title: "Not with this token",
  words: `This token is not good for ${scope}.`,
});
