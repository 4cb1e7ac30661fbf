/** A crawler's steps behind its proxy: open a tunnel, request a page, and time both. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";

export interface Tunnel {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly socket: Socket;
  /** From the request to the proxy's answer. */
  readonly tookMs: number;
}

export function openTunnel(proxyUrl: string, target: string): Promise<Tunnel> {
  const { hostname, port } = new URL(proxyUrl);
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const request = httpRequest({ host: hostname, port, method: "CONNECT", path: target, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      response.resume();
      const { statusCode = 0, headers } = response;
      resolve({ status: statusCode, headers, socket: response.socket, tookMs: performance.now() - startMs });
    });
    request.on("connect", ({ statusCode = 0, headers }, socket) => {
      if (statusCode !== 200) socket.destroy();
      resolve({ status: statusCode, headers, socket: socket as Socket, tookMs: performance.now() - startMs });
    });
    request.end();
  });
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  readonly firstByteMs: number;
  readonly totalMs: number;
}

export interface Asked {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** A request over an open connection, or directly to the origins' port. */
export function ask(
  via: { socket: Socket } | { port: number },
  { host, path = "/", method = "GET", headers = {} }: Asked,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const connection =
      "socket" in via ? { createConnection: () => via.socket } : { host: "127.0.0.1", port: via.port };
    const request = httpRequest({ ...connection, path, method, headers: { host, ...headers } });
    request.on("error", reject);
    request.on("response", (response) => {
      const firstByteMs = performance.now() - startMs;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
          firstByteMs,
          totalMs: performance.now() - startMs,
        }),
      );
    });
    request.end();
  });
}

/** The limit of a wait of this length: far below a second round trip, and above the timers' delay on a busy machine. */
export const latestMs = (expectedMs: number) => expectedMs * 1.1 + 5;

/** The minimum of several times: a busy machine makes single tries late, never early. Stops as soon as one is short enough. */
export async function quickest(enoughMs: number, measure: () => Promise<number>): Promise<number> {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 25 && bestMs > enoughMs; tries++) bestMs = Math.min(bestMs, await measure());
  return bestMs;
}

export async function timeToConnect(proxyUrl: string, target: string): Promise<number> {
  const tunnel = await openTunnel(proxyUrl, target);
  tunnel.socket.destroy();
  return tunnel.tookMs;
}
