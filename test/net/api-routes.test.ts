/** The API's description as pages: every operation can be found, read and tried. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readOpenApi } from "#coordinator/net/openapi";
import { operationsOf } from "#coordinator/web/api-page";
import type { Database } from "#db/connect";
import { testDatabase } from "../support/database.ts";
import { webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
const operations = operationsOf(readOpenApi());
beforeAll(async () => {
  database = await testDatabase();
  app = webServer(database);
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

it("lists every operation once, with a link to all of it", async () => {
  const { body } = await app.inject("/api");

  const links = [...body.matchAll(/href="\/api\?operation=(\w+)"/g)].map(([, name]) => name);
  expect(new Set(links).size).toBe(links.length);
  expect(links.sort()).toEqual(operations.map(({ operation }) => operation.operationId).sort());
  expect(body.length).toBeLessThan(100_000);
});

it("shows of each operation its parameters, its answers, and a line to try it", async () => {
  for (const { operation, method } of operations) {
    const { statusCode, body } = await app.inject(`/api?operation=${operation.operationId}`);

    expect([operation.operationId, statusCode]).toEqual([operation.operationId, 200]);
    for (const status of Object.keys(operation.responses)) expect(body).toContain(`<h3>${status} `);
    expect(body).toContain(method === "get" ? "<code>curl" : `<code>curl -X ${method.toUpperCase()}`);
    // Every link within the page leads somewhere.
    for (const [, id] of body.matchAll(/href="#(schema-\w+)"/g)) expect(body).toContain(`id="${id}"`);
  }
});

it("fills in the example in the line to try", async () => {
  const { body } = await app.inject("/api?operation=who");

  expect(body).toContain("&#39;https://search.example/api/who?q=1.2.9.5&#39;");
});

it("knows no other operation", async () => {
  expect((await app.inject("/api?operation=nothing")).statusCode).toBe(404);
});
