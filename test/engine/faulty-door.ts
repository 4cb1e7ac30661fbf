/** A door in front of a real engine, which refuses, cuts or limits requests as a test says, and passes the others on. */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

interface Refusal {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Cuts the connection after the work instead of answering. */
  readonly cut?: boolean;
}

export class FaultyDoor {
  readonly requests: {
    readonly method: string;
    readonly path: string;
    readonly authorization: string | null;
    readonly bytes: number;
  }[] = [];
  /** Called before each request with its path below the index; null passes it on. */
  refuse: (method: string, path: string) => Refusal | null = () => null;
  /** Whether a document of a batch is refused for want of room, which no engine can be made to do. */
  hasNoRoomFor: (id: string) => boolean = () => false;
  mostBytes = Number.POSITIVE_INFINITY;
  readonly #engine: string;
  readonly #server;

  constructor(engine: string, tls?: { readonly key: string; readonly cert: string }) {
    this.#engine = engine;
    const answer = (asked: IncomingMessage, response: ServerResponse) => void this.#serve(asked, response);
    this.#server = tls ? createTlsServer(tls, answer) : createServer(answer);
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }

  async #serve(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    let body: Buffer = await buffer(asked);
    const [method, url] = [asked.method!, asked.url!];
    const path = url.replace(/^\/[^/?]*/, "").replace(/\?.*/, "");
    const authorization = asked.headers.authorization ?? null;
    this.requests.push({ method, path, authorization, bytes: body.length });
    const refusal =
      this.refuse(method, path) ??
      (path === "/_bulk" && body.length > this.mostBytes ? { status: 413 } : null);
    if (refusal !== null && !refusal.cut)
      return void response.writeHead(refusal.status, refusal.headers).end(JSON.stringify(refusal.body));
    const left: number[] = [];
    if (path === "/_bulk") body = this.#withRoom(body, left);
    if (left.length > 0 && body.length === 0) return void response.end(withBusy('{"items":[]}', left));
    const { "content-length": _, ...headers } = asked.headers;
    const passed = request(this.#engine + url, { method, headers }, async (answer) => {
      const told = await buffer(answer);
      if (refusal?.cut) return void asked.socket.destroy();
      const { "content-length": __, ...fields } = answer.headers;
      response.writeHead(answer.statusCode!, fields);
      response.end(left.length > 0 ? withBusy(told.toString(), left) : told);
    });
    passed.on("error", () => asked.socket.destroy()).end(body);
  }

  /** The batch without the documents that there is no room for, whose places are added to `left`. */
  #withRoom(batch: Buffer, left: number[]): Buffer {
    const lines = batch.toString().split("\n");
    const kept: string[] = [];
    for (let [at, place] = [0, 0]; at < lines.length - 1; place += 1) {
      const [[op, { _id }]] = Object.entries(JSON.parse(lines[at]!)) as [[string, { _id: string }]];
      const document = lines.slice(at, at + (op === "index" ? 2 : 1));
      at += document.length;
      if (this.hasNoRoomFor(_id)) left.push(place);
      else kept.push(...document);
    }
    return Buffer.from(kept.map((line) => `${line}\n`).join(""));
  }
}

function withBusy(told: string, left: readonly number[]): string {
  const answer = JSON.parse(told) as { items: unknown[] };
  const error = { type: "rejected_execution_exception", reason: "the queue is full" };
  for (const place of left) answer.items.splice(place, 0, { index: { status: 429, error } });
  return JSON.stringify(answer);
}
