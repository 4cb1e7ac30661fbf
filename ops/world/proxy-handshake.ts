/**
 * The two ways of asking a proxy for a connection, read from a socket: `CONNECT host:port` and SOCKS5.
 * Bounded: 8 KiB and ten seconds, then the socket is closed. The socket is paused until the answer.
 */
import type { Socket } from "node:net";
import { formatAddress } from "#core/ip/address";

export type ProxyFailure = "refused" | "timeout" | "unreachable";

export interface ProxyRequest {
  /** A host name in lower case or an address. */
  readonly host: string;
  readonly port: number;
  /** Says yes; returns what the client sent already beyond its request. */
  accept(): Buffer;
  refuse(failure: ProxyFailure): void;
}

const mostBytes = 8192;
const deadlineMs = 10_000;

/** Calls back once, with the request, if it is one. */
export function acceptHandshake(socket: Socket, requested: (request: ProxyRequest) => void): void {
  let received = Buffer.alloc(0);
  let isSocksGreeted = false;
  const deadline = setTimeout(() => socket.destroy(), deadlineMs);
  const finish = (request: ProxyRequest) => {
    clearTimeout(deadline);
    socket.off("data", onData);
    socket.pause();
    requested(request);
  };
  const step = (): void => {
    if (!isSocksGreeted && received[0] !== 5) {
      const end = received.indexOf("\r\n\r\n");
      if (end >= 0) readConnect(socket, received, end, finish);
      return;
    }
    if (!isSocksGreeted) {
      const length = 2 + (received[1] ?? 0);
      if (received.length < 2 || received.length < length) return;
      isSocksGreeted = true;
      const offersNoAuth = received.subarray(2, length).includes(0);
      socket.write(Buffer.from([5, offersNoAuth ? 0 : 0xff]));
      if (!offersNoAuth) return void socket.end();
      received = received.subarray(length);
    }
    if (received.length > 0 && received[0] !== 5) return void socket.destroy();
    readSocks(socket, received, finish);
  };
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.length > mostBytes) return void socket.destroy();
    step();
  };
  socket.on("data", onData);
  socket.once("close", () => clearTimeout(deadline));
}

function readConnect(
  socket: Socket,
  received: Buffer,
  end: number,
  finish: (request: ProxyRequest) => void,
): void {
  const line = received.toString("latin1", 0, Math.min(end, received.indexOf("\r\n")));
  const [, host, port] = /^CONNECT (\[[0-9a-fA-F:.]+\]|[^\s:]+):(\d{1,5}) HTTP\/1\.[01]$/.exec(line) ?? [];
  if (!host || !port || Number(port) > 65_535) {
    const status = /^[A-Z]+ \S+ HTTP\/1\.[01]$/.test(line) ? "405 Method Not Allowed" : "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nAllow: CONNECT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    return;
  }
  const early = received.subarray(end + 4);
  finish({
    host: plainHost(host),
    port: Number(port),
    accept: () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      return early;
    },
    refuse: (failure) => {
      socket.end(
        `HTTP/1.1 502 Bad Gateway\r\nX-Proxy-Error: ${failure}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      );
    },
  });
}

const socksCodes: Readonly<Record<ProxyFailure, number>> = { unreachable: 4, refused: 5, timeout: 6 };

/** VER CMD RSV ATYP ADDRESS PORT (RFC 1928 section 4). */
function readSocks(socket: Socket, received: Buffer, finish: (request: ProxyRequest) => void): void {
  if (received.length < 5) return;
  const type = received[3];
  const addressLength = type === 1 ? 4 : type === 4 ? 16 : type === 3 ? 1 + (received[4] ?? 0) : -1;
  if (received[1] !== 1 || addressLength < 0) {
    socket.end(socksReply(addressLength < 0 ? 8 : 7));
    return;
  }
  const length = 4 + addressLength + 2;
  if (received.length < length) return;
  const early = received.subarray(length);
  finish({
    host: socksHost(received.subarray(4, 4 + addressLength), type),
    port: received.readUInt16BE(length - 2),
    accept: () => {
      socket.write(socksReply(0));
      return early;
    },
    refuse: (failure) => {
      socket.end(socksReply(socksCodes[failure]));
    },
  });
}

function socksHost(bytes: Buffer, type: number | undefined): string {
  if (type === 1) return formatAddress({ family: 4, value: bytes.readUInt32BE(0) });
  if (type === 4) return formatAddress({ family: 6, value: BigInt(`0x${bytes.toString("hex")}`) });
  return plainHost(bytes.toString("latin1", 1));
}

function plainHost(host: string): string {
  return host
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** The bound address is of no use to the client: zeros. */
function socksReply(code: number): Buffer {
  return Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
}
