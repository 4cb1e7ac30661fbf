/** The API as others use it: through a client generated from its document, and by its list of errors. */
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operationsOf } from "#coordinator/ask/api-page";
import { describeApi } from "#coordinator/open-api";
import { apiErrors } from "#coordinator/web/guard";
import { scopes } from "#core/actor";
import { type ApiClient, type ApiDocument, apiClient } from "../support/api-client.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let base: string;
let client: ApiClient;
let headers: { readonly authorization: string };
beforeAll(async () => {
  await seedWorld(database.pool);
  app = webServer(database, {
    parts: await everyPart(database),
    access: testAccess(database, () => worldNow, false),
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  headers = await bearer(database, scopes);
  client = apiClient(
    (await (await fetch(`${base}/api/openapi.json`)).json()) as ApiDocument,
    headers.authorization.slice(7),
  );
});
afterAll(async () => await app?.close());

describe("a client made from the document", () => {
  it("reads a list and one of its entries", async () => {
    const list = await client.fleet!({ query: { state: "online" } });
    const { crawlers } = list.value as { crawlers: { name: string }[] };
    const one = await client.crawler!({ path: { name: crawlers[0]!.name } });

    expect([list.status, list.faults]).toEqual([200, []]);
    expect(crawlers.map(({ name }) => name)).toEqual(["athens", "tokyo"]);
    expect([one.status, one.faults]).toEqual([200, []]);
  });

  it("creates an entry, reads it back, and removes it", async () => {
    const made = await client.setSiteCap!({
      body: { site: "example.org", seconds: 5, words: "They asked for it." },
    });
    const list = await client.siteCaps!();
    const removed = await client.removeSiteCap!({ path: { site: "example.org" } });

    expect([made.status, made.faults]).toEqual([201, []]);
    expect(list.faults).toEqual([]);
    expect(JSON.stringify(list.value)).toContain("example.org");
    expect([removed.status, removed.faults]).toEqual([200, []]);
  });

  it("receives errors in the documented form", async () => {
    const unknown = await client.crawler!({ path: { name: "nobody" } });
    const bad = await client.search!({ query: { q: "ferry", language: "German" } });
    const refused = await client.find!({ query: { q: "a".repeat(3000) } });

    expect([unknown.status, unknown.faults]).toEqual([404, []]);
    expect([bad.status, bad.faults]).toEqual([400, []]);
    expect(refused).toEqual({
      status: 400,
      value: { error: { status: 400, message: expect.stringMatching(/^q: a{60}…: /) } },
      faults: [],
    });
  });
});

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

describe("the list of errors", () => {
  const send = async (method: string, path: string, more: Sent = {}) => {
    const sent = { ...headers, accept: "application/json", ...more.headers };
    const response = await fetch(`${base}${path}`, { method, ...more, headers: sent });
    return { status: response.status, value: await response.json() };
  };
  const json = { "content-type": "application/json" };

  it("has every status that an operation declares", () => {
    const stated = operationsOf(describeApi()).flatMap(({ path, operation }) =>
      path.startsWith("/api/") ? Object.keys(operation.responses).filter((status) => status >= "400") : [],
    );
    expect([...new Set(stated)].filter((status) => !(status in apiErrors))).toEqual([]);
  });

  it("matches the server's answers", async () => {
    const reader = await bearer(database, ["read"], { name: "reader" });
    await database.pool.query("update change_feed set last_number = 10, removed_through = 10");
    const cap = JSON.stringify({ site: "a.example", seconds: 1, words: "x" });
    const answers = [
      await send("GET", "/api/search?q=x&language=German"),
      await send("GET", "/api/fleet", { headers: { authorization: "Bearer nco_wrong" } }),
      await send("POST", "/api/fleet/site-caps", {
        ...{ headers: { ...json, ...reader }, body: cap },
      }),
      await send("GET", "/api/crawlers/nobody"),
      await send("DELETE", "/api/fleet"),
      await send("POST", "/api/tokens", {
        ...{ headers: json, body: JSON.stringify({ name: "reader", scopes: ["read"], days: 30 }) },
      }),
      await send("GET", "/api/changes?since=1"),
      await send("POST", "/api/policies", {
        headers: json,
        body: JSON.stringify({ words: "x".repeat(70_000) }),
      }),
      await send("POST", "/api/fleet/site-caps", { headers: { "content-type": "text/plain" }, body: cap }),
      await send("POST", "/api/policies", {
        ...{ headers: json, body: JSON.stringify({ basedOn: 0, values: { nothing: 1 } }) },
      }),
    ];
    const statuses = answers.map(({ status }) => status);

    for (const { status, value } of answers)
      expect(value).toMatchObject({ error: { status, message: expect.stringMatching(/\w{3}/) } });
    expect(statuses.filter((status) => !(status in apiErrors))).toEqual([]);
    expect(statuses).toEqual([400, 401, 403, 404, 405, 409, 410, 413, 415, 422]);
  });

  it("is on the API's page and in its JSON", async () => {
    const page = (await (await fetch(`${base}/api`)).text()).replaceAll("&#39;", "'");
    const { errors } = (await (await fetch(`${base}/api/operations`)).json()) as {
      readonly errors: readonly { readonly status: number }[];
    };

    expect(errors.map(({ status }) => status)).toEqual(Object.keys(apiErrors).map(Number));
    for (const { means } of Object.values(apiErrors)) expect(page).toContain(means.slice(0, 40));
  });
});
