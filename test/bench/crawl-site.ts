/**
 * The sites of the crawl benchmark, in a process of their own, on one port of many loopback addresses:
 *   127.0.1.1 … 127.0.2.250   500 good sites: robots.txt, gzipped 40 KB pages with 101 links: typical ones below
 *                             /p/, the same without a stated language below /u/, all text below /t/
 *   127.0.3.1 … 127.0.3.100   100 sites that take a connection and never answer
 * Tells its port over the IPC channel, or says why it could not listen.
 */
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { gzipSync } from "node:zlib";
import { benchPages } from "./crawl/page-markup.ts";
import { deadHosts, goodHosts } from "./crawl/site-hosts.ts";

const distinctPages = 400;

const { typical, undeclared, wordy } = benchPages(distinctPages);
const packed = {
  p: typical.map((page) => gzipSync(page)),
  u: undeclared.map((page) => gzipSync(page)),
  t: wordy.map((page) => gzipSync(page)),
};
const meanBytes = typical.reduce((sum, page) => sum + Buffer.byteLength(page), 0) / distinctPages;

const answer: RequestListener = (request, response) => {
  const [, kind, number] = /^\/([put])\/(\d+)$/.exec(request.url ?? "") ?? [];
  if (kind !== "p" && kind !== "u" && kind !== "t") {
    const isRobots = request.url === "/robots.txt";
    response.writeHead(isRobots ? 200 : 404, { "content-type": "text/plain" });
    response.end(isRobots ? "User-agent: *\nDisallow: /private/\n" : "");
    return;
  }
  const host = Number(/\d+$/.exec(request.socket.localAddress ?? "")?.[0] ?? 0);
  const page = packed[kind][(host * 31 + Number(number)) % distinctPages]!;
  response.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-encoding": "gzip",
    "content-length": page.length,
  });
  response.end(page);
};

let port = 0;
for (const host of goodHosts) {
  port = await listen(createHttpServer({ keepAliveTimeout: 120_000 }, answer), host, port);
}
for (const host of deadHosts) {
  await listen(
    createServer((socket) => socket.on("error", () => {}).resume()),
    host,
    port,
  );
}
process.send?.({ port, pageBytes: meanBytes });
process.once("disconnect", () => process.exit());

async function listen(server: Server, address: string, wanted: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, address, resolve);
  });
  return (server.address() as AddressInfo).port;
}
