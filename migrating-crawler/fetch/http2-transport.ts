/**
 * HTTP/2 (RFC 9113) over one open TLS connection, one request at a time. node:http2 bounds what a server can
 * do to it: header lists (also by CONTINUATION frames), settings, empty frames, unacknowledged pings, its own
 * memory. What it lets pass is bounded here (control frames) and by the exchange's watch (bytes that are no
 * content). Server push is refused.
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
import { Failure } from "../net/failure.ts";
import type { AnswerHeaders, Exchange } from "./exchange.ts";
import { keepAliveMs, maxHeaderBytes, maxHeaders } from "./http1-transport.ts";
import type { SiteRequest, Transport } from "./transport.ts";

/** How much may be under way unread, of a stream and of the connection: a round trip of 200 ms at 40 Mbit/s. */
const windowBytes = 1024 * 1024;
const sessionMegabytes = 4;
/** Settings and pings of a whole connection; ordinary servers send a handful. */
const maxControlFrames = 200;

export class Http2Transport implements Transport {
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
    // Told of a session that was destroyed before, too.
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

  /** Nothing to do: open for a while yet. */
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
