/** Channels over HTTP: who may change them, what is refused, and what is written down. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { channelPart } from "#coordinator/crawl/channels/start";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { bearer, formBy, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

let database: Database;
let app: ReturnType<typeof webServer>;
let headers: { readonly authorization: string };
beforeAll(async () => {
  database = await testDatabase();
  app = webServer(database, {
    parts: [channelPart({ pool: database.pool, config: { scope: { maxDepth: 5 } } })],
  });
  headers = await bearer(database, ["read", "policy-write"], { name: "ci" });
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const post = async (url: string, payload: object) =>
  await app.inject({ method: "POST", url, headers, payload });

it("a channel is added, listed, found contradictory beside another, and removed; the audit log has both changes", async () => {
  const added = await post("/api/channels", {
    prefixes: ["a.example/docs/"],
    exclude: ["/docs/old/"],
    maxDepth: 3,
  });
  const overlapping = await post("/api/channels", { prefixes: ["a.example/docs/x/"] });
  const nonsense = await post("/api/channels", { prefixes: ["a.example/docs"], include: ["x"] });
  const page = await app.inject({ url: "/channels", headers });
  const number = added.json().channelId;
  const removed = await post(`/api/channels/${number}/remove`, {});
  const again = await post(`/api/channels/${number}/remove`, {});
  const { entries } = await createAuditLog(database.pool).list({ limit: 10 });

  expect([added.statusCode, overlapping.statusCode, nonsense.statusCode]).toEqual([201, 422, 422]);
  expect(overlapping.json().error.message).toContain(`is in channel ${number} of this host already`);
  expect(nonsense.json().error.message).toMatch(/must end with \/.*\n.*must begin with \/ or \*/s);
  expect(page.body).toContain("3 links deep, without /docs/old/");
  expect([removed.statusCode, again.statusCode]).toEqual([200, 404]);
  expect(entries.map(({ action, target }) => [action, target])).toEqual([
    ["channel-removed", "a.example/docs/"],
    ["channel-added", "a.example/docs/"],
  ]);
});

it("an operator adds one with the form, and gets it back with what is wrong", async () => {
  const operator = await signIn(database, "operator");
  const send = async (fields: Record<string, string>) =>
    await app.inject(formBy(operator, "/channels", fields));

  const wrong = await send({ prefixes: "b.example/docs/", seeds: "http://b.example/news/", maxDepth: "2" });
  const right = await send({
    prefixes: "b.example/docs/\nb.example/news/",
    seeds: "http://b.example/news/",
    maxDepth: "",
  });

  expect(wrong.statusCode).toBe(422);
  expect(wrong.body).toContain("seed http://b.example/news/: it is outside the channel (/docs/)");
  expect(wrong.body).toContain("\nhttp://b.example/news/</textarea>");
  expect([right.statusCode, right.headers.location]).toEqual([303, "/channels"]);
});
