/**
 * What an export needs of OpenSearch, in memory, on a socket: indices, documents by id, `_bulk` with external versions, and
 * `_delete_by_query` by a range. Versions of deleted documents are remembered, as OpenSearch does for a minute. Written from
 * its documentation; OpenSearch itself never ran here.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

interface Stored {
  readonly version: number;
  /** Null when deleted. */
  readonly source: Record<string, unknown> | null;
}

export interface Refusal {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cuts the connection after the work instead of answering. */
  readonly cut?: boolean;
}

export class OpenSearchStandIn {
  readonly indices = new Map<string, Map<string, Stored>>();
  readonly bodies = new Map<string, unknown>();
  readonly requests: {
    readonly method: string;
    readonly path: string;
    readonly authorization: string | null;
    readonly bytes: number;
  }[] = [];
  /** Called before each request; null accepts it. */
  refuse: (method: string, path: string) => Refusal | null = () => null;
  /** Called for each document of a batch; null accepts it. */
  refuseDocument: (id: string, source: Record<string, unknown> | null) => number | null = () => null;
  /** Writes that replaced or removed a document. */
  effects = 0;
  mostBytes = Number.POSITIVE_INFINITY;
  readonly #server;

  constructor(tls?: { readonly key: string; readonly cert: string }) {
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request, response);
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

  /** The current documents without the cursor. */
  documents(index: string): Map<string, Record<string, unknown>> {
    const stored = [...(this.indices.get(index) ?? [])];
    return new Map(
      stored.flatMap(([id, { source }]) =>
        source === null || id === "nearcrawl-cursor" ? [] : [[id, source]],
      ),
    );
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const method = request.method!;
    const url = new URL(request.url!, "http://stand-in");
    const [, name = "", ...rest] = url.pathname.split("/");
    const path = `/${rest.join("/")}`;
    this.requests.push({
      method,
      path,
      authorization: request.headers.authorization ?? null,
      bytes: body.length,
    });
    const refusal = this.refuse(method, path);
    if (refusal !== null && !refusal.cut) {
      response
        .writeHead(refusal.status, refusal.headers)
        .end(JSON.stringify({ error: { type: "stand_in", reason: "as told" } }));
      return;
    }
    const [status, answer] =
      path === "/_bulk" && body.length > this.mostBytes
        ? [413, null]
        : this.#answer(method, { name, path, url, body: body.toString() });
    if (refusal?.cut) return void request.socket.destroy();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(method === "HEAD" || answer === null ? undefined : JSON.stringify(answer));
  }

  #answer(
    method: string,
    {
      name,
      path,
      url,
      body,
    }: { readonly name: string; readonly path: string; readonly url: URL; readonly body: string },
  ): readonly [number, unknown] {
    const index = this.indices.get(name);
    if (path === "/" && method === "PUT") {
      if (index) return [400, { error: { type: "resource_already_exists_exception", reason: name } }];
      this.indices.set(name, new Map());
      this.bodies.set(name, JSON.parse(body));
      return [200, { acknowledged: true }];
    }
    if (!index) return [404, { error: { type: "index_not_found_exception", reason: name } }];
    if (path === "/" && method === "HEAD") return [200, null];
    if (path === "/_refresh") return [200, {}];
    if (path === "/_bulk") return [200, this.#bulk(index, body)];
    if (path === "/_delete_by_query") return [200, this.#deleteByQuery(index, url, body)];
    const [, id] = /^\/_doc\/(.+)$/.exec(path) ?? [];
    if (id === undefined)
      return [405, { error: { type: "stand_in", reason: `nothing is at ${method} ${path}` } }];
    if (method === "GET") {
      const source = index.get(id)?.source ?? null;
      return source === null
        ? [404, { _id: id, found: false }]
        : [200, { _id: id, found: true, _source: source }];
    }
    const version = (index.get(id)?.version ?? 0) + 1;
    index.set(id, { version, source: JSON.parse(body) });
    return [200, { _id: id, _version: version, result: "updated" }];
  }

  #bulk(index: Map<string, Stored>, body: string): unknown {
    if (!body.endsWith("\n")) throw new Error("the last line of a bulk request ends, too");
    const lines = body.split("\n");
    const items: unknown[] = [];
    for (let at = 0; at < lines.length - 1; at += 1) {
      const [[op, action]] = Object.entries(JSON.parse(lines[at]!)) as [
        [string, { _id: string; version: number; version_type: string }],
      ];
      if (action.version_type !== "external") throw new Error("versions are external");
      const source = op === "index" ? (JSON.parse(lines[++at]!) as Record<string, unknown>) : null;
      items.push({ [op]: { _id: action._id, ...this.#one(index, action, source) } });
    }
    return { took: 1, errors: items.length > 0, items };
  }

  #one(
    index: Map<string, Stored>,
    { _id: id, version }: { readonly _id: string; readonly version: number },
    source: Record<string, unknown> | null,
  ) {
    const refused = this.refuseDocument(id, source);
    if (refused !== null) return { status: refused, error: { type: "refused_exception", reason: "as told" } };
    const before = index.get(id);
    if (before !== undefined && version <= before.version)
      return {
        status: 409,
        error: { type: "version_conflict_engine_exception", reason: `${before.version}` },
      };
    index.set(id, { version, source });
    this.effects += 1;
    if (source === null && (before?.source ?? null) === null) return { status: 404, result: "not_found" };
    return { status: before?.source ? 200 : 201, result: "written" };
  }

  #deleteByQuery(index: Map<string, Stored>, url: URL, body: string): unknown {
    const { range } = (JSON.parse(body) as { query: { range: { change: { lt: number } } } }).query;
    const old = [...index].filter(
      ([, { source }]) => source !== null && Number(source.change) < range.change.lt,
    );
    const taken = old.slice(0, Number(url.searchParams.get("max_docs")));
    for (const [id, { version }] of taken) index.set(id, { version: version + 1, source: null });
    return { deleted: taken.length, version_conflicts: 0, failures: [] };
  }
}
