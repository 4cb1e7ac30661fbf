/**
 * Opens every connection that the crawler makes to the web: resolve, check the addresses, connect to exactly
 * one of those that are allowed (straight or through the partner's proxy), then TLS verified against the
 * host's name. Each phase is timed. Nothing else in the crawler opens sockets to sites.
 */

import { readFileSync } from "node:fs";
import type net from "node:net";
import { networkInterfaces } from "node:os";
import tls from "node:tls";
import { parseAddress, unmapAddress } from "#core/ip/address";
import { formatRange, parseRange } from "#core/ip/range";
import { specialPurposeOfRange } from "#core/ip/special-purpose";
import { Failure, failureOf } from "../core/failure.ts";
import { steadyNowMs } from "../core/steady-time.ts";
import type { ConnectionSlots } from "../limits/connection-slots.ts";
import { StoppedSites } from "../limits/stopped-sites.ts";
import { type CrawlerConfig, type ProxyAddress, parseProxy } from "../settings/config.ts";
import { type AddressGuard, addressGuard, literalAddress } from "./address-guard.ts";
import { Destination, dialTcp, type HttpProtocol, secureWithTls } from "./dial.ts";
import { speaksIpv6, withoutIpv6Words } from "./ipv6-route.ts";
import { NameCache } from "./name-cache.ts";
import { ipv4OnlyName, type Nat64Prefix, nat64PrefixesOf } from "./nat64-prefixes.ts";
import { connectThroughProxy } from "./proxy.ts";

interface ConnectTarget {
  /** Name or literal address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Connect to this address instead of resolving the host; it is checked all the same. */
  readonly address?: string;
  /** Offered to the site under TLS; HTTP/1.1 alone when absent. */
  readonly protocols?: readonly HttpProtocol[];
  /** For everything together. */
  readonly timeoutMs: number;
}

/** Null where a phase did not take place. */
export interface ConnectPhases {
  readonly dnsMs: number | null;
  readonly connectMs: number;
  readonly tlsMs: number | null;
}

interface OpenConnection {
  readonly socket: net.Socket;
  readonly address: string;
  readonly phases: ConnectPhases;
  /** `TLSv1.3`, say; null without TLS. */
  readonly tls: string | null;
  /** The site chose HTTP/2. */
  readonly http2: boolean;
  /** To be told of bytes that have come, or are on their way, and that nobody will read. */
  readonly unread: (bytes: number) => void;
}

/** So many of a name's addresses are tried, one after the other. */
const maxTries = 4;

/** What the host may not want to be contacted; can be changed while connections are open. */
type TargetLists = Pick<CrawlerConfig, "allowRanges" | "denyRanges" | "denyDomains"> & {
  readonly limits: Pick<CrawlerConfig["limits"], "ownNetwork">;
};

interface ConnectorLimits {
  readonly meter: WireMeter;
  readonly slots: ConnectionSlots;
}

/** What somebody at the other end may ask the partner about. */
interface MadeContact {
  readonly url: string;
  /** The request's method; of a measurement, by what it was made. */
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
  /** Told of each request and measurement that went out, where the partner keeps a list of them. */
  contacted: (made: MadeContact) => void = () => {};
  /** Not to be contacted, since the coordinator said so. */
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
  /** As it was last looked, and the look. */
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

  /** Other lists, in force at once: what they forbid and is open is broken off. */
  apply(lists: TargetLists): void {
    this.#lists = lists;
    this.#guardAnew();
  }

  /**
   * What the coordinator sees this crawler come from, and what the partner states: behind NAT, the address of the whole
   * network, whose router answers there.
   */
  seenFrom(addresses: readonly string[]): void {
    const known = this.#learned.seenAddresses;
    if (addresses.length === known.length && addresses.every((one, at) => one === known[at])) return;
    this.#learned = { ...this.#learned, seenAddresses: addresses };
    this.#guardAnew();
  }

  /** Whether sites are contacted over IPv6, as it was last looked. */
  get speaksIpv6(): boolean {
    return this.#ipv6.spoken;
  }

  /**
   * Looks whether there is IPv6 here now, and asks DNS for the network's NAT64 prefixes (RFC 7050); without an answer
   * those that are known stay.
   */
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

  /** Why an IPv6 address is not contacted from here; null: it may be, or it is none. */
  async familyDenial(address: string, port?: number): Promise<string | null> {
    const parsed = parseAddress(address);
    if (parsed === null || unmapAddress(parsed).family === 4 || (await this.#ipv6.looked)) return null;
    // What the partner names is reached over routes of its own.
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

  /** Breaks everything off that is under way, because of a limit; what is opened later goes on. */
  cut(reason: string): void {
    for (const socket of this.#open.keys()) socket.destroy(new Failure("held-back", reason));
  }

  /** An open, verified connection. Throws a Failure that says which phase failed and why. */
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

  /** The first of the host's addresses that may be contacted. Throws a Failure when there is none. */
  async pick(
    target: Pick<ConnectTarget, "host" | "address">,
  ): Promise<{ address: string; dnsMs: number | null }> {
    const { addresses, dnsMs } = await this.#allowed(target);
    return { address: addresses[0], dnsMs };
  }

  /** Where a coordinator is that the partner did not name: resolved and checked as a site is, at its port too. Throws a Failure. */
  async coordinatorDestinations(
    host: string,
    port: number,
    timeoutMs: number,
  ): Promise<readonly Destination[]> {
    const { addresses } = await this.#allowed({ host, port, timeoutMs });
    return addresses.slice(0, maxTries).map((address) => Destination.checked(this.guard, address, port));
  }

  /** Ends every connection: what is under way over them fails. There will be no others. */
  close(): void {
    this.#closed = true;
    this.#names.close();
    for (const socket of this.#open.keys()) socket.destroy();
  }

  /** One of the connections that the host allows, from its beginning to its end. */
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

  /** All of the host's addresses that may be contacted, at least one. */
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

  /** The next address when one fails: each may take half of the time that is left, the last all of it. */
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

// The public networks that this machine's own interfaces are in: its owner's, most likely, and not the web. Private
// ones are special-purpose and refused anyway.

/** As a/prefix. */
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

// Counts what the crawler's connections carry, both ways: the bytes of every socket, below TLS, so handshakes,
// headers and framing are in it. What goes another way (DNS, ICMP) is added by those who send it.

export class WireMeter {
  readonly #open = new Set<net.Socket>();
  #closedBytes = 0;

  /** The TCP socket itself, not one for TLS on top of it. */
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

  /** Since the meter was made. */
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
