/**
 * One connection from a crawler to a site, between the proxy's socket and the origin's HTTP server. Bytes
 * from the crawler arrive half an RTT later; bytes from the server leave under slow start and bandwidth and
 * arrive half an RTT after that. Order is kept, either side may end first, and neither side can fill the
 * memory: past a limit the other one is paused.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { SlowStart } from "./compare.ts";
import type { DueQueue } from "./world-state.ts";

/** The most bytes in transit per direction. */
const bytesUnderWay = 256 * 1024;

export interface ConnectionSettings {
  readonly crawlerIndex: number;
  /** The public address that the crawler connected to. */
  readonly address: string;
  readonly socket: Socket;
  readonly bandwidthKbps: number;
  readonly queue: DueQueue;
  readonly rttMs: number;
  readonly drawNoiseMs: () => number;
}

/** The server's end of the connection; the proxy's socket is wired in the constructor. */
export class WorldConnection extends Duplex {
  readonly crawlerIndex: number;
  readonly address: string;
  readonly #settings: ConnectionSettings;
  readonly #slowStart: SlowStart;
  #upDueMs = 0;
  #upBytes = 0;
  #downDueMs = 0;
  #downBytes = 0;
  #writtenLater: (() => void) | null = null;

  constructor(settings: ConnectionSettings) {
    super({ allowHalfOpen: true, highWaterMark: 64 * 1024 });
    this.#settings = settings;
    this.crawlerIndex = settings.crawlerIndex;
    this.address = settings.address;
    this.#slowStart = new SlowStart(settings.bandwidthKbps);
    const { socket } = settings;
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("end", () => this.#later(() => this.push(null)));
    socket.on("error", () => this.destroy());
    socket.on("close", () => this.#later(() => this.destroy()));
    socket.on("drain", () => this.#release());
    this.on("error", () => socket.destroy());
  }

  /** A chunk from the crawler, as it comes from the proxy's socket. */
  receive(chunk: Buffer): void {
    this.#upBytes += chunk.length;
    if (this.#upBytes + this.readableLength > bytesUnderWay) this.#settings.socket.pause();
    this.#later(() => {
      this.#upBytes -= chunk.length;
      if (!this.destroyed) this.push(chunk);
    });
  }

  override _read(): void {
    if (this.#upBytes + this.readableLength <= bytesUnderWay) this.#settings.socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const { queue } = this.#settings;
    const nowMs = performance.now();
    const rtt = this.#settings.rttMs;
    let from = 0;
    this.#downBytes += chunk.length;
    for (const piece of this.#slowStart.send(chunk.length, nowMs, rtt)) {
      const part = chunk.subarray(from, from + piece.bytes);
      from += piece.bytes;
      this.#downDueMs = Math.max(this.#downDueMs, piece.leftMs + rtt / 2);
      queue.at(this.#downDueMs, () => this.#deliver(part));
    }
    this.#writtenLater = done;
    this.#release();
  }

  override _final(done: () => void): void {
    const { queue, socket } = this.#settings;
    this.#downDueMs = Math.max(this.#downDueMs, performance.now() + this.#settings.rttMs / 2);
    queue.at(this.#downDueMs, () => socket.end());
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { queue, socket } = this.#settings;
    queue.at(Math.max(this.#downDueMs, performance.now()), () => socket.destroySoon());
    done(error);
  }

  /** The HTTP server expects these socket methods; the emulated network has no timers or options. */
  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }

  #deliver(part: Buffer): void {
    this.#downBytes -= part.length;
    if (!this.#settings.socket.destroyed) this.#settings.socket.write(part);
    this.#release();
  }

  /** Lets the server write on as soon as there is room toward the crawler. */
  #release(): void {
    const { socket } = this.#settings;
    if (this.#downBytes + socket.writableLength > bytesUnderWay && !socket.destroyed) return;
    const done = this.#writtenLater;
    this.#writtenLater = null;
    done?.();
  }

  /** Runs half an RTT from now; noise is drawn only when nothing else is on the way up. */
  #later(run: () => void): void {
    const { queue, drawNoiseMs } = this.#settings;
    const nowMs = performance.now();
    const noise = this.#upDueMs <= nowMs ? drawNoiseMs() : 0;
    this.#upDueMs = Math.max(this.#upDueMs, nowMs + this.#settings.rttMs / 2 + noise);
    queue.at(this.#upDueMs, run);
  }
}
