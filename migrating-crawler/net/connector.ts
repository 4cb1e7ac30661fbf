/**
 * Opens every connection of the crawler to the web. It resolves the name, checks the addresses, connects to exactly one
 * allowed address (directly or through the partner's proxy), and verifies TLS for the host's name. Each phase is timed. No
 * other code opens sockets to sites.
 */
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import type net from "node:net";
import { networkInterfaces } from "node:os";
import tls from "node:tls";
import { parseAddress, unmapAddress } from "#core/ip/address";
import { formatRange, parseRange } from "#core/ip/range";
import { specialPurposeOfRange } from "#core/ip/special-purpose";
import { Failure, failureOf } from "../core/failure.ts";
import { steadyNowMs } from "../core/local-time.ts";
import type { ConnectionSlots } from "../limits/shares.ts";
import { StoppedSites } from "../limits/stopped-sites.ts";
import { type CrawlerConfig, type ProxyAddress, parseProxy } from "../settings/config.ts";
import {
  type AddressGuard,
  addressGuard,
  ipv4OnlyName,
  literalAddress,
  type Nat64Prefix,
  nat64PrefixesOf,
} from "./address-guard.ts";
import { Destination, dialTcp, type HttpProtocol, secureWithTls } from "./dial.ts";
import { NameCache } from "./name-cache.ts";
import { connectThroughProxy } from "./proxy.ts";

interface ConnectTarget {
  /** A name, or a literal address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Connects to this address instead of resolving the host. It is checked too. */
  readonly address?: string;
  /** The protocols offered under TLS. Default: only HTTP/1.1. */
  readonly protocols?: readonly HttpProtocol[];
  readonly timeoutMs: number;
}

/** A phase that did not take place is null. */
export interface ConnectPhases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

interface OpenConnection {
  readonly socket: net.Socket;
  readonly address: string;
  readonly phases: ConnectPhases;
  readonly tls: string | null;
  readonly http2: boolean;
  /** Reports bytes that have arrived or are arriving, but that nobody will read. */
  readonly unread: (bytes: number) => void;
}

const maxTries = 4;

/** The host's target lists, which can change while connections are open. */
type TargetLists = Pick<CrawlerConfig, "allowRanges" | "denyRanges" | "denyDomains"> & {
  readonly limits: Pick<CrawlerConfig["limits"], "ownNetwork">;
};

interface ConnectorLimits {
  readonly meter: WireMeter;
  readonly slots: ConnectionSlots;
}

interface MadeContact {
  readonly url: string;
  readonly how: string;
  readonly status: number | null;
  readonly address: string | null;
  readonly failure?: string;
}

interface Connected {
  readonly host: string;
  readonly address: string;
}

export class Connector {
  readonly throughProxy: boolean;
  /** Is called for each request and measurement sent, if the partner keeps a list. */
  contacted: (made: MadeContact) => void = () => {};
  readonly stoppedSites = new StoppedSites();
  readonly #names: NameCache;
  readonly #families: Pick<CrawlerConfig, "ipv6" | "proxy">;
  readonly #proxy: ProxyAddress | null;
  readonly #certificates: string[] | undefined;
  readonly #limits: ConnectorLimits | null;
  readonly #open = new Map<net.Socket, Connected>();
  #guard: AddressGuard;
  #lists: TargetLists;
  #learned: LearnedTargets = { seenAddresses: [], nat64Prefixes: [] };
  #closed = false;
  /** `spoken` is the last known IPv6 state, and `looked` is the check that determines it. */
  #ipv6: { spoken: boolean; readonly looked: Promise<boolean> };

