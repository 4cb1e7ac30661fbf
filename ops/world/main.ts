/**
 * Starts the emulated Internet in this process: name server, origins and a proxy per crawler, all on loopback. Crawlers need no
 * special code, because real partners also use proxies and resolvers.
 */

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, type Packet } from "dns-packet";
import { addressSeenBy, type World } from "./model.ts";
import { type RequestLog, startOrigin } from "./origin.ts";
import { startProxy } from "./proxy.ts";
import { type StartOptions, type WorldState, worldState } from "./world-state.ts";

export interface RunningWorld {
  readonly world: World;
  /** `127.0.0.1:port`, UDP and TCP. The coordinator's name server. */
  readonly dnsAddress: string;
  /** The origins' own port. Sites are selected by the Host header, and there is no network delay. */
  readonly originPort: number;
  readonly requestLog: RequestLog;
  /** Returns `http://127.0.0.1:port`. */
  proxyUrlOf(crawlerIndex: number): string;
  /**
   * Returns a crawler's name server. When names have several addresses, each crawler's has its own port, so that the
   * server knows the client and answers with the nearest address.
   */
  dnsAddressOf(crawlerIndex: number): string;
  close(): Promise<void>;
}

export async function startWorld(world: World, options: StartOptions = {}): Promise<RunningWorld> {
  const state = worldState(world, options);
  const names = await startNameServers(state);
  const origin = await startOrigin(state);
  const proxies = await Promise.all(
    world.crawlers.map((_, index) => startProxy(state, index, origin.connect)),
  );
  return {
    world,
    dnsAddress: names.address,
    dnsAddressOf: names.addressFor,
    originPort: origin.port,
    requestLog: origin.requestLog,
    proxyUrlOf: (crawlerIndex) => {
      const proxy = proxies[crawlerIndex];
      if (!proxy) throw new RangeError(`no crawler ${crawlerIndex}: the world has ${proxies.length}`);
      return `http://127.0.0.1:${proxy.port}`;
    },
    close: async () => {
      await Promise.all([...proxies.map((proxy) => proxy.close()), names.close()]);
      await origin.close();
      state.queue.close();
    },
  };
}

// The name servers of a running world. The coordinator's gives everybody the same answers. When some names have several
// addresses, each crawler gets a server at its own port, which answers with the nearest one. (A simple resolver does
// not say where it is, so the port identifies it.)

interface RunningNameServers {
  /** `127.0.0.1:port` for all clients other than crawlers. */
  readonly address: string;
  readonly addressFor: (crawlerIndex: number) => string;
  close(): Promise<void>;
}

async function startNameServers({ world, siteByHost }: WorldState): Promise<RunningNameServers> {
  const startFor = (crawlerIndex: number | null) =>
    startDns((name) => {
      const site = siteByHost.get(name);
      return site ? addressSeenBy(world, site, crawlerIndex) : null;
    });
  const common = await startFor(null);
  const hasSeveral = world.sites.some(({ addresses }) => addresses.length > 1);
  const own = hasSeveral ? await Promise.all(world.crawlers.map((_, index) => startFor(index))) : [];
  return {
    address: common.address,
    addressFor: (crawlerIndex) => {
      if (!world.crawlers[crawlerIndex]) {
        throw new RangeError(`no crawler ${crawlerIndex}: the world has ${world.crawlers.length}`);
      }
      return (own[crawlerIndex] ?? common).address;
    },
    close: async () => {
      await Promise.all([common, ...own].map((server) => server.close()));
    },
  };
}

// The emulated Internet's name server, UDP and TCP on one loopback port (RFC 1035): the address of every site, an empty
// answer for other types, and NXDOMAIN for names that nobody has. There is no recursion and no zone transfer. Malformed
// packets are dropped, and TCP connections are limited in number, size and time.

/** How long resolvers may cache an answer. */
export const ttlSeconds = 300;

const negativeTtlSeconds = 60;

const mostTcpSockets = 64;
const mostTcpBytes = 4096;
const tcpIdleMs = 10_000;

