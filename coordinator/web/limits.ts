/**
 * How many requests are in hand at once, and how many of one address: in three stages with places of their own, so
 * that whoever sends or reads slowly takes nothing from those that are worked on.
 *
 *   receiving (a body arrives) → working (a route answers) → sending (the answer goes out)
 *
 * Whoever hangs up early takes no place for good, and cannot make the coordinator work on more than so many requests
 * either: a working place is given back when nothing works on the request any more. Of each kind of place some are
 * for those who have signed in alone.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { originOf } from "./connection-limits.ts";
import { isThisMachine, requesterOf } from "./requester.ts";

/** Each takes a few database connections for milliseconds. */
export const maxOpenRequests = 32;
/** Of one address, or IPv6 /64. */
export const maxOpenOfAddress = 10;
/** Bodies that are arriving: 32 KB each at most. */
export const maxReceived = 64;
export const maxReceivedOfAddress = 4;
/** Besides, for those who have signed in: places of each kind. */
export const reservedPlaces = 8;
/** A form is a few KB: whoever takes longer means to. */
export const defaultBodyTimeoutMs = 10_000;
/** Answers that are going out, in memory: beyond so many, whoever has taken longest is cut off. */
const maxSent = 256;
const maxSentOfAddress = 32;
/** A reader that takes nothing of its answer for so long is gone. */
const silenceMs = 60_000;
/** Cookies and tokens that are looked up at once for want of a place. */
const maxLookUps = 8;
const maxLookUpsOfAddress = 2;

export interface OpenRequestSettings {
  readonly bodyTimeoutMs: number;
  /** Whether it has signed in, or shows a good token; asked only where no place is left for others. */
  readonly isKnown: (request: FastifyRequest) => Promise<boolean>;
}

export class OpenRequests {
  readonly #settings: OpenRequestSettings;
  readonly #receiving = new Places(maxReceived, maxReceivedOfAddress);
  readonly #working = new Places(maxOpenRequests, maxOpenOfAddress);
  readonly #sending = new Places(maxSent, maxSentOfAddress);
  readonly #lookUps = new Places(maxLookUps, maxLookUpsOfAddress);
  readonly #deadlines = new Map<FastifyRequest, NodeJS.Timeout>();

  constructor(settings: OpenRequestSettings) {
    this.#settings = settings;
  }

  /** Before its body is read, if it has one. False: there is no place for it. */
  async receive(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (!hasBody(request)) return true;
    if (!(await this.#take(this.#receiving, request))) return false;
    const deadline = setTimeout(() => cutOff(request, reply), this.#settings.bodyTimeoutMs);
    this.#deadlines.set(request, deadline);
    reply.raw.once("close", () => this.#received(request));
    return !request.raw.destroyed;
  }

  /** It has arrived as a whole, and a route is to work on it. False: there is no place for it. */
  async begin(request: FastifyRequest): Promise<boolean> {
    this.#received(request);
    return await this.#take(this.#working, request);
  }

  /** Its answer is there, and goes out; nothing works on it any more. */
  answer(request: FastifyRequest, reply: FastifyReply): void {
    this.#received(request);
    // What is bounded elsewhere has a patience of its own.
    if (!this.#working.leave(request)) return;
    if (reply.raw.destroyed) return;
    reply.raw.setTimeout(silenceMs, () => reply.raw.destroy());
    reply.raw.once("close", () => this.#sending.leave(request));
    for (const slowest of this.#sending.make(request)) slowest.raw.socket.destroy();
    this.#sending.take(request, 0);
  }

  /** However it ended. */
  leave(request: FastifyRequest): void {
    this.#received(request);
    this.#working.leave(request);
    this.#sending.leave(request);
  }

  #received(request: FastifyRequest): void {
    clearTimeout(this.#deadlines.get(request));
    this.#deadlines.delete(request);
    this.#receiving.leave(request);
  }

  async #take(places: Places, request: FastifyRequest): Promise<boolean> {
    if (places.take(request, 0)) return true;
    return (await this.#isKnown(request)) && places.take(request, reservedPlaces);
  }

  /** Whoever shows nothing is not looked up; nor are strangers with invented cookies, but for a few at a time. */
  async #isKnown(request: FastifyRequest): Promise<boolean> {
    const { cookie, authorization } = request.headers;
    if (cookie === undefined && authorization === undefined) return false;
    if (!this.#lookUps.take(request, 0)) return false;
    try {
      return await this.#settings.isKnown(request);
    } catch {
      return false;
    } finally {
      this.#lookUps.leave(request);
    }
  }
}

/** So many at once, and of one address fewer; the eldest stand first. */
class Places {
  readonly #most: number;
  readonly #mostOfAddress: number;
  readonly #taken = new Map<FastifyRequest, string | null>();
  readonly #ofAddress = new Map<string, number>();

  constructor(most: number, mostOfAddress: number) {
    this.#most = most;
    this.#mostOfAddress = mostOfAddress;
  }

  /** False: there is none. `reserved`: places besides, for whoever is not bound by the address either. */
  take(request: FastifyRequest, reserved: number): boolean {
    const address = addressOf(request);
    if (this.#taken.size >= this.#most + reserved) return false;
    if (reserved === 0 && address !== null && this.#count(address) >= this.#mostOfAddress) return false;
    this.#taken.set(request, address);
    if (address !== null) this.#ofAddress.set(address, this.#count(address) + 1);
    return true;
  }

  /** False: it had none. */
  leave(request: FastifyRequest): boolean {
    const address = this.#taken.get(request);
    if (address === undefined) return false;
    this.#taken.delete(request);
    if (address === null) return true;
    const left = this.#count(address) - 1;
    if (left > 0) this.#ofAddress.set(address, left);
    else this.#ofAddress.delete(address);
    return true;
  }

  /** Those that leave so that there is room for this one. */
  make(request: FastifyRequest): FastifyRequest[] {
    const address = addressOf(request);
    const ofAddress = address !== null && this.#count(address) >= this.#mostOfAddress;
    if (!ofAddress && this.#taken.size < this.#most) return [];
    for (const [eldest, its] of this.#taken) {
      if (ofAddress && its !== address) continue;
      this.leave(eldest);
      return [eldest];
    }
    return [];
  }

  #count(address: string): number {
    return this.#ofAddress.get(address) ?? 0;
  }
}

/** Null: not counted by address, since one would stand for everybody, or is this machine's. */
function addressOf(request: FastifyRequest): string | null {
  const requester = requesterOf(request);
  return requester === null || isThisMachine(requester) ? null : originOf(requester);
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** What has not arrived by now is not waited for. */
function cutOff(request: FastifyRequest, reply: FastifyReply): void {
  const { socket } = request.raw;
  if (reply.raw.headersSent || socket.destroyed) return;
  socket.end("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", () =>
    socket.destroy(),
  );
}
