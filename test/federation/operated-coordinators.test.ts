/** Inviting, listing and removing coordinators by page and API, with a real server and database. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { worldNow } from "../support/seed-world.ts";
import { bearer, formBy, signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
beforeAll(async () => {
  database = await testDatabase();
  const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
  await stateCoordinatorPlace(database.pool, place, worldNow);
  app = webServer(database, {
    parts: await everyPart(database),
    access: testAccess(database, () => worldNow),
  });
});
beforeEach(async () => {
  await database.pool.query("delete from related_coordinator; delete from audit_entry");
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const audited = async () =>
  (
    await database.pool.query<{ line: string }>(
      "select action || ' ' || target || ' by ' || actor as line from audit_entry order by entry_id",
    )
  ).rows.map(({ line }) => line);

describe("over HTTP", () => {
  it("a child is invited with a key that is stored as a hash, listed, and removed, with audit entries", async () => {
    const headers = await bearer(database, ["fleet-read", "fleet-write"]);
    const send = async (url: string, payload: object = {}) =>
      await app.inject({ method: "POST", url, headers, payload });

    const made = await send("/api/coordinators/invite", { name: "athens" });
    const again = await send("/api/coordinators/invite", { name: "athens" });
    const wrong = await send("/api/coordinators/invite", { name: "Athens!" });
    const listed = await app.inject({ url: "/api/coordinators", headers });
    const mistyped = await send("/api/coordinators/athens/remove", { confirmation: "berlin" });
    const removed = await send("/api/coordinators/athens/remove");
    const gone = await send("/api/coordinators/athens/remove");

    const { parent } = made.json();
    expect(parent).toMatchObject({
      url: "https://search.example",
      certificatePin: "A".repeat(43),
      key: expect.stringMatching(/^ncc_/),
    });
    expect([made, again, wrong, mistyped, removed, gone].map(({ statusCode }) => statusCode)).toEqual([
      201, 409, 422, 422, 200, 404,
    ]);
    expect(listed.json().children).toMatchObject([{ name: "athens", state: "never", owns: [], waiting: 0 }]);
    expect(listed.body).not.toContain(parent.key);
    expect((await audited()).map((line) => line.replace(/ by token t.*/, ""))).toEqual([
      "coordinator-invited athens",
      "coordinator-removed athens",
    ]);
  });

  it("the page works with plain forms, shows the state, and shows faults beside the input", async () => {
    const operator = await signIn(database, "operator");
    const { headers } = operator;
    const submit = async (name: string) =>
      await app.inject(formBy(operator, "/coordinators/invite", { name }));

    const empty = await app.inject({ url: "/coordinators", headers });
    const made = await submit("athens");
    const again = await submit("athens");
    const page = await app.inject({ url: "/coordinators", headers });

    expect(empty.body).toContain("No related coordinators.");
    expect(made.body).toMatch(/it is <strong>shown only once<\/strong>/);
    expect(again.statusCode).toBe(409);
    expect(again.body).toContain('value="athens"');
    expect(page.body).toMatch(/athens.*never connected.*Remove athens/s);
  });
});
