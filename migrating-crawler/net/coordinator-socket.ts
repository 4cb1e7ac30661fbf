/**
 * Opens connections to the coordinator, directly or through the partner's proxy, with the pinned TLS key. `createConnection`
 * suits both node:https (downloads) and the ws package (the link).
 */

import type { X509Certificate } from "node:crypto";
import type net from "node:net";
import type { Duplex } from "node:stream";
import type tls from "node:tls";
import { pinOf } from "#protocol/identity";
import type { ProxyAddress } from "../settings/config.ts";
import { Destination, dialTcp, secureWithTls } from "./dial.ts";
import { connectThroughProxy } from "./proxy.ts";

export interface CoordinatorRoute {
  /** SHA-256 of the SubjectPublicKeyInfo in base64url. Null trusts the authorities. */
  readonly certificatePin: string | null;
  /** PEM authorities that replace the system's. Ignored if a certificate is pinned. */
  readonly ca?: string | undefined;
  /** The result of `parseProxy` in config.ts. Null means a direct connection. */
  readonly proxy: ProxyAddress | null;
  /** Timeout of each phase: connection, proxy and TLS. */
  readonly timeoutMs: number;
  readonly watch?: ((socket: net.Socket) => void) | undefined;
  /** Resolves a coordinator that another coordinator named, and checks it like a site. Absent if the partner named it. */
  readonly checked?:
    | ((host: string, port: number, timeoutMs: number) => Promise<readonly Destination[]>)
    | undefined;
}

/** Throws a Failure, a WrongPin or the system's error. */
export async function openCoordinatorSocket(url: URL, route: CoordinatorRoute): Promise<net.Socket> {
  const secure = url.protocol === "wss:" || url.protocol === "https:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const socket = await connect(host, port, route);
  if (!secure) return socket;
  const { certificatePin: pin, ca, timeoutMs } = route;
  // The pinned key is accepted even if self-signed or expired, and no other key is (RFC 7469 section 2.4).
  const judge = pin === null ? undefined : (shown: tls.TLSSocket) => wrongPin(shown, pin);
  const protocols = ["http/1.1"] as const;
  return (await secureWithTls(socket, { host, protocols, authorities: ca, timeoutMs, judge })).socket;
}

/** Suits the `createConnection` option of http.request, https.request and ws. */
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
  const { checked, timeoutMs } = route;
  // Connects by name, because the partner's network may resolve names only through its proxy.
  const all = (await checked?.(host, port, timeoutMs)) ?? [Destination.namedByPartner(host, port)];
  for (const [at, destination] of all.entries()) {
    try {
      return await connectTo(destination, route);
    } catch (error) {
      if (at === all.length - 1) throw error;
    }
  }
  throw new Error(`${host} has no address`);
}

async function connectTo(
  to: Destination,
  { proxy, timeoutMs, watch }: CoordinatorRoute,
): Promise<net.Socket> {
  if (proxy === null) {
    const { socket } = await dialTcp(to, timeoutMs);
    watch?.(socket);
    return socket;
  }
  const { socket } = await connectThroughProxy(proxy, { address: to.host, port: to.port, timeoutMs, watch });
  // The socket was paused. No data arrives before the caller sends a request.
  return socket.resume();
}

/** The key differs from the pinned one, because of a man in the middle or a new key of the coordinator. */
export class WrongPin extends Error {
  readonly issuer: string;

  constructor(shown: X509Certificate) {
    const issuer = shown.issuer.replaceAll("\n", ", ").slice(0, 200);
    super(
      `the certificate shown is not the coordinator's pinned one (it was issued by ${issuer || "nobody named"}): ` +
        "a proxy or firewall of yours may open TLS on the way; ask for an exception for this host, " +
        "or ask the operator whether the coordinator has a new certificate",
    );
    this.name = "WrongPin";
    this.issuer = issuer;
  }
}

function wrongPin(socket: tls.TLSSocket, certificatePin: string): Error | null {
  const shown = socket.getPeerX509Certificate();
  if (shown === undefined) return new Error("the coordinator showed no certificate");
  return pinOf(shown) === certificatePin ? null : new WrongPin(shown);
}
