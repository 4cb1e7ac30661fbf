/**
 * Opens the crawler's connections to its coordinator: straight or through the partner's proxy, with the pinned
 * TLS key. `createConnection` fits node:https requests (downloads) and the ws package (the link) alike.
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
  /** SHA-256 of the SubjectPublicKeyInfo, base64url; null: authorities decide. */
  readonly certificatePin: string | null;
  /** PEM of authorities in place of the system's; of no matter with a pin. */
  readonly ca?: string | undefined;
  /** As `parseProxy` of config.ts reads it; null: straight out. */
  readonly proxy: ProxyAddress | null;
  /** For connection, proxy and TLS, each. */
  readonly timeoutMs: number;
  /** Called with each TCP connection as soon as it stands. */
  readonly watch?: ((socket: net.Socket) => void) | undefined;
  /** Of a coordinator that another one named: where it is by the lists that hold for sites. Left out: the partner named it. */
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
  // RFC 7469 section 2.4: a pinned key is taken self-signed or not, expired or not, and no other.
  const judge = pin === null ? undefined : (shown: tls.TLSSocket) => wrongPin(shown, pin);
  const protocols = ["http/1.1"] as const;
  return (await secureWithTls(socket, { host, protocols, authorities: ca, timeoutMs, judge })).socket;
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
  const { checked, timeoutMs } = route;
  // By name: the partner's network may resolve nothing but through its proxy.
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
  // It comes paused; who takes it over asks first and is not spoken to before.
  return socket.resume();
}

/** Not the pinned key: somebody stands between, or the coordinator has another key. */
export class WrongPin extends Error {
  /** Who issued the certificate that was shown, in one line. */
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
