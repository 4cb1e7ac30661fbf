/**
 * Limits requests per minute and address (or IPv6 /64): many reads, few changes, very few sign-ins. Static files, health
 * checks and release downloads (which have their own limit) are not counted. The crawlers' socket bypasses this server.
 */
import rateLimit from "@fastify/rate-limit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isOwners } from "./access.ts";
import { sendError } from "./guard.ts";
import { isFromThisMachine, originOf, requesterOf } from "./limits.ts";

/** A page makes about ten requests, and panning a map makes tens per second for a while. */
export const readsPerMinute = 1800;
/** A program that processes a list of crawlers makes two changes a second. */
export const changesPerMinute = 120;
/** A person with a wrong link retries twice. */
const signInsPerMinute = 10;
const minuteMs = 60_000;
const rememberedAddresses = 20_000;

const kinds = {
  reading: readsPerMinute,
  changing: changesPerMinute,
  "signing-in": signInsPerMinute,
} as const;
type Kind = keyof typeof kinds;

export function addRateLimits(app: FastifyInstance, around: { readonly version: string }): void {
  const limiters = new Map<Kind, ReturnType<FastifyInstance["createRateLimit"]>>();
  app.register(rateLimit, { global: false, cache: rememberedAddresses });
  app.after((error) => {
    if (error) throw error;
    for (const [kind, max] of Object.entries(kinds) as [Kind, number][]) {
      limiters.set(kind, app.createRateLimit({ max, timeWindow: minuteMs, keyGenerator }));
    }
  });
  app.addHook("onRequest", async (request, reply) => {
    const kind = kindOf(request);
    const limit = kind === null ? undefined : limiters.get(kind);
    if (limit === undefined) return;
    const used = await limit(request);
    if (!used.isAllowed && used.isExceeded) return refuse(request, reply, used.ttlInSeconds, around);
  });
}

const keyGenerator = (request: FastifyRequest) => originOf(requesterOf(request) ?? "unknown");

/** Null if the request is not counted, for instance when a proxy hides its address, which would stand for everybody. */
function kindOf(request: FastifyRequest): Kind | null {
  const address = requesterOf(request);
  if (address === null || isOwners(request)) return null;
  const { url = "", config } = request.routeOptions;
  // Other coordinators authenticate with keys and are limited there.
  if (request.method === "POST" && config?.boundedElsewhere === true) return null;
  if (request.method === "POST") return url === "/sign-in" ? "signing-in" : "changing";
  const isDownload = url.startsWith("/releases/") && config?.boundedElsewhere === true;
  const isFree = url.startsWith("/assets/") || url === "/health" || url === "/ready" || isDownload;
  return isFree || isFromThisMachine(request) ? null : "reading";
}

function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  retrySeconds: number,
  around: { readonly version: string },
): FastifyReply {
  reply.header("retry-after", String(Math.max(1, retrySeconds)));
  const words = `More came from your address in a minute than is answered. Try again in ${Math.max(1, retrySeconds)} s.`;
  return sendError(request, reply, { status: 429, title: "Too many requests", words }, around);
}
