/** The policies over HTTP: rights to read and change, and concurrent changes by two operators. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import { describeApi } from "#coordinator/open-api";
import { policyPart } from "#coordinator/run/settings/start";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedWorld } from "../support/seed-world.ts";
import { bearer, signIn } from "../support/signed-in.ts";
import { until } from "../support/until.ts";
import { mainOf, webServer } from "../support/web-server.ts";

let database: Database;
let app: ReturnType<typeof webServer>;
let headers: { readonly authorization: string };

beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  app = webServer(database, {
    parts: [policyPart({ pool: database.pool, log: silentLog })],
    audit: createAuditLog(database.pool),
  });
  headers = await bearer(database, ["read", "policy-write", "audit-read"], { name: "ci" });
});
beforeEach(async () => {
  await database.pool.query("truncate setting, policy_version, audit_entry");
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const post = async (url: string, payload: object) =>
  await app.inject({ method: "POST", url, headers, payload });
const read = async (asked: Record<string, string> = headers) =>
  (await app.inject({ url: "/api/policies", headers: asked })).json();
const policyNamed = async (name: string) =>
  (await read()).groups
    .flatMap(({ policies }: { policies: { name: string }[] }) => policies)
    .find((policy: { name: string }) => policy.name === name);
const change = { values: { "delegation.lambdaMs": 0.5 }, basedOn: 0 };

it("answers as it is described, before and after a change, and writes it into the audit log", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const fits = (value: unknown, name: string) =>
    expect(faultsOf(value, { $ref: `#/components/schemas/${name}` }, schemas)).toEqual([]);

  const preview = await post("/api/policies/preview", { values: change.values });
  const saved = await post("/api/policies", { ...change, words: "news sites" });

  expect([preview.statusCode, saved.statusCode]).toEqual([200, 200]);
  fits(preview.json(), "PolicyPreview");
  fits(saved.json(), "SavedPolicies");
  fits(await read(), "Policies");
  expect(await policyNamed("delegation.lambdaMs")).toMatchObject({ value: 0.5, changedBy: "token ci" });
  const { entries } = await createAuditLog(database.pool).list({ limit: 10 });
  expect(entries).toMatchObject([
    {
      action: "policy-changed",
      target: "delegation.lambdaMs",
      words: "delegation.lambdaMs: 2 ms → 0.5 ms; news sites",
      before: { "delegation.lambdaMs": 2 },
      after: { "delegation.lambdaMs": 0.5 },
      actor: "token ci",
      via: "api",
    },
  ]);
});

it("refuses a request that has not seen the latest change, and names who made it", async () => {
  await post("/api/policies", change);

  const late = await post("/api/policies", { values: { "scope.maxDepth": 3 }, basedOn: 0 });

  expect(late.statusCode).toBe(409);
  expect(late.json().error.message).toContain(
    "token ci has changed delegation.lambdaMs in the meantime (version 1)",
  );
  expect((await policyNamed("scope.maxDepth")).value).toBe(8);
});

it("refuses every invalid value with the reason", async () => {
  const asked: readonly object[] = [
    { "recrawl.shortestHours": 48, "recrawl.longestDays": 1 },
    { "delegation.lambdaMs": "many" },
    { "delegation.moon": 1, constructor: 1 },
    { "delegation.lambdaMs": 2 },
  ];

  const answers = [];
  for (const values of asked) answers.push(await post("/api/policies", { values, basedOn: 0 }));
  const unknown = await post("/api/policies", { takeBack: 7, basedOn: 0 });
  const unbased = await post("/api/policies", { values: {} });

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([422, 422, 422, 422]);
  expect(answers.map((answer) => answer.json().error.message)).toEqual([
    expect.stringContaining(
      "no page may be fetched again within 48 h are over, and each has to be after 24 h",
    ),
    expect.stringContaining('"many" is not a number from 0 to 1,000'),
    expect.stringContaining("delegation.moon: there is no such policy"),
    expect.stringContaining("Nothing would change"),
  ]);
  expect([unknown.statusCode, unbased.statusCode]).toEqual([404, 400]);
  expect(await read()).toMatchObject({ version: 0, history: [] });
});

it("computes two previews at once and no more", async () => {
  // Locks the rounds, which a preview reads first, until all have asked.
  const holder = await database.pool.connect();
  await holder.query("begin; lock table probe_round in access exclusive mode");
  const statuses: number[] = [];
  const asked = Array.from({ length: 5 }, async () => {
    statuses.push((await post("/api/policies/preview", change)).statusCode);
  });
  await until(() => statuses.length === 3, 10_000);
  await holder.query("commit");
  holder.release();
  await Promise.all(asked);

  expect(statuses).toEqual([429, 429, 429, 200, 200]);
  expect((await post("/api/policies/preview", change)).statusCode).toBe(200);
});

it("reverts a version, and reverts that again; a value equal to the file's counts as the file's", async () => {
  await post("/api/policies", change);
  await post("/api/policies", { takeBack: 1, basedOn: 1 });
  expect(await policyNamed("delegation.lambdaMs")).toMatchObject({ value: 2, changedBy: null });

  await post("/api/policies", { takeBack: 2, basedOn: 2 });
  await post("/api/policies", { values: { "delegation.lambdaMs": 2 }, basedOn: 3 });

  const { history } = await read();
  expect(history.map(({ takesBack }: { takesBack: number | null }) => takesBack)).toEqual([null, 2, 1, null]);
  expect(history[0].changes).toEqual([{ name: "delegation.lambdaMs", before: 0.5, after: null }]);
});

it("shows the dozen usual policies, changed ones, and those searched for; the API shows all", async () => {
  const { headers } = await signIn(database, "operator");
  await post("/api/policies", { values: { "retention.fetchDays": 60 }, basedOn: 0 });
  const shown = async (query: string) => {
    const { body } = await app.inject({ url: `/policies${query}`, headers });
    return [...body.matchAll(/<div class="policy[^"]*" id="([^"]+)"/g)].map(([, name]) => name ?? "");
  };
  const told = async (query: string) => {
    const { groups } = (await app.inject({ url: `/api/policies${query}`, headers })).json();
    return groups.flatMap((group: { policies: { name: string }[] }) =>
      group.policies.map(({ name }) => name),
    );
  };

  const [basic, all, changed, found] = await Promise.all(
    ["", "?show=all", "?show=changed", "?q=rel%3Dnofollow"].map(shown),
  );
  const nothing = await app.inject({ url: "/policies?q=%3Cb%3Enothing", headers });
  const wrong = await app.inject({ url: "/policies?show=some", headers });

  expect(basic).toHaveLength(12);
  expect(basic).toContain("delegation.lambdaMs");
  expect(all).toEqual(await told(""));
  expect(changed).toEqual(["retention.fetchDays"]);
  expect(found).toEqual(["scope.followNofollow"]);
  expect(await told("?show=basic")).toEqual(basic);
  expect(await told("?show=changed")).toEqual(changed);
  expect(await told("?q=rel%3Dnofollow")).toEqual(found);
  expect(nothing.body).toContain("No policy matches <bdi>&lt;b&gt;nothing</bdi>");
  expect(wrong.statusCode).toBe(400);
});

it("shows staff the policies without forms and says why; nobody else's form changes anything", async () => {
  const staff = await signIn(database, "staff");
  const operator = await signIn(database, "operator");
  const page = await app.inject({ url: "/policies", headers: staff.headers });
  const send = async (session: typeof staff, formToken: string) =>
    await app.inject({
      method: "POST",
      url: "/policies",
      headers: { ...session.headers, "content-type": "application/x-www-form-urlencoded" },
      payload: new URLSearchParams({
        "form-token": formToken,
        "based-on": "0",
        "scope.maxDepth": "3",
      }).toString(),
    });

  const answers = [
    await send(staff, staff.formToken),
    await send(operator, "guessed"),
    await send(operator, operator.formToken),
  ];

  expect(page.body).toContain("Only operators can change them");
  expect(mainOf(page.body)).not.toContain('method="post"');
  const full = await app.inject({ url: "/policies", headers: operator.headers });
  expect(full.body.length).toBeLessThan(70_000);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([403, 403, 303]);
  expect((await read()).history).toMatchObject([{ changedBy: "anna" }]);
  // The audit log names the person, for those who may read it.
  const seen = await app.inject({ url: "/policies", headers: staff.headers });
  expect(JSON.stringify(await read({}))).not.toContain("anna");
  expect((await read({})).history).toMatchObject([{ changedBy: "an operator" }]);
  expect(seen.body).not.toContain("anna");
});
