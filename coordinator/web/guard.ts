/**
 * What holds for every request, whichever page: only GET and HEAD save where a route says that it takes a POST
 * and of which content type, a bound on how many are answered at once, security headers, and errors in plain
 * words as a page or as JSON. Who may see and change what is decided by views and actions (access.ts).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#core/log";
import { errorStatus } from "./api-errors.ts";
import { skeleton } from "./components.ts";
import { html } from "./html.ts";
import { defaultBodyTimeoutMs, OpenRequests } from "./limits.ts";
import { errorBody, type PageError, type PageViewer, sendPage } from "./page-frame.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** This route takes POST with a body of this type, or of any; without it, a POST does not reach it. */
    readonly takes?: "application/json" | "application/x-www-form-urlencoded" | "anything";
    /** The route bounds itself how many of its requests are answered at once. */
    readonly boundedElsewhere?: boolean;
  }
}

export interface GuardSettings {
  readonly version: string;
  readonly secure: boolean;
}

export function guard(
  app: FastifyInstance,
  ports: {
    readonly log: Log;
    /** How long answers take, by route and status. */
    readonly metrics: {
      readonly httpRequestSeconds: {
        observe(labels: { readonly route: string; readonly status: number }, seconds: number): void;
      };
    };
    readonly settings: GuardSettings;
    /** Who looks at a page that is not there, and who may have a place that is kept; left out: nobody is known. */
    readonly viewerOf?: (request: FastifyRequest) => Promise<PageViewer | undefined>;
    /** How long a form may take to arrive. */
    readonly bodyTimeoutMs?: number;
  },
): void {
  app.decorate("pages", []);
  const open = new OpenRequests({
    bodyTimeoutMs: ports.bodyTimeoutMs ?? defaultBodyTimeoutMs,
    isKnown: async (request) => {
      const viewer = await ports.viewerOf?.(request);
      return viewer !== undefined && viewer.actor.role !== "anybody";
    },
  });
  const refuseBusy = (request: FastifyRequest, reply: FastifyReply) => {
    reply.header("retry-after", "2");
    return sendError(request, reply, tooBusy, ports.settings);
  };
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(securityHeaders(ports.settings.secure));
    const fault = methodFault(request);
    if (fault !== null) {
      reply.header("allow", "GET, HEAD");
      return sendError(request, reply, fault, ports.settings);
    }
    if (isBoundedElsewhere(request) || (await open.receive(request, reply))) return;
    return refuseBusy(request, reply);
  });
  app.addHook("preValidation", async (request, reply) => {
    if (isBoundedElsewhere(request) || (await open.begin(request))) return;
    return refuseBusy(request, reply);
  });
  app.addHook("onSend", async (request, reply) => open.answer(request, reply));
  app.addHook("onResponse", async (request, reply) => {
    open.leave(request);
    if (isBoundedElsewhere(request)) return;
    const route = request.routeOptions.url ?? "none";
    ports.metrics.httpRequestSeconds.observe({ route, status: reply.statusCode }, reply.elapsedTime / 1000);
  });
  app.setNotFoundHandler(async (request, reply) => {
    const viewer = wantsJson(request) ? undefined : await ports.viewerOf?.(request);
    return sendError(request, reply, notFound, { ...ports.settings, ...(viewer && { viewer }) });
  });
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return sendError(request, reply, badRequest(status, error.message), ports.settings);
    ports.log.error({ error, url: withoutLink(request.url) }, "a page could not be shown");
    return sendError(request, reply, ourFault, ports.settings);
  });
}

/** What the server refuses before it has a route, such as an address that cannot be decoded. */
export function refuseUnrouted(
  error: { readonly statusCode?: number },
  { request, reply, settings }: Unrouted,
): FastifyReply {
  reply.headers(securityHeaders(settings.secure));
  const words = "This address cannot be read: it is not percent-encoded UTF-8, or a part of it is too long.";
  return sendError(request, reply, badRequest(error.statusCode ?? 400, words), settings);
}

interface Unrouted {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly settings: GuardSettings;
}

export function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: PageError,
  around: { readonly version: string; readonly viewer?: PageViewer },
): FastifyReply {
  const status = errorStatus(error.status);
  reply.code(status).header("cache-control", "no-store");
  if (wantsJson(request)) return reply.send({ error: { status, message: error.words }, ...error.more });
  if (error.refreshSeconds !== undefined) reply.header("refresh", String(error.refreshSeconds));
  const isOverSoon = error.refreshSeconds !== undefined;
  const body = isOverSoon ? html`<h1>${error.title}</h1>${skeleton(error.words)}` : errorBody(error);
  return sendPage(reply, { ...around, path: request.url, title: error.title, body });
}

/** A POST that reaches no route that takes it is refused as if nothing took any. */
function methodFault(request: FastifyRequest): PageError | null {
  if (request.method === "GET" || request.method === "HEAD") return null;
  const takes = request.method === "POST" ? request.routeOptions.config?.takes : undefined;
  if (takes === undefined) return methodNotAllowed;
  if (takes === "anything") return null;
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  return type === takes ? null : wrongType(takes);
}

/** A sign-in link in a log would be one that whoever reads the log can use. */
function withoutLink(url: string): string {
  return url.replace(/^\/sign-in\/[^?]*/, "/sign-in/…");
}

/** By path (/api/…), or by the Accept header at the page's own address. */
export function wantsJson(request: FastifyRequest): boolean {
  if (request.url.startsWith("/api/")) return true;
  const accept = request.headers.accept ?? "";
  return accept.includes("application/json") && !accept.includes("text/html");
}

/** Live events stay open, and downloads take their time; they have bounds of their own. */
const isBoundedElsewhere = (request: FastifyRequest): boolean =>
  request.routeOptions.config?.boundedElsewhere === true;

function securityHeaders(secure: boolean): Record<string, string> {
  return {
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
      "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    ...(secure ? { "strict-transport-security": "max-age=31536000" } : {}),
  };
}

const methodNotAllowed: PageError = {
  status: 405,
  title: "Only reading is possible here",
  words: "These pages only read: use GET or HEAD.",
};
const wrongType = (takes: string): PageError => ({
  status: 415,
  title: "Not in this form",
  words: `What is sent here must be ${takes}.`,
});
const tooBusy: PageError = {
  status: 503,
  title: "Too many at once",
  words: "The coordinator is answering as many requests as it takes at a time. Try again in a moment.",
};
const notFound: PageError = { status: 404, title: "No such page", words: "Nothing is at this address." };
const ourFault: PageError = {
  status: 500,
  title: "That went wrong",
  words: "The page could not be made. The coordinator's log says why; the database may be away.",
};

function badRequest(status: number, words: string): PageError {
  return { status, title: "That cannot be answered", words };
}
