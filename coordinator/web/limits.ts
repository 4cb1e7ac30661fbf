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
import { LRUCache } from "lru-cache";
import type { Whence } from "#core/access-types";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { canParseUrl } from "#core/ip/url-host";
import { growingTo } from "#core/small-collections";

/** Each takes a few database connections for milliseconds. */
export const maxOpenRequests = 32;

/** Of one address, or IPv6 /64. */
export const maxOpenOfAddress = 10;

/** Bodies that are arriving: 32 KB each at most. */
export const maxReceived = 64;

export const maxReceivedOfAddress = 4;

/** Besides, for those who have signed in: places of each kind. */
const reservedPlaces = 8;

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

interface OpenRequestSettings {
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
  return requester === null || isFromThisMachine(request) ? null : originOf(requester);
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

// Who may open another connection: bounds on all, on those of one address, and on failed attempts of one
// address in a minute. An IPv6 address counts as its /64, which one subscriber holds whole.

export interface ConnectionLimitSettings {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Wrong keys, wrong versions, garbage. A restarting fleet behind one address makes none. */
  readonly failuresPerAddressAndMinute: number;
}

const minuteMs = 60_000;

/** Addresses whose failures are remembered. */
const rememberedAddresses = 100_000;

export class ConnectionLimits {
  readonly #settings: ConnectionLimitSettings;
  readonly #now: () => number;
  readonly #openOf = new Map<string, number>();
  readonly #failuresOf = new LRUCache<string, { count: number; readonly since: number }>({
    ...growingTo(rememberedAddresses),
  });
  #open = 0;

  /** `now` in ms, monotonic. */
  constructor(settings: ConnectionLimitSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /** Why not, in words; null takes a place, to be given back by `close`. */
  open(address: string): string | null {
    const origin = originOf(address);
    const { connections, connectionsPerAddress, failuresPerAddressAndMinute } = this.#settings;
    if (this.#open >= connections) return `all ${connections} connections are taken`;
    const ofOrigin = this.#openOf.get(origin) ?? 0;
    if (ofOrigin >= connectionsPerAddress) return `${origin} has ${ofOrigin} connections already`;
    if (this.#failures(origin) >= failuresPerAddressAndMinute) return `too many failures from ${origin}`;
    this.#open += 1;
    this.#openOf.set(origin, ofOrigin + 1);
    return null;
  }

  close(address: string): void {
    const origin = originOf(address);
    const left = (this.#openOf.get(origin) ?? 1) - 1;
    this.#open -= 1;
    if (left > 0) this.#openOf.set(origin, left);
    else this.#openOf.delete(origin);
  }

  /** An attempt that did not end in a welcome. */
  countFailure(address: string): void {
    const origin = originOf(address);
    const before = this.#failures(origin);
    const since = before === 0 ? this.#now() : (this.#failuresOf.get(origin)?.since ?? this.#now());
    this.#failuresOf.set(origin, { count: before + 1, since });
  }

  #failures(origin: string): number {
    const failures = this.#failuresOf.get(origin);
    return failures && this.#now() - failures.since < minuteMs ? failures.count : 0;
  }
}

/** What counts as one origin: an IPv4 address, or the /64 of an IPv6 address. */
export function originOf(address: string): string {
  const parsed = parseAddress(address);
  if (!parsed) return address;
  const plain = unmapAddress(parsed);
  if (plain.family === 4) return formatAddress(plain);
  return `${formatAddress({ family: 6, value: (plain.value >> 64n) << 64n })}/64`;
}

/** What one subscriber or hoster may have whole: the /24 of an IPv4 address, the /48 of an IPv6 address. */
export function networkOf(address: string): string {
  const parsed = parseAddress(address);
  if (!parsed) return address;
  const plain = unmapAddress(parsed);
  if (plain.family === 4)
    return `${formatAddress({ family: 4, value: plain.value - (plain.value % 256) })}/24`;
  return `${formatAddress({ family: 6, value: (plain.value >> 80n) << 80n })}/48`;
}

// From where a request comes: the address, the browser, and whether a page of ours has sent it.

/**
 * Behind a proxy (the server's `trustProxy`), the last address of X-Forwarded-For, which is the one that the proxy
 * saw. Null: a proxy that does not say.
 */
export function requesterOf(request: FastifyRequest): string | null {
  if (request.ips?.length === 1) return null;
  const address = parseAddress(request.ip);
  return address === null ? null : formatAddress(unmapAddress(address));
}

export const isThisMachine = (address: string): boolean =>
  /^(::ffff:)?127\./i.test(address) || address === "::1";

/** Whoever is on this machine can do worse than read too much; whoever comes through a proxy on it is elsewhere. */
export const isFromThisMachine = (request: FastifyRequest): boolean =>
  isThisMachine(request.ip) && proxyMarkOf(request) === null;

/** RFC 7239, RFC 9110 section 7.6.3, and what proxies and content delivery networks add of their own. */
const forwardingField =
  /^(forwarded|via|x-(real-ip|forwarded\b.*|(original|client|cluster-client|envoy|amzn|azure)-.*)|(true|fastly)-client-ip|cf-.*|cdn-loop|tailscale-.*)$/;

/**
 * What shows that a proxy passed this request on; null: nothing does. HTTP/1.0 is what nginx spoke to its origin by default before
 * 1.29.7, and no browser and no curl does. A page of ours that is known by another name (Referer) was read through somebody who
 * rewrites Host.
 */
export function proxyMarkOf({ headers, raw }: FastifyRequest): string | null {
  const field = Object.keys(headers).find((name) => forwardingField.test(name));
  if (field !== undefined) return field;
  if (raw.httpVersion === "1.0") return "HTTP/1.0";
  const { referer, host, "sec-fetch-site": site } = headers;
  const isRenamed = site === "same-origin" && canParseUrl(referer ?? "") && new URL(referer!).host !== host;
  return isRenamed ? "a Referer of another name" : null;
}

export function whenceOf(request: FastifyRequest): Whence {
  const { "user-agent": userAgent = "" } = request.headers;
  return { remoteAddress: requesterOf(request), userAgent };
}

/** Browsers say from where a form was sent; programs need not, and have nobody's rights to abuse. */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // Our pages send their forms with their origin; `null` is a sandboxed frame's, or a file's.
  return !canParseUrl(origin) || new URL(origin).host !== host;
}