  constructor(
    config: Pick<CrawlerConfig, "proxy" | "resolvers" | "ipv6" | "certificateFile"> & TargetLists,
    limits: ConnectorLimits | null = null,
  ) {
    this.#lists = config;
    this.#guard = guardOf(config, this.#learned);
    this.#limits = limits;
    const onQuery = (bytes: number) => limits?.meter.add(bytes);
    this.#families = config;
    this.#ipv6 = this.#lookForIpv6(config.ipv6 === true);
    this.#names = new NameCache({
      servers: config.resolvers,
      ipv6: async () => await this.#ipv6.looked,
      onQuery,
    });
    this.#proxy = config.proxy === null ? null : parseProxy(config.proxy);
    this.throughProxy = this.#proxy !== null;
    this.#certificates =
      config.certificateFile === null
        ? undefined
        : [...tls.rootCertificates, readFileSync(config.certificateFile, "utf8")];
  }

  get guard(): AddressGuard {
    return this.#guard;
  }

  /** Applies new lists at once and ends connections that they forbid. */
  apply(lists: TargetLists): void {
    this.#lists = lists;
    this.#guardAnew();
  }

  /**
   * Remembers the public addresses that the coordinator sees or the partner states. Behind NAT, they belong to the whole
   * network, and its router answers there.
   */
  seenFrom(addresses: readonly string[]): void {
    const known = this.#learned.seenAddresses;
    if (addresses.length === known.length && addresses.every((one, at) => one === known[at])) return;
    this.#learned = { ...this.#learned, seenAddresses: addresses };
    this.#guardAnew();
  }

  get speaksIpv6(): boolean {
    return this.#ipv6.spoken;
  }

  /** Checks for IPv6 and asks DNS for the network's NAT64 prefixes (RFC 7050). If there is no answer, the known prefixes stay. */
  async learnIpv6(): Promise<void> {
    this.#ipv6 = this.#lookForIpv6(this.#ipv6.spoken);
    await this.#ipv6.looked;
    const addresses = await this.#names.ipv6Of(ipv4OnlyName);
    if (addresses === null || this.#closed) return;
    this.#learned = { ...this.#learned, nat64Prefixes: nat64PrefixesOf(addresses) };
    this.#guardAnew();
  }

  #lookForIpv6(before: boolean): { spoken: boolean; readonly looked: Promise<boolean> } {
    const looked = speaksIpv6(this.#families).then((speaks) => {
      look.spoken = speaks;
      return speaks;
    });
    const look = { spoken: before, looked };
    return look;
  }

  /** Returns why an IPv6 address is not contacted from here, or null if it may be contacted or is not IPv6. */
  async familyDenial(address: string, port?: number): Promise<string | null> {
    const parsed = parseAddress(address);
    if (parsed === null || unmapAddress(parsed).family === 4 || (await this.#ipv6.looked)) return null;
    // The partner's exceptions have their own routes.
    const isNamed = port !== undefined && this.#families.ipv6 === null && this.guard.isAllowed(address, port);
    return isNamed ? null : `this crawler does not speak IPv6: ${withoutIpv6Words(this.#families)}`;
  }

  #guardAnew(): void {
    this.#guard = guardOf(this.#lists, this.#learned);
    const failure = new Failure("not-allowed", "the partner has just forbidden it");
    for (const [socket, target] of this.#open) {
      const { address } = target;
      if (this.#guard.denial(target) ?? this.#guard.refusal(address)) socket.destroy(failure);
    }
  }

  /** Aborts all connections because of a limit. Later connections are unaffected. */
  cut(reason: string): void {
    for (const socket of this.#open.keys()) socket.destroy(new Failure("held-back", reason));
  }

  /** Returns an open, verified connection. Throws a Failure that names the phase and the reason. */
  async open(target: ConnectTarget): Promise<OpenConnection> {
    const deadlineMs = performance.now() + target.timeoutMs;
    if (this.#closed) throw stopped();
    const { addresses, dnsMs } = await this.#allowed(target);
    const { socket, address, connectMs } = await this.#connectInSlot(addresses, target, deadlineMs);
    const phases = { dnsMs, connectMs, tlsMs: null };
    const unread = (bytes: number) => this.#limits?.meter.add(bytes);
    if (!target.secure) return { socket, address, phases, tls: null, http2: false, unread };
    const secured = await secureWithTls(socket, {
      host: target.host,
      protocols: target.protocols ?? ["http/1.1"],
      authorities: this.#certificates,
      timeoutMs: leftUntil(deadlineMs),
    }).catch((error: Error) => {
      throw tlsFailure(error);
    });
    return {
      socket: secured.socket,
      address,
      phases: { ...phases, tlsMs: secured.tlsMs },
      tls: secured.socket.getProtocol(),
      http2: secured.socket.alpnProtocol === "h2",
      unread,
    };
  }

  /** Returns the first allowed address of the host. Throws a Failure if there is none. */
  async pick(
    target: Pick<ConnectTarget, "host" | "address">,
  ): Promise<{ address: string; dnsMs: number | null }> {
    const { addresses, dnsMs } = await this.#allowed(target);
    return { address: addresses[0], dnsMs };
  }

  /** Resolves a coordinator that the partner did not name and checks it, including its port, like a site. Throws a Failure. */
  async coordinatorDestinations(
    host: string,
    port: number,
    timeoutMs: number,
  ): Promise<readonly Destination[]> {
    const { addresses } = await this.#allowed({ host, port, timeoutMs });
    return addresses.slice(0, maxTries).map((address) => Destination.checked(this.guard, address, port));
  }

  close(): void {
    this.#closed = true;
    this.#names.close();
    for (const socket of this.#open.keys()) socket.destroy();
  }

  async #connectInSlot(addresses: readonly [string, ...string[]], target: ConnectTarget, deadlineMs: number) {
    const endConnection = await this.#limits?.slots.take(leftUntil(deadlineMs));
    if (endConnection === null) throw new Failure("held-back", "all connections that are allowed are in use");
    try {
      const connected = await this.#connectToAny(addresses, target.port, deadlineMs);
      this.#watch(connected.socket, { host: target.host, address: connected.address });
      connected.socket.once("close", () => endConnection?.());
      return connected;
    } catch (error) {
      endConnection?.();
      throw error;
    }
  }

  #watch(socket: net.Socket, target: Connected): void {
    if (this.#closed) {
      socket.destroy();
      throw stopped();
    }
    this.#limits?.meter.watch(socket);
    this.#open.set(socket, target);
    socket.once("close", () => this.#open.delete(socket));
  }

  async #allowed(
    target: Partial<ConnectTarget> & Pick<ConnectTarget, "host">,
  ): Promise<{ readonly addresses: readonly [string, ...string[]]; readonly dnsMs: number | null }> {
    const stop = this.stoppedSites.stopOf(target.host, steadyNowMs());
    if (stop !== null) throw new Failure("stopped", stop.words, { address: target.address ?? null });
    const denied = this.guard.denial(target);
    if (denied !== null) throw new Failure("not-allowed", denied, { address: target.address ?? null });
    const { addresses, dnsMs } = target.address
      ? { addresses: [target.address], dnsMs: null }
      : await this.#names.resolve(target.host, target.timeoutMs);
    const possible = addresses.filter((address) => this.guard.refusal(address, target.port) === null);
    const denials = await Promise.all(possible.map((address) => this.familyDenial(address, target.port)));
    const [first, ...more] = possible.filter((_, at) => denials[at] === null);
    if (first !== undefined) return { addresses: [first, ...more], dnsMs };
    if (possible[0] !== undefined) {
      const named = target.address ?? target.host;
      const only = literalAddress(named) === null ? "has only IPv6 addresses" : "is an IPv6 address";
      throw new Failure("not-allowed", `${named} ${only}, and ${denials[0]}`, { address: possible[0] });
    }
    for (const address of addresses) {
      const why = this.guard.denial({ address });
      if (why !== null) throw new Failure("not-allowed", why, { address });
    }
    const address = addresses[0] ?? "";
    throw new Failure("refused-address", this.guard.refusal(address, target.port) ?? "no address", {
      address,
    });
  }

  /** Tries the addresses in turn. Each gets half of the remaining time, and the last one gets all of it. */
  async #connectToAny(
    addresses: readonly [string, ...string[]],
    port: number,
    deadlineMs: number,
  ): Promise<{ readonly socket: net.Socket; readonly address: string; readonly connectMs: number }> {
    const tried = addresses.slice(0, maxTries);
    let failure: Failure | null = null;
    for (const [at, address] of tried.entries()) {
      const leftMs = leftUntil(deadlineMs);
      try {
        const timeoutMs = at === tried.length - 1 ? leftMs : leftMs / 2;
        return { address, ...(await this.#connect(address, port, timeoutMs)) };
      } catch (error) {
        failure ??= failureOf(error);
        if (failure.blame === "crawler") break;
      }
    }
    throw failure ?? new Failure("internal", "no address was tried");
  }

  async #connect(address: string, port: number, timeoutMs: number) {
    const to = Destination.checked(this.guard, address, port);
    if (this.#proxy === null) return await dialTcp(to, timeoutMs);
    const watch = (socket: net.Socket) => this.#limits?.meter.watch(socket);
    return await connectThroughProxy(this.#proxy, { address, port, timeoutMs, watch });
  }
}

interface LearnedTargets {
  readonly seenAddresses: readonly string[];
  readonly nat64Prefixes: readonly Nat64Prefix[];
}

function guardOf(lists: TargetLists, { seenAddresses, nat64Prefixes }: LearnedTargets): AddressGuard {
  const own = lists.limits.ownNetwork ? [] : [...ownNetworks(), ...seenAddresses];
  return addressGuard({ ...lists, nat64Prefixes, ownNetworks: own });
}

const stopped = () => new Failure("stopped", "the crawler stops");
const leftUntil = (deadlineMs: number) => Math.max(1, deadlineMs - performance.now());

// Finds the public networks of this machine's own interfaces, which usually belong to its owner. Private networks are
// special-purpose and refused anyway.

export function ownNetworks(
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces(),
): string[] {
  const networks = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal)
    .map(({ cidr }) => parseRange(cidr ?? ""))
    .filter((range) => range !== null && specialPurposeOfRange(range) === null)
    .map((range) => formatRange(range!));
  return [...new Set(networks)];
}

// Counts the bytes of every socket in both directions below TLS, so that handshakes, headers and framing are included. The
// code that sends DNS queries and ICMP echoes adds their bytes.

export class WireMeter {
  readonly #open = new Set<net.Socket>();
  #closedBytes = 0;

  /** Takes the TCP socket itself, not the TLS socket on top of it. */
  watch(socket: net.Socket): void {
    if (this.#open.has(socket)) return;
    this.#open.add(socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#closedBytes += carriedBy(socket);
    });
  }

  add(bytes: number): void {
    this.#closedBytes += bytes;
  }

  get openConnections(): number {
    return this.#open.size;
  }

  carriedBytes(): number {
    let bytes = this.#closedBytes;
    for (const socket of this.#open) bytes += carriedBy(socket);
    return bytes;
  }
}

const carriedBy = (socket: net.Socket) => socket.bytesRead + socket.bytesWritten;

function tlsFailure(error: Error): Failure {
  const known = failureOf(error);
  return known.code === "internal" ? new Failure("tls", error.message, { cause: error }) : known;
}

// Finds out whether this machine has working IPv6. Nothing is sent, because connecting a UDP socket only selects a route and a
// source address.

/** k.root-servers.net, an anycast address. */
const farAddress = "2001:7fd::1";

export function hasIpv6Route(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket("udp6");
    const done = (works: boolean) => {
      socket.close();
      resolve(works);
    };
    socket.once("error", () => done(false));
    socket.connect(53, farAddress, () => done(/^[23]/.test(socket.address().address)));
  });
}

/** Behind a proxy, whose routes are unknown, IPv6 requires the setting. */
export async function speaksIpv6({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): Promise<boolean> {
  return ipv6 ?? (proxy === null && (await hasIpv6Route()));
}

function withoutIpv6Words({ ipv6, proxy }: Pick<CrawlerConfig, "ipv6" | "proxy">): string {
  if (ipv6 === false) return "ipv6 is false in its settings";
  return proxy === null ? "its machine has no route for it" : "it goes through a proxy, and ipv6 is not set";
}
