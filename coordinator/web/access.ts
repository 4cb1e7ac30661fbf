/**
 * Identifies each request once, before its route: by session cookie, by token (RFC 6750), or as anybody. Views and
 * actions then only compare the scope they need with the actor's.
 */

import type { IncomingMessage, RequestListener } from "node:http";
import { fastifyCookie } from "@fastify/cookie";
import type { FastifyRequest } from "fastify";
import { sessionMs } from "#core/access-types";
import { type Actor, anybody, type Scope, scopes } from "#core/actor";
import { printable } from "#core/terminal-text";
import type { PageError, PageViewer } from "./page-frame.ts";

export interface Visit extends PageViewer {
  readonly actor: Actor;
  readonly sessionId?: number;
  /** Set for a command on the coordinator's machine (`ownerAccess`). */
  readonly isOwner?: true;
}

export interface Access {
  /** Treats a caller with a bad cookie as anonymous, but refuses a bad token, because a program must learn of it. */
  identify(request: FastifyRequest): Promise<Visit | Refusal>;
  /** Answers a lacking right. Browsers without a session are redirected to the sign-in. */
  refusal(visit: Visit, request: FastifyRequest, needs?: Scope | null): Refusal;
  /** Whether one of our pages sent the form in this session. */
  isOwnForm(request: FastifyRequest, formToken: string): boolean;
  say(request: FastifyRequest, words: string): void | Promise<void>;
}

export interface Refusal extends PageError {
  readonly headers?: Readonly<Record<string, string>>;
  /** The path to redirect to instead of showing the error. */
  readonly goTo?: string;
}

export function isRefusal(answer: Visit | Refusal): answer is Refusal {
  return "status" in answer;
}

export const anonymousVisit: Visit = {
  actor: anybody(true),
  signedInAs: null,
  formToken: null,
  said: null,
};

/** Access without accounts: everybody who can reach the pages may read them. */
export const openAccess: Access = {
  identify: async () => anonymousVisit,
  refusal: () => ({
    status: 403,
    title: "Not possible here",
    words: "Nobody can sign in to this server; change it with the nearcrawl command.",
  }),
  isOwnForm: () => false,
  say: () => {},
};

/** Identifies the viewer of public pages that are not views. If the look-up fails, the viewer remains unknown. */
export async function viewerOf(access: Access, request: FastifyRequest): Promise<Visit | undefined> {
  try {
    const visit = await access.identify(request);
    return isRefusal(visit) ? undefined : visit;
  } catch {
    return undefined;
  }
}

/** Checks access for routes that are not views. Never redirects, so that the refusal is answered in place. */
export async function refusalFor(
  access: Access,
  request: FastifyRequest,
  needs: Scope,
): Promise<Refusal | null> {
  const visit = await access.identify(request);
  if (isRefusal(visit)) return visit;
  if (visit.actor.scopes.includes(needs)) return null;
  const { goTo: _, ...refusal } = access.refusal(visit, request, needs);
  return refusal;
}

// Session cookies are unreadable by scripts and not sent with other sites' forms. Under TLS, their name (`__Host-`, RFC
// 6265bis section 4.1.3) prevents other hosts and paths from setting them.

const maxSecretLength = 100;

/** Holds the page that a visitor wanted before signing in. */
const wantedCookie = "nearcrawl-wanted";

const wantedSeconds = 900;

export const sessionCookieName = (isSecure: boolean): string =>
  isSecure ? "__Host-nearcrawl" : "nearcrawl-session";

/** Whether the request came over TLS, including TLS that ends at a proxy which reports it. */
function isSecure(request: FastifyRequest): boolean {
  return request.protocol === "https";
}

/** Over TLS, only the `__Host-` cookie is accepted. */
export function sessionSecretOf(request: FastifyRequest): string | null {
  const secret = cookiesOf(request)[sessionCookieName(isSecure(request))];
  return secret !== undefined && secret.length <= maxSecretLength ? secret : null;
}

export function sessionCookie(request: FastifyRequest, secret: string): string {
  return cookie(request, sessionCookieName(isSecure(request)), secret, sessionMs / 1000);
}

export function endedSessionCookie(request: FastifyRequest): string {
  return cookie(request, sessionCookieName(isSecure(request)), "", 0);
}

/** If `path` is null, the cookie is cleared. */
export function wantedPathCookie(request: FastifyRequest, path: string | null): string {
  return cookie(request, wantedCookie, path ?? "", path === null ? 0 : wantedSeconds);
}

/** Returns null unless it is a local path. */
export function wantedPathOf(request: FastifyRequest): string | null {
  return localPath(cookiesOf(request)[wantedCookie] ?? "");
}

/** Rejects paths that lead to another host or back to the sign-in, which prevents open redirects. */
export function localPath(text: string): string | null {
  if (!/^\/(?![/\\])[\x21-\x7e]{0,500}$/.test(text) || text.includes("\\")) return null;
  return text.startsWith("/sign-in") || text.startsWith("/api/") ? null : text;
}

function cookiesOf(request: FastifyRequest): Record<string, string | undefined> {
  return fastifyCookie.parse(request.headers.cookie ?? "");
}

function cookie(request: FastifyRequest, name: string, value: string, maxAge: number): string {
  const attributes = {
    path: "/",
    httpOnly: true,
    sameSite: "lax",
    secure: isSecure(request),
    maxAge,
  } as const;
  return fastifyCookie.serialize(name, value, attributes);
}

// Requests of the home's owner, which commands send over the coordinator's Unix socket or handle in their own
// process. The owner may do everything, because whoever can read the home can also reach the database. The audit log
// records these changes as made by a command.

const owned = new WeakSet<IncomingMessage>();

/** Names the person who runs the command, such as `root on db1`. Only the owner's requests may set it. */
const actorHeader = "nearcrawl-actor";

/** Marks every request of a server as the owner's. The caller must ensure that only the owner can connect. */
export const ownersRouting =
  (routing: RequestListener): RequestListener =>
  (request, response) => {
    owned.add(request);
    // A Unix socket has no remote address, but rate limits and logs expect one.
    Object.defineProperty(request.socket, "remoteAddress", { value: "127.0.0.1", configurable: true });
    routing(request, response);
  };

export const isOwners = ({ raw }: FastifyRequest): boolean => owned.has(raw);

/** With `isAlone`, requests never leave the owner's own process, so all of them are the owner's. */
export function ownerAccess(access: Access, isAlone: boolean): Access {
  return {
    ...access,
    identify: async (request) => {
      if (!isAlone && !isOwners(request)) return await access.identify(request);
      return { ...anonymousVisit, actor: ownerOf(request), isOwner: true };
    },
  };
}

const mostOfName = 120;

function ownerOf({ headers }: FastifyRequest): Actor {
  const name = headers[actorHeader];
  return {
    ...{ name: typeof name === "string" ? printable(name, mostOfName) : "the owner of the home" },
    ...{ role: "operator", scopes, crawlers: [] },
  };
}
