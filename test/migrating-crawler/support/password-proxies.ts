/**
 * Forward proxies that want user and password: HTTP CONNECT (Basic, RFC 7617) and SOCKS5 (RFC 1929). Every name leads
 * to this machine, as behind a company's proxy names do that the machine itself cannot resolve.
 */
import net, { type AddressInfo } from "node:net";

export const proxyUser = "crawler";
export const proxyPassword = "p@ss:word";

export interface PasswordProxy {
  /** With user and password. */
  readonly url: string;
  readonly urlWithout: string;
  /** What was asked for by those who knew the password, as `name:port`. */
  readonly asked: string[];
  close(): Promise<void>;
}

export function startConnectPasswordProxy(): Promise<PasswordProxy> {
  const wanted = Buffer.from(`${proxyUser}:${proxyPassword}`).toString("base64");
  return startProxy("http", (client, asked) => {
    client.once("data", (head: Buffer) => {
      const text = head.toString("latin1");
      if (!text.includes(`Proxy-Authorization: Basic ${wanted}\r\n`)) {
        return void client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      }
      const [, name = "", port = ""] = /^CONNECT (\S+):(\d+) /.exec(text) ?? [];
      asked.push(`${name}:${port}`);
      onward(client, Number(port), "HTTP/1.1 200 Connection established\r\n\r\n");
    });
  });
}

export function startSocksPasswordProxy(): Promise<PasswordProxy> {
  return startProxy("socks5", (client, asked) => {
    client.once("data", (greeting: Buffer) => {
      if (!greeting.subarray(2).includes(2)) return void client.end(Buffer.from([5, 0xff]));
      client.write(Buffer.from([5, 2]));
      client.once("data", (login: Buffer) => {
        const userBytes = login[1]!;
        const user = login.subarray(2, 2 + userBytes).toString();
        const password = login.subarray(3 + userBytes, 3 + userBytes + login[2 + userBytes]!).toString();
        if (user !== proxyUser || password !== proxyPassword) return void client.end(Buffer.from([1, 1]));
        client.write(Buffer.from([1, 0]));
        client.once("data", (request: Buffer) => {
          const nameBytes = request[4]!;
          const port = request.readUInt16BE(5 + nameBytes);
          asked.push(`${request.subarray(5, 5 + nameBytes).toString()}:${port}`);
          onward(client, port, Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        });
      });
    });
  });
}

function onward(client: net.Socket, port: number, answer: string | Buffer): void {
  const there = net.connect({ host: "127.0.0.1", port });
  there.once("connect", () => {
    client.write(answer);
    client.pipe(there).pipe(client);
  });
  there.on("error", () => client.destroy());
  there.on("close", () => client.destroy());
  client.on("close", () => there.destroy());
}

async function startProxy(
  scheme: string,
  serve: (client: net.Socket, asked: string[]) => void,
): Promise<PasswordProxy> {
  const asked: string[] = [];
  const clients = new Set<net.Socket>();
  const server = net.createServer((client) => {
    clients.add(client);
    client.on("error", () => client.destroy());
    client.on("close", () => clients.delete(client));
    serve(client, asked);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const where = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const login = `${proxyUser}:${encodeURIComponent(proxyPassword)}`;
  const close = async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `${scheme}://${login}@${where}`, urlWithout: `${scheme}://${where}`, asked, close };
}
