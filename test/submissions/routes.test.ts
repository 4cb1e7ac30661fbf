/** Handing in URLs over HTTP and by the form: who may, what is answered, where the receipt is. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createOperatorTokenStore } from "#coordinator/access/token-store";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { describeApi } from "#coordinator/open-api";
import { submissionPart } from "#coordinator/submissions/start";
import { randomSecrets } from "#coordinator/web/secrets";
import type { Scope } from "#core/actor";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { worldNow } from "../support/seed-world.ts";
import { type SignedIn, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const config = readCoordinatorConfig({});

let database: Database;
let app: ReturnType<typeof webServer>;
beforeAll(async () => {
  database = await testDatabase();
  app = webServer(database, { parts: [submissionPart({ pool: database.pool, config })] });
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

async function token(name: string, scopes: readonly Scope[]) {
  const { secret, hash: tokenHash } = randomSecrets.make("nco_");
  const made = { name, tokenHash, scopes, createdAt: worldNow, expiresAt: null };
  await createOperatorTokenStore(database.pool).create(made);
  return { authorization: `Bearer ${secret}` };
}

const post = async (headers: object, payload: object) =>
  await app.inject({ method: "POST", url: "/api/urls", headers: { ...headers }, payload });

const send = async (by: SignedIn, fields: Record<string, string>) =>
  await app.inject({
    method: "POST",
    url: "/submit",
    headers: { ...by.headers, "content-type": "application/x-www-form-urlencoded" },
    payload: new URLSearchParams({ ...fields, "form-token": by.formToken }).toString(),
  });

it("a token of its own scope hands in URLs, and reads the receipt; the audit log has it", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const headers = await token("seeds", ["url-write"]);

  const made = await post(headers, { urls: ["https://new.example.org/", "mailto:x"] });
  const { submission } = made.json();
  const receipt = await app.inject({ url: `/api/submissions/${submission.submissionId}`, headers });
  const list = await app.inject({ url: "/api/submissions", headers });
  const { entries } = await createAuditLog(database.pool).list({ limit: 10 });

  expect(made.statusCode).toBe(201);
  expect(submission).toMatchObject({ submittedBy: "token seeds", urls: { new: 1, refused: 1 } });
  expect(faultsOf(receipt.json(), { $ref: "#/components/schemas/SubmissionReceipt" }, schemas)).toEqual([]);
  expect(receipt.json().urls.map(({ state }: { state: string }) => state)).toEqual(["resolving", "refused"]);
  expect(list.json().submissions).toHaveLength(1);
  expect(entries.map(({ action, actor }) => [action, actor])).toEqual([["urls-submitted", "token seeds"]]);
});

it("others may not: a token without the scope, somebody who has not signed in, a partner", async () => {
  const reader = await token("reader", ["read"]);
  const partner = await signIn(database, "partner");

  const codes = [
    (await post(reader, { urls: ["https://a.example/"] })).statusCode,
    (await post({}, { urls: ["https://a.example/"] })).statusCode,
    (await send(partner, { urls: "https://a.example/" })).statusCode,
    (await app.inject({ url: "/submit", headers: reader })).statusCode,
  ];

  expect(codes).toEqual([403, 401, 403, 403]);
});

it("staff hand in by the form, land on the receipt, and have a page fetched again by a button", async () => {
  const staff = await signIn(database, "staff");

  const made = await send(staff, { urls: "https://form.example.org/\r\nnonsense", deed: "add" });
  const page = await app.inject({ url: String(made.headers.location), headers: staff.headers });
  const who = await app.inject({ url: "/who?q=https://form.example.org/", headers: staff.headers });
  const again = await send(staff, { urls: "https://form.example.org/", deed: "recrawl" });
  const empty = await send(staff, { urls: " ", deed: "add" });
  const anybody = await app.inject({ url: "/who?q=https://form.example.org/" });

  expect(made.statusCode).toBe(303);
  expect(page.body).toContain("1 new, 1 refused");
  expect(page.body).toContain("it cannot be parsed as an absolute URL");
  expect(who.body).toContain("Fetch again now");
  expect(anybody.body).not.toContain("Fetch again now");
  expect(again.statusCode).toBe(303);
  const unknown = await app.inject({ url: "/who?q=https://new.example.org/x", headers: staff.headers });
  const search = await app.inject({ url: "/search", headers: staff.headers });
  expect(unknown.body).toContain("Crawl it");
  expect(search.body).toContain('href="/submit"');
  expect([empty.statusCode, empty.body.includes('role="alert"')]).toEqual([400, true]);
});

it("more than a request may hold is refused, and a receipt that is not there is not found", async () => {
  const headers = await token("many", ["url-write"]);
  const urls = Array.from({ length: 10_001 }, (_, at) => `https://h${at}.example/`);

  expect((await post(headers, { urls })).statusCode).toBe(400);
  expect((await post(headers, { urls: ["x".repeat(2 * 1024 * 1024)] })).statusCode).toBe(413);
  expect((await app.inject({ url: "/api/submissions/999", headers })).statusCode).toBe(404);
  expect((await app.inject({ url: "/api/submissions/x", headers })).statusCode).toBe(404);
});
