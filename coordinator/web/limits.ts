/**
 * Limits concurrent requests, in total and per address, in three stages with separate slots, so that slow senders and readers
 * take nothing from the requests that are being answered:
 *
 * receiving (a body arrives) → working (a route answers) → sending (the answer goes out)
 *
 * A client that disconnects early releases its working slot only when the route has finished, so it cannot make the
 * coordinator work on more requests. Some slots of each kind are reserved for signed-in users.
 */

import type { FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import type { Whence } from "#core/access-types";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { canParseUrl } from "#core/ip/url-host";
import { growingTo } from "#core/small-collections";

export const maxOpenRequests = 32;

/** Maximum number of open requests per address, or IPv6 /64. */
export const maxOpenOfAddress = 10;

/** Maximum number of arriving bodies, each of at most 32 KB. */
export const maxReceived = 64;

export const maxReceivedOfAddress = 4;

/** Extra slots of each kind, beyond the limit, which only signed-in users can get. */
const reservedPlaces = 8;

/** A form is a few KB, so a sender that takes longer does so deliberately. */
export const defaultBodyTimeoutMs = 10_000;

/** Maximum number of answers being sent, which are in memory. Beyond this limit, the oldest is cut off. */
const maxSent = 256;

const maxSentOfAddress = 32;

/** A client that reads nothing for this long counts as gone. */
const silenceMs = 60_000;

/** Maximum number of concurrent look-ups of credentials while no slot is free. */
const maxLookUps = 8;

const maxLookUpsOfAddress = 2;

interface OpenRequestSettings {
  readonly bodyTimeoutMs: number;
  /** Whether the request has valid credentials. Called only when no public slot is left. */
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

  /** Call it before the body is read. Returns false if no slot is free. */
  async receive(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (!hasBody(request)) return true;
    if (!(await this.#take(this.#receiving, request))) return false;
    const deadline = setTimeout(() => cutOff(request, reply), this.#settings.bodyTimeoutMs);
    this.#deadlines.set(request, deadline);
    reply.raw.once("close", () => this.#received(request));
    return !request.raw.destroyed;
  }

  /** Call it when the request has arrived and its route is about to run. Returns false if no slot is free. */
  async begin(request: FastifyRequest): Promise<boolean> {
    this.#received(request);
    return await this.#take(this.#working, request);
  }

  /** Call it when the route has produced the answer. */
  answer(request: FastifyRequest, reply: FastifyReply): void {
    this.#received(request);
    // Routes with limits of their own have their own timeout, too.
    if (!this.#working.leave(request)) return;
    if (reply.raw.destroyed) return;
    reply.raw.setTimeout(silenceMs, () => reply.raw.destroy());
    reply.raw.once("close", () => this.#sending.leave(request));
    for (const slowest of this.#sending.make(request)) slowest.raw.socket.destroy();
    this.#sending.take(request, 0);
  }

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

  /** Requests without credentials are not looked up, and look-ups of invented credentials are limited. */
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

/** Slots, limited in number and per address, and ordered by age. */
class Places {
  readonly #most: number;
  readonly #mostOfAddress: number;
  readonly #taken = new Map<FastifyRequest, string | null>();
  readonly #ofAddress = new Map<string, number>();

  constructor(most: number, mostOfAddress: number) {
    this.#most = most;
    this.#mostOfAddress = mostOfAddress;
  }

  /** Returns false if no slot is free. `reserved` is how many extra slots, without a limit per address, the request may use. */
  take(request: FastifyRequest, reserved: number): boolean {
    const address = addressOf(request);
    if (this.#taken.size >= this.#most + reserved) return false;
    if (reserved === 0 && address !== null && this.#count(address) >= this.#mostOfAddress) return false;
    this.#taken.set(request, address);
    if (address !== null) this.#ofAddress.set(address, this.#count(address) + 1);
    return true;
  }

  /** Returns false if the request held no slot. */
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

  /** Evicts requests to make room for this one. */
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

/** Null if requests from the address are not counted: a proxy's address, which would stand for everybody, or this machine's. */
function addressOf(request: FastifyRequest): string | null {
  const requester = requesterOf(request);
  return requester === null || isFromThisMachine(request) ? null : originOf(requester);
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function cutOff(request: FastifyRequest, reply: FastifyReply): void {
  const { socket } = request.raw;
  if (reply.raw.headersSent || socket.destroyed) return;
  socket.end("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", () =>
    socket.destroy(),
  );
}

// Limits connections in total and per address, and failed attempts per address and minute. An IPv6 address counts as its /64,
// which a single subscriber usually has.

export interface ConnectionLimitSettings {
  readonly connections: number;
  readonly connectionsPerAddress: number;
  /** Counts wrong keys or versions, and garbage. A fleet that restarts behind one address causes none. */
  readonly failuresPerAddressAndMinute: number;
}

const minuteMs = 60_000;

const rememberedAddresses = 100_000;

export class ConnectionLimits {
  readonly #settings: ConnectionLimitSettings;
  readonly #now: () => number;
  readonly #openOf = new Map<string, number>();
  readonly #failuresOf = new LRUCache<string, { count: number; readonly since: number }>({
    ...growingTo(rememberedAddresses),
  });
  #open = 0;

  /** `now` is monotonic, in ms. */
  constructor(settings: ConnectionLimitSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /** Takes a slot, which `close` releases, and returns null, or returns why it refuses. */
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

/** The origin of a connection: an IPv4 address, or the /64 of an IPv6 address. */
export function originOf(address: string): string {
  const parsed = parseAddress(address);
  if (!parsed) return address;
  const plain = unmapAddress(parsed);
  if (plain.family === 4) return formatAddress(plain);
  return `${formatAddress({ family: 6, value: (plain.value >> 64n) << 64n })}/64`;
}

/** The network of one subscriber or hoster: the /24 of an IPv4 address, the /48 of an IPv6 address. */
export function networkOf(address: string): string {
  const parsed = parseAddress(address);
  if (!parsed) return address;
  const plain = unmapAddress(parsed);
  if (plain.family === 4)
    return `${formatAddress({ family: 4, value: plain.value - (plain.value % 256) })}/24`;
  return `${formatAddress({ family: 6, value: (plain.value >> 80n) << 80n })}/48`;
}

// The origin of a request: its address, its browser, and whether one of our pages sent it.

/**
 * Behind a trusted proxy, this is the last address of X-Forwarded-For, which the proxy saw itself, or null if the proxy does
 * not state it.
 */
export function requesterOf(request: FastifyRequest): string | null {
  if (request.ips?.length === 1) return null;
  const address = parseAddress(request.ip);
  return address === null ? null : formatAddress(unmapAddress(address));
}

export const isThisMachine = (address: string): boolean =>
  /^(::ffff:)?127\./i.test(address) || address === "::1";

/** Whether it is a direct request from this machine, which is trusted. A local proxy's requests are not. */
export const isFromThisMachine = (request: FastifyRequest): boolean =>
  isThisMachine(request.ip) && proxyMarkOf(request) === null;

/** Header fields that proxies and CDNs add (RFC 7239, RFC 9110 section 7.6.3, and vendors' own). */
const forwardingField =
  /^(forwarded|via|x-(real-ip|forwarded\b.*|(original|client|cluster-client|envoy|amzn|azure)-.*)|(true|fastly)-client-ip|cf-.*|cdn-loop|tailscale-.*)$/;

/**
 * Returns the evidence that a proxy forwarded the request, or null. Before 1.29.7, nginx used HTTP/1.0 towards origins by
 * default; browsers and curl do not. A Referer with another name for our page means that somebody rewrites Host.
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

/** Whether another site's page sent the form. Programs send no such header, but have no session to abuse. */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  // Our forms carry our origin. `null` comes from sandboxed frames and local files.
  return !canParseUrl(origin) || new URL(origin).host !== host;
}
