/**
 * What can be changed: each action is one definition, reached as a form of a page (POST, form-encoded, with the
 * session's form token) and as JSON under /api/ (POST, with a token). Who may is checked first, then what was sent;
 * what was changed is in the audit log before the answer goes out.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { type Actor, mayDo, type Scope } from "#core/actor";
import type { AuditLog, AuditVia, Change } from "#core/audit";
import type { Document } from "../ask/operation.ts";
import { paperOf, sendText } from "../ask/text-answers.ts";
import { type Access, isRefusal, type Visit } from "./access.ts";
import { type ApiOperation, routePath } from "./api-operation.ts";
import { sendError } from "./guard.ts";
import type { Html } from "./html.ts";
import { pageFrame } from "./page-frame.ts";
import { isUnstorable, paramOf, sendRefusal, sentText, type Views } from "./views.ts";

/** All fields together, encoded. */
const maxActionBytes = 32 * 1024;

const formType = "application/x-www-form-urlencoded";

/** The form token's field. */
export const formTokenField = "form-token";

export interface AskedAction<Body> {
  readonly body: Body;
  readonly actor: Actor;
  readonly visit: Visit;
  readonly via: Extract<AuditVia, "page" | "api">;
  readonly remoteAddress: string;
  readonly now: Date;
  /** Of the path. */
  param(name: string): string;
}

export type Outcome =
  /** Done: programs get the value, people go to a page that says so. `change` null: nothing was changed. */
  | {
      readonly type: "done";
      readonly status?: 200 | 201 | 202;
      readonly value: unknown;
      readonly goTo: string;
      readonly said: string;
      readonly change: Change | null;
    }
  /** Done, and shown this once (a secret), or an answer that is a page of its own (a preview). */
  | {
      readonly type: "shown";
      readonly status?: 200 | 201 | 202;
      readonly value: unknown;
      readonly title: string;
      readonly body: (visit: Visit) => Html;
      readonly document?: Document;
      readonly change: Change | null;
    }
  | ActionFault;

/** Not done, and nothing is changed. `again`: the form once more, with what was typed. */
export interface ActionFault {
  readonly type: "fault";
  readonly status: 400 | 403 | 404 | 409 | 410 | 422 | 429 | 503;
  readonly title: string;
  readonly words: string;
  readonly again?: (visit: Visit, words: string) => Html;
}

export interface Action<Schema extends z.ZodType> {
  /** Of the form. */
  readonly path: string;
  /** Null: for people alone. */
  readonly api: string | null;
  /** Null: for everybody who has signed in. */
  readonly needs: Scope | null;
  /** The parameter that names a crawler: with `partnersToo`, partners may do this with their own. */
  readonly crawlerIn?: string;
  readonly partnersToo?: boolean;
  /** Of what is sent, encoded; left out: 32 KB. */
  readonly mostBytes?: number;
  readonly body: Schema;
  /** What the form's fields (all texts; the first of a name) mean as a body; left out: they are the body. */
  fromForm?(values: Readonly<Record<string, string>>): unknown;
  /** The form once more, with what was typed and what is wrong with it; left out: a page that says so alone. */
  refill?(
    values: Readonly<Record<string, string>>,
    visit: Visit,
    words: string,
    param: (name: string) => string,
  ): Html;
  act(asked: AskedAction<z.infer<Schema>>): Promise<Outcome>;
}

/** An operation with a body: what may be sent, as it is documented. */
export type ActionOperation<Schema extends z.ZodType> = ApiOperation & {
  readonly body: { readonly schema: Schema };
};

/** An action whose operation says its address, its scope and the check of its body. */
export interface DescribedAction<Schema extends z.ZodType>
  extends Omit<Action<Schema>, "api" | "needs" | "body"> {
  readonly operation: ActionOperation<Schema>;
}

export interface ActionSettings {
  readonly access: Access;
  readonly audit: Pick<AuditLog, "record">;
  readonly version: string;
  readonly now: () => Date;
}

export class Actions {
  readonly #app: FastifyInstance;
  readonly #settings: ActionSettings;

  constructor(app: FastifyInstance, settings: ActionSettings) {
    this.#app = app;
    this.#settings = settings;
  }

  describe<Schema extends z.ZodType>({ operation, ...action }: DescribedAction<Schema>): void {
    this.add({
      ...action,
      api: routePath(operation),
      needs: operation.needs,
      body: operation.body.schema,
    });
  }

