/**
 * The sites of the crawl benchmark, in a process of their own, on one port of many loopback addresses:
 *   127.0.1.1 … 127.0.2.250   500 good sites: robots.txt, gzipped pages of the emulated Internet below /p/, the same
 *                             without a stated language below /u/; where the shared data is at hand, real pages
 *                             below /r/ and where their links lead on the site
 * Tells its port over the IPC channel, or says why it could not listen. Told an edition there, it serves the real pages
 * with a few words changed.
 */
import { createServer as createHttpServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { gzipSync } from "node:zlib";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { planSite } from "#ops/world/site-plan";
import { goodHosts, realPages } from "./real-pages.ts";

const distinctPages = 400;

const world = generateWorld({ seed: 42, sites: distinctPages, crawlers: 1 });
const plans = world.sites.map((site) => planSite(world, site));
const made = (saysLanguage: boolean) =>
  plans.map((plan, index) => pageHtml({ ...plan, saysLanguage }, plan.pages[0]!, siteFurniture(index)));
const typical = made(true);
const packed = {
  p: typical.map((page) => gzipSync(page)),
  u: made(false).map((page) => gzipSync(page)),
};
const real = realPages();
/** Of the real pages, as they were asked for. */
const packedReal = new Map<string, { readonly bytes: Buffer; readonly contentType: string }>();
let edition = 0;
const meanBytes = typical.reduce((sum, page) => sum + Buffer.byteLength(page), 0) / distinctPages;

function realPage(path: string, host: number) {
  const [, number] = /^\/r\/(\d+)$/.exec(path) ?? [];
  if (real === null || (number === undefined && !real.linked.has(path))) return null;
  const index = Number(number ?? path.length * 31) % real.count;
  const key = `${index} ${host} ${edition}`;
  const known = packedReal.get(key);
  if (known !== undefined) return known;
  const { bytes, contentType } = real.page(index, host, edition);
  const page = { bytes: gzipSync(bytes), contentType };
  packedReal.set(key, page);
  return page;
}

const answer: RequestListener = (request, response) => {
  const [, kind, number] = /^\/([pu])\/(\d+)$/.exec(request.url ?? "") ?? [];
  if (kind !== "p" && kind !== "u") {
    const page = realPage(request.url ?? "", hostNumber(request.socket.localAddress));
    if (page !== null) return send(response, page.bytes, page.contentType);
    const isRobots = request.url === "/robots.txt";
    response.writeHead(isRobots ? 200 : 404, { "content-type": "text/plain" });
    response.end(isRobots ? "User-agent: *\nDisallow: /private/\n" : "");
    return;
  }
  const host = Number(/\d+$/.exec(request.socket.localAddress ?? "")?.[0] ?? 0);
  const page = packed[kind][(host * 31 + Number(number)) % distinctPages]!;
  send(response, page, "text/html; charset=utf-8");
};

function send(response: ServerResponse, page: Buffer, contentType: string): void {
  response.writeHead(200, {
    "content-type": contentType,
    "content-encoding": "gzip",
    "content-length": page.length,
  });
  response.end(page);
}

/** Different for each of the good sites. */
function hostNumber(address = ""): number {
  const [, , net, host] = address.split(".");
  return 256 * Number(net) + Number(host);
}

let port = 0;
for (const host of goodHosts) {
  port = await listen(createHttpServer({ keepAliveTimeout: 120_000 }, answer), host, port);
}
process.send?.({
  port,
  pageBytes: meanBytes,
  realPages: real && { count: real.count, bytes: real.meanBytes },
});
process.on("message", (message: { readonly edition: number }) => {
  edition = message.edition;
  packedReal.clear();
  process.send?.({ edition });
});
process.once("disconnect", () => process.exit());

async function listen(server: Server, address: string, wanted: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, address, resolve);
  });
  return (server.address() as AddressInfo).port;
}
