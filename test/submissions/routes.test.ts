/** Handing in URLs over HTTP and by the form: who may, what is answered, where the receipt is. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { submissionPart } from "#coordinator/crawl/submissions/start";
import { createAuditLog } from "#coordinator/database/audit-log";
import type { Scope } from "#core/actor";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { worldNow } from "../support/seed-world.ts";
import { bearer, formBy, type SignedIn, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const config = readCoordinatorConfig({});

let database: Database;
let app: ReturnType<typeof webServer>;
beforeAll(async () => {
  database = await testDatabase();
  const texts = async (name: string) =>
    name === "_nearcrawl.ours.example" ? ["recrawl=partner-athens"] : [];
  app = webServer(database, { parts: [submissionPart({ pool: database.pool, config, texts })] });
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const token = async (name: string, scopes: readonly Scope[]) => await bearer(database, scopes, { name });

const post = async (headers: object, payload: object) =>
  await app.inject({ method: "POST", url: "/api/urls", headers: { ...headers }, payload });

const send = async (by: SignedIn, fields: Record<string, string>) =>
  await app.inject(formBy(by, "/submit", fields));

it("a token of its own scope hands in URLs, and reads the receipt; the audit log has it", async () => {
  const headers = await token("seeds", ["url-write"]);

  const made = await post(headers, { urls: ["https://new.example.org/", "mailto:x"] });
  const { submission } = made.json();
  const receipt = await app.inject({ url: `/api/submissions/${submission.submissionId}`, headers });
  const list = await app.inject({ url: "/api/submissions", headers });
  const { entries } = await createAuditLog(database.pool).list({ limit: 10 });

  expect(made.statusCode).toBe(201);
  expect(submission).toMatchObject({ submittedBy: "token seeds", urls: { new: 1, refused: 1 } });
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

describe("a partner's token of scope site-recrawl", () => {
  it("has the sites fetched again that name it in DNS, and reads its own receipts alone", async () => {
    const staff = await token("staff", ["url-write"]);
    const partner = await token("partner-athens", ["site-recrawl"]);
    const url = "https://www.ours.example/news";
    const others = (await post(staff, { urls: [url] })).json().submission.submissionId;
    await database.pool.query(
      "update frontier_url set next_fetch_at = next_fetch_at + interval '9 days' where url = $1",
      [url],
    );

    const made = await post(partner, { urls: [url], deed: "recrawl" });

    expect([made.statusCode, made.json().submission.urls.known]).toEqual([201, 1]);
    const due = "select next_fetch_at <= $2 as due from frontier_url where url = $1";
    expect((await database.pool.query(due, [url, worldNow])).rows).toEqual([{ due: true }]);
    const receipt = async (number: number) =>
      (await app.inject({ url: `/api/submissions/${number}`, headers: partner })).statusCode;
    expect([await receipt(made.json().submission.submissionId), await receipt(others)]).toEqual([200, 404]);
    expect((await app.inject({ url: "/api/submissions", headers: partner })).statusCode).toBe(403);
  });

  it.each([
    ["adding", { urls: ["https://www.ours.example/"] }, 403, "deed recrawl alone"],
    [
      "another's site",
      { urls: ["https://ours.example/", "https://theirs.example/"] },
      403,
      "theirs.example.",
    ],
    ["an address", { urls: ["http://192.0.2.1/"] }, 403, "Not shown to be yours: 192.0.2.1"],
    [
      "too many URLs",
      { urls: Array.from({ length: 1001 }, () => "https://ours.example/") },
      400,
      "1,000 URLs",
    ],
    [
      "too many hosts",
      { urls: Array.from({ length: 21 }, (_, at) => `https://h${at}.ours.example/`) },
      400,
      "20 hosts",
    ],
  ])("may not: %s", async (what, body, status, words) => {
    const partner = await token(`partner ${what}`.replaceAll(" ", "-").replaceAll("'", ""), ["site-recrawl"]);
    const answer = await post(partner, what === "adding" ? body : { ...body, deed: "recrawl" });
    expect([answer.statusCode, answer.json().error.message]).toEqual([
      status,
      expect.stringContaining(words),
    ]);
  });

  it("has a limit a day", async () => {
    const partner = await token("busy", ["site-recrawl"]);
    await database.pool.query(
      "insert into submission (deed, submitted_by, submitted_at, known_urls) values ('recrawl', 'token busy', $1, 10000)",
      [worldNow],
    );
    const answer = await post(partner, { urls: ["https://ours.example/"], deed: "recrawl" });
    expect([answer.statusCode, answer.json().error.message]).toEqual([
      429,
      expect.stringContaining("10,000 URLs"),
    ]);
  });
});

it("more than a request may hold is refused, and a receipt that is not there is not found", async () => {
  const headers = await token("many", ["url-write"]);
  const urls = Array.from({ length: 10_001 }, (_, at) => `https://h${at}.example/`);

  expect((await post(headers, { urls })).statusCode).toBe(400);
  expect((await post(headers, { urls: ["x".repeat(2 * 1024 * 1024)] })).statusCode).toBe(413);
  expect((await app.inject({ url: "/api/submissions/999", headers })).statusCode).toBe(404);
  expect((await app.inject({ url: "/api/submissions/x", headers })).statusCode).toBe(404);
});
