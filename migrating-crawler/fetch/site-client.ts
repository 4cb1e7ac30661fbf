/**
 * Talks to one origin over one connection at a time, which the connector opens (checked address, proxy, timed phases, TLS). It
 * is kept alive, with HTTP/2 where offered and HTTP/1.1 otherwise. A client lives as long as a host slice is crawled and sends
 * one request at a time.
 */

import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import { urlHost } from "#core/ip/url-host";
import type { StatedPreference } from "#protocol/preferences";
import { Failure, failureOf } from "../core/failure.ts";
import type { Connector, ConnectPhases } from "../net/connector.ts";
import { type AnswerHeaders, Exchange, type SiteAnswer, type Timeouts } from "./exchange.ts";
import {
  Http1Transport,
  keepAliveMs,
  maxHeaderBytes,
  maxHeaders,
  type SiteRequest,
  type Transport,
} from "./http1-transport.ts";
import type { SignRequest } from "./sign-request.ts";

export type { Timeouts };

/** The HTTP version, and the TLS version (`TLSv1.3`) or null if there is no TLS. */
interface SiteConnection {
  readonly http: "1.1" | "2";
  readonly tls: string | null;
}

interface SiteClientSettings {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly recorder?: ExchangeRecorder | undefined;
  readonly sign?: SignRequest | undefined;
}

export interface ExchangeRecorder {
  /** Returns the answer to read, which may replace the given one. */
  watch(asked: AskedOfSite, answer: SiteAnswer): SiteAnswer;
  /** Records what the site states about the page last answered under this URL. */
  state(url: string, stated: readonly StatedPreference[]): Promise<void>;
}

export interface AskedOfSite {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly address: string | null;
  readonly http: "1.1" | "2";
}

export class SiteClient {
  readonly origin: string;
  address: string | null = null;
  connection: SiteConnection | null = null;
  readonly #settings: SiteClientSettings;
  #transport: Transport | null = null;
  #untold: ConnectPhases | null = null;
  /** True after HTTP/2 failed, so that it is not offered again. */
  #isHttp1Only = false;
  #isClosed = false;

  constructor(settings: SiteClientSettings & { readonly origin: string }) {
    this.origin = settings.origin;
    this.#settings = settings;
  }

  /**
   * Sends a GET, or the request's method. Throws a Failure. If a kept connection was just closed, or if HTTP/2 was offered but
   * failed, repeats the request once on a new connection, since neither is a failure of the site.
   */
  async get(request: SiteRequest): Promise<SiteAnswer> {
    const startedMs = performance.now();
    const wasKept = this.#transport?.isOpen === true;
    try {
      return await this.#noted(request, startedMs);
    } catch (error) {
      if (!this.#mayTryAgain(failureOf(error), wasKept)) throw error;
      return this.#noted(request, startedMs);
    }
  }

  /** Returns the connect time once per connection. The first page reports it, even if robots.txt opened the connection. */
  tellConnected(): ConnectPhases | null {
    const phases = this.#untold;
    this.#untold = null;
    return phases;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#drop();
  }

  async #noted(request: SiteRequest, startedMs: number): Promise<SiteAnswer> {
    const asked = { url: this.origin + request.path, how: request.method ?? "GET" };
    const { connector } = this.#settings;
    try {
      const answer = await this.#try(request, startedMs);
      connector.contacted({ ...asked, status: answer.status, address: this.address });
      return answer;
    } catch (error) {
      const { code, blame } = failureOf(error);
      const hasContacted = this.address !== null || (blame !== "crawler" && !code.startsWith("dns-"));
      if (hasContacted) connector.contacted({ ...asked, status: null, address: this.address, failure: code });
      throw error;
    }
  }

  async #try({ headers, ...asked }: SiteRequest, startedMs: number): Promise<SiteAnswer> {
    const transport = this.#transport?.isOpen ? this.#transport : await this.#open();
    const signed = this.#settings.sign?.(new URL(this.origin));
    const request = { ...asked, headers: { ...headers, ...signed } };
    const exchange = new Exchange(this.#settings.timeouts, startedMs);
    transport.send(request, exchange);
    return this.#recorded(request, await exchange.answer);
  }

  #recorded({ path, headers, method }: SiteRequest, answer: SiteAnswer): SiteAnswer {
    if (method === "HEAD") return answer;
    const { recorder } = this.#settings;
    const http = this.connection?.http ?? "1.1";
    const asked = { url: this.origin + path, headers, address: this.address, http };
    return recorder?.watch(asked, answer) ?? answer;
  }

  #mayTryAgain({ code }: Failure, wasKept: boolean): boolean {
    if (this.#isClosed) return false;
    const wasHttp2 = this.#transport?.http === "2";
    if (wasHttp2 && (code === "bad-response" || code === "connection-lost")) {
      this.#isHttp1Only = !wasKept;
      this.#drop();
      return true;
    }
    return wasKept && code === "connection-lost";
  }

  #drop(): void {
    this.#transport?.close();
    this.#transport = null;
  }

  async #open(): Promise<Transport> {
    this.#drop();
    this.address = null;
    this.connection = null;
    const url = new URL(this.origin);
    const secure = url.protocol === "https:";
    const opened = await this.#settings.connector.open({
      host: urlHost(url),
      port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
      secure,
      protocols: this.#isHttp1Only ? ["http/1.1"] : ["h2", "http/1.1"],
      timeoutMs: this.#settings.timeouts.connectMs,
    });
    if (this.#isClosed) {
      opened.socket.destroy();
      throw new Failure("stopped", "the crawl of this site was ended");
    }
    this.address = opened.address;
    this.#untold = opened.phases;
    const { socket } = opened;
    const transport = opened.http2
      ? new Http2Transport(this.origin, socket as TLSSocket)
      : new Http1Transport(this.origin, socket, opened.unread);
    this.connection = { http: transport.http, tls: opened.tls };
    this.#transport = transport;
    return transport;
  }
}

