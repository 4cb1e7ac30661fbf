/**
 * GETs registries' files with undici. Redirects are limited, never lead from https to http, and secrets stay at their
 * origin. The client uses one connection per host, its own User-Agent, and the operator's proxy. The caller's watch
 * limits every wait.
 */
import { lookup } from "node:dns";
import type { IncomingHttpHeaders } from "node:http";
import type { LookupFunction } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import tls from "node:tls";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import { parseAddress, unmapAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf, servicePortWords } from "#core/ip/special-purpose";
import { canParseUrl, urlTextOf } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";

export interface HttpSettings {
  readonly userAgent: string;
  readonly proxy: { readonly url: string; readonly authorization: string | null } | null;
  readonly certificates: readonly string[];
  readonly redirects: number;
  /**
   * Special-purpose addresses that may be contacted, directly and after redirects. Default: all. Behind a proxy, which
   * resolves names itself, this covers only literal addresses.
   */
  readonly allowed?: AllowedSpecialPurpose;
}

/** Values that must not appear in messages or files. They are only sent to the origin of the requested URL. */
export interface RequestSecrets {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

export const noSecrets: RequestSecrets = { headers: {}, query: {} };

interface HttpRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: RequestSecrets;
  readonly watch: Watch;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The final URL after redirects, without its query. */
  readonly url: string;
  /** The body as sent, which can be read once. Rejects with a DownloadFailure. */
  readonly body: AsyncIterable<Buffer>;
  close(): void;
}

const maxHeaderBytes = 32 * 1024;

export class HttpClient {
  readonly #settings: HttpSettings;
  readonly #dispatcher: Dispatcher;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    this.#dispatcher = dispatcherFor(settings);
  }

  async get(asked: HttpRequest): Promise<HttpAnswer> {
    const secretQuery = Object.entries(asked.secrets.query);
    let url = new URL(asked.url);
    for (const [key, value] of secretQuery) url.searchParams.set(key, value);
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#once(url, asked);
      const target = redirectOf(answer);
      if (target === null) return answer;
      answer.close();
      if (redirects >= this.#settings.redirects) {
        throw new DownloadFailure("never", `more than ${this.#settings.redirects} redirects`);
      }
      url = checkedRedirect(url, target);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  async #once(url: URL, { headers, secrets, watch, url: askedUrl }: HttpRequest): Promise<HttpAnswer> {
    requireAllowed(url, this.#settings.allowed ?? true);
    const isAskedOrigin = new URL(askedUrl).origin === url.origin;
    watch.restart();
    try {
      const {
        statusCode,
        headers: answered,
        body,
      } = await request(url, {
        dispatcher: this.#dispatcher,
        signal: watch.signal,
        headers: {
          "user-agent": this.#settings.userAgent,
          ...headers,
          ...(isAskedOrigin ? secrets.headers : {}),
        },
      });
      // A body dropped before its end emits an error, which would end the process if nobody handled it.
      body.on("error", () => {});
      return {
        status: statusCode,
        headers: answered,
        url: `${url.origin}${url.pathname}`,
        body: watched(body, watch),
        close: () => {
          watch.pause();
          body.destroy();
        },
      };
    } catch (error) {
      watch.pause();
      throw watch.signal.aborted ? watch.signal.reason : downloadFailure(error);
    }
  }
}

async function* watched(body: AsyncIterable<Buffer>, watch: Watch): AsyncGenerator<Buffer> {
  try {
    for await (const piece of body) {
      watch.pause();
      yield piece;
      watch.restart();
    }
  } catch (error) {
    throw watch.signal.aborted ? watch.signal.reason : brokenOff(error);
  } finally {
    watch.pause();
  }
}

function brokenOff(error: unknown): DownloadFailure {
  const { again, message, cause } = downloadFailure(error);
  return new DownloadFailure(again, `the answer broke off: ${message}`, { cause });
}

function redirectOf({ status, headers }: HttpAnswer): string | null {
  if (![301, 302, 303, 307, 308].includes(status)) return null;
  if (headers.location === undefined) {
    throw new DownloadFailure("never", `status ${status} without a Location`);
  }
  return urlTextOf(headers.location);
}

/** Messages leave the query out, because a server may echo our key in it. */
function checkedRedirect(from: URL, location: string): URL {
  if (!canParseUrl(location, from.href)) {
    throw new DownloadFailure("never", "redirected to something that is no URL");
  }
  const target = new URL(location, from);
  const shown = `${target.origin}${target.pathname}`.slice(0, 200);
  if (!/^https?:$/.test(target.protocol)) {
    throw new DownloadFailure("never", `redirected to ${target.protocol}, which is not fetched`);
  }
  if (from.protocol === "https:" && target.protocol === "http:") {
    throw new DownloadFailure("never", `redirected from https to http: ${shown} is refused`);
  }
  if (target.username !== "" || target.password !== "") {
    throw new DownloadFailure("never", "redirected to a URL with a user or password");
  }
  return target;
}

