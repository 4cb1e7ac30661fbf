/**
 * Requests that a proxy on this machine passes on are not local: over real sockets, with nginx where it is installed.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as ask, createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { anonymousMayRead } from "#coordinator/run/access/start";
import { publicUrlFindings } from "#ops/cli/setup/doctor-checks";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { worldNow } from "../support/seed-world.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let port: number;

beforeAll(async () => {
  app = webServer(database, { access: testAccess(database, () => worldNow, "on-this-machine") });
  await app.listen({ host: "127.0.0.1", port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
afterAll(async () => await app?.close());

/** Requests by a client of this account. */
async function statusAt(
  at: number,
  path = "/api/overview",
  headers: IncomingHttpHeaders = {},
): Promise<number> {
  return await new Promise((resolve, reject) => {
    const sent = ask({ host: "127.0.0.1", port: at, path, headers, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject).end();
  });
}

/** One of each kind that is open to people on this machine. */
const doors = ["/", "/api/overview", "/api/search?q=a", "/api/who?q=example.org", "/metrics", "/events"];
const closed = doors.map(() => 401);
const statusesAt = async (at: number, headers: IncomingHttpHeaders = {}) =>
  await Promise.all(doors.map(async (path) => await statusAt(at, path, headers)));

async function listening(server: ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

describe("an undeclared proxy", () => {
  it("is recognised by HTTP/1.0, even where it sets Host and adds no header", async () => {
    const proxy = createTcpServer((client) => {
      client.on("error", () => {});
      client.once("data", (head) => {
        const [, path] = head.toString().split(" ");
        const origin = connect(port, "127.0.0.1", () =>
          origin.write(`GET ${path} HTTP/1.0\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`),
        );
        origin.on("error", () => {});
        origin.pipe(client);
      });
    });
    const at = await listening(proxy);

    expect(await statusesAt(at, { host: "search.example.org" })).toEqual(closed);
    proxy.close();
  });

  it.each([
    ["forwarded", "for=192.0.2.1"],
    ["x-forwarded-for", "192.0.2.1"],
    ["x-forwarded-proto", "https"],
    ["x-real-ip", "192.0.2.1"],
    ["via", "1.1 edge"],
    ["cf-connecting-ip", "192.0.2.1"],
    ["true-client-ip", "192.0.2.1"],
    ["cdn-loop", "cloudflare"],
  ])("is recognised by %s over HTTP/1.1", async (name, value) => {
    const proxy = createServer((request, reply) => {
      const headers = { host: `127.0.0.1:${port}`, [name]: value };
      ask({ host: "127.0.0.1", port, path: request.url, headers }, (answer) => {
        reply.writeHead(answer.statusCode ?? 0);
        answer.pipe(reply);
      }).end();
    });
    const at = await listening(proxy);

    expect(await statusAt(at)).toBe(401);
    proxy.close();
  });

  it("is recognised by a browser's headers about another name or another site", async () => {
    const marks: IncomingHttpHeaders[] = [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "https://other.example" },
      { "sec-fetch-site": "same-origin", referer: "https://search.example.org/" },
      { host: "search.example.org" },
    ];

    expect(
      await Promise.all(marks.map(async (headers) => await statusAt(port, "/api/overview", headers))),
    ).toEqual(marks.map(() => 401));
  });

  it("does not affect those who ask this machine directly, like curl and browsers", async () => {
    const own: IncomingHttpHeaders[] = [
      {},
      { host: `localhost:${port}`, "sec-fetch-site": "none" },
      { "sec-fetch-site": "same-origin", referer: `http://127.0.0.1:${port}/`, host: `127.0.0.1:${port}` },
    ];

    expect(
      await Promise.all(own.map(async (headers) => await statusAt(port, "/api/overview", headers))),
    ).toEqual([200, 200, 200]);
  });
});

const hasNginx = spawnSync("nginx", ["-v"]).status === 0 && process.getuid?.() === 0;
if (!hasNginx)
  console.warn("nginx is not installed, or the tests do not run as root: its defaults are not tried");

it.skipIf(!hasNginx)(
  "nginx with its defaults, and one that speaks HTTP/1.1 without a mark, open nothing",
  async () => {
    const folder = mkdtempSync(`${tmpdir()}/nearcrawl-nginx-`);
    const spare = [createTcpServer(), createTcpServer()];
    const [first, second] = (await Promise.all(spare.map(listening))) as [number, number];
    for (const one of spare) one.close();
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (one) => `${one}_temp_path ${folder}/${one};`,
    );
    const server = (at: number, more: string) =>
      `server { listen 127.0.0.1:${at}; server_name search.example.org; location / { proxy_pass http://127.0.0.1:${port}; ${more} } }`;
    writeFileSync(
      `${folder}/nginx.conf`,
      `daemon off; user nobody nogroup; pid ${folder}/pid; error_log ${folder}/errors; events {}
http { access_log off; ${temporary.join(" ")}
${server(first, "")} ${server(second, 'proxy_http_version 1.1; proxy_set_header Connection "";')} }`,
    );
    const nginx = spawn("nginx", ["-c", `${folder}/nginx.conf`], { stdio: "ignore" });
    try {
      await expect
        .poll(async () => await statusAt(first, "/health").catch(() => 0), { timeout: 10_000 })
        .toBe(200);

      expect(await statusesAt(first, { host: "search.example.org" })).toEqual(closed);
      expect(await statusesAt(second, { host: "search.example.org" })).toEqual(closed);
    } finally {
      nginx.kill();
      await once(nginx, "exit");
      rmSync(folder, { recursive: true });
    }
  },
);

it("doctor says what anonymous readers see at the public address", async () => {
  const open = webServer(database, { access: testAccess(database, () => worldNow, true) });
  await open.listen({ host: "127.0.0.1", port: 0 });
  const readingOf = async (at: number, values: object) => {
    const config = readCoordinatorConfig({ ...values, publicUrl: `http://127.0.0.1:${at}` });
    const found = await publicUrlFindings(config, { isRunning: true, now: () => new Date() });
    return found.filter(({ subject }) => subject === "reading").map(({ state }) => state);
  };
  const { port: openPort } = open.server.address() as AddressInfo;

  expect(await readingOf(openPort, {})).toEqual(["fix"]);
  expect(await readingOf(openPort, { access: { anonymous: "read" } })).toEqual(["note"]);
  await open.close();
  const shut = webServer(database, { access: testAccess(database, () => worldNow, false) });
  await shut.listen({ host: "127.0.0.1", port: 0 });
  expect(await readingOf((shut.server.address() as AddressInfo).port, {})).toEqual(["ok"]);
  await shut.close();
});

it.each([
  ["no public address", {}, "on-this-machine"],
  ["a public address", { publicUrl: "https://search.example.org" }, false],
  ["a declared proxy", { behindProxy: true }, false],
  ["an address of this machine", { publicUrl: "http://127.0.0.1:7411" }, "on-this-machine"],
  [
    "an operator who says so",
    { publicUrl: "https://search.example.org", access: { anonymous: "read" } },
    true,
  ],
])("with %s, reading without a sign-in is %j → %j", (_, values, expected) => {
  expect(anonymousMayRead(readCoordinatorConfig(values))).toBe(expected);
});
