/**
 * A view is read once and shown as a page, as JSON (at the same path with `Accept: application/json`, and under /api/), or as
 * CSV if it is a table (`format=csv`).
 */
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { mayDo, type Scope } from "#core/actor";
import { type Access, isRefusal, type Refusal, type Visit } from "../web/access.ts";
import { skeleton } from "../web/components.ts";
import { sendError, wantsJson } from "../web/guard.ts";
import { type CsvTable, csvText, type Html, html } from "../web/html.ts";
import { type PageError, sendPage } from "../web/page-frame.ts";
import type { Refused } from "./html-rendering.ts";
import type { Document } from "./operation.ts";
import { documentCsv, emptyHeader, hasRows, paperOf, partOf, sendText } from "./text-rendering.ts";

export interface Shown {
  readonly status: number;
  readonly value: unknown;
  readonly title: string;
  readonly body: (visit: Visit, refused?: Refused) => Html;
  readonly csv?: () => CsvTable;
  /** The page reloads after this many seconds while something is awaited. */
  readonly refreshSeconds?: number;
  /** Set when the view was made as a document. */
  readonly document?: Document;
}

export interface AskedView {
  readonly request: FastifyRequest;
  readonly visit: Visit;
  readonly now: Date;
  /** A decoded path parameter; empty when there is none. */
  param(name: string): string;
  /** The first value of that name; empty when there is none. */
  query(name: string): string;
}

/** Returns null if nothing is at this path. A string says why the question is impossible; an error also has a status. */
export type View = (asked: AskedView) => Promise<Shown | PageError | string | null>;

interface ViewRoute {
  readonly path: string;
  readonly api: string;
  /** Null means everybody who may read. */
  readonly needs: Scope | null;
  /** The parameter that names a crawler; partners may see their own. */
  readonly crawlerIn?: string;
  readonly view: View;
  /**
   * Title of the page that is shown, and reloads itself, while a slow answer is being made. Set it when the answer may take
   * seconds. The answer is then cached for the reload.
   */
  readonly titleWhileSlow?: string;
}

/** A picture, or a file too long for one answer, which is sent unchanged. */
export interface SentFile {
  readonly type: string;
  readonly body: Buffer | Readable;
  readonly headers?: Readonly<Record<string, string>>;
}

interface FileRoute {
  readonly path: string;
  readonly needs: Scope | null;
  /** Set if the route takes long and limits concurrent sends itself. */
  readonly boundedElsewhere?: boolean;
  readonly file: (asked: AskedView) => Promise<SentFile | string | null>;
}

interface ViewSettings {
  readonly access: Access;
  readonly version: string;
  readonly now: () => Date;
}

export class Views {
  readonly #app: FastifyInstance;
  readonly #settings: ViewSettings;

  constructor(app: FastifyInstance, settings: ViewSettings) {
    this.#app = app;
    this.#settings = settings;
  }

  add(route: ViewRoute): void {
    const handler = async (request: FastifyRequest, reply: FastifyReply) =>
      await this.#answer(route, request, reply);
    this.#app.get(route.path, handler);
    this.#app.get(route.api, handler);
  }

  addFile(route: FileRoute): void {
    const config = route.boundedElsewhere === true ? { boundedElsewhere: true } : {};
    this.#app.get(route.path, { config }, async (request, reply) => {
      const { version } = this.#settings;
      const visit = await this.#visitOf(route, request, reply);
      if (visit === null) return reply;
      const sent = await route.file(this.#asked(request, visit));
      const around = { version, viewer: visit };
      if (sent === null) return sendError(request, reply, notKnown, around);
      if (typeof sent === "string") return sendError(request, reply, cannotBeAnswered(sent), around);
      reply.header("cache-control", "no-store").headers(sent.headers ?? {});
      return reply.type(sent.type).send(sent.body);
    });
  }

  async #answer(
    route: ViewRoute,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> {
    const { version } = this.#settings;
    const visit = await this.#visitOf(route, request, reply);
    if (visit === null) return reply;
    const answer = route.view(this.#asked(request, visit));
    const { titleWhileSlow: title } = route;
    const isPage = !wantsJson(request) && queryOf(request, "format") !== "csv";
    const shown = title !== undefined && isPage ? await soonOr(answer, waitingPage(title)) : await answer;
    return send(request, reply, { shown, route, visit, version });
  }

  #asked(request: FastifyRequest, visit: Visit): AskedView {
    return {
      request,
      visit,
      now: this.#settings.now(),
      param: (name) => paramOf(request, name),
      query: (name) => queryOf(request, name),
    };
  }

  /** Returns null after sending a refusal. */
  async #visitOf(
    route: Pick<ViewRoute, "needs" | "crawlerIn">,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Visit | null> {
    const { access, version } = this.#settings;
    const visit = await access.identify(request);
    if (isRefusal(visit)) {
      sendRefusal(request, reply, visit, { version });
      return null;
    }
    const crawler = route.crawlerIn === undefined ? null : paramOf(request, route.crawlerIn);
    if (mayDo(visit.actor, route.needs, crawler === null ? null : { crawler, partnersToo: true }))
      return visit;
    const refusal = access.refusal(visit, request, route.needs);
    sendRefusal(request, reply, refusal, { version, viewer: visit });
    return null;
  }
}

