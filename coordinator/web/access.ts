/**
 * Who asks. Every request is identified once, before its route: by a session's cookie, by a token (RFC 6750), or as
 * anybody. Views and actions then only compare what they need with what the actor has.
 */

import type { IncomingMessage, RequestListener } from "node:http";
import { fastifyCookie } from "@fastify/cookie";
import type { FastifyRequest } from "fastify";
import { sessionMs } from "#core/access-types";
import { type Actor, anybody, type Scope, scopes } from "#core/actor";
import { printable } from "#core/terminal-text";
import type { PageError, PageViewer } from "./page-frame.ts";

/** A request's actor, with what its pages need. */
export interface Visit extends PageViewer {
  readonly actor: Actor;
  /** Of who has signed in. */
  readonly sessionId?: number;
  /** A command on the machine (`ownerAccess`). */
  readonly isOwner?: true;
}

export interface Access {
  /** Never rejects for a bad cookie (that is anybody); a bad token is a refusal, since a program must be told. */
  identify(request: FastifyRequest): Promise<Visit | Refusal>;
  /** What is said to somebody who may not; pages of people who have not signed in lead to the sign-in. */
  refusal(visit: Visit, request: FastifyRequest, needs?: Scope | null): Refusal;
  /** True: this form comes from a page of ours that was shown in this session. */
  isOwnForm(request: FastifyRequest, formToken: string): boolean;
  /** Shown at the top of the next page of this session. */
  say(request: FastifyRequest, words: string): void | Promise<void>;
}

export interface Refusal extends PageError {
  readonly headers?: Readonly<Record<string, string>>;
  /** In place of a page: where to go. */
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

/** Nobody can sign in: whoever reaches the pages may read them. */
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

/** For pages that are no views, and shown to everybody. Where nobody can be looked up, nobody is known. */
export async function viewerOf(access: Access, request: FastifyRequest): Promise<Visit | undefined> {
  try {
    const visit = await access.identify(request);
    return isRefusal(visit) ? undefined : visit;
  } catch {
    return undefined;
  }
}

/** For routes that are no views: the actor is checked, and who may not is told why, in place. */
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

// The cookie that holds a session's secret: out of scripts' reach, not sent along from other sites' forms, and over
// TLS under a name that no other host or path can set (`__Host-`, RFC 6265bis section 4.1.3).

/** Longer ones are none of ours. */
const maxSecretLength = 100;

/** Where somebody was going who had to sign in first. */
const wantedCookie = "nearcrawl-wanted";

const wantedSeconds = 900;

export const sessionCookieName = (isSecure: boolean): string =>
  isSecure ? "__Host-nearcrawl" : "nearcrawl-session";

/** By TLS of our own, or of a proxy that says so. */
function isSecure(request: FastifyRequest): boolean {
  return request.protocol === "https";
}

/** Null: there is none. Over TLS only the name that nobody else can set counts. */
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

/** `path` null: nowhere any more. */
export function wantedPathCookie(request: FastifyRequest, path: string | null): string {
  return cookie(request, wantedCookie, path ?? "", path === null ? 0 : wantedSeconds);
}

/** A path of ours; null: none was wanted. */
export function wantedPathOf(request: FastifyRequest): string | null {
  return localPath(cookiesOf(request)[wantedCookie] ?? "");
}

/** What leads to another host, or to no page, is no place to go on to. */
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

// * Requests of the owner of the coordinator's home. They come from commands: through the coordinator's
// Unix socket, or within the command's own process where no coordinator runs. The owner may do everything,
// because whoever can read the home can also reach the database. The audit log records these changes as
// made by a command.

const owned = new WeakSet<IncomingMessage>();

/** Names who types the command, such as `root on db1`. It is read from the owner's requests only. */
const actorHeader = "nearcrawl-actor";

/** Marks every request of a server as the owner's. The caller makes sure that only the owner can connect to that server. */
export const ownersRouting =
  (routing: RequestListener): RequestListener =>
  (request, response) => {
    owned.add(request);
    // A Unix socket has no remote address, but rate limits and logs expect one.
    Object.defineProperty(request.socket, "remoteAddress", { value: "127.0.0.1", configurable: true });
    routing(request, response);
  };

export const isOwners = ({ raw }: FastifyRequest): boolean => owned.has(raw);

/** `isAlone`: the requests never leave the owner's own process, so all of them are the owner's. */
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
