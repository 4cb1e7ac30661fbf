/**
 * Opens the crawler's connections to its coordinator: straight or through the partner's proxy, with the pinned
 * TLS key. `createConnection` fits node:https requests (downloads) and the ws package (the link) alike.
 */
import net from "node:net";
import type { Duplex } from "node:stream";
import type { ProxyAddress } from "../settings/config.ts";
import { securePinned, type TrustedCoordinator } from "./pinned-tls.ts";
import { connectThroughProxy } from "./proxy.ts";

export interface CoordinatorRoute extends TrustedCoordinator {
  /** As `parseProxy` of config.ts reads it; null: straight out. */
  readonly proxy: ProxyAddress | null;
  /** For connection, proxy and TLS, each. */
  readonly timeoutMs: number;
  /** Told of each TCP connection as soon as it stands. */
  readonly watch?: ((socket: net.Socket) => void) | undefined;
}

/** Throws a Failure, a WrongPin or the system's error. */
export async function openCoordinatorSocket(url: URL, route: CoordinatorRoute): Promise<net.Socket> {
  const secure = url.protocol === "wss:" || url.protocol === "https:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const socket = await connect(host, port, route);
  return secure ? await securePinned(socket, { ...route, host }) : socket;
}

/** For the `createConnection` option of http.request, https.request and ws. */
export function connectionTo(
  url: URL,
  route: CoordinatorRoute,
): (options: unknown, done: (error: Error | null, socket?: Duplex) => void) => undefined {
  return (_options, done) => {
    openCoordinatorSocket(url, route).then(
      (socket) => done(null, socket),
      (error: Error) => done(error),
    );
    return undefined;
  };
}

async function connect(host: string, port: number, route: CoordinatorRoute): Promise<net.Socket> {
  const { proxy, timeoutMs, watch } = route;
  // By name: the partner's network may resolve nothing but through its proxy.
  if (proxy !== null) {
    const { socket } = await connectThroughProxy(proxy, { address: host, port, timeoutMs, watch });
    // It comes paused; who takes it over asks first and is not spoken to before.
    return socket.resume();
  }
  return await new Promise((resolve, reject) => {
    const socket = net.connect({ host, port, noDelay: true });
    const timer = setTimeout(
      () => socket.destroy(new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`)),
      timeoutMs,
    );
    socket.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      watch?.(socket);
      resolve(socket);
    });
  });
}
