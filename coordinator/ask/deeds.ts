/**
 * Operations that change something. Each is reached as a form of a page (POST, form-encoded, with the session's form token)
 * and as JSON under /api/ (POST, with a token). The right is checked first, then the input. The change is in the audit log
 * before the answer is sent.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { mayDo } from "#core/actor";
import type { AuditLog, AuditVia, Change } from "#core/audit";
import { UsageError } from "#core/errors";
import { type Access, isRefusal, type Visit } from "../web/access.ts";
import { routePath } from "../web/api-operation.ts";
import { sendError, wantsJson } from "../web/guard.ts";
import type { Html } from "../web/html.ts";
import { isFromElsewhere, requesterOf } from "../web/limits.ts";
import { type PageError, sendPage } from "../web/page-frame.ts";
import { fieldsIn, issueWords, meaningOf } from "./fields.ts";
import { documentHtml, formHtml, formPath, labelOf, type Refused, trapField } from "./html-rendering.ts";
import { type AnyOperation, Fault, formType } from "./operation.ts";
import { type FormSender, inPath, mostShown, namesIn, notKnown } from "./questions.ts";
import { paperOf, sendText } from "./text-rendering.ts";
import { isUnstorable, paramOf, sendRefusal, sentText } from "./views.ts";

/** Maximum size of a form's or JSON body, in bytes as sent. */
const maxBytes = 32 * 1024;

/** The name of the form field that carries the session's token. */
export const formTokenField = "form-token";

export interface DeedSettings {
  readonly access: Access;
  readonly audit: Pick<AuditLog, "record">;
  readonly version: string;
  readonly now: () => Date;
}

interface DeedPorts extends DeedSettings {
  /** The stores of the operation's room, which its `run` gets. */
  readonly ports: unknown;
  readonly sender: FormSender;
}

type Via = Extract<AuditVia, "page" | "api">;

/** Adds the routes of an operation that changes something. One with a path outside /api/ has a form only. */
export function addDeed(app: FastifyInstance, settings: DeedPorts, operation: AnyOperation): void {
  const { mostBytes: bodyLimit = maxBytes, page, path, isOpen } = operation;
  const asked = (sent: Via) => async (request: FastifyRequest, reply: FastifyReply) => {
    // Programs may also send an open form, and get a program's answer.
    const via = isOpen && wantsJson(request) ? "api" : sent;
    return await new Deed(operation, settings, { request, reply, via, isForm: sent === "page" }).answer();
  };
  if (path.startsWith("/api/"))
    app.post(routePath(operation), { config: { takes: "application/json" }, bodyLimit }, asked("api"));
  app.register(async (forms) => {
    forms.addContentTypeParser(formType, { parseAs: "string", bodyLimit }, (_request, body, done) =>
      done(null, body),
    );
    forms.post(page ?? routePath(operation), { config: { takes: formType }, bodyLimit }, asked("page"));
  });
}

interface Sent {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly via: Via;
  readonly isForm: boolean;
}

/** One request for a change, from its check to its answer. */
class Deed {
  readonly #operation: AnyOperation;
  readonly #settings: DeedPorts;
  readonly #sent: Sent;
  /** The values in the URL, as text, by their names in the operation's path. */
  readonly #names: Readonly<Record<string, string>>;

  constructor(operation: AnyOperation, settings: DeedPorts, sent: Sent) {
    this.#operation = operation;
    this.#settings = settings;
    this.#sent = sent;
    this.#names = namesIn(operation, (name) => paramOf(sent.request, name));
  }

  async answer(): Promise<FastifyReply> {
    const { request, reply, via, isForm } = this.#sent;
    const { access, version } = this.#settings;
    reply.header("cache-control", "no-store");
    const visit = await access.identify(request);
    if (isRefusal(visit)) return sendRefusal(request, reply, visit, { version });
    const { needs, crawlerIn, partnersToo, isOpen } = this.#operation;
    const crawler = crawlerIn === undefined ? undefined : paramOf(request, crawlerIn);
    const own = crawler === undefined ? null : { crawler, partnersToo: partnersToo === true };
    if (!mayDo(visit.actor, needs, own))
      return sendRefusal(request, reply, access.refusal(visit, request, needs), { version, viewer: visit });
    const values = isForm ? formValues(request) : {};
    if (isOpen) {
      const fault = openFault(request, values);
      return fault === null ? await this.#read(values, visit) : this.#refuse(fault, visit, values);
    }
    if (via === "page" && !access.isOwnForm(request, values[formTokenField] ?? ""))
      return this.#refuse(notOwnForm, visit);
    // Browsers send cookies with any site's requests, so JSON requires a token.
    if (via === "api" && visit.actor.role !== "program" && !visit.isOwner)
      return this.#refuse(needsToken, visit);
    return await this.#read(values, visit);
  }

