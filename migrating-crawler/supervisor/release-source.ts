/**
 * Downloads from the coordinator's `/releases/` over HTTPS, with the certificate pinned as for the crawler's link, through the
 * partner's proxy, limited in size and time, and within the partner's bytes per second, day and month. A bundle arrives in
 * pieces (Range, RFC 9110 section 14) and resumes after an interruption. Callers verify every signature or digest.
 */

import { truncateSync } from "node:fs";
import { open, stat } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import { timerMs } from "#core/timer-ms";
import { TransferRate } from "../limits/shares.ts";
import { UsageCaps } from "../limits/usage-caps.ts";
import { type CoordinatorRoute, connectionTo } from "../net/coordinator-socket.ts";
import type { CrawlerLimits } from "../settings/limits-config.ts";

/** The answer was truncated, too long or too slow. */
export class SourceFailure extends Error {
  override readonly name = "SourceFailure";
}

interface SourceTimes {
  /** Total time for a signed list, not including waits for the partner's rate. */
  readonly textMs: number;
  readonly bundleMs: number;
}

const defaultTimes: SourceTimes = { textMs: 30_000, bundleMs: 540_000 };

/**
 * A piece is as large as the partner's rate allows in this time, but not smaller than the minimum, because an answer occupies
 * a slot at the coordinator.
 */
const pieceSeconds = 30;
const leastPieceBytes = 64 * 1024;

export interface SourceSettings {
  /** `wss://` or, on loopback, `ws://`. Releases have the same host and port. */
  readonly coordinatorUrl: string;
  readonly route: () => CoordinatorRoute;
  readonly times?: SourceTimes;
  readonly allowance?: DownloadAllowance;
}

export class ReleaseSource {
  readonly #settings: SourceSettings;
  readonly #stopping = new AbortController();

  constructor(settings: SourceSettings) {
    this.#settings = settings;
  }

  /** Returns the whole answer, or null if there is none (404). Throws a SourceFailure. */
  async text(path: string, maxBytes: number): Promise<string | null> {
    const { textMs } = this.#settings.times ?? defaultTimes;
    return await this.#get(path, { totalMs: textMs, maxBytes }, async (answer) => {
      if (answer.statusCode === 404) return null;
      const pieces: Buffer[] = [];
      for await (const piece of this.#bounded(answer, maxBytes)) pieces.push(piece);
      return Buffer.concat(pieces).toString("utf8");
    });
  }

  /** Downloads into a flushed file, resuming a partial one. Returns false if there is none (404). Throws a SourceFailure. */
  async download(
    path: string,
    { bytes, file }: { readonly bytes: number; readonly file: string },
  ): Promise<boolean> {
    for (;;) {
      const has = (await stat(file).catch(() => null))?.size ?? 0;
      if (has >= bytes && has > 0) return true;
      const came = await this.#piece(path, { has, bytes, file });
      if (came !== "piece") return came === "all";
    }
  }

  async #piece(
    path: string,
    { has, bytes, file }: { readonly has: number; readonly bytes: number; readonly file: string },
  ): Promise<"piece" | "all" | "nothing"> {
    const { bundleMs } = this.#settings.times ?? defaultTimes;
    const rate = this.#settings.allowance?.bytesPerSecond ?? null;
    const most = rate === null ? bytes : Math.max(leastPieceBytes, Math.floor(rate * pieceSeconds));
    const last = Math.min(bytes, has + most) - 1;
    const asked = { totalMs: bundleMs, maxBytes: bytes - has, range: `bytes=${has}-${last}` };
    return await this.#get(path, asked, async (answer) => {
      if (answer.statusCode === 404) return "nothing";
      const isPiece = answer.statusCode === 206;
      if (!isPiece && has > 0) truncateSync(file);
      let came = 0;
      const handle = await open(file, "a", 0o600);
      try {
        const room = isPiece ? last + 1 - has : bytes;
        for await (const piece of this.#bounded(answer, room)) {
          await handle.write(piece);
          came += piece.length;
        }
        await handle.sync();
      } finally {
        await handle.close();
      }
      if (isPiece && came <= last - has) throw new SourceFailure(`${came} of ${last + 1 - has} bytes came`);
      return isPiece ? "piece" : "all";
    });
  }

  close(): void {
    this.#stopping.abort();
    this.#settings.allowance?.close();
  }

  async #get<Value>(
    path: string,
    { totalMs, maxBytes, range }: Asked,
    read: (answer: http.IncomingMessage) => Promise<Value>,
  ): Promise<Value> {
    const url = new URL(path, httpUrl(this.#settings.coordinatorUrl));
    const { allowance } = this.#settings;
    const needed = range === undefined ? Math.min(maxBytes, leastPieceBytes) : maxBytes;
    if (allowance !== undefined && allowance.leftBytes() < needed)
      throw new SourceFailure(`${url.pathname}: the bytes that this machine's settings allow are used up`);
    await allowance?.take(0);
    const rate = allowance?.bytesPerSecond ?? null;
    const mostMs = totalMs + (rate === null ? 0 : (1000 * maxBytes) / rate);
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(timerMs(mostMs))]);
    try {
      const answer = await this.#ask(url, { signal, range });
      const { statusCode } = answer;
      if (statusCode === 200 || statusCode === 404 || (statusCode === 206 && range !== undefined))
        return await read(answer);
      answer.destroy();
      throw new SourceFailure(`the coordinator answered with status ${statusCode}`);
    } catch (error) {
      const words = signal.aborted
        ? `no whole answer within ${Math.round(mostMs / 1000)} s`
        : messageOf(error);
      throw new SourceFailure(`${url.pathname}: ${words}`, { cause: error });
    }
  }

  #ask(
    url: URL,
    { signal, range }: { readonly signal: AbortSignal; readonly range: string | undefined },
  ): Promise<http.IncomingMessage> {
    const { request } = url.protocol === "https:" ? https : http;
    const route = { ...this.#settings.route(), watch: (socket: net.Socket) => this.#count(socket) };
    const createConnection = connectionTo(url, route) as unknown as NonNullable<
      http.RequestOptions["createConnection"]
    >;
    const headers = { connection: "close", ...(range === undefined ? {} : { range }) };
    return new Promise((resolve, reject) => {
      const asked = request(url, { createConnection, signal, headers }, resolve);
      asked.once("error", reject).end();
    });
  }

  /** Includes the bytes of TLS and headers. */
  #count(socket: net.Socket): void {
    socket.once("close", () => this.#settings.allowance?.carried(socket.bytesRead + socket.bytesWritten));
  }

  async *#bounded(answer: http.IncomingMessage, maxBytes: number): AsyncGenerator<Buffer> {
    const { allowance } = this.#settings;
    let bytes = 0;
    for await (const piece of answer) {
      bytes += (piece as Buffer).length;
      if (bytes > maxBytes) throw new SourceFailure(`the answer is longer than ${maxBytes} bytes`);
      await allowance?.take((piece as Buffer).length);
      yield piece as Buffer;
    }
  }
}

