/** Server-sent events (WHATWG HTML, section 9.2), limited in total and per address. */
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { sendError } from "./guard.ts";
import { ConnectionLimits, isFromThisMachine, requesterOf } from "./limits.ts";
import type { PageError } from "./page-frame.ts";

interface EventStreamBounds {
  readonly most: number;
  /** Maximum per address, except for this machine's own. */
  readonly mostOfAddress: number;
  /** The refusal when a limit is exceeded. */
  readonly tooMany: PageError;
}

export class EventStreams {
  readonly #open: ConnectionLimits;
  readonly #tooMany: PageError;

  constructor({ most, mostOfAddress, tooMany }: EventStreamBounds) {
    const unbounded = Number.POSITIVE_INFINITY;
    this.#tooMany = tooMany;
    this.#open = new ConnectionLimits(
      { connections: most, connectionsPerAddress: mostOfAddress, failuresPerAddressAndMinute: unbounded },
      () => performance.now(),
    );
  }

  /** Writes the response's head and returns the response, or null if the request is already answered (limit reached, or HEAD). */
  take(
    request: FastifyRequest,
    reply: FastifyReply,
    { isFull, version }: { readonly isFull: boolean; readonly version: string },
  ): ServerResponse | null {
    const address = requesterOf(request);
    const isCounted = address !== null && !isFromThisMachine(request);
    if (isFull || (isCounted && this.#open.open(address) !== null)) {
      sendError(request, reply, this.#tooMany, { version });
      return null;
    }
    if (isCounted) reply.raw.once("close", () => this.#open.close(address));
    reply.hijack();
    reply.raw.writeHead(200, streamHead);
    if (request.method !== "HEAD") return reply.raw;
    reply.raw.end();
    return null;
  }
}

const streamHead = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-accel-buffering": "no",
};
