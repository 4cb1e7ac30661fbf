/**
 * Every server that listens on a machine gets requests that no client sends: it answers or hangs up, no exception
 * escapes (an uncaught error fails the run), and the next client is served.
 */
import { once } from "node:events";
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { openControl } from "#crawler/status/control-server";
import { PageServer } from "#crawler/status/open-status";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import { startWorld } from "#ops/world/main";
import { sampleReport } from "../migrating-crawler/status/sample-report.ts";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { webServer } from "../support/web-server.ts";

interface Asked {
  readonly at: NetConnectOpts;
  /** A request that it serves. */
  readonly usual: string;
}

const cleanups: (() => unknown)[] = [];
const servers = new Map<string, Asked>();
let database: Database;

beforeAll(async () => {
  database = await testDatabase();
  cleanups.push(() => database.close());
  await openPage();
  await openSocket();
  await openCoordinator();
  await openWorld();
}, 60_000);
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function openPage(): Promise<void> {
  const page = new PageServer({ port: 0, report: sampleReport, log: quietLog });
  cleanups.push(() => page.close());
  await until(() => page.port !== null, 15_000);
  const { port } = page;
  const host = `127.0.0.1:${port}`;
  servers.set("the local page", { at: { port: port!, host: "127.0.0.1" }, usual: get("/status.json", host) });
}

async function openSocket(): Promise<void> {
  const home = temporaryFolder("nearcrawl-hostile-");
  const nothing = { pause() {}, resume() {}, drain() {} };
  const control = await openControl({ home, crawler: { report: sampleReport, ...nothing }, log: quietLog });
  cleanups.push(() => control.close());
  servers.set("the control socket", {
    at: { path: `${home}/control.sock` },
    usual: get("/status.json", "x"),
  });
}

async function openCoordinator(): Promise<void> {
  const app = webServer(database);
  await app.listen({ host: "127.0.0.1", port: 0 });
  cleanups.push(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  servers.set("the coordinator", {
    at: { port, host: "127.0.0.1" },
    usual: get("/health", `127.0.0.1:${port}`),
  });
}

/** The emulated Internet's sites and a crawler's proxy to them. */
async function openWorld(): Promise<void> {
  const world = generateWorld({ seed: 11, sites: 5, crawlers: 1 });
  const running = await startWorld(world, { timeoutMs: 300 });
  cleanups.push(() => running.close());
  const { host } = world.sites[0]!;
  const proxy = Number(new URL(running.proxyUrlOf(0)).port);
  const tunnel = `CONNECT ${world.sites[0]!.address}:80 HTTP/1.1\r\nHost: x\r\n\r\n`;
  servers.set("a site of the emulated Internet", {
    ...{ at: { port: running.originPort, host: "127.0.0.1" }, usual: get("/", host) },
  });
  servers.set("its proxy", { at: { port: proxy, host: "127.0.0.1" }, usual: tunnel });
}

const get = (path: string, host: string) =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

const line = (target: string, host = "127.0.0.1") => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

const hostile: readonly (readonly [string, string | Buffer])[] = [
  ["an empty authority", line("//")],
  ["a path that new URL refuses", line("//[")],
  ["a port out of range", line("http://x:99999/")],
  ["another scheme", line("javascript://%0aalert(1)")],
  ["the whole server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a tunnel", "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["bytes that are no text", Buffer.from("GET /\xff\xfe\xff HTTP/1.1\r\nHost: \xff\xff\r\n\r\n", "latin1")],
  ["no Host", "GET // HTTP/1.1\r\n\r\n"],
  ["two Hosts", "GET // HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
  ["HTTP/1.0 without a Host", "GET // HTTP/1.0\r\n\r\n"],
  ["broken percent signs", line("/%E0%A4%A?%zz=%")],
  ["NUL, encoded", line("/%00?reason=%00")],
  ["steps upwards", line("/../../etc/passwd")],
  [
    "an upgrade",
    "GET // HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
  ],
  [
    "an upgrade to HTTP/2",
    "GET // HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
  ],
  ["HTTP/2 from the start", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["TLS", Buffer.from("16030100050100000100", "hex")],
  ["a header without end", `GET / HTTP/1.1\r\nX: ${"x".repeat(200_000)}`],
  ["very many headers", `GET / HTTP/1.1\r\n${"a: b\r\n".repeat(5000)}\r\n`],
  ["two lengths", "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
  [
    "a length and pieces",
    "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["an expectation", "POST /pause HTTP/1.1\r\nHost: x\r\nExpect: 200-maybe\r\nContent-Length: 1\r\n\r\n"],
  ["a body that never comes", "POST /pause HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"],
];

const names = [
  ...[
    "the local page",
    "the control socket",
    "the coordinator",
    "a site of the emulated Internet",
    "its proxy",
  ],
];

describe.each(names)("%s", (name) => {
  it("survives malformed requests and serves the next one", async () => {
    const { at, usual } = servers.get(name)!;

    for (const [what, bytes] of hostile) {
      const answered = await exchange(at, bytes);
      expect.soft(answered, what).not.toMatch(/^HTTP\/1\.1 500/);
      const next = await exchange(at, usual, 5000);
      expect(next, `after ${what}`).toMatch(/^HTTP\/1\.1 200/);
    }
  }, 60_000);

  it("limits silent connections, and serves again when they are gone", async () => {
    const { at, usual } = servers.get(name)!;
    const silent: Socket[] = [];
    for (let opened = 0; opened < 1000; opened += 1) silent.push(connect(at).on("error", () => {}));
    await until(() => silent.every(({ connecting }) => !connecting), 20_000);

    for (const socket of silent) socket.destroy();

    await until(async () => (await exchange(at, usual, 2000)).startsWith("HTTP/1.1 200"), 20_000);
  }, 60_000);
});

/** Returns what arrives until the answer is complete, the other end hangs up, or the time is over. */
async function exchange(at: NetConnectOpts, bytes: string | Buffer, forMs = 150): Promise<string> {
  const socket = connect(at);
  let text = "";
  socket.on("data", (piece) => {
    text += piece.toString("latin1");
    if (/^HTTP.*\r\n/.test(text)) socket.destroy();
  });
  socket.on("error", () => {});
  const ended = once(socket, "close").catch(() => {});
  socket.write(bytes);
  const late = setTimeout(() => socket.destroy(), forMs);
  await ended;
  clearTimeout(late);
  return text;
}
