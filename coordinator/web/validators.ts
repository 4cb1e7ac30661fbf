/** Conditional requests: ETag and Last-Modified (RFC 9110 sections 8.8 and 13.1). */

import type { FastifyReply, FastifyRequest } from "fastify";
import { foreignDateMs } from "../core/foreign-dates.ts";

/** Whether the request has this tag, weak or strong (RFC 9110 section 13.1.2). Null if it has no tag. */
export function hasTag({ headers }: Pick<FastifyRequest, "headers">, tag: string): boolean | null {
  const given = headers["if-none-match"];
  if (given === undefined) return null;
  const plain = (one: string) => one.trim().replace(/^W\//, "");
  return given.trim() === "*" || given.split(",").some((one) => plain(one) === plain(tag));
}

interface Validated {
  readonly body: Buffer;
  /** Header fields that describe the body and are sent only with it. */
  readonly bodyFields?: Readonly<Record<string, string>>;
  /** The content type. If it has no parameters, the server adds none. */
  readonly type: string;
  /** The tag in quotation marks; a weak one starts with `W/`. */
  readonly tag: string;
  /** Null if the content has no modification time. */
  readonly lastModified: Date | null;
  readonly cacheControl: string;
}

/** Sends the answer, or 304. */
export function sendValidated(request: FastifyRequest, reply: FastifyReply, given: Validated): FastifyReply {
  const { body, bodyFields = {}, type, tag, lastModified, cacheControl } = given;
  reply.headers({ etag: tag, "cache-control": cacheControl });
  if (lastModified !== null) reply.header("last-modified", lastModified.toUTCString());
  const isCurrent = hasTag(request, tag) ?? isUnchanged(request, lastModified);
  if (isCurrent) return reply.code(304).send();
  return reply.headers({ ...bodyFields, "content-type": type }).send(body);
}

/** Applies only if the request has no entity tag. An invalid date is ignored (RFC 9110 section 13.1.3). */
function isUnchanged({ headers }: FastifyRequest, lastModified: Date | null): boolean {
  const since = headers["if-modified-since"];
  if (since === undefined || lastModified === null) return false;
  const sinceMs = foreignDateMs(since);
  return sinceMs !== null && Math.floor(lastModified.getTime() / 1000) * 1000 <= sinceMs;
}