  async #read(values: Readonly<Record<string, string>>, visit: Visit): Promise<FastifyReply> {
    const { request, via, isForm } = this.#sent;
    const { fromForm, body: described } = this.#operation;
    const fields = isForm ? (fromForm?.(values) ?? formBody(this.#operation, values)) : null;
    const asked = fields ?? request.body ?? {};
    if (isUnstorable(asked)) return this.#refuse(noText, visit);
    const body = described!.schema.safeParse(asked);
    if (!body.success) {
      const typed = fromForm === undefined ? { ...values, ...(asked as object) } : null;
      return this.#refuse(badBody(body.error, via === "page" ? described!.schema : null), visit, typed);
    }
    return await this.#do(body.data as Readonly<Record<string, unknown>>, visit);
  }

  async #do(body: Readonly<Record<string, unknown>>, visit: Visit): Promise<FastifyReply> {
    const { request, reply, via } = this.#sent;
    const { ports, now: clock } = this.#settings;
    const operation = this.#operation;
    const path = inPath(operation, (name) => paramOf(request, name));
    if (path === null) return this.#refuse(this.#notKnown(), visit);
    const [meant] = Object.values(this.#names);
    if (meant !== undefined && !isConfirmed(operation, body, { meant, via })) {
      const shown = meant.slice(0, mostShown);
      const words =
        via === "api"
          ? `confirmation: must be ${shown}. Nothing was done.`
          : `Nothing was done: to confirm, type ${shown}.`;
      return this.#refuse({ status: 422, title: "Not confirmed", words }, visit, body);
    }
    const now = clock();
    const input = { ...body, ...path };
    const { actor } = visit;
    const question = {
      input,
      ports,
      actor,
      visit,
      via,
      remoteAddress: request.ip,
      requester: requesterOf(request),
      now,
      isCsv: false,
    } as const;
    let value: unknown;
    try {
      value = await operation.run(question);
    } catch (error) {
      return this.#refuseFor(error, visit, body);
    }
    if (value === null) return this.#refuse(this.#notKnown(), visit);
    const change = operation.change?.(value) ?? null;
    if (change !== null) await this.#record(change, visit, now);
    reply.code(operation.status?.(value) ?? Number(Object.keys(operation.answers)[0]));
    return await this.#tell(value, { input, visit, now, change });
  }

  #notKnown(): PageError {
    return notKnown(this.#operation, (name) => this.#names[name]!);
  }

  async #record(change: Change, { actor, isOwner }: Visit, at: Date): Promise<void> {
    const { request, via } = this.#sent;
    const whence = isOwner
      ? { via: "command" as const, remoteAddress: null }
      : { via, remoteAddress: request.ip };
    await this.#settings.audit.record({ ...change, actor: actor.name, ...whence, at });
  }

