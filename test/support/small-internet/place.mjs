/**
 * The servers of one place of a small Internet, in its network namespace: a resolver at 127.0.0.53, and all sites on port 80 of
 * every address. Arguments: a JSON object with `records` (host → {A, AAAA}), and the path of the package dns-packet. Ends with
 * its standard input.
 */
import { createSocket } from "node:dgram";
import { createServer } from "node:http";

const { records } = JSON.parse(process.argv[2]);
const { default: dns } = await import(process.argv[3]);

const resolver = createSocket("udp4", (message, from) => {
  const { id, questions } = dns.decode(message);
  const [{ name, type }] = questions;
  const record = records[name.toLowerCase()];
  const data = record?.[type];
  const answers = data === undefined ? [] : [{ name, type, ttl: 60, data }];
  // 3 is NXDOMAIN (RFC 1035 section 4.1.1); a name without this type answers empty.
  const flags = dns.RECURSION_DESIRED | dns.RECURSION_AVAILABLE | (record ? 0 : 3);
  resolver.send(dns.encode({ type: "response", id, flags, questions, answers }), from.port, from.address);
});

/** Five links per page, so that a crawl of few hosts does not run dry. */
const linksPerPage = 5;

const sites = createServer((request, response) => {
  const { host = "" } = request.headers;
  if (request.url === "/robots.txt") return response.writeHead(404).end();
  const page = Number(/^\/p(\d+)$/.exec(request.url)?.[1] ?? 0);
  const links = Array.from({ length: linksPerPage }, (_, i) => page * linksPerPage + i + 1);
  const list = links.map((to) => `<li><a href="/p${to}">Report ${to} of ${host}</a></li>`).join("");
  const words = Array.from({ length: 120 }, (_, i) => `${host.split(".")[0]}word${(page * 7 + i * i) % 97}`);
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
  response.end(
    `<!doctype html><html lang="en"><title>${host}, report ${page}</title><h1>${host}, report ${page}</h1>` +
      `<p>${words.join(" ")}</p><ul>${list}</ul></html>`,
  );
});

resolver.bind(53, "127.0.0.53", () => sites.listen(80, "::", () => process.stdout.write("ready\n")));
process.stdin.on("end", () => process.exit()).resume();
