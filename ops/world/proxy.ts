/**
 * A crawler's way into the emulated Internet: a forward proxy on loopback that speaks HTTP CONNECT
 * (RFC 9110 section 9.3.6). The reply to a connection request takes one round trip to the target's public address, as a TCP
 * handshake does; what follows goes through a WorldConnection.
 *
 * Failures (502 with `X-Proxy-Error`), all in the world's time:
 *   refused      somebody has the address but no web server on that port: after one round trip
 *   timeout      the address is registered but nobody has it: after a while
 *   unreachable  no such name, or the address is in no registered range: soon
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { parseAddress } from "#core/ip/address";
import { rangeHolds } from "#core/ip/range";
import { addressSeenBy, type WorldSite } from "./model.ts";
import { WorldConnection } from "./world-connection.ts";
import type { WorldState } from "./world-state.ts";

/** A router a hop or two away reports it at once. */
const unreachableAfterMs = 3;

/** The most open sockets of one crawler at its proxy. */
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
  /** The first site at that address, which sets the bandwidth. */
  readonly site: WorldSite;
}

type Refusal =
  | { readonly type: "refused"; readonly address: string; readonly rttMs: number }
  | { readonly type: "timeout" }
  | { readonly type: "unreachable" };

/** Sites serve plain HTTP only. */
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

// Reads `CONNECT host:port` from a socket. After 8 KiB or ten seconds the socket is closed. It is paused until the answer.

type ProxyFailure = "refused" | "timeout" | "unreachable";

interface ProxyRequest {
  /** A host name in lower case or an address. */
  readonly host: string;
  readonly port: number;
  /** Accepts; returns what the client sent after its request. */
  accept(): Buffer;
  refuse(failure: ProxyFailure): void;
}

const mostBytes = 8192;
const deadlineMs = 10_000;

/** Calls back once with the request, if it is valid. */
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