  /** Answers programs with the value, and people with a page or a redirect to one. */
  async #tell(
    value: unknown,
    {
      input,
      visit,
      now,
      change,
    }: {
      readonly input: unknown;
      readonly visit: Visit;
      readonly now: Date;
      readonly change: Change | null;
    },
  ): Promise<FastifyReply> {
    const { request, reply, via } = this.#sent;
    const operation = this.#operation;
    const { view, goTo, summary, page } = operation;
    const document =
      view !== undefined && (via === "api" || goTo === undefined)
        ? view(value, { input, viewer: visit, now })
        : undefined;
    const said = operation.said?.(value) ?? change?.words;
    if (via === "api") {
      const paper = paperOf(request);
      if (paper === null) return reply.send(operation.told?.(value) ?? value);
      return sendText(reply, paper, {
        document,
        said: said ?? (document === undefined ? `${summary}: done.` : ""),
      });
    }
    if (document !== undefined) {
      const around = { viewer: visit, path: formPath(operation, this.#names), query: {}, operation };
      return this.#sendPage(document.title, documentHtml(document, around), visit);
    }
    await this.#settings.access.say(request, said ?? `${summary}: done.`);
    return reply.redirect(goTo?.(value) ?? ((page ?? "/").replace(/\/:.*$/, "") || "/"), 303);
  }

  /** Answers a Fault or a UsageError, and rethrows any other error because it is a bug. */
  async #refuseFor(
    error: unknown,
    visit: Visit,
    body: Readonly<Record<string, unknown>>,
  ): Promise<FastifyReply> {
    const operation = this.#operation;
    if (!(error instanceof Fault)) {
      if (!(error instanceof UsageError)) throw error;
      const fault = { status: usageStatus(operation), title: "That cannot be done", words: error.message };
      return this.#refuse(fault, visit, body);
    }
    const { status, title, message: words, again } = error;
    if (again === undefined)
      return this.#refuse({ status, title, words }, visit, status === 404 ? null : body);
    const around = { viewer: visit, path: formPath(operation, this.#names), query: {}, operation };
    return this.#refuse({ status, title, words }, visit, null, documentHtml(again(visit), around));
  }

  /**
   * Refuses the change. `typed` is shown again in the form, with what is wrong with it, on the page that the form was sent
   * from, or else alone. A destructive change has only its page's form, which states the consequences and asks for the
   * confirmation.
   */
  async #refuse(
    fault: PageError,
    visit: Visit,
    typed: object | null = null,
    again: Html | null = null,
  ): Promise<FastifyReply> {
    const { request, reply, via } = this.#sent;
    const operation = this.#operation;
    if (via === "page" && typed !== null && again === null) {
      const to = formPath(operation, this.#names);
      const refused: Refused = { operation, to, values: { ...typed }, fault: fault.words };
      const from = await this.#settings.sender(request, refused, { visit, now: this.#settings.now() });
      if (from !== null) {
        reply.code(fault.status);
        return this.#sendPage(from.shown.title, from.shown.body(visit, refused), visit, from.path);
      }
    }
    const fields = fieldsIn(operation.body!.schema);
    const isShown = fields.length > 0 && fields.every(({ name }) => name !== "confirmation");
    const values = typed as Readonly<Record<string, unknown>>;
    const shown =
      again ??
      (typed === null || !isShown
        ? null
        : formHtml(
            {
              ...{ type: "form", operation, title: labelOf(operation), path: this.#names, values },
              fault: fault.words,
            },
            { viewer: visit },
            1,
          ));
    if (via === "api" || shown === null)
      return sendError(request, reply, fault, { version: this.#settings.version, viewer: visit });
    reply.code(fault.status);
    return this.#sendPage(fault.title, shown, visit);
  }

  #sendPage(title: string, body: Html, viewer: Visit, path = this.#sent.request.url): FastifyReply {
    return sendPage(this.#sent.reply, { version: this.#settings.version, viewer, path, title, body });
  }
}

/**
 * An open form has no session that could be forged, but it must be protected from other sites' pages and from programs that
 * fill in every form.
 */
function openFault(
  request: FastifyRequest,
  { [trapField]: trapped = "" }: Readonly<Record<string, string>>,
): PageError | null {
  const title = "That cannot be done";
  if (isFromElsewhere(request))
    return { status: 403, title, words: "This form was sent from another site's page." };
  if (trapped === "") return null;
  return { status: 400, title, words: "A hidden field was filled in. Leave it empty and send again." };
}

/** Reads the texts of a form as the body that the schema describes. */
function formBody({ body }: AnyOperation, values: Readonly<Record<string, string>>): Record<string, unknown> {
  const read = fieldsIn(body!.schema).map((field) => {
    const { name, type, choices } = field;
    // Each choice has a checkbox of its own.
    if (type === "array" && choices !== undefined)
      return [name, choices.filter((one) => values[`${name}-${one}`] !== undefined)] as const;
    return [name, values[name] === undefined ? undefined : meaningOf(field, values[name])] as const;
  });
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

/** Returns the fields of a form. The first of repeated names counts, and CRLF becomes LF. */
export function formValues(request: FastifyRequest): Record<string, string> {
  const values: Record<string, string> = {};
  const body = typeof request.body === "string" ? request.body : "";
  for (const [name, value] of new URLSearchParams(body))
    values[name] ??= sentText(value.replaceAll("\r\n", "\n"));
  return values;
}

/** On a page, a person must type the name in the URL. A program needs no confirmation. */
function isConfirmed(
  { body }: AnyOperation,
  { confirmation }: Readonly<Record<string, unknown>>,
  { meant, via }: { readonly meant: string; readonly via: "page" | "api" },
): boolean {
  if (fieldsIn(body!.schema).every(({ name }) => name !== "confirmation")) return true;
  return confirmation === undefined ? via === "api" : String(confirmation).trim() === meant;
}

/** Returns the status of a UsageError: 409 if the operation describes 409 and not 422, else 422. */
const usageStatus = ({ answers }: AnyOperation) =>
  answers[422] === undefined && answers[409] !== undefined ? 409 : 422;

/** `form` is the schema of a form, whose labels name the fields to people; null for programs, which know the field names. */
function badBody(error: z.ZodError, form: z.ZodType | null): PageError {
  const labels = new Map(
    form === null ? [] : fieldsIn(form).map(({ name, label }) => [name, label] as const),
  );
  const said = error.issues.slice(0, 5).map((issue) => {
    const [first] = issue.path;
    return `${labels.get(String(first)) ?? (issue.path.join(".") || "body")}: ${issueWords(issue)}`;
  });
  return { status: 400, title: "That cannot be done", words: said.join("; ") };
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
