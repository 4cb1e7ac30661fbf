/** A registry's download server on loopback, with entity tags, ranges, failures on demand, and small data. */

import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface RegistryServer {
  readonly origin: string;
  /** Published paths, which tests may change. */
  readonly paths: Map<string, Handler>;
  /** In order of arrival. */
  readonly requests: { readonly path: string; readonly headers: IncomingMessage["headers"] }[];
  /** Ignores the query. */
  requestsTo(path: string): RegistryServer["requests"];
  /** The maximum of simultaneous requests. */
  mostAtOnce(): number;
  close(): Promise<void>;
}

export const certificateFile = join(import.meta.dirname, "../../fixtures/tls/loopback.cert.pem");

export async function registryServer(
  paths: Readonly<Record<string, Handler>> = {},
  { secure = false }: { readonly secure?: boolean } = {},
): Promise<RegistryServer> {
  const published = new Map(Object.entries(paths));
  const requests: RegistryServer["requests"] = [];
  const pathOf = (url: string | undefined) => (url ?? "").replace(/\?.*/, "");
  let open = 0;
  let most = 0;
  const listener: RequestListener = (request, response) => {
    requests.push({ path: request.url ?? "", headers: request.headers });
    most = Math.max(most, ++open);
    response.once("close", () => open--);
    const handler = published.get(pathOf(request.url));
    if (handler) handler(request, response);
    else answer(response, 404, "not here\n");
  };
  const server = secure ? createSecureServer(tlsFiles(), listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http${secure ? "s" : ""}://127.0.0.1:${port}`,
    paths: published,
    requests,
    requestsTo: (path) => requests.filter((request) => pathOf(request.path) === path),
    mostAtOnce: () => most,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function tlsFiles() {
  return {
    cert: readFileSync(certificateFile),
    key: readFileSync(certificateFile.replace(".cert.", ".key.")),
  };
}

export function answer(response: ServerResponse, status: number, body: string | Buffer, headers = {}): void {
  response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body);
}

export const always =
  (status: number, body: string | Buffer = "", headers = {}): Handler =>
  (_request, response) =>
    answer(response, status, body, headers);

/** Answers each request with the next handler; the last one stays. */
export function inTurn(...handlers: readonly Handler[]): Handler {
  let at = 0;
  return (request, response) => handlers[Math.min(at++, handlers.length - 1)]!(request, response);
}

/** A file as good servers publish it: conditional requests and ranges (RFC 9110 sections 13 and 14). */
export function published(
  body: string | Buffer,
  { etag = '"v1"', lastModified = "Mon, 02 Mar 2026 03:04:05 GMT" } = {},
): Handler {
  const bytes = Buffer.from(body);
  return ({ headers }, response) => {
    const facts = { etag, "last-modified": lastModified, "accept-ranges": "bytes" };
    const isNewest = headers["if-none-match"]
      ? headers["if-none-match"] === etag
      : headers["if-modified-since"] === lastModified;
    if (isNewest) return void response.writeHead(304, facts).end();
    const range = /^bytes=(\d+)-$/.exec(headers.range ?? "");
    const isSame =
      headers["if-range"] === undefined || [etag, lastModified].includes(String(headers["if-range"]));
    if (!range || !isSame) return answer(response, 200, bytes, facts);
    const start = Number(range[1]);
    if (start >= bytes.length)
      return answer(response, 416, "", { "content-range": `bytes */${bytes.length}` });
    answer(response, 206, bytes.subarray(start), {
      ...facts,
      "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
    });
  };
}

/** Sends only this many bytes and cuts the connection once the client has them, as `onProgress` tells. */
export function cutAfter(bytes: number, body: string | Buffer, headers = {}) {
  let cut = () => {};
  const handler: Handler = (_request, response) => {
    const facts = { etag: '"v1"', "last-modified": "Mon, 02 Mar 2026 03:04:05 GMT", ...headers };
    response.writeHead(200, { "content-length": Buffer.byteLength(body), ...facts });
    response.write(Buffer.from(body).subarray(0, bytes));
    cut = () => response.destroy();
  };
  const onProgress = ({ bytesDone }: { readonly bytesDone: number }) => {
    if (bytesDone === bytes) cut();
  };
  return { handler, onProgress };
}

export function statistics(records: number): string {
  const lines = Array.from(
    { length: records },
    (_, at) => `ripencc|NL|ipv4|45.${Math.floor(at / 256)}.${at % 256}.0|256|20200101|allocated|id-${at}`,
  );
  const header = `2|ripencc|20260301|${records}|19830705|20260228|+0100\nripencc|*|ipv4|*|${records}|summary\n`;
  return `${header}${lines.join("\n")}\n`;
}

export function rpsl(objects: number): Buffer {
  const texts = Array.from(
    { length: objects },
    (_, at) => `inetnum: 45.${Math.floor(at / 256)}.${at % 256}.0/24\nnetname: EX-${at}\nsource: RIPE\n`,
  );
  return gzipSync(texts.join("\n"));
}