// Speaks HTTP/2 (RFC 9113) over one TLS connection, one request at a time. node:http2 limits header lists (including
// CONTINUATION frames), settings, empty frames, unacknowledged pings and its memory. This class limits control frames, and the
// exchange's watch limits other overhead. Server push is refused.

/** The flow control window of stream and connection, enough for 40 Mbit/s at a round trip of 200 ms. */
const windowBytes = 1024 * 1024;

const sessionMegabytes = 4;

/** Limits settings and pings per connection. Ordinary servers send a handful. */
const maxControlFrames = 200;

class Http2Transport implements Transport {
  readonly http = "2";
  readonly #origin: URL;
  readonly #socket: TLSSocket;
  readonly #session: ClientHttp2Session;
  #exchange: Exchange | null = null;
  #controlFrames = 0;
  #idle: NodeJS.Timeout | null = null;

  constructor(origin: string, socket: TLSSocket) {
    this.#origin = new URL(origin);
    this.#socket = socket;
    this.#session = connect(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes, maxHeaderListSize: maxHeaderBytes },
      maxHeaderListPairs: maxHeaders,
      maxSessionMemory: sessionMegabytes,
      maxReservedRemoteStreams: 0,
      peerMaxConcurrentStreams: 1,
    });
    this.#session.on("error", (error) => this.#lose(error));
    this.#session.on("close", () =>
      this.#lose(new Failure("connection-lost", "the site ended the connection")),
    );
    this.#session.on("goaway", (code) => {
      if (code !== constants.NGHTTP2_NO_ERROR) this.#lose(protocolFailure(`GOAWAY with code ${code}`));
    });
    this.#session.on("remoteSettings", () => this.#countControl());
    this.#session.on("ping", () => this.#countControl());
    // The event also fires for a session that was already destroyed.
    this.#session.once("connect", () => {
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(windowBytes);
    });
  }

  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed && !this.#socket.destroyed;
  }

  send(request: SiteRequest, exchange: Exchange): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#exchange = exchange;
    try {
      this.#carry(this.#session.request(this.#headersOf(request), { endStream: true }), exchange);
    } catch (error) {
      exchange.failed(error);
    }
  }

  close(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#exchange = null;
    this.#session.destroy();
    this.#socket.destroy();
  }

  #headersOf({ path, headers, method }: SiteRequest): Record<string, string> {
    return {
      ":method": method ?? "GET",
      ":scheme": this.#origin.protocol.slice(0, -1),
      ":authority": this.#origin.host,
      ":path": path,
      ...headers,
    };
  }

  #carry(stream: ClientHttp2Stream, exchange: Exchange): void {
    const socket = this.#socket;
    exchange.asked({
      abort: () => stream.close(constants.NGHTTP2_CANCEL),
      resume: () => stream.resume(),
      connectionBytes: () => socket.bytesRead,
    });
    stream.on("headers", () => exchange.informed());
    stream.once("response", (answer: Http2Head, _flags: number, rawHeaders: string[]) => {
      const { ":status": status, ...headers } = answer;
      exchange.answered(Number(status), headers as AnswerHeaders, { reason: "", rawHeaders });
    });
    stream.on("data", (piece: Buffer) => {
      if (!exchange.came(piece)) stream.pause();
    });
    stream.once("end", () => {
      if (exchange.status !== 0 && stream.rstCode === constants.NGHTTP2_NO_ERROR) exchange.completed();
    });
    stream.once("error", (error) => exchange.failed(error));
    stream.once("close", () => {
      exchange.failed(protocolFailure(`the stream was closed with code ${stream.rstCode}`));
      if (this.#exchange === exchange) this.#rest();
    });
  }

  #rest(): void {
    this.#exchange = null;
    if (this.isOpen) this.#idle = setTimeout(() => this.close(), keepAliveMs).unref();
  }

  #countControl(): void {
    if (++this.#controlFrames > maxControlFrames) this.#lose(protocolFailure("a flood of control frames"));
  }

  #lose(error: Error): void {
    const exchange = this.#exchange;
    this.close();
    exchange?.failed(error);
  }
}

type Http2Head = IncomingHttpHeaders & IncomingHttpStatusHeader;

const protocolFailure = (what: string) => new Failure("bad-response", `HTTP/2: ${what}`);
