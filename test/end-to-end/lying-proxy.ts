/**
 * A proxy between a crawler and the emulated Internet that requests other pages than the crawler asked for, so that another
 * page, or none, comes back under the URL. To the coordinator it is the crawler that lies; the crawler needs no code for it.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface LyingProxy {
  readonly url: string;
  /** Requests that were changed, as `host path`. */
  readonly lies: readonly string[];
  close(): Promise<void>;
}

/** The path requested in place of this one; null: the path itself. */
export type Lie = (host: string, path: string) => string | null;

export async function startLyingProxy(upstreamUrl: string, lie: Lie): Promise<LyingProxy> {
  const upstream = new URL(upstreamUrl);
  const lies: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const way = connect(Number(upstream.port), upstream.hostname);
    for (const socket of [client, way]) {
      sockets.add(socket);
      socket.on("error", () => [client, way].forEach((one) => void one.destroy()));
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("data", (chunk: Buffer) => way.write(changed(chunk, lie, lies)));
    client.on("end", () => way.end());
    way.pipe(client);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lies,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A crawler writes a request in one piece; robots.txt is not changed, as an unnoticed liar would do. */
function changed(chunk: Buffer, lie: Lie, lies: string[]): Buffer {
  const text = chunk.toString("latin1");
  const path = /^GET (\/\S*) HTTP\/1\.1\r\n/.exec(text)?.[1];
  const host = /\r\nhost: (\S+)\r\n/i.exec(text)?.[1];
  if (path === undefined || host === undefined || path === "/robots.txt") return chunk;
  const other = lie(host, path);
  if (other === null) return chunk;
  lies.push(`${host} ${path}`);
  return Buffer.from(text.replace(`GET ${path} `, `GET ${other} `), "latin1");
}
