/**
 * One origin, spoken to over one connection at a time: opened by the connector (checked address, proxy, timed
 * phases, TLS), kept alive between requests, HTTP/2 where the site offers it and HTTP/1.1 otherwise. A site
 * client lives as long as a host slice is crawled; one request at a time.
 */
import type { TLSSocket } from "node:tls";
import { urlHost } from "#core/ip/url-host";
import type { Connector, ConnectPhases } from "../net/connector.ts";
import { Failure, failureOf } from "../net/failure.ts";
import { Exchange, type SiteAnswer } from "./exchange.ts";
import type { Timeouts } from "./exchange-watch.ts";
import { Http1Transport } from "./http1-transport.ts";
import { Http2Transport } from "./http2-transport.ts";
import type { SignRequest } from "./sign-request.ts";
import type { SiteRequest, Transport } from "./transport.ts";

export type { Timeouts };

/** How a site was spoken to: the HTTP version, and the TLS version (`TLSv1.3`) or null without TLS. */
export interface SiteConnection {
  readonly http: "1.1" | "2";
  readonly tls: string | null;
}

export interface SiteClientSettings {
  readonly connector: Connector;
  readonly timeouts: Timeouts;
  readonly recorder?: ExchangeRecorder | undefined;
  /** Fields that sign a request; absent: requests are not signed. */
  readonly sign?: SignRequest | undefined;
}

/** Keeps what is asked and answered (WARC). */
export interface ExchangeRecorder {
  /** The answer to read in place of the given one. */
  watch(asked: AskedOfSite, answer: SiteAnswer): SiteAnswer;
}

export interface AskedOfSite {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The other end of the connection. */
  readonly address: string | null;
  readonly http: "1.1" | "2";
}

export class SiteClient {
  readonly origin: string;
  /** The address of the latest connection, or null before the first. */
  address: string | null = null;
  /** The latest connection; null before the first. */
  connection: SiteConnection | null = null;
  readonly #settings: SiteClientSettings;
  #transport: Transport | null = null;
  #untold: ConnectPhases | null = null;
  /** HTTP/2 failed here: not offered again. */
  #isHttp1Only = false;
  #isClosed = false;

  constructor(settings: SiteClientSettings & { readonly origin: string }) {
    this.origin = settings.origin;
    this.#settings = settings;
  }

  /**
   * Sends a GET, or the method that the request names. Throws a Failure. Two things are no failure of the site, and the request goes out once more
   * on a new connection: a kept connection that it closed just then, and HTTP/2 that it offers but cannot do.
   */
  async get(request: SiteRequest): Promise<SiteAnswer> {
    const startedMs = performance.now();
    const wasKept = this.#transport?.isOpen === true;
    try {
      return await this.#try(request, startedMs);
    } catch (error) {
      if (!this.#mayTryAgain(failureOf(error), wasKept)) throw error;
      return this.#try(request, startedMs);
    }
  }

  /**
   * How long it took to connect, told once for each connection: the first page over it has this in its timing,
   * also when robots.txt went before it.
   */
  tellConnected(): ConnectPhases | null {
    const phases = this.#untold;
    this.#untold = null;
    return phases;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#drop();
  }

  async #try({ headers, ...asked }: SiteRequest, startedMs: number): Promise<SiteAnswer> {
    const transport = this.#transport?.isOpen ? this.#transport : await this.#open();
    const signed = this.#settings.sign?.(new URL(this.origin).host);
    const request = { ...asked, headers: { ...headers, ...signed } };
    const exchange = new Exchange(this.#settings.timeouts, startedMs);
    transport.send(request, exchange);
    return this.#recorded(request, await exchange.answer);
  }

  /** The answer, watched by the recorder where the partner keeps what is fetched; a HEAD fetches nothing. */
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
