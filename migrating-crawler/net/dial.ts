/**
 * Opens every TCP connection of the crawler, and TLS on top. A connection goes either to an address that the guard has passed
 * or to a host that the partner named: the proxy, or the coordinator of the invitation and settings. Whatever a coordinator or
 * site names must pass the guard.
 */
import net from "node:net";
import tls from "node:tls";
import { hostInUrl } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import { Failure } from "../core/failure.ts";
import { type AddressGuard, literalAddress } from "./address-guard.ts";

/** Only two factories create a destination, so that no caller can skip the guard. */
export class Destination {
  readonly host: string;
  readonly port: number;

  private constructor(host: string, port: number) {
    this.host = host;
    this.port = port;
  }

  /** Throws a Failure (refused-address) for a name, and for an address or port that the guard refuses. */
  static checked(guard: AddressGuard, address: string, port: number): Destination {
    const refusal = guard.refusal(address, port);
    if (refusal !== null) throw new Failure("refused-address", refusal, { address });
    return new Destination(address, port);
  }

  /** A host from the partner's own settings or invitation, which the system resolves. */
  static namedByPartner(host: string, port: number): Destination {
    return new Destination(host, port);
  }
}

/** Throws a Failure on timeout, or else the system's error. */
export function dialTcp(
  { host, port }: Destination,
  timeoutMs: number,
): Promise<{ readonly socket: net.Socket; readonly connectMs: number }> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const socket = net.connect({ host, port, noDelay: true });
    const late = () =>
      new Failure(
        "connect-timeout",
        `no connection to ${hostInUrl(host)}:${port} within ${Math.round(timeoutMs)} ms`,
      );
    const timer = setTimeout(() => socket.destroy(late()), timerMs(timeoutMs));
    const onError = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    socket.once("error", onError);
    socket.once("connect", () => {
      const connectMs = performance.now() - startedMs;
      clearTimeout(timer);
      socket.off("error", onError);
      resolve({ socket, connectMs });
    });
  });
}

/** The ALPN protocols (RFC 7301) in order of preference. */
export type HttpProtocol = "h2" | "http/1.1";

interface SecureSettings {
  readonly host: string;
  readonly protocols: readonly HttpProtocol[];
  /** Trusted authorities in PEM. If undefined, the built-in ones are used. */
  readonly authorities?: string | string[] | undefined;
  readonly timeoutMs: number;
  /** Judges the certificate instead of the authorities. Returns the reason for refusing it, or null. */
  readonly judge?: ((shown: tls.TLSSocket) => Error | null) | undefined;
}

/** Verifies before anything is written. If the handshake or `judge` fails, closes the connection and throws the error. */
export function secureWithTls(
  socket: net.Socket,
  { host, protocols, authorities, timeoutMs, judge }: SecureSettings,
): Promise<{ readonly socket: tls.TLSSocket; readonly tlsMs: number }> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const secured = tls.connect({
      socket,
      host,
      ...(literalAddress(host) === null ? { servername: host.replace(/\.$/, "") } : {}),
      ALPNProtocols: [...protocols],
      rejectUnauthorized: judge === undefined,
      ...(authorities === undefined ? {} : { ca: authorities }),
    });
    const late = () =>
      new Failure("connect-timeout", `the TLS handshake took longer than ${Math.round(timeoutMs)} ms`);
    const timer = setTimeout(() => secured.destroy(late()), timerMs(timeoutMs));
    const fail = (error: Error) => {
      clearTimeout(timer);
      secured.destroy();
      socket.destroy();
      reject(error);
    };
    const onClose = () => fail(new Failure("connection-lost", "closed during the TLS handshake"));
    secured.once("error", fail);
    secured.once("close", onClose);
    secured.once("secureConnect", () => {
      const fault = judge?.(secured) ?? null;
      if (fault !== null) return fail(fault);
      clearTimeout(timer);
      secured.off("error", fail);
      secured.off("close", onClose);
      secured.disableRenegotiation();
      resolve({ socket: secured, tlsMs: performance.now() - startedMs });
    });
  });
}
