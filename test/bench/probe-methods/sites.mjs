/**
 * All sites of the bench of probe methods, in one network namespace. The argument is a JSON object: address → {bytes, thinkMs,
 * spread}. A site thinks before it answers, HEAD as GET: a time drawn anew for each request, log-normally.
 */
import { createServer } from "node:http";

const sites = JSON.parse(process.argv[2]);

/** Standard normal (Box and Muller). */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());

const server = createServer((request, response) => {
  const {
    bytes = 0,
    thinkMs = 0,
    spread = 0,
  } = sites[request.socket.localAddress.replace(/^::ffff:/, "")] ?? {};
  const answer = () => {
    response.writeHead(200, { "content-type": "text/html", "content-length": bytes });
    response.end(request.method === "HEAD" ? undefined : Buffer.alloc(bytes, "x"));
  };
  if (thinkMs === 0) answer();
  else setTimeout(answer, thinkMs * Math.exp(spread * normal()));
});
server.keepAliveTimeout = 30_000;
server.listen({ port: 80, host: "0.0.0.0", backlog: 4096 }, () => process.stdout.write("ready\n"));
process.stdin.on("end", () => process.exit()).resume();
