/** /coordinators: who is above and below this coordinator, what waits for each; children are invited and removed. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Secrets } from "#core/access-types";
import type { Change } from "#core/audit";
import { childMessage, exchangeFault, exchangePath, maxExchangeBytes } from "#protocol/exchange";
import { crawlerName } from "#protocol/invitation";
import { isRefusal, type Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome, WebPart } from "../web/actions.ts";
import { addressOf } from "../web/api-operation.ts";
import { confirmationOf, unconfirmed } from "../web/form-fields.ts";
import { sendError } from "../web/guard.ts";
import { BearerActor } from "../web/session-access.ts";
import { sendRefusal } from "../web/views.ts";
import { type AnswerChildPorts, answerChild } from "./exchange.ts";
import { federationApi } from "./federation-api.ts";
import {
  coordinatorsBody,
  emptyInvite,
  type InvitedChild,
  type InviteForm,
  invitedChildBody,
} from "./page.ts";
import type { CoordinatorStore } from "./related-store.ts";

interface InviteChildPorts {
  readonly coordinators: Pick<CoordinatorStore, "invite">;
  readonly secrets: Secrets;
  /** Where this coordinator is reached; null: none has started here yet. */
  readonly place: () => Promise<{ readonly webUrl: string; readonly certificatePin: string | null } | null>;
}

interface CoordinatorRoutePorts extends InviteChildPorts, ExchangeRoutePorts {
  readonly coordinators: CoordinatorStore;
}

const mostShownName = 80;

export function coordinatorRoutes(ports: CoordinatorRoutePorts): WebPart {
  return ({ app, views, actions }) => {
    addExchangeRoute(app, ports);
    views.describe({
      path: "/coordinators",
      operation: federationApi.coordinators,
      view: async ({ now }) => {
        const coordinators = await ports.coordinators.list(now);
        const body = (visit: Visit) => coordinatorsBody({ coordinators, now }, emptyInvite, visit);
        return { status: 200, value: coordinators, title: "Coordinators", body };
      },
    });
    actions.add({
      ...{ path: "/coordinators/invite", ...addressOf(federationApi.inviteCoordinator) },
      // A form's fault is shown on it, with what was typed.
      body: z.looseObject({}),
      fromForm: ({ name = "" }) => ({ name: name.trim() }),
      act: async (asked) => await invite(asked, ports),
    });
    actions.describe({
      path: "/coordinators/:name/remove",
      operation: federationApi.removeCoordinator,
      fromForm: confirmationOf,
      act: async ({ param, body }) => {
        const text = param("name").slice(0, mostShownName);
        return unconfirmed(body, { text, words: "the child's name" }) ?? (await remove(param("name"), ports));
      },
    });
  };
}

async function invite(
  asked: AskedAction<Record<string, unknown>>,
  ports: CoordinatorRoutePorts,
): Promise<Outcome> {
  const { body, actor, now } = asked;
  // As crawlers are named.
  const name = crawlerName.safeParse(body.name);
  const typed = typeof body.name === "string" ? body.name.slice(0, mostShownName) : "";
  if (!name.success) return await notInvited({ name: typed, fault: nameFault }, now, ports, 422);
  const invited = await inviteChild(name.data, ports, { createdBy: actor.name, now });
  if (typeof invited === "string") return await notInvited({ name: typed, fault: invited }, now, ports, 409);
  return {
    ...{ type: "shown", status: 201, value: invited, title: `${invited.name} may join` },
    body: () => invitedChildBody(invited),
    change: childInvited(invited.name),
  };
}

/** The audit log keeps no key. */
const childInvited = (name: string): Change => ({
  ...{ action: "coordinator-invited", target: name },
  words: `The coordinator ${name} may join below this one.`,
});

/** A text: why it was not invited. */
export async function inviteChild(
  name: string,
  { place: placeOf, secrets, coordinators }: InviteChildPorts,
  by: { readonly createdBy: string; readonly now: Date },
): Promise<InvitedChild | string> {
  const place = await placeOf();
  if (place === null)
    return "No coordinator has started with this database, so the address for children is not known.";
  const { secret: key, hash: keyHash } = secrets.make("ncc_");
  if (!(await coordinators.invite({ name, keyHash, ...by })))
    return `There is a coordinator "${name}" already: choose another name, or remove it first.`;
  const certificatePin = place.webUrl.startsWith("https:") ? place.certificatePin : null;
  return { name, parent: { url: place.webUrl, key, certificatePin } };
}

const nameFault =
  "name: is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit";

async function notInvited(
  form: InviteForm,
  now: Date,
  { coordinators: store }: CoordinatorRoutePorts,
  status: 409 | 422,
): Promise<ActionFault> {
  const coordinators = await store.list(now);
  const again = (visit: Visit) => coordinatorsBody({ coordinators, now }, form, visit);
  return { type: "fault", status, title: "Not invited", words: form.fault ?? "", again };
}

async function remove(name: string, { coordinators }: CoordinatorRoutePorts): Promise<Outcome> {
  if (!(await coordinators.remove(name))) {
    const words = `There is no child "${name.slice(0, mostShownName)}".`;
    return { type: "fault", status: 404, title: "Not known", words };
  }
  const said = `The coordinator ${name} was removed; URLs that wait for it are rerouted.`;
  const change = { action: "coordinator-removed", target: name, words: said } as const;
  return { type: "done", value: { name, removed: true }, goTo: "/coordinators", said, change };
}

// POST /api/coordinators/exchange: children of this coordinator send what is not theirs and get what is
// (coordinator/protocol/exchange). Who asks is known by its key before anything of the body is read; each child has
// one message in hand at a time.

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

function addExchangeRoute(app: FastifyInstance, ports: ExchangeRoutePorts): void {
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
        // One whose line is cut waits for nothing: the next may come at once, and the database makes it wait its turn.
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

/** As operators' tokens are looked up: hashed, and with a bound on wrong ones of one address. */
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
