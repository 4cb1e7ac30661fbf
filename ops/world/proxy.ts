/**
 * A crawler's way into the emulated Internet: a forward proxy on loopback that speaks HTTP CONNECT
 * (RFC 9110 section 9.3.6) and SOCKS5 (RFC 1928, no authentication) on one port, told apart by the first
 * byte. The reply to a connection request takes one round trip to the target's public address, as a TCP
 * handshake does; what follows goes through a WorldConnection.
 *
 * Failures (HTTP: 502 with `X-Proxy-Error`, SOCKS5: reply code), all in the world's time:
 *   refused (5)      somebody has the address but no web server on that port: after one round trip
 *   timeout (6)      the address is registered but nobody has it, or the crawler is cut off: after a while
 *   unreachable (4)  no such name, or the address is in no registered range: soon
 */

import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { acceptHandshake, type ProxyRequest } from "./proxy-handshake.ts";
import { type Reach, type Refusal, reachOf } from "./reach.ts";
import { WorldConnection } from "./world-connection.ts";
import type { WorldState } from "./world-state.ts";

/** A router says so at once; it is a hop or two away. */
const unreachableAfterMs = 3;
/** Sockets that one crawler may have open at its proxy. */
const mostSockets = 2048;

export interface RunningProxy {
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
  const stopWatching = state.onOutage(crawlerIndex, () => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    port,
    close: async () => {
      stopWatching();
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
  const startMs = performance.now();
  const lossMs = state.conditions.drawLossMs();
  const reach = lossMs === null ? ({ type: "timeout" } as const) : reachOf(state, crawlerIndex, request);
  state.queue.at(startMs + answerMs(state, reach) + (lossMs ?? 0), () => {
    if (reach.type === "site") open(context, { socket, request, reach });
    else if (!socket.destroyed) request.refuse(reach.type);
  });
}

/** When a handshake that is not lost is answered, in ms from its start. */
function answerMs({ conditions, timeoutMs }: WorldState, reach: Reach | Refusal): number {
  if (reach.type === "timeout") return timeoutMs;
  if (reach.type === "unreachable") return unreachableAfterMs;
  return reach.rttMs + conditions.noise.drawMs(reach.address);
}

function open(
  { state, crawlerIndex, connect }: ProxyContext,
  { socket, request, reach }: { socket: Socket; request: ProxyRequest; reach: Reach },
): void {
  if (socket.destroyed) return;
  const { address, site } = reach;
  const connection = new WorldConnection({
    crawlerIndex,
    address,
    socket,
    bandwidthKbps: site.bandwidthKbps,
    queue: state.queue,
    rttMs: () => state.conditions.rttMs(crawlerIndex, address) ?? reach.rttMs,
    drawNoiseMs: () => state.conditions.noise.drawMs(address),
    hasEdge: site.head === "edge",
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
