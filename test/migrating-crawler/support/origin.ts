/** A web site on loopback that ends with the test: normal pages through node:http, and raw sockets for misbehaviour. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import net from "node:net";
import { onLoopback } from "./loopback.ts";

export interface Origin {
  readonly port: number;
  readonly url: string;
  /** `METHOD path` in order of arrival. */
  readonly requests: string[];
  readonly headers: IncomingMessage["headers"][];
  close(): Promise<void>;
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** There is no robots.txt (404) unless the handler answers it. */
export async function startOrigin(handle: Handle): Promise<Origin> {
  const requests: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    headers.push(request.headers);
    handle(request, response);
  });
  const { port, close } = await onLoopback(server);
  return { port, url: `http://127.0.0.1:${port}`, requests, headers, close };
}

export function html(response: ServerResponse, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers });
  response.end(body);
}

/** The same with this robots.txt, given as text or by a handler, or with none (404). */
export function startSite(handle: Handle, robots?: string | Handle): Promise<Origin> {
  return startOrigin((request, response) => {
    if (request.url !== "/robots.txt") handle(request, response);
    else if (typeof robots === "function") robots(request, response);
    else response.writeHead(robots === undefined ? 404 : 200).end(robots);
  });
}

/** Passes each connection to `behave` after the request's header has arrived. */
export async function startRawOrigin(
  behave: (socket: net.Socket, head: string) => void,
  address = "127.0.0.1",
): Promise<{
  readonly port: number;
  readonly url: string;
  readonly connections: () => number;
  close(): Promise<void>;
}> {
  let connections = 0;
  const server = net.createServer((socket) => {
    connections++;
    let head = "";
    socket.on("data", (chunk) => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      const whole = head;
      head = "";
      behave(socket, whole);
    });
  });
  const { port, close } = await onLoopback(server, address);
  return { port, url: `http://${address}:${port}`, connections: () => connections, close };
}

/** The same except for robots.txt, which is absent. */
export function startRawPages(
  behave: (socket: net.Socket, head: string) => void,
): ReturnType<typeof startRawOrigin> {
  return startRawOrigin((socket, head) => {
    if (head.startsWith("GET /robots.txt ")) socket.write("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n");
    else behave(socket, head);
  });
}

export async function closedPort(): Promise<number> {
  const { port, close } = await onLoopback(net.createServer());
  await close();
  return port;
}
