/**
 * Opens the crawler's connections to its coordinator: straight or through the partner's proxy, with the pinned
 * TLS key. `createConnection` fits node:https requests (downloads) and the ws package (the link) alike.
 */

import type { X509Certificate } from "node:crypto";
import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { pinOf } from "#protocol/identity";
import type { ProxyAddress } from "../settings/config.ts";
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

// TLS to the coordinator: accepts exactly the pinned key (RFC 7469 section 2.4: SHA-256 of the certificate's
// SubjectPublicKeyInfo), self-signed or not, expired or not; without a pin, what the system's authorities or the
// given one vouch for. Nothing is written before the check has passed.

/** Not the pinned key: somebody stands between, or the coordinator has another key. */
export class WrongPin extends Error {
  /** Who issued the certificate that was shown, in one line. */
  readonly issuer: string;

  constructor(shown: X509Certificate) {
    const issuer = shown.issuer.replaceAll("\n", ", ").slice(0, 200);
    super(
      `the certificate shown is not the coordinator's pinned one (it was issued by ${issuer || "nobody named"}): a proxy or firewall of yours may open TLS on the way; ask for an exception for this host, or ask the operator whether the coordinator has a new certificate`,
    );
    this.name = "WrongPin";
    this.issuer = issuer;
  }
}

interface TrustedCoordinator {
  /** SHA-256 of the SubjectPublicKeyInfo, base64url; null: authorities decide. */
  readonly certificatePin: string | null;
  /** PEM of authorities in place of the system's; of no matter with a pin. */
  readonly ca?: string | undefined;
}

/** TLS over an open connection. Throws WrongPin, or the error of the handshake; the socket is destroyed then. */
function securePinned(
  socket: net.Socket,
  options: TrustedCoordinator & { readonly host: string; readonly timeoutMs: number },
): Promise<tls.TLSSocket> {
  const { host, certificatePin, ca, timeoutMs } = options;
  return new Promise((resolve, reject) => {
    const secured = tls.connect({
      socket,
      host,
      ...(net.isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: certificatePin === null,
      ...(ca === undefined ? {} : { ca }),
    });
    const fail = (error: Error) => {
      clearTimeout(timer);
      secured.destroy();
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error(`no TLS within ${timeoutMs} ms`)), timeoutMs);
    secured.once("error", fail);
    secured.once("close", () => fail(new Error("the connection was closed during the TLS handshake")));
    secured.once("secureConnect", () => {
      const wrong = wrongPin(secured, certificatePin);
      if (wrong !== null) return fail(wrong);
      clearTimeout(timer);
      secured.off("error", fail).removeAllListeners("close");
      resolve(secured);
    });
  });
}

function wrongPin(socket: tls.TLSSocket, certificatePin: string | null): Error | null {
  if (certificatePin === null) return null;
  const shown = socket.getPeerX509Certificate();
  if (shown === undefined) return new Error("the coordinator showed no certificate");
  return pinOf(shown) === certificatePin ? null : new WrongPin(shown);
}
