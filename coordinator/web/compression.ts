/**
 * Compresses complete HTML, JSON, CSV, style and script answers with Brotli or gzip (RFC 9110 section 8.4). Excluded
 * are short answers, streams, answers with a content digest, and pages that another site made a signed-in browser
 * request: their length would reveal the form token guess by guess (BREACH, https://breachattack.com). Sec-Fetch-Site
 * identifies the requesting site, and pages cannot forge it.
 */
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { sessionSecretOf } from "./access.ts";

/** The size of one packet. Smaller answers gain nothing. */
const leastBytes = 1024;

const compressible =
  /^(?:text\/(?!event-stream)|image\/svg\+xml|application\/(?:[\w.-]+\+)?(?:json|javascript|xml)\b)/;

/** These levels cost little CPU. test/bench/results/pages.md has the resulting sizes. */
const [brotliLevel, gzipLevel] = [4, 6];

const toBrotli = promisify<Buffer, object, Buffer>(brotliCompress);
const toGzip = promisify<Buffer, object, Buffer>(gzip);

type Coding = "br" | "gzip";

export function compressAnswers(app: FastifyInstance): void {
  app.addHook("onSend", async (request, reply, payload) => {
    const body = typeof payload === "string" ? Buffer.from(payload) : payload;
    if (!Buffer.isBuffer(body) || body.length < leastBytes || !isCompressible(reply)) return payload;
    reply.header("vary", withVary(reply.getHeader("vary")));
    const coding = codingFor(request.headers["accept-encoding"] ?? "");
    if (coding === null || isAskedByOthers(request)) return payload;
    reply.header("content-encoding", coding).removeHeader("content-length");
    const tag = reply.getHeader("etag");
    // A strong tag identifies exact bytes (RFC 9110 section 8.8.3.3).
    if (typeof tag === "string" && !tag.startsWith("W/")) reply.header("etag", `W/${tag}`);
    return await compressed(body, coding);
  });
}

function isCompressible(reply: FastifyReply): boolean {
  const type = String(reply.getHeader("content-type") ?? "");
  const isDigested = reply.hasHeader("content-digest") || reply.hasHeader("repr-digest");
  return compressible.test(type) && !isDigested && !reply.hasHeader("content-encoding");
}

function isAskedByOthers(request: FastifyRequest): boolean {
  if (sessionSecretOf(request) === null) return false;
  const from = request.headers["sec-fetch-site"];
  return from !== "same-origin" && from !== "none";
}

async function compressed(body: Buffer, coding: Coding): Promise<Buffer> {
  if (coding === "gzip") return await toGzip(body, { level: gzipLevel });
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  const params = { [BROTLI_PARAM_QUALITY]: brotliLevel, [BROTLI_PARAM_SIZE_HINT]: body.length };
  return await toBrotli(body, { params });
}

/** Returns the better accepted coding (RFC 9110 section 12.5.3), or null. */
export function codingFor(accepted: string): Coding | null {
  const weights = new Map<string, number>();
  for (const one of accepted.toLowerCase().split(",")) {
    const [name = "", ...parameters] = one.split(";").map((part) => part.trim());
    const weight = parameters.find((part) => part.startsWith("q="))?.slice(2) ?? "1";
    weights.set(name, Number(weight) || 0);
  }
  const takes = (coding: Coding) => (weights.get(coding) ?? weights.get("*") ?? 0) > 0;
  return takes("br") ? "br" : takes("gzip") ? "gzip" : null;
}

function withVary(vary: unknown): string {
  const given = typeof vary === "string" && vary !== "" ? `${vary}, ` : "";
  return /\baccept-encoding\b/i.test(given) ? String(vary) : `${given}accept-encoding`;
}
