/**
 * A crawler's access to the emulated Internet: a forward proxy on loopback that speaks HTTP CONNECT (RFC 9110 section
 * 9.3.6). The reply to a connection request takes one round trip to the target's public address, as a TCP handshake
 * does. Everything after it goes through a WorldConnection.
 *
 * Failures (502 with `X-Proxy-Error`), all in the world's time:
 *   refused      the address is in use but has no web server on that port: after one round trip
 *   timeout      the address is registered but nobody uses it: after a while
 *   unreachable  the name does not exist, or the address is in no registered range: soon
 */

import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { parseAddress } from "#core/ip/address";
import { rangeHolds } from "#core/ip/range";
import { SlowStart } from "./compare.ts";
import { addressSeenBy, type WorldSite } from "./model.ts";
import type { DueQueue, WorldState } from "./world-state.ts";

/** A router one or two hops away reports this quickly. */
const unreachableAfterMs = 3;

/** Maximum number of open sockets of one crawler at its proxy. */
const mostSockets = 2048;

interface RunningProxy {
  readonly port: number;
  close(): Promise<void>;
}

export async function startProxy(
  state: WorldState,
  crawlerIndex: number,
  connect: (connection: WorldConnection) => void,
): Promise<RunningProxy> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    acceptHandshake(socket, (request) => answer({ state, crawlerIndex, connect }, socket, request));
  });
  server.maxConnections = mostSockets;
  const port = await listen(server);
  return {
    port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

interface ProxyContext {
  readonly state: WorldState;
  readonly crawlerIndex: number;
  readonly connect: (connection: WorldConnection) => void;
}

function answer(context: ProxyContext, socket: Socket, request: ProxyRequest): void {
  const { state, crawlerIndex } = context;
  const reach = reachOf(state, crawlerIndex, request);
  state.queue.at(performance.now() + answerMs(state, reach), () => {
    if (reach.type === "site") open(context, { socket, request, reach });
    else if (!socket.destroyed) request.refuse(reach.type);
  });
}

/** When a handshake is answered, in ms from its start. */
function answerMs({ drawNoiseMs, timeoutMs }: WorldState, reach: Reach | Refusal): number {
  if (reach.type === "timeout") return timeoutMs;
  if (reach.type === "unreachable") return unreachableAfterMs;
  return reach.rttMs + drawNoiseMs();
}

function open(
  { state, crawlerIndex, connect }: ProxyContext,
  { socket, request, reach }: { socket: Socket; request: ProxyRequest; reach: Reach },
): void {
  if (socket.destroyed) return;
  const { address, rttMs, site } = reach;
  const { queue, drawNoiseMs } = state;
  const { bandwidthKbps } = site;
  const connection = new WorldConnection({
    ...{ crawlerIndex, address, rttMs, bandwidthKbps, socket, queue, drawNoiseMs },
  });
  connect(connection);
  const early = request.accept();
  if (early.length > 0) connection.receive(early);
  socket.resume();
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      server.off("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

// What a crawler finds when it connects to a name or address of the emulated Internet.

interface Reach {
  readonly type: "site";
  readonly address: string;
  readonly rttMs: number;
  /** The first site at that address. It determines the bandwidth. */
  readonly site: WorldSite;
}

type Refusal =
  | { readonly type: "refused"; readonly address: string; readonly rttMs: number }
  | { readonly type: "timeout" }
  | { readonly type: "unreachable" };

/** Sites serve only plain HTTP. */
const webPort = 80;

function reachOf(
  state: WorldState,
  crawlerIndex: number,
  target: { readonly host: string; readonly port: number },
): Reach | Refusal {
  const named = state.siteByHost.get(target.host);
  const address = named ? addressSeenBy(state.world, named, crawlerIndex) : target.host;
  const parsed = parseAddress(address);
  if (parsed === null) return { type: "unreachable" };
  const rttMs = state.world.rttMs(crawlerIndex, address);
  if (rttMs === null) {
    const isRegistered = state.world.subnets.some(
      ({ range, kind }) => kind !== "iana" && rangeHolds(range, parsed),
    );
    return { type: isRegistered ? "timeout" : "unreachable" };
  }
  const site = state.siteByAddress.get(address);
  if (!site || target.port !== webPort) return { type: "refused", address, rttMs };
  return { type: "site", address, rttMs, site };
}

// Reads `CONNECT host:port` from a socket. Closes the socket after 8 KiB or ten seconds, and pauses it until the
// answer.

type ProxyFailure = "refused" | "timeout" | "unreachable";

interface ProxyRequest {
  /** A host name in lower case, or an address. */
  readonly host: string;
  readonly port: number;
  /** Accepts the request and returns what the client sent after it. */
  accept(): Buffer;
  refuse(failure: ProxyFailure): void;
}

const mostBytes = 8192;
const deadlineMs = 10_000;

function acceptHandshake(socket: Socket, requested: (request: ProxyRequest) => void): void {
  let received = Buffer.alloc(0);
  const deadline = setTimeout(() => socket.destroy(), deadlineMs);
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.length > mostBytes) return void socket.destroy();
    const end = received.indexOf("\r\n\r\n");
    if (end < 0) return;
    clearTimeout(deadline);
    socket.off("data", onData);
    socket.pause();
    readConnect(socket, received, end, requested);
  };
  socket.on("data", onData);
  socket.once("close", () => clearTimeout(deadline));
}

function readConnect(
  socket: Socket,
  received: Buffer,
  end: number,
  finish: (request: ProxyRequest) => void,
): void {
  const line = received.toString("latin1", 0, Math.min(end, received.indexOf("\r\n")));
  const [, host, port] = /^CONNECT (\[[0-9a-fA-F:.]+\]|[^\s:]+):(\d{1,5}) HTTP\/1\.[01]$/.exec(line) ?? [];
  if (!host || !port || Number(port) > 65_535) {
    const status = /^[A-Z]+ \S+ HTTP\/1\.[01]$/.test(line) ? "405 Method Not Allowed" : "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nAllow: CONNECT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    return;
  }
  const early = received.subarray(end + 4);
  finish({
    host: plainHost(host),
    port: Number(port),
    accept: () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      return early;
    },
    refuse: (failure) => {
      socket.end(
        `HTTP/1.1 502 Bad Gateway\r\nX-Proxy-Error: ${failure}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      );
    },
  });
}

function plainHost(host: string): string {
  return host
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

// One connection from a crawler to a site, between the proxy's socket and the origin's HTTP server. Bytes from the
// crawler arrive half an RTT later. Bytes from the server leave under slow start and bandwidth, and arrive half an RTT
// after that. Order is kept, and either side may end first. Neither side can fill the memory, because the other side is
// paused beyond a limit.

/** Maximum number of bytes in transit per direction. */
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

/** The server's end of the connection. The constructor connects it to the proxy's socket. */
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

  /** Receives a chunk that the crawler sent through the proxy's socket. */
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

  /** The HTTP server expects these socket methods, but the emulated network has no timers or options. */
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

  /** Lets the server continue to write as soon as there is room in the crawler's direction. */
  #release(): void {
    const { socket } = this.#settings;
    if (this.#downBytes + socket.writableLength > bytesUnderWay && !socket.destroyed) return;
    const done = this.#writtenLater;
    this.#writtenLater = null;
    done?.();
  }

  /** Runs `run` half an RTT from now. Adds noise only when nothing else is on the way up. */
  #later(run: () => void): void {
    const { queue, drawNoiseMs } = this.#settings;
    const nowMs = performance.now();
    const noise = this.#upDueMs <= nowMs ? drawNoiseMs() : 0;
    this.#upDueMs = Math.max(this.#upDueMs, nowMs + this.#settings.rttMs / 2 + noise);
    queue.at(this.#upDueMs, run);
  }
}
