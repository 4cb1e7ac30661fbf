/** The API's description as pages: every operation can be found, read and tried. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { operationsOf } from "#coordinator/ask/api-page";
import { describeApi } from "#coordinator/open-api";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
/** Asynchronous, because the server that answers is in this process. */
const printed = async (line: string) => (await promisify(execFile)("sh", ["-c", line])).stdout;
const operations = operationsOf(describeApi());
beforeAll(async () => {
  app = webServer(database);
});
afterAll(async () => await app?.close());

it("lists every operation once, with a link to its details", async () => {
  const { body } = await app.inject("/api");

  const links = [...body.matchAll(/href="\/api\?operation=(\w+)"/g)].map(([, name]) => name);
  expect(new Set(links).size).toBe(links.length);
  expect(links.sort()).toEqual(operations.map(({ operation }) => operation.operationId).sort());
  expect(body.length).toBeLessThan(100_000);
});

it("shows each operation's parameters, answers, and a command to try it", async () => {
  for (const { operation, method } of operations) {
    const { statusCode, body } = await app.inject(`/api?operation=${operation.operationId}`);

    expect([operation.operationId, statusCode]).toEqual([operation.operationId, 200]);
    for (const status of Object.keys(operation.responses)) expect(body).toContain(`<h3>${status} `);
    expect(body).toContain(method === "get" ? "<code>curl" : `<code>curl -X ${method.toUpperCase()}`);
    // Every link within the page leads somewhere.
    for (const [, id] of body.matchAll(/href="#(schema-\w+)"/g)) expect(body).toContain(`id="${id}"`);
  }
});

it("puts the example into the command, which a shell can run unchanged", async () => {
  const { host } = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
  const lineOf = async (operation: string) => {
    const page = await (await fetch(`http://${host}/api?operation=${operation}`)).text();
    const [line] = /curl[^<]*/.exec(page) ?? [""];
    return line.replaceAll("&#39;", "'").replaceAll("&amp;", "&");
  };

  expect(await lineOf("who")).toContain(`'http://${host}/api/who?q=1.2.9.5'`);
  const line = await lineOf("overview");
  expect(await printed(`${line} -sS -m 10 -o /dev/null -w '%{http_code}'`)).toBe("200");
});

it("names the origin of the request in its description and its commands", async () => {
  const asked = async (url: string, headers: Record<string, string>) =>
    (await app.inject({ url, headers })).body;
  const behind = webServer(database, { settings: { ...webSettings, behindProxy: true } });
  const forwarded = { "x-forwarded-host": "crawl.example.net", "x-forwarded-proto": "https" };

  const [document, invite] = [
    JSON.parse(await asked("/api/openapi.json", { host: "crawl.example.net:8443" })),
    await asked("/api?operation=invite", { host: "crawl.example.net:8443" }),
  ];
  const proxied = JSON.parse((await behind.inject({ url: "/api/openapi.json", headers: forwarded })).body);
  const odd = JSON.parse(await asked("/api/openapi.json", { host: "x'; reboot; '" }));
  await behind.close();

  expect(document.servers).toEqual([{ url: "http://crawl.example.net:8443" }]);
  expect(invite).toContain("http://crawl.example.net:8443/api/fleet/invitations");
  expect(proxied.servers).toEqual([{ url: "https://crawl.example.net" }]);
  expect(JSON.stringify(odd)).not.toContain("reboot");
});

it("has no other operation", async () => {
  expect((await app.inject("/api?operation=nothing")).statusCode).toBe(404);
});