/** Throws a DownloadFailure for a forbidden literal address. `lookUpAllowed` checks names. */
function requireAllowed(url: URL, allowed: AllowedSpecialPurpose): void {
  if (allowed === true) return;
  const address = parseAddress(url.hostname.replace(/^\[(.*)\]$/, "$1"));
  const block = address && refusedBlockOf(unmapAddress(address), allowed);
  if (block) throw new DownloadFailure("never", `${url.host} is ${block}, which is not asked`);
  const service = servicePortWords(Number(url.port || (url.protocol === "https:" ? 443 : 80)));
  if (service !== null) throw new DownloadFailure("never", `${url.host} names ${service}`);
}

/** Resolves a name to its allowed addresses and lets the client connect to these only. */
function lookUpAllowed(allowed: AllowedSpecialPurpose): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const blocks = found.map(({ address }) => {
        const parsed = parseAddress(address);
        return parsed === null ? "no address" : refusedBlockOf(unmapAddress(parsed), allowed);
      });
      const usable = found.filter((_, at) => blocks[at] === null);
      const [first] = usable;
      if (first === undefined) {
        const words = `${hostname} is at ${found[0]?.address ?? "no address"}: ${blocks[0] ?? "nothing"}, which is not asked`;
        return callback(new DownloadFailure("never", words), "");
      }
      if (options.all) callback(null, usable);
      else callback(null, first.address, first.family);
    });
  };
}

function dispatcherFor({ proxy, certificates, allowed = true }: HttpSettings): Dispatcher {
  const guarded = allowed === true ? {} : { lookup: lookUpAllowed(allowed) };
  const ca = certificates.length === 0 ? {} : { ca: [...tls.rootCertificates, ...certificates] };
  // The caller's watch limits every wait, so these limits are off.
  const options = { connections: 1, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: maxHeaderBytes };
  if (proxy === null) return new Agent({ ...options, connect: { timeout: 0, ...ca, ...guarded } });
  return new ProxyAgent({
    ...options,
    uri: proxy.url,
    requestTls: { timeout: 0, ...ca },
    proxyTls: { timeout: 0, ...ca },
    ...(proxy.authorization === null ? {} : { token: proxy.authorization }),
  });
}

// Aborts its signal with a reason when a download's time is over.

export class Watch {
  readonly signal: AbortSignal;
  readonly #own = new AbortController();
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #runOut: () => void;
  #callOff: (() => void) | null = null;

  /** Starts counting at `restart`. The signal also aborts with its parent. */
  constructor(settings: {
    readonly clock: Clock;
    readonly ms: number;
    readonly again: DownloadFailure["again"];
    readonly reason: string;
    readonly parent: AbortSignal;
  }) {
    this.#clock = settings.clock;
    this.#ms = settings.ms;
    this.#runOut = () => this.#own.abort(new DownloadFailure(settings.again, settings.reason));
    this.signal = AbortSignal.any([settings.parent, this.#own.signal]);
  }

  restart(): void {
    this.pause();
    this.#callOff = this.#clock.after(this.#ms, this.#runOut);
  }

  pause(): void {
    this.#callOff?.();
    this.#callOff = null;
  }
}

export interface Clock {
  now(): Date;
  after(ms: number, run: () => void): () => void;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  after: (ms, run) => {
    const timer = setTimeout(run, timerMs(ms));
    return () => clearTimeout(timer);
  },
  sleep: async (ms, signal) => await delay(timerMs(ms), undefined, { signal }),
};

export class DownloadFailure extends Error {
  /** `later` means a temporary fault, `once` that one more try may help, `never` that the answer would be the same. */
  readonly again: "later" | "once" | "never";
  readonly retryAfterSeconds: number | null;

  constructor(
    again: DownloadFailure["again"],
    reason: string,
    options: ErrorOptions & { readonly retryAfterSeconds?: number | null } = {},
  ) {
    super(reason, options);
    this.again = again;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }
}

/** Converts any error: network faults may be temporary, disk and TLS faults are not. */
export function downloadFailure(error: unknown): DownloadFailure {
  if (error instanceof DownloadFailure) return error;
  const cause = causeOf(error);
  const code = String((cause as { code?: unknown }).code ?? "");
  const lasting =
    /^(ENOSPC|EDQUOT|EROFS|EACCES|EPERM|ENOENT|ENOTDIR|EISDIR|ERR_TLS|ERR_SSL|CERT_|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|ERR_INVALID|UND_ERR_INVALID)/;
  return new DownloadFailure(lasting.test(code) ? "never" : "later", wordsOf(cause, code), { cause: error });
}

/** Node wraps the faults of several addresses into one AggregateError without a message. */
function causeOf(error: unknown): Error {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  return error instanceof Error ? error : new Error(String(error));
}

function wordsOf(error: Error, code: string): string {
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the name cannot be resolved (${error.message})`;
  if (code === "ENOSPC" || code === "EDQUOT") return `the disk is full (${error.message})`;
  return error.message === "" ? code : error.message;
}
