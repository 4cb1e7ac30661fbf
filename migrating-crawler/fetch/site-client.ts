/**
 * One keep-alive connection to one origin, opened by the connector (checked address, proxy, timed phases),
 * spoken to by undici. A site client lives as long as a host slice is crawled; one request at a time.
 */
import { Client, type Dispatcher } from "undici";
import type { Connector, ConnectPhases } from "../net/connector.ts";
import { Failure, failureOf } from "../net/failure.ts";

/** Larger response headers end the request (undici's own default is 16 KiB; some sites set long cookies). */
const maxHeaderBytes = 32 * 1024;
/** An idle connection is closed after this; polite gaps between requests are usually shorter. */
const keepAliveMs = 15_000;

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

export interface SiteRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** An answer whose body has not been read. `firstByteMs` counts from when the request could be sent. */
export interface SiteAnswer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly body: Dispatcher.ResponseData["body"];
  readonly firstByteMs: number;
  /** Restart the idle clock: a piece of the body has come. */
  touch(): void;
  /** Stops every clock; call when the body was read or given up. */
  done(): void;
}

export class SiteClient {
  readonly origin: string;
  /** The address of the latest connection, or null before the first. */
  address: string | null = null;
  readonly #client: Client;
  readonly #timeouts: Timeouts;
  #connected: ConnectPhases | null = null;
  #untold: ConnectPhases | null = null;
  #connectedAtMs = 0;
  #failure: Failure | null = null;

  constructor(settings: {
    readonly origin: string;
    readonly connector: Connector;
    readonly timeouts: Timeouts;
  }) {
    this.origin = settings.origin;
    this.#timeouts = settings.timeouts;
    this.#client = new Client(settings.origin, {
      pipelining: 1,
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: (_options, callback) => {
        this.#open(settings.connector).then(
          (socket) => callback(null, socket),
          (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
        );
      },
    });
  }

  /**
   * Sends a GET. Throws a Failure; the connection is then gone. A kept connection that the site closed just
   * as the request went out is no failure of the site: the request goes out once more on a new one.
   */
  async get(request: SiteRequest): Promise<SiteAnswer> {
    try {
      return await this.#try(request);
    } catch (error) {
      const wasKept = this.#connected === null && this.#failure === null && this.address !== null;
      if (!wasKept || failureOf(error).code !== "connection-lost") throw error;
      return this.#try(request);
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
    await this.#client.destroy();
  }

  async #try(request: SiteRequest): Promise<SiteAnswer> {
    const clocks = new Clocks(this.#timeouts);
    this.#connected = null;
    this.#failure = null;
    const startedMs = performance.now();
    this.#connectedAtMs = startedMs;
    try {
      const answer = await this.#client.request({
        method: "GET",
        path: request.path,
        headers: request.headers,
        signal: clocks.signal,
      });
      const firstByteMs = performance.now() - Math.max(startedMs, this.#connectedAtMs);
      clocks.answered();
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: answer.body,
        firstByteMs,
        touch: () => clocks.touch(),
        done: () => clocks.stop(),
      };
    } catch (error) {
      clocks.stop();
      throw this.#failure ?? clocks.failure ?? failureOf(error);
    }
  }

  async #open(connector: Connector) {
    const url = new URL(this.origin);
    const secure = url.protocol === "https:";
    try {
      const opened = await connector.open({
        host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
        port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
        secure,
        timeoutMs: this.#timeouts.connectMs,
      });
      this.address = opened.address;
      this.#connected = opened.phases;
      this.#untold = opened.phases;
      this.#connectedAtMs = performance.now();
      return opened.socket;
    } catch (error) {
      this.#failure = failureOf(error);
      throw error;
    }
  }
}

/** The three clocks of a request. The first that runs out aborts it, and says which it was. */
class Clocks {
  failure: Failure | null = null;
  readonly #abort = new AbortController();
  readonly #timeouts: Timeouts;
  readonly #total: NodeJS.Timeout;
  #waiting: NodeJS.Timeout;

  constructor(timeouts: Timeouts) {
    this.#timeouts = timeouts;
    this.#total = setTimeout(() => this.#runOut("total-timeout", timeouts.totalMs), timeouts.totalMs);
    const patienceMs = timeouts.connectMs + timeouts.firstByteMs;
    this.#waiting = setTimeout(() => this.#runOut("first-byte-timeout", patienceMs), patienceMs);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The header is here: from now on the idle clock runs. */
  answered(): void {
    clearTimeout(this.#waiting);
    const idleMs = this.#timeouts.idleMs;
    this.#waiting = setTimeout(() => this.#runOut("idle-timeout", idleMs), idleMs);
  }

  touch(): void {
    this.#waiting.refresh();
  }

  stop(): void {
    clearTimeout(this.#waiting);
    clearTimeout(this.#total);
  }

  #runOut(code: "total-timeout" | "first-byte-timeout" | "idle-timeout", ms: number): void {
    this.stop();
    this.failure = new Failure(
      code,
      `no ${code === "first-byte-timeout" ? "answer" : "complete body"} within ${ms} ms`,
    );
    this.#abort.abort(this.failure);
  }
}
