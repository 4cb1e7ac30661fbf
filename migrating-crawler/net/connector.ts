/**
 * Opens every connection that the crawler makes to the web: resolve, check the address, connect to exactly
 * that address (straight or through the partner's proxy), then TLS verified against the host's name. Each
 * phase is timed. Nothing else in the crawler opens sockets to sites.
 */
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
import { type CrawlerConfig, type ProxyAddress, parseProxy } from "../config.ts";
import { type AddressGuard, addressGuard, literalAddress } from "./address-guard.ts";
import { Failure, failureOf } from "./failure.ts";
import { NameCache } from "./name-cache.ts";
import { connectThroughProxy } from "./proxy.ts";

export interface ConnectTarget {
  /** Name or literal address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Connect to this address instead of resolving the host; it is checked all the same. */
  readonly address?: string;
  readonly timeoutMs: number;
}

/** Null where a phase did not take place. */
export interface ConnectPhases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

export interface OpenConnection {
  readonly socket: net.Socket;
  readonly address: string;
  readonly phases: ConnectPhases;
}

export class Connector {
  readonly guard: AddressGuard;
  readonly throughProxy: boolean;
  readonly #names: NameCache;
  readonly #proxy: ProxyAddress | null;
  readonly #certificates: string[] | undefined;

  constructor(
    config: Pick<
      CrawlerConfig,
      "proxy" | "resolvers" | "allowRanges" | "denyRanges" | "denyDomains" | "ipv6" | "certificateFile"
    >,
  ) {
    this.guard = addressGuard(config);
    this.#names = new NameCache({ servers: config.resolvers, ipv6: config.ipv6 });
    this.#proxy = config.proxy === null ? null : parseProxy(config.proxy);
    this.throughProxy = this.#proxy !== null;
    this.#certificates =
      config.certificateFile === null
        ? undefined
        : [...tls.rootCertificates, readFileSync(config.certificateFile, "utf8")];
  }

  /** An open, verified connection. Throws a Failure that says which phase failed and why. */
  async open(target: ConnectTarget): Promise<OpenConnection> {
    const deadlineMs = performance.now() + target.timeoutMs;
    const { address, dnsMs } = await this.pick(target);
    const leftMs = Math.max(1, deadlineMs - performance.now());
    const { socket, connectMs } = await this.#connect(address, target.port, leftMs);
    if (!target.secure) return { socket, address, phases: { dnsMs, connectMs, tlsMs: null } };
    const tlsLeftMs = Math.max(1, deadlineMs - performance.now());
    const secured = await this.#secure(socket, target.host, tlsLeftMs);
    return { socket: secured.socket, address, phases: { dnsMs, connectMs, tlsMs: secured.tlsMs } };
  }

  /** The first of the host's addresses that may be contacted. Throws a Failure when there is none. */
  async pick(
    target: Pick<ConnectTarget, "host" | "address">,
  ): Promise<{ address: string; dnsMs: number | null }> {
    const denied = this.guard.denial(target);
    if (denied !== null) throw new Failure("not-allowed", denied, { address: target.address ?? null });
    const answer = target.address
      ? { addresses: [target.address], dnsMs: null }
      : await this.#names.resolve(target.host);
    for (const address of answer.addresses) {
      if (this.guard.refusal(address) === null) return { address, dnsMs: answer.dnsMs };
    }
    for (const address of answer.addresses) {
      const why = this.guard.denial({ address });
      if (why !== null) throw new Failure("not-allowed", why, { address });
    }
    const address = answer.addresses[0] ?? "";
    throw new Failure("refused-address", this.guard.refusal(address) ?? "no address", { address });
  }

  close(): void {
    this.#names.close();
  }

  async #connect(address: string, port: number, timeoutMs: number) {
    if (this.#proxy === null) return connectStraight(address, port, timeoutMs);
    const { socket, connectMs } = await connectThroughProxy(this.#proxy, { address, port, timeoutMs });
    return { socket, connectMs };
  }

  #secure(
    socket: net.Socket,
    host: string,
    timeoutMs: number,
  ): Promise<{ socket: tls.TLSSocket; tlsMs: number }> {
    return new Promise((resolve, reject) => {
      const startedMs = performance.now();
      const secured = tls.connect({
        socket,
        host,
        ...(literalAddress(host) === null ? { servername: host } : {}),
        ALPNProtocols: ["http/1.1"],
        ...(this.#certificates ? { ca: this.#certificates } : {}),
      });
      const timer = setTimeout(
        () => secured.destroy(new Failure("connect-timeout", "the TLS handshake took too long")),
        timeoutMs,
      );
      secured.once("close", () => clearTimeout(timer));
      const onError = (error: Error) => {
        clearTimeout(timer);
        secured.destroy();
        socket.destroy();
        reject(tlsFailure(error));
      };
      secured.once("error", onError);
      secured.once("secureConnect", () => {
        clearTimeout(timer);
        secured.off("error", onError);
        resolve({ socket: secured, tlsMs: performance.now() - startedMs });
      });
    });
  }
}

function connectStraight(
  address: string,
  port: number,
  timeoutMs: number,
): Promise<{ socket: net.Socket; connectMs: number }> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const socket = net.connect({ host: address, port, noDelay: true });
    const timer = setTimeout(
      () =>
        socket.destroy(new Failure("connect-timeout", `no connection within ${Math.round(timeoutMs)} ms`)),
      timeoutMs,
    );
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

function tlsFailure(error: Error): Failure {
  const known = failureOf(error);
  return known.code === "internal" ? new Failure("tls", error.message, { cause: error }) : known;
}
