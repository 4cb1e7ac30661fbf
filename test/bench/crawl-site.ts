/** The sites of the crawl benchmark, in a process of their own: 40 KB pages with 101 links, gzip, on 127.0.1.x. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { seededRandom } from "#core/seeded-random";

const hosts = 200;
const pageBytes = 40_000;
const links = 101;
const distinctPages = 400;

const random = seededRandom(42);
const vocabulary = wordList();
const pages = Array.from({ length: distinctPages }, (_, index) => makePage(index));
const packed = pages.map((page) => gzipSync(page));

const answer: RequestListener = (request, response) => {
  if (request.url === "/robots.txt") {
    response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nDisallow: /private/\n");
    return;
  }
  const host = Number(/\d+$/.exec(request.socket.localAddress ?? "")?.[0] ?? 0);
  const page = packed[(host * 31 + Number(/\d+/.exec(request.url ?? "")?.[0] ?? 0)) % distinctPages]!;
  response.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-encoding": "gzip",
    "content-length": page.length,
  });
  response.end(page);
};

let port = 0;
for (let host = 1; host <= hosts; host++) port = await listen(`127.0.1.${host}`, port);
process.send?.(port);

async function listen(address: string, wanted: number): Promise<number> {
  const server = createServer({ keepAliveTimeout: 60_000 }, answer);
  await new Promise<void>((resolve) => server.listen(wanted, address, resolve));
  return (server.address() as AddressInfo).port;
}

/** Words of a skewed distribution (few frequent, many rare), as texts have them. */
function makePage(index: number): string {
  const word = () => vocabulary[Math.floor(random() ** 3 * vocabulary.length)];
  const sentence = (count: number) => Array.from({ length: count }, word).join(" ");
  const parts = [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page ${index} ${sentence(4)}</title><meta name="description" content="${sentence(12)}"></head><body>`,
  ];
  for (let link = 0; link < links; link++)
    parts.push(`<li><a href="/p/${index * links + link}">${sentence(3)}</a></li>`);
  let bytes = parts.join("").length;
  while (bytes < pageBytes) {
    const paragraph = `<section id="part-${bytes}" class="content section section-${bytes} layout-two-thirds" data-track="view:${bytes}"><div class="wrap wrap--wide"><h2 class="headline headline--large" style="margin:0 auto">${sentence(5)}</h2><div class="text" role="article"><p class="paragraph paragraph--first">${sentence(20)}, <em class="mark">${sentence(2)}</em> ${sentence(12)}.</p><img src="/pictures/${bytes}.jpg" width="640" height="480" loading="lazy" alt="" srcset="/pictures/${bytes}-2x.jpg 2x"></div></div></section>`;
    parts.push(paragraph);
    bytes += paragraph.length;
  }
  return `${parts.join("\n")}</body></html>`;
}

function wordList(): string[] {
  const starts = [
    "cra",
    "ne",
    "pro",
    "sub",
    "del",
    "reg",
    "lat",
    "fro",
    "ser",
    "com",
    "int",
    "ver",
    "tra",
    "mo",
    "ca",
  ];
  const middles = [
    "wl",
    "ar",
    "be",
    "net",
    "eg",
    "is",
    "en",
    "nt",
    "ve",
    "pu",
    "ter",
    "si",
    "ns",
    "de",
    "li",
  ];
  const ends = [
    "ing",
    "ed",
    "s",
    "ation",
    "er",
    "ly",
    "ness",
    "able",
    "ment",
    "",
    "ity",
    "ful",
    "ism",
    "al",
    "ous",
  ];
  return starts.flatMap((start) => middles.flatMap((middle) => ends.map((end) => start + middle + end)));
}
