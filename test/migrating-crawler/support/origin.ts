/** A web site on loopback: normal pages through node:http, and raw sockets for what no server should do. It ends with the test. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import net, { type AddressInfo } from "node:net";
import { atEnd } from "../../support/at-end.ts";

export interface Origin {
  readonly port: number;
  readonly url: string;
  /** `METHOD path`, in the order of arrival. */
  readonly requests: string[];
  readonly headers: IncomingMessage["headers"][];
  close(): Promise<void>;
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Robots are absent (404) unless the handler of `/robots.txt` says otherwise. */
export async function startOrigin(handle: Handle): Promise<Origin> {
  const requests: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    handle(request, response);
  });
  const port = await listen(server);
  const close = () => closeServer(server);
  atEnd(close);
  return { port, url: `http://127.0.0.1:${port}`, requests, headers, close };
}

export function html(response: ServerResponse, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers });
  response.end(body);
}

/** Every connection is handed to `behave` after the request's head has arrived. */
export async function startRawOrigin(
  behave: (socket: net.Socket, head: string) => void,
  address = "127.0.0.1",
): Promise<{
  readonly port: number;
  readonly url: string;
  readonly connections: () => number;
  close(): Promise<void>;
}> {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  const server = net.createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let head = "";
    socket.on("data", (chunk) => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      const whole = head;
      head = "";
      behave(socket, whole);
    });
  });
  const port = await listen(server, address);
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  atEnd(close);
  return { port, url: `http://${address}:${port}`, connections: () => connections, close };
}

/** The same for all but robots.txt, which is absent. */
export function startRawPages(
  behave: (socket: net.Socket, head: string) => void,
): ReturnType<typeof startRawOrigin> {
  return startRawOrigin((socket, head) => {
    if (head.startsWith("GET /robots.txt ")) socket.write("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n");
    else behave(socket, head);
  });
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function listen(server: net.Server | Server, address = "127.0.0.1"): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
