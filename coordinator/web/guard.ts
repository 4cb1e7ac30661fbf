/**
 * Rules for every request: only GET and HEAD, unless a route accepts POST with a stated content type; a limit on
 * concurrent requests; security headers; and errors as a page or JSON. Views and actions check permissions
 * (access.ts).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "#core/log";
import { skeleton } from "./components.ts";
import { html } from "./html.ts";
import { defaultBodyTimeoutMs, OpenRequests } from "./limits.ts";
import { errorBody, type PageError, type PageViewer, sendPage } from "./page-frame.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The type of body with which the route accepts POST. If absent, POST is refused. */
    readonly takes?: "application/json" | "application/x-www-form-urlencoded" | "anything";
    /** The route limits its concurrent requests itself. */
    readonly boundedElsewhere?: boolean;
  }
}

interface GuardSettings {
  readonly version: string;
  readonly secure: boolean;
}

export function guard(
  app: FastifyInstance,
  ports: {
    readonly log: Log;
    readonly metrics: {
      readonly httpRequestSeconds: {
        observe(labels: { readonly route: string; readonly status: number }, seconds: number): void;
      };
    };
    readonly settings: GuardSettings;
    /** Identifies the viewer of error pages and of reserved slots. If absent, everybody is anonymous. */
    readonly viewerOf?: (request: FastifyRequest) => Promise<PageViewer | undefined>;
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

/** Answers requests that are refused before routing, such as an undecodable path. */
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

function methodFault(request: FastifyRequest): PageError | null {
  if (request.method === "GET" || request.method === "HEAD") return null;
  const takes = request.method === "POST" ? request.routeOptions.config?.takes : undefined;
  if (takes === undefined) return methodNotAllowed;
  if (takes === "anything") return null;
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  return type === takes ? null : wrongType(takes);
}

/** Removes the secret of a sign-in link, because everybody who reads the log could use it. */
function withoutLink(url: string): string {
  return url.replace(/^\/sign-in\/[^?]*/, "/sign-in/…");
}

/** The path decides (/api/…), or the Accept header at a page's path. */
export function wantsJson(request: FastifyRequest): boolean {
  if (request.url.startsWith("/api/")) return true;
  const accept = request.headers.accept ?? "";
  return accept.includes("application/json") && !accept.includes("text/html");
}

/** Live events and downloads have limits of their own. */
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

// All error statuses with their meanings. Errors are answered from this list (`sendError`), and the API page shows it. The
// message adds the particulars.

export interface ApiErrorKind {
  /** The reason phrase (RFC 9110 section 15.5). */
  readonly title: string;
  readonly means: string;
  readonly advice: string;
}

const asIs = "Change the request; the same one is refused again.";
const later = "Wait as long as Retry-After says, then send the same request.";

export const apiErrors = {
  400: {
    title: "Bad request",
    means: "A parameter or the body is not what the operation takes.",
    advice: asIs,
  },
  401: {
    title: "Unauthorized",
    means: "A token is needed, or the one that was sent is unknown, expired or revoked.",
    advice: "Send Authorization: Bearer with a good token.",
  },
  403: {
    title: "Forbidden",
    means: "The token is good, but its scopes do not allow this.",
    advice: "Use a token with the scope that the message names.",
  },
  404: { title: "Not found", means: "Nothing is at this address, or nothing has this name.", advice: asIs },
  405: {
    title: "Method not allowed",
    means: "The address does not take this method.",
    advice: "Use the method that the operation states.",
  },
  409: {
    title: "Conflict",
    means:
      "It cannot be done as things stand now: another job is running, a name is taken, values have changed.",
    advice: "Read the current state, then decide again.",
  },
  410: {
    title: "Gone",
    means: "It was here and is not kept any more, such as an old cursor of the change feed.",
    advice: "Start over from what the answer names.",
  },
  413: { title: "Content too large", means: "The body is larger than the operation takes.", advice: asIs },
  414: { title: "URI too long", means: "A part of the address is longer than any name is.", advice: asIs },
  415: {
    title: "Unsupported media type",
    means: "The body is not of the type that the operation takes.",
    advice: "Send application/json, with that Content-Type.",
  },
  422: {
    title: "Unprocessable content",
    means: "The request is well formed, but its values do not fit each other or what there is.",
    advice: asIs,
  },
  429: {
    title: "Too many requests",
    means: "Too many requests, or too many failures, came from this address.",
    advice: later,
  },
  500: {
    title: "Internal server error",
    means: "The fault is the coordinator's; its log has the cause.",
    advice: "Try again later; report it if it stays.",
  },
  503: {
    title: "Service unavailable",
    means: "The coordinator is busy, starting, or its database does not answer.",
    advice: later,
  },
} as const satisfies Readonly<Record<number, ApiErrorKind>>;

type ErrorStatus = keyof typeof apiErrors;

/** Maps a library's status to a known one, or to 400. */
function errorStatus(status: number): ErrorStatus {
  return status in apiErrors ? (status as ErrorStatus) : 400;
}
