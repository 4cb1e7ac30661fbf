/**
 * Serves POST /api/coordinators/exchange, by which children send what they do not own and get what they own
 * (coordinator/protocol/exchange). The key identifies the child before the body is read. Only one message per child
 * is processed at a time.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { childMessage, exchangeFault, exchangePath, maxExchangeBytes } from "#protocol/exchange";
import { sendRefusal } from "../../ask/views.ts";
import { isRefusal } from "../../web/access.ts";
import { sendError } from "../../web/guard.ts";
import { BearerActor } from "../../web/session-access.ts";
import { type AnswerChildPorts, answerChild } from "./exchange.ts";
import type { CoordinatorStore } from "./related-store.ts";

interface ExchangeRoutePorts extends AnswerChildPorts {
  readonly coordinators: Pick<CoordinatorStore, "childOf">;
  readonly hash: (secret: string) => string;
  readonly version: string;
  readonly now: () => Date;
}

interface Child {
  readonly childId: number;
  readonly name: string;
}

export function addExchangeRoute(app: FastifyInstance, ports: ExchangeRoutePorts): void {
  const asking = new WeakMap<FastifyRequest, Child>();
  const inHand = new Map<number, FastifyRequest>();
  const keys = childKeys(ports);
  const settings = { version: ports.version };
  app.post(
    exchangePath,
    {
      config: { takes: "application/json", boundedElsewhere: true },
      bodyLimit: maxExchangeBytes,
      onRequest: async (request, reply) => {
        const child = await keys(request);
        if ("status" in child) return sendRefusal(request, reply, child, settings);
        // If its connection was lost, the child may send its next message at once. The lock in the database makes
        // that one wait.
        const isBusy = inHand.get(child.childId)?.raw.socket.destroyed === false;
        if (isBusy) return sendError(request, reply, oneAtATime, settings);
        inHand.set(child.childId, request);
        asking.set(request, child);
      },
      onResponse: async (request) => leave(request),
      onRequestAbort: async (request) => leave(request),
    },
    async (request, reply) => {
      const message = childMessage.safeParse(request.body);
      if (!message.success) return sendError(request, reply, badMessage(message.error), settings);
      const answered = await answerChild(asking.get(request)!.childId, message.data, ports, ports.now());
      if ("refused" in answered) return sendError(request, reply, refused(answered.refused), settings);
      return answer(reply, answered.answer);
    },
  );

  function leave(request: FastifyRequest): void {
    const child = asking.get(request);
    if (child !== undefined && inHand.get(child.childId) === request) inHand.delete(child.childId);
    asking.delete(request);
  }
}

const answer = (reply: FastifyReply, value: unknown) => reply.header("cache-control", "no-store").send(value);

/** Looks up keys like operators' tokens: by hash, with a limit of wrong keys per address. */
function childKeys({ coordinators, hash, now }: ExchangeRoutePorts) {
  const children = new Map<string, Child>();
  const bearer = new BearerActor({
    hash,
    now,
    tokens: {
      use: async (keyHash) => {
        const child = await coordinators.childOf(keyHash);
        if (child === null) return null;
        children.set(child.name, child);
        return {
          name: child.name,
          scopes: [],
          createdAt: now(),
          expiresAt: null,
          lastUsedAt: null,
          revokedAt: null,
        };
      },
    },
  });
  return async (request: FastifyRequest) => {
    const actor = await bearer.of(request);
    if (actor === null) return noKey;
    if ("status" in actor)
      return isRefusal(actor) && actor.status === 401 ? { ...actor, words: noKey.words } : actor;
    return children.get(actor.name.replace(/^token /, "")) ?? noKey;
  };
}

const noKey = {
  status: 401,
  title: "Not a child's key",
  words:
    "this key is invalid: mistyped, or the child was removed. nearcrawl coordinators invite NAME, at the parent, creates one",
};

const oneAtATime = {
  status: 429,
  title: "One at a time",
  words: "a message of this child is being processed; send it again in a moment",
};

const refused = (words: string) => ({ status: 409, title: "Refused", words });

const badMessage = (error: Parameters<typeof exchangeFault>[0]) => ({
  status: 400,
  title: "That cannot be taken",
  words: `the message is ${exchangeFault(error)}`,
});
