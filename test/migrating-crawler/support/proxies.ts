/** Tiny forward proxies on loopback: HTTP CONNECT and SOCKS5 (RFC 1928), connecting where they are told. */
import net, { type AddressInfo } from "node:net";

export interface TestProxy {
  readonly url: string;
  /** What was asked for, as `address:port`. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** Answers a failed connect with 502 and `X-Proxy-Error`, as our emulated Internet's proxies do. */
export function startConnectProxy(): Promise<TestProxy> {
  return startProxy("http", (client, asked) => {
    let head = "";
    const onData = (chunk: Buffer) => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      client.off("data", onData);
      const target = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? "";
      asked.push(target);
      const at = target.lastIndexOf(":");
      const onward = net.connect({ host: target.slice(0, at), port: Number(target.slice(at + 1)) });
      onward.once("connect", () => {
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        join(client, onward);
      });
      onward.once("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\nX-Proxy-Error: refused\r\n\r\n"));
    };
    client.on("data", onData);
  });
}

export function startSocks5Proxy(): Promise<TestProxy> {
  return startProxy("socks5", (client, asked) => {
    client.once("data", () => {
      client.write(Buffer.from([5, 0]));
      client.once("data", (request: Buffer) => {
        const address = [...request.subarray(4, 8)].join(".");
        const port = request.readUInt16BE(8);
        asked.push(`${address}:${port}`);
        const onward = net.connect({ host: address, port });
        const reply = (code: number) => Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
        onward.once("connect", () => {
          client.write(reply(0));
          join(client, onward);
        });
        onward.once("error", () => client.end(reply(5)));
      });
    });
  });
}

function join(client: net.Socket, onward: net.Socket): void {
  client.pipe(onward);
  onward.pipe(client);
  client.on("close", () => onward.destroy());
  onward.on("close", () => client.destroy());
}

async function startProxy(
  scheme: string,
  serve: (client: net.Socket, asked: string[]) => void,
): Promise<TestProxy> {
  const asked: string[] = [];
  const clients = new Set<net.Socket>();
  const server = net.createServer((client) => {
    clients.add(client);
    client.on("error", () => {});
    client.on("close", () => clients.delete(client));
    serve(client, asked);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, close };
}
