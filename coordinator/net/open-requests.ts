/**
 * How many requests are answered at once, and how many of one address. A place is given back when the answer is out,
 * or when its reader has gone and nothing works on it any more: whoever hangs up early takes no place for good, and
 * cannot make the coordinator work on more than so many requests either.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { ConnectionLimits } from "./connection-limits.ts";
import { isThisMachine, requesterOf } from "./requester.ts";

/** Each takes a few database connections for milliseconds. */
export const maxOpenRequests = 32;
/** Of one address, or IPv6 /64: one that sends slowly or reads slowly leaves room for the others. */
export const maxOpenOfAddress = 24;
/** A reader that takes nothing of its answer for so long is gone. */
const silenceMs = 60_000;

interface OpenRequest {
  /** Null: not counted by address. */
  readonly address: string | null;
  isWorkedOn: boolean;
  isGone: boolean;
}

export class OpenRequests {
  readonly #open = new Map<FastifyRequest, OpenRequest>();
  readonly #ofAddress = new ConnectionLimits(
    {
      connections: maxOpenRequests,
      connectionsPerAddress: maxOpenOfAddress,
      failuresPerAddressAndMinute: Number.POSITIVE_INFINITY,
    },
    () => performance.now(),
  );

  /** False: there is no place for it. */
  take(request: FastifyRequest, reply: FastifyReply): boolean {
    if (this.#open.size >= maxOpenRequests) return false;
    const requester = requesterOf(request);
    const address = requester === null || isThisMachine(requester) ? null : requester;
    if (address !== null && this.#ofAddress.open(address) !== null) return false;
    this.#open.set(request, { address, isWorkedOn: false, isGone: false });
    reply.raw.once("close", () => this.#lose(request));
    return true;
  }

  /** It has arrived as a whole, and a route works on it. */
  begin(request: FastifyRequest): void {
    const one = this.#open.get(request);
    if (one) one.isWorkedOn = true;
  }

  /** Its answer is there, and goes out. */
  answer(request: FastifyRequest, reply: FastifyReply): void {
    const one = this.#open.get(request);
    // What is bounded elsewhere has a patience of its own.
    if (!one) return;
    reply.raw.setTimeout(silenceMs, () => reply.raw.destroy());
    one.isWorkedOn = false;
    if (one.isGone) this.leave(request);
  }

  leave(request: FastifyRequest): void {
    const one = this.#open.get(request);
    if (!one) return;
    this.#open.delete(request);
    if (one.address !== null) this.#ofAddress.close(one.address);
  }

  #lose(request: FastifyRequest): void {
    const one = this.#open.get(request);
    if (!one) return;
    one.isGone = true;
    if (!one.isWorkedOn) this.leave(request);
  }
}