const nxDomain = 3;
const notImplemented = 4;

export interface RunningDns {
  /** `127.0.0.1:port` */
  readonly address: string;
  close(): Promise<void>;
}

/** `addressOf` returns the IPv4 address of a name in lower case without a final dot, or null. */
export async function startDns(addressOf: (name: string) => string | null): Promise<RunningDns> {
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    serveTcp(socket, addressOf);
  });
  tcp.maxConnections = mostTcpSockets;
  const { udp, port } = await bindBoth(tcp);
  udp.on("message", (message, peer) => {
    const reply = replyTo(message, addressOf);
    if (reply) udp.send(reply, peer.port, peer.address);
  });
  udp.on("error", () => {});
  return {
    address: `127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all([
        new Promise<void>((resolve) => udp.close(() => resolve())),
        new Promise<void>((resolve) => tcp.close(() => resolve())),
      ]);
    },
  };
}

/** Returns the reply to a query packet, or null for any other packet. */
export function replyTo(message: Buffer, addressOf: (name: string) => string | null): Buffer | null {
  let query: Packet;
  try {
    query = decode(message);
  } catch {
    return null;
  }
  if (query.type !== "query") return null;
  const [question] = query.questions ?? [];
  const reply = { type: "response" as const, id: query.id ?? 0, questions: question ? [question] : [] };
  if (!question || ((query.flags ?? 0) & 0x7800) !== 0) return encode({ ...reply, flags: notImplemented });
  const name = question.name.toLowerCase().replace(/\.$/, "");
  const address = addressOf(name);
  const isAsked = question.type === "A" || (question.type as string) === "ANY";
  if (address !== null && isAsked) {
    const answers: Answer[] = [{ type: "A", name: question.name, ttl: ttlSeconds, data: address }];
    return encode({ ...reply, flags: AUTHORITATIVE_ANSWER, answers });
  }
  return encode({
    ...reply,
    flags: AUTHORITATIVE_ANSWER | (address === null ? nxDomain : 0),
    authorities: [startOfAuthority(name)],
  });
}

/** Tells resolvers how long they may cache a negative answer (RFC 2308). */
function startOfAuthority(name: string): Answer {
  return {
    type: "SOA",
    name: name.split(".").at(-1) ?? "",
    ttl: negativeTtlSeconds,
    data: {
      mname: "ns.world.test",
      rname: "hostmaster.world.test",
      serial: 1,
      refresh: 3600,
      retry: 600,
      expire: 86_400,
      minimum: negativeTtlSeconds,
    },
  };
}

/** Answers length-prefixed messages (RFC 1035 section 4.2.2) one after the other. */
function serveTcp(socket: Socket, addressOf: (name: string) => string | null): void {
  let received = Buffer.alloc(0);
  socket.setTimeout(tcpIdleMs, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      const reply = replyTo(received.subarray(2, end), addressOf);
      received = received.subarray(end);
      if (!reply) return void socket.destroy();
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length);
      socket.write(Buffer.concat([length, reply]));
    }
    if (received.length > mostTcpBytes || socket.writableLength > 65_536) socket.destroy();
  });
}

/** TCP picks a free port. When UDP finds that port taken, another one is tried. */
async function bindBoth(tcp: Server): Promise<{ udp: UdpSocket; port: number }> {
  for (let attempt = 0; ; attempt++) {
    await new Promise<void>((resolve, reject) => {
      tcp.once("error", reject);
      tcp.listen(0, "127.0.0.1", () => resolve());
    });
    const { port } = tcp.address() as AddressInfo;
    const udp = createSocket("udp4");
    try {
      await new Promise<void>((resolve, reject) => {
        udp.once("error", reject);
        udp.bind(port, "127.0.0.1", () => resolve());
      });
      udp.removeAllListeners("error");
      return { udp, port };
    } catch (error) {
      udp.close();
      await new Promise<void>((resolve) => tcp.close(() => resolve()));
      if (attempt >= 10) throw error;
    }
  }
}
