/**
 * The cookie that holds a session's secret: out of scripts' reach, not sent along from other sites' forms, and over
 * TLS under a name that no other host or path can set (`__Host-`, RFC 6265bis section 4.1.3).
 */
import { fastifyCookie } from "@fastify/cookie";
import type { FastifyRequest } from "fastify";
import { sessionMs } from "#core/access-types";

/** Longer ones are none of ours. */
const maxSecretLength = 100;
/** Where somebody was going who had to sign in first. */
const wantedCookie = "nearcrawl-wanted";
const wantedSeconds = 900;

export const sessionCookieName = (isSecure: boolean): string =>
  isSecure ? "__Host-nearcrawl" : "nearcrawl-session";

/** By TLS of our own, or of a proxy that says so. */
export function isSecure(request: FastifyRequest): boolean {
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
