/**
 * Forward proxies on loopback, HTTP CONNECT and SOCKS5 (RFC 1928), optionally with user and password (RFC 7617, RFC
 * 1929). Every name resolves to this machine, like names that only a company's proxy can resolve.
 */
import { once } from "node:events";
import net from "node:net";
import { onLoopback } from "./loopback.ts";

export interface TestProxy {
  /** Includes user and password if required. */
  readonly url: string;
  readonly urlWithout: string;
  /** Requested targets as `host:port`. */
  readonly asked: string[];
  close(): Promise<void>;
}

const [user, password] = ["crawler", "p@ss:word"];

/** Answers a failed connect with 502 and `X-Proxy-Error`, like the proxies of the emulated Internet. */
export function startConnectProxy({ wantsPassword = false } = {}): Promise<TestProxy> {
  const login = `Proxy-Authorization: Basic ${Buffer.from(`${user}:${password}`).toString("base64")}\r\n`;
  return startProxy("http", wantsPassword, async ({ next, end, goOn }) => {
    let head = "";
    while (!head.includes("\r\n\r\n")) head += (await next()).toString("latin1");
    if (wantsPassword && !head.includes(login))
      return end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const [, host = "", port = ""] = /^CONNECT (\S+):(\d+) HTTP\/1\.1\r\n/.exec(head) ?? [];
    const failed = "HTTP/1.1 502 Bad Gateway\r\nX-Proxy-Error: refused\r\n\r\n";
    goOn(host, Number(port), { opened: "HTTP/1.1 200 Connection established\r\n\r\n", failed });
  });
}

export function startSocks5Proxy({ wantsPassword = false } = {}): Promise<TestProxy> {
  const login = [user, password].map((part) => Buffer.from([part.length, ...Buffer.from(part)]));
  return startProxy("socks5", wantsPassword, async ({ next, write, end, goOn }) => {
    const greeting = await next();
    if (wantsPassword && !greeting.subarray(2).includes(2)) return end(Buffer.from([5, 0xff]));
    write(Buffer.from([5, wantsPassword ? 2 : 0]));
    if (wantsPassword) {
      if (!(await next()).equals(Buffer.from([1, ...Buffer.concat(login)]))) return end(Buffer.from([1, 1]));
      write(Buffer.from([1, 0]));
    }
    const request = await next();
    const portAt = request.length - 2;
    const isName = request[3] === 3;
    const host = isName ? request.toString("latin1", 5, portAt) : request.subarray(4, 8).join(".");
    const reply = (code: number) => Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    goOn(host, request.readUInt16BE(portAt), { opened: reply(0), failed: reply(5) });
  });
}

interface Client {
  readonly next: () => Promise<Buffer>;
  readonly write: (bytes: Buffer) => void;
  readonly end: (bytes: string | Buffer) => void;
  readonly goOn: (
    host: string,
    port: number,
    say: { readonly opened: string | Buffer; readonly failed: string | Buffer },
  ) => void;
}

async function startProxy(
  scheme: string,
  wantsPassword: boolean,
  serve: (client: Client) => Promise<void>,
): Promise<TestProxy> {
  const asked: string[] = [];
  const server = net.createServer((socket) => {
    const goOn: Client["goOn"] = (host, port, { opened, failed }) => {
      asked.push(`${host}:${port}`);
      const onward = net.connect({ host: net.isIP(host) === 0 ? "127.0.0.1" : host, port });
      onward.once("error", () => socket.end(failed));
      onward.once("connect", () => {
        socket.write(opened);
        socket.pipe(onward).pipe(socket);
        onward.on("error", () => socket.destroy());
        onward.on("close", () => socket.destroy());
        socket.on("close", () => onward.destroy());
      });
    };
    const next = async () => ((await once(socket, "data")) as [Buffer])[0];
    const client = { next, write: (bytes: Buffer) => void socket.write(bytes), goOn };
    // A client that disconnects meanwhile is no error.
    serve({ ...client, end: (bytes) => void socket.end(bytes) }).catch(() => {});
  });
  const { port, close } = await onLoopback(server);
  const login = wantsPassword ? `${user}:${encodeURIComponent(password)}@` : "";
  const [url, urlWithout] = [login, ""].map((who) => `${scheme}://${who}127.0.0.1:${port}`);
  return { url: url!, urlWithout: urlWithout!, asked, close };
}
