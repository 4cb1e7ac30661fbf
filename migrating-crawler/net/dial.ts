/** One TCP connection to one address, and TLS on an open one: each with a deadline, each timed. */
import net from "node:net";
import tls from "node:tls";
import { literalAddress } from "./address-guard.ts";
import { Failure, failureOf } from "./failure.ts";

/** What TLS is to agree on (RFC 7301), in order of preference. */
export type HttpProtocol = "h2" | "http/1.1";

export interface SecureSettings {
  /** The name that the certificate must be for, or an address. */
  readonly host: string;
  readonly protocols: readonly HttpProtocol[];
  /** Trusted authorities in PEM; undefined: the built-in ones. */
  readonly certificates: readonly string[] | undefined;
  readonly timeoutMs: number;
}

/** Throws a Failure. */
export function dialTcp(
  address: string,
  port: number,
  timeoutMs: number,
): Promise<{ readonly socket: net.Socket; readonly connectMs: number }> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const socket = net.connect({ host: address, port, noDelay: true });
    const late = () => new Failure("connect-timeout", `no connection within ${Math.round(timeoutMs)} ms`);
    const timer = setTimeout(() => socket.destroy(late()), timeoutMs);
    const onError = (error: Error) => {
      clearTimeout(timer);
      reject(failureOf(error));
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

/** Certificate and name verified. Throws a Failure; the connection is closed then. */
export function secureWithTls(
  socket: net.Socket,
  settings: SecureSettings,
): Promise<{ readonly socket: tls.TLSSocket; readonly tlsMs: number }> {
  return new Promise((resolve, reject) => {
    const { host, certificates } = settings;
    const startedMs = performance.now();
    const secured = tls.connect({
      socket,
      host,
      ...(literalAddress(host) === null ? { servername: host.replace(/\.$/, "") } : {}),
      ALPNProtocols: [...settings.protocols],
      ...(certificates ? { ca: [...certificates] } : {}),
    });
    const late = () => new Failure("connect-timeout", "the TLS handshake took too long");
    const timer = setTimeout(() => secured.destroy(late()), settings.timeoutMs);
    const onError = (error: Error) => {
      clearTimeout(timer);
      secured.destroy();
      socket.destroy();
      reject(tlsFailure(error));
    };
    const onClose = () => onError(new Failure("connection-lost", "closed during the TLS handshake"));
    secured.once("error", onError);
    secured.once("close", onClose);
    secured.once("secureConnect", () => {
      clearTimeout(timer);
      secured.off("error", onError);
      secured.off("close", onClose);
      secured.disableRenegotiation();
      resolve({ socket: secured, tlsMs: performance.now() - startedMs });
    });
  });
}

function tlsFailure(error: Error): Failure {
  const known = failureOf(error);
  return known.code === "internal" ? new Failure("tls", error.message, { cause: error }) : known;
}