  add<Schema extends z.ZodType>(action: Action<Schema>): void {
    const { mostBytes: bodyLimit = maxActionBytes } = action;
    if (action.api !== null) {
      this.#app.post(
        action.api,
        { config: { takes: "application/json" }, bodyLimit },
        async (request, reply) => await this.#run(action, request, reply, "api"),
      );
    }
    this.#app.register(async (forms) => {
      forms.addContentTypeParser(formType, { parseAs: "string" }, (_request, body, done) => done(null, body));
      forms.post(
        action.path,
        { config: { takes: formType }, bodyLimit },
        async (request, reply) => await this.#run(action, request, reply, "page"),
      );
    });
  }

  async #run<Schema extends z.ZodType>(
    action: Action<Schema>,
    request: FastifyRequest,
    reply: FastifyReply,
    via: "page" | "api",
  ): Promise<FastifyReply> {
    const { access, audit, version } = this.#settings;
    reply.header("cache-control", "no-store");
    const visit = await access.identify(request);
    if (isRefusal(visit)) return sendRefusal(request, reply, visit, { version });
    const around = { version, viewer: visit };
    if (!mayDo(visit.actor, action.needs, ownCrawler(action, request))) {
      return sendRefusal(request, reply, access.refusal(visit, request, action.needs), around);
    }
    const values = via === "page" ? formValues(request) : {};
    if (via === "page" && !access.isOwnForm(request, values[formTokenField] ?? "")) {
      return sendError(request, reply, notOwnForm, around);
    }
    // A cookie goes along with whatever page sends a request; JSON is for those who show a token.
    if (via === "api" && visit.actor.role !== "program" && !visit.isOwner)
      return sendError(request, reply, needsToken, around);
    const asked = via === "page" ? (action.fromForm?.(values) ?? withoutToken(values)) : (request.body ?? {});
    if (isUnstorable(asked)) return sendError(request, reply, noText, around);
    const body = action.body.safeParse(asked);
    if (!body.success) {
      const fault = badBody(body.error);
      if (via === "api" || !action.refill) return sendError(request, reply, fault, around);
      const again = action.refill(values, visit, fault.words, (name) => paramOf(request, name));
      const page = { ...around, path: request.url, title: fault.title, body: again };
      return sendPage(reply.code(fault.status), page);
    }
    const now = this.#settings.now();
    const outcome = await action.act({
      body: body.data,
      actor: visit.actor,
      visit,
      via,
      remoteAddress: request.ip,
      now,
      param: (name) => paramOf(request, name),
    });
    if (outcome.type !== "fault" && outcome.change) {
      const { actor, isOwner } = visit;
      const whence = isOwner
        ? ({ via: "command", remoteAddress: null } as const)
        : { via, remoteAddress: request.ip };
      const who = { actor: actor.name, ...whence };
      await audit.record({ ...outcome.change, ...who, at: now });
    }
    return await this.#answer(request, reply, { outcome, via, visit });
  }

  async #answer(
    request: FastifyRequest,
    reply: FastifyReply,
    done: {
      readonly outcome: Outcome;
      readonly via: "page" | "api";
      readonly visit: Visit;
    },
  ): Promise<FastifyReply> {
    const { outcome, via, visit } = done;
    const around = { version: this.#settings.version, viewer: visit };
    if (outcome.type === "fault") {
      if (via === "api" || !outcome.again) return sendError(request, reply, outcome, around);
      const body = outcome.again(visit, outcome.words);
      return sendPage(reply.code(outcome.status), {
        ...around,
        path: request.url,
        title: outcome.title,
        body,
      });
    }
    if (via === "api") {
      reply.code(outcome.status ?? 200);
      const paper = paperOf(request);
      if (paper === null || (outcome.type === "shown" && outcome.document === undefined))
        return reply.send(outcome.value);
      return outcome.type === "done"
        ? sendText(reply, paper, { document: undefined, said: outcome.said })
        : sendText(reply, paper, { document: outcome.document, said: outcome.change?.words });
    }
    if (outcome.type === "shown") {
      const page = { ...around, path: request.url, title: outcome.title, body: outcome.body(visit) };
      return sendPage(reply.code(outcome.status ?? 200), page);
    }
    await this.#settings.access.say(request, outcome.said);
    return reply.redirect(outcome.goTo, 303);
  }
}

function sendPage(reply: FastifyReply, frame: Parameters<typeof pageFrame>[0]): FastifyReply {
  return reply.type("text/html; charset=utf-8").send(pageFrame(frame));
}

function ownCrawler(action: Action<z.ZodType>, request: FastifyRequest) {
  if (action.crawlerIn === undefined) return null;
  return { crawler: paramOf(request, action.crawlerIn), partnersToo: action.partnersToo === true };
}

/** The first of each name; line ends as typed on any system become one. */
export function formValues(request: FastifyRequest): Record<string, string> {
  const values: Record<string, string> = {};
  const body = typeof request.body === "string" ? request.body : "";
  for (const [name, value] of new URLSearchParams(body))
    values[name] ??= sentText(value.replaceAll("\r\n", "\n"));
  return values;
}

function withoutToken({ [formTokenField]: _, ...values }: Record<string, string>): Record<string, string> {
  return values;
}

function badBody(error: z.ZodError) {
  const words = error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.join(".") || "body"}: ${message}`)
    .join("; ");
  return { status: 400, title: "That cannot be done", words };
}

const notOwnForm = {
  status: 403,
  title: "Send it again",
  words: "This form does not belong to this session. Go back, reload the page and send it again.",
};

const noText = {
  status: 400,
  title: "That cannot be done",
  words: "A text holds U+0000 or half of a surrogate pair, which no text does.",
};

const needsToken = {
  status: 401,
  title: "Token required",
  words: "Send Authorization: Bearer TOKEN; nearcrawl operator-token create makes a token.",
};

// What a room adds to the web server: its pages, its actions, and plain routes.

/** Adds the routes of one part of the pages. */
export type WebPart = (to: {
  readonly app: FastifyInstance;
  readonly views: Views;
  readonly actions: Actions;
  /** For routes that are no views: who asks, and what they may. */
  readonly access: Access;
}) => void;
