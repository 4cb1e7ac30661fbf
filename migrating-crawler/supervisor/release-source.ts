/**
 * The coordinator's `/releases/` over HTTPS, as the dock reads it: pinned like the crawler's own link, through the
 * partner's proxy where there is one, bounded in size and time. Nothing that comes from here is believed before
 * its signature or digest was checked.
 */
import { createWriteStream } from "node:fs";
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import { type CoordinatorRoute, connectionTo } from "../net/coordinator-socket.ts";

/** An answer that ends before the whole of it is there, is longer than it may be, or comes too slowly. */
export class SourceFailure extends Error {
  override readonly name = "SourceFailure";
}

export interface SourceTimes {
  /** For a signed list, all in all. */
  readonly textMs: number;
  /** For a bundle, all in all: 64 MiB at 1 Mbit/s. */
  readonly bundleMs: number;
}

const defaultTimes: SourceTimes = { textMs: 30_000, bundleMs: 540_000 };

export interface SourceSettings {
  /** `wss://` or, on loopback, `ws://`; the releases are on the same host and port. */
  readonly coordinatorUrl: string;
  /** Asked for each request: settings change. */
  readonly route: () => CoordinatorRoute;
  readonly times?: SourceTimes;
}

export class ReleaseSource {
  readonly #settings: SourceSettings;
  readonly #stopping = new AbortController();

  constructor(settings: SourceSettings) {
    this.#settings = settings;
  }

  /** The whole answer; null: there is none (404). Throws a SourceFailure. */
  async text(path: string, maxBytes: number): Promise<string | null> {
    const { textMs } = this.#settings.times ?? defaultTimes;
    return await this.#get(path, textMs, async (answer) => {
      if (answer.statusCode === 404) return null;
      const pieces: Buffer[] = [];
      for await (const piece of bounded(answer, maxBytes)) pieces.push(piece);
      return Buffer.concat(pieces).toString("utf8");
    });
  }

  /** Into a file, which is flushed; false: there is none (404). Throws a SourceFailure. */
  async download(
    path: string,
    { bytes, file }: { readonly bytes: number; readonly file: string },
  ): Promise<boolean> {
    const { bundleMs } = this.#settings.times ?? defaultTimes;
    return await this.#get(path, bundleMs, async (answer) => {
      if (answer.statusCode === 404) return false;
      await pipeline(bounded(answer, bytes), createWriteStream(file, { mode: 0o600, flush: true }));
      return true;
    });
  }

  /** Ends what is under way. */
  close(): void {
    this.#stopping.abort();
  }

  async #get<Value>(
    path: string,
    totalMs: number,
    read: (answer: http.IncomingMessage) => Promise<Value>,
  ): Promise<Value> {
    const url = new URL(path, httpUrl(this.#settings.coordinatorUrl));
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(totalMs)]);
    try {
      const answer = await this.#ask(url, signal);
      const { statusCode } = answer;
      if (statusCode === 200 || statusCode === 404) return await read(answer);
      answer.destroy();
      throw new SourceFailure(`the coordinator answered with status ${statusCode}`);
    } catch (error) {
      const words = signal.aborted ? `no whole answer within ${totalMs / 1000} s` : messageOf(error);
      throw new SourceFailure(`${url.pathname}: ${words}`, { cause: error });
    }
  }

  #ask(url: URL, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { request } = url.protocol === "https:" ? https : http;
    const createConnection = connectionTo(url, this.#settings.route()) as unknown as NonNullable<
      http.RequestOptions["createConnection"]
    >;
    return new Promise((resolve, reject) => {
      const asked = request(url, { createConnection, signal, headers: { connection: "close" } }, resolve);
      asked.once("error", reject).end();
    });
  }
}

function httpUrl(coordinatorUrl: string): string {
  return coordinatorUrl.replace(/^ws/, "http");
}

async function* bounded(answer: http.IncomingMessage, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const piece of answer) {
    bytes += (piece as Buffer).length;
    if (bytes > maxBytes) throw new SourceFailure(`the answer is longer than ${maxBytes} bytes`);
    yield piece as Buffer;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