interface Asked {
  readonly totalMs: number;
  readonly maxBytes: number;
  readonly range?: string;
}

function httpUrl(coordinatorUrl: string): string {
  return coordinatorUrl.replace(/^ws/, "http");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

// Limits the supervisor's downloads: its lists and bundles count towards the crawler's bytes per second, day and month. A
// running crawler is notified and pays from its own bucket. Otherwise, the ledger on disk is updated here.

export type DownloadLimits = Pick<
  CrawlerLimits,
  "bytesPerDay" | "bytesPerMonth" | "kilobytesPerSecond" | "pagesPerDay" | "timeZone"
>;

export class DownloadAllowance {
  readonly #home: string;
  readonly #limits: () => DownloadLimits;
  readonly #rate: TransferRate;
  #isClosed = false;
  tell: (bytes: number) => boolean = () => false;

  /** `limits` is called repeatedly, because settings can change. */
  constructor({ home, limits }: { readonly home: string; readonly limits: () => DownloadLimits }) {
    this.#home = home;
    this.#limits = limits;
    this.#rate = new TransferRate(limits().kilobytesPerSecond);
  }

  get bytesPerSecond(): number | null {
    const { kilobytesPerSecond } = this.#limits();
    return kilobytesPerSecond === null ? null : kilobytesPerSecond * 1024;
  }

  leftBytes(): number {
    return this.#caps().leftBytes("ship");
  }

  take(bytes: number): Promise<void> | null {
    if (this.#isClosed) return null;
    this.#rate.apply(this.#limits().kilobytesPerSecond);
    return this.#rate.take(bytes);
  }

  carried(bytes: number): void {
    if (bytes === 0 || this.tell(bytes)) return;
    const caps = this.#caps();
    caps.count(0, bytes);
    caps.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#rate.close();
  }

  #caps(): UsageCaps {
    const kept = { home: this.#home, warn: () => {} };
    return new UsageCaps({ limits: this.#limits(), kept, now: () => new Date() });
  }
}
