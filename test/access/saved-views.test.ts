/** Views that people save: their own, of pages here, and not too many. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { worldNow } from "../support/seed-world.ts";
import { type SignedIn, signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
let anna: SignedIn;
let ben: SignedIn;
beforeAll(async () => {
  database = await testDatabase();
  app = webServer(database, {
    parts: everyPart(database),
    access: testAccess(database, () => worldNow, false),
  });
  anna = await signIn(database, "operator");
  ben = await signIn(database, "staff");
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

let address = 0;
async function post(who: SignedIn, url: string, fields: Readonly<Record<string, string>>) {
  address += 1;
  const form = new URLSearchParams({ "form-token": who.formToken, ...fields }).toString();
  const headers = { ...who.headers, "content-type": "application/x-www-form-urlencoded" };
  const remoteAddress = `10.0.${address >> 8}.${address & 255}`;
  const { statusCode, headers: sent } = await app.inject({
    ...{ method: "POST", url, headers, payload: form, remoteAddress },
  });
  return [statusCode, sent.location ?? null];
}

const save = async (who: SignedIn, name: string, path: string) =>
  await post(who, "/account/views", { name, path });

async function viewsOf(who: SignedIn): Promise<{ viewId: number; name: string; path: string }[]> {
  return (await app.inject({ url: "/api/account", headers: who.headers })).json().savedViews;
}

const found = async (who: SignedIn, q: string) =>
  (await app.inject({ url: `/api/find?q=${q}`, headers: who.headers }))
    .json()
    .results.filter((one: { kind: string }) => one.kind === "view");

it("a page is saved from its foot, and found by its name on the account page and in the box", async () => {
  const page = await app.inject({ url: "/search?q=ferry&language=de", headers: anna.headers });
  expect(page.body).toContain('<input type="hidden" name="path" value="/search?q=ferry&amp;language=de">');

  expect(await save(anna, "<Fähren>", "/search?q=ferry&language=de")).toEqual([
    303,
    "/search?q=ferry&language=de",
  ]);

  expect(await found(anna, "f%C3%A4hr")).toEqual([
    { kind: "view", title: "<Fähren>", words: "Saved view", href: "/search?q=ferry&language=de" },
  ]);
  expect((await found(anna, "")).length).toBe(1);
  const account = await app.inject({ url: "/account", headers: anna.headers });
  expect(account.body).toContain('<a href="/search?q=ferry&amp;language=de"><bdi>&lt;Fähren&gt;</bdi></a>');
});

it("a name that is taken leads to the new address", async () => {
  await save(ben, "mine", "/fleet");
  await save(ben, "mine", "/fleet?state=online");

  expect((await viewsOf(ben)).map(({ name, path }) => [name, path])).toEqual([
    ["mine", "/fleet?state=online"],
  ]);
});

it("nobody sees or deletes what is another's, of the same name in another role either", async () => {
  const otherAnna = await signIn(database, "staff", { name: "anna" });
  const [view] = await viewsOf(anna);

  expect(await viewsOf(otherAnna)).toEqual([]);
  expect(await found(ben, "f%C3%A4hr")).toEqual([]);
  for (const who of [ben, otherAnna])
    expect(await post(who, `/account/views/${view!.viewId}/delete`, {})).toEqual([404, null]);
  expect(await viewsOf(anna)).toHaveLength(1);

  expect(await post(anna, `/account/views/${view!.viewId}/delete`, {})).toEqual([303, "/account"]);
  expect(await viewsOf(anna)).toEqual([]);
});

it("only pages here are saved, under names of a bounded length", async () => {
  const elsewhere = [
    "//evil.example/",
    "https://evil.example/",
    "/\\evil.example",
    "javascript:alert(1)",
    "/api/fleet",
  ];
  for (const path of [...elsewhere, "", "fleet", `/${"a".repeat(501)}`])
    expect([path, (await save(ben, "x", path))[0]]).toEqual([path, 400]);
  for (const name of ["", " ", "n".repeat(61)]) expect((await save(ben, name, "/fleet"))[0]).toBe(400);
  const foreign = { ...ben, formToken: anna.formToken };
  expect((await save(foreign, "x", "/fleet"))[0]).toBe(403);
});

it("fifty views are the most, however many are saved at once", async () => {
  const many = await signIn(database, "staff", { name: "carl" });

  await database.pool.query(
    `insert into saved_view (owner_name, owner_role, name, path, saved_at)
     select 'carl', 'staff', 'view ' || n, '/fleet', $1 from generate_series(1, 48) n`,
    [worldNow],
  );

  const answers = await Promise.all(
    Array.from({ length: 5 }, async (_, at) => (await save(many, `at once ${at}`, "/fleet"))[0]),
  );

  expect(answers.sort()).toEqual([303, 303, 409, 409, 409]);
  expect(await viewsOf(many)).toHaveLength(50);
  const first = (await viewsOf(many))[0]!.name;
  expect((await save(many, first, "/sites"))[0]).toBe(303);
});