const patienceMs = 1000;
const askAgainSeconds = 2;

/** A late result, or its failure, is kept for the next request. */
async function soonOr<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), patienceMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    answer.catch(() => {});
  }
}

const waitingPage = (title: string): Shown => ({
  ...{ status: 202, value: null, title, refreshSeconds: askAgainSeconds },
  body: () =>
    html`<h1>${title}</h1>${skeleton("This is being counted. The page shows it as soon as it is there.")}`,
});

interface Answer {
  readonly shown: Shown | PageError | string | null;
  readonly route: ViewRoute;
  readonly visit: Visit;
  readonly version: string;
}

function send(request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  const { shown, route, visit, version } = answer;
  const around = { version, viewer: visit };
  if (shown === null) return sendError(request, reply, notKnown, around);
  if (typeof shown === "string") return sendError(request, reply, cannotBeAnswered(shown), around);
  if ("words" in shown) return sendError(request, reply, shown, around);
  reply.code(shown.status).header("cache-control", "no-store").header("vary", "accept, cookie");
  const document = shown.document && partOf(shown.document, request);
  if (document !== undefined && !hasRows(document)) reply.header(emptyHeader, "1");
  if (queryOf(request, "format") === "csv") {
    const csv = document === shown.document ? shown.csv : document && documentCsv(document);
    if (csv) return sendCsv(reply, route, csv());
  }
  const paper = paperOf(request);
  if (paper !== null && document !== undefined) return sendText(reply, paper, { document });
  if (wantsJson(request)) return reply.send(shown.value);
  if (shown.refreshSeconds !== undefined) reply.header("refresh", String(shown.refreshSeconds));
  const frame = {
    ...around,
    path: request.url,
    title: shown.title,
    body: shown.body(visit),
    ...(shown.value === null ? {} : { json: jsonAddress(request, route) }),
    ...(shown.csv ? { csv: withQuery(request.url, "format=csv") } : {}),
  };
  return sendPage(reply, frame);
}

function sendCsv(reply: FastifyReply, route: ViewRoute, table: CsvTable): FastifyReply {
  const name = route.path.replace(/[^a-z]+/g, "-").replace(/^-|-$/g, "") || "overview";
  return reply
    .header("content-disposition", `attachment; filename="nearcrawl-${name}.csv"`)
    .type("text/csv; charset=utf-8")
    .send(csvText(table));
}

/** Returns the path at which every reader gets the same answer as JSON. */
function jsonAddress(request: FastifyRequest, route: ViewRoute): string {
  const [, query] = /(\?.*)$/.exec(request.url) ?? [];
  const path = route.api.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(paramOf(request, name)));
  return path + (query ?? "");
}

function withQuery(url: string, part: string): string {
  return url + (url.includes("?") ? "&" : "?") + part;
}

/** Sends a page, a redirect, or JSON with the reason. */
export function sendRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Refusal,
  around: { readonly version: string; readonly viewer?: Visit },
): FastifyReply {
  if (refusal.headers) reply.headers(refusal.headers);
  if (refusal.goTo !== undefined && !wantsJson(request)) {
    return reply.header("cache-control", "no-store").redirect(refusal.goTo, 303);
  }
  return sendError(request, reply, refusal, around);
}

export function paramOf(request: FastifyRequest, name: string): string {
  return sentText((request.params as Record<string, string | undefined>)[name] ?? "");
}

/** Returns a query parameter. A repeated one counts as a list. */
export function queryOf(request: FastifyRequest, name: string): string {
  const value = (request.query as Record<string, string | string[] | undefined>)[name];
  return sentText((Array.isArray(value) ? value[0] : value) ?? "");
}

const notKnown = { status: 404, title: "Not known", words: "There is nothing of this name." };
const cannotBeAnswered = (words: string) => ({ status: 400, title: "That cannot be answered", words });

/** Replaces NUL, which no column can hold, by U+FFFD. */
export function sentText(text: string): string {
  return text.replaceAll("\0", "\ufffd");
}

/**
 * Whether the value contains NUL or an unpaired surrogate. JSON.stringify escapes both, and no other character in that way; a
 * backslash in the value is doubled.
 */
export function isUnstorable(body: unknown): boolean {
  return /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(JSON.stringify(body) ?? "");
}
