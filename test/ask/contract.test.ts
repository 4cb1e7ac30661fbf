/**
 * The contract of every operation that answers with a document: one answer in every format, for every reader. A new operation
 * is tested by being in the API's description; rooms do not repeat these tests.
 */
import type { FastifyInstance } from "fastify";
import { parse } from "node-html-parser";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { type AnyOperation, formType } from "#coordinator/ask/operation";
import { apiOperations } from "#coordinator/open-api";
import { loadOperations } from "#coordinator/room-operations";
import { routePath } from "#coordinator/web/api-operation";
import { scopes } from "#core/actor";
import type { Database } from "#db/server-database";
import { planImport } from "#rir-import/plan";
import { sourceFolder } from "../rir-import/source-folder.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const all = Object.entries(apiOperations as Record<string, AnyOperation>);
const questions = all.filter(([, one]) => one.method === "get" && one.view !== undefined);
const deeds = all.filter(([, one]) => one.method === "post" && one.run !== undefined);

let database: Database;
let app: FastifyInstance;
let headers: Record<string, string>;
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedOperation(database.pool);
  await seedFleet(database.pool);
  await seedPlan();
  app = webServer(database, { parts: await everyPart(database) });
  headers = await bearer(database, scopes);
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

/** A job that planned an import gives its page and the plan's page content. */
async function seedPlan(): Promise<void> {
  const folder = sourceFolder();
  const file = folder.write("ripe.db", "inetnum: 1.2.0.0/16\nnetname: EX\ncountry: NL\nsource: RIPE\n");
  const plan = await planImport(database, [file]);
  folder.remove();
  await database.pool.query(
    `insert into registry_job (kind, asked, asked_by, via, state, started_at, seen_at, ended_at, progress, exit_code, result)
     values ('plan', '{"files": {"from": "cache"}}', 'anna', 'page', 'done', $1, $1, $1,
       '{"text": "compared", "share": 1, "lines": ["ripe.db: read"]}', 0, $2)`,
    [worldNow, JSON.stringify(plan)],
  );
}

/** Names in the seeded world that replace the description's examples. */
const known: Readonly<Record<string, string>> = {
  name: "athens",
  crawler: "athens",
  host: "www.example.org",
  url: "https://www.example.org/",
  jobId: "1",
  q: "1.2.3.4",
};

/** The parameter that is sent where one of several is required. */
const oneOf: Readonly<Record<string, string>> = { "/api/pages": "url", "/api/search": "q" };

/** Requests only what the description requires. */
function addressOf({ path, parameters }: AnyOperation): string {
  const exampleOf = (name: string, schema: z.ZodType) =>
    encodeURIComponent(known[name] ?? String((schema.meta() as { example?: unknown })?.example ?? "1"));
  const inPath = path.replace(/\{(\w+)\}/g, (_, name: string) => exampleOf(name, parameters!.path![name]!));
  const needed = Object.entries(parameters?.query ?? {}).filter(
    ([name, schema]) => !(schema as z.ZodType).safeParse(undefined).success || oneOf[path] === name,
  );
  const query = needed.map(([name, schema]) => `${name}=${exampleOf(name, schema as z.ZodType)}`).join("&");
  return query === "" ? inPath : `${inPath}?${query}`;
}

const pageOf = (address: string, { path, page }: AnyOperation) => {
  const values = address.split("?")[0]!.split("/");
  const names = path.split("/");
  const own = (page ?? "").replace(/:(\w+)/g, (_, name: string) => values[names.indexOf(`{${name}}`)]!);
  return address.includes("?") ? `${own}?${address.split("?")[1]}` : own;
};

/** Removes relative times. */
const lasting = (value: unknown) =>
  JSON.parse(JSON.stringify(value), (name, one) =>
    /^(at|now|since|until|startedAt|uptimeSeconds|times)$/.test(name) ? undefined : one,
  ) as unknown;

describe.each(questions)("%s", (_, operation) => {
  const address = addressOf(operation);

  it("answers in its schema, under /api/ and at its page", async () => {
    const answer = await app.inject({ url: address, headers });
    const schema = operation.answers[answer.statusCode]?.schema;

    expect([200, 404]).toContain(answer.statusCode);
    expect(schema?.safeParse(answer.json()).error?.issues ?? []).toEqual([]);
    if (operation.page === null) return;
    const accept = { ...headers, accept: "application/json" };
    const page = await app.inject({ url: pageOf(address, operation), headers: accept });
    expect([page.statusCode, lasting(page.json())]).toEqual([answer.statusCode, lasting(answer.json())]);
  });

  it("is a page of valid HTML", async () => {
    if (operation.page === null) return;
    const { body, headers: sent } = await app.inject({ url: pageOf(address, operation), headers });
    const root = parse(body);
    const ids = root.querySelectorAll("[id]").map(({ id }) => id);

    expect(sent["content-type"]).toContain("text/html");
    expect(root.querySelectorAll("h1").length).toBe(1);
    expect(root.textContent).not.toMatch(/\[object|undefined|NaN/);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    expect(
      root.querySelectorAll("main form[method=post]").every((one) => one.querySelector("[name=form-token]")),
    ).toBe(true);
  });

  it("is CSV with rows of equal length, if it is a table", async () => {
    const {
      statusCode,
      body,
      headers: sent,
    } = await app.inject({
      url: `${address}${address.includes("?") ? "&" : "?"}format=csv`,
      headers,
    });
    if (statusCode !== 200 || !String(sent["content-type"]).startsWith("text/csv")) return;
    const [head = [], ...rows] = body.trimEnd().split("\r\n").map(fieldsOf);

    expect(head.filter((name) => !/^[a-z]\w*$/.test(name))).toEqual([]);
    expect(new Set(head).size).toBe(head.length);
    expect(rows.filter((row) => row.length !== head.length)).toEqual([]);
    expect(body).not.toMatch(/\[object|undefined|NaN/);
  });

  it("is text that fits a terminal of 80 columns", async () => {
    const accept = { ...headers, accept: "text/plain; width=80" };
    const { body, headers: sent } = await app.inject({ url: address, headers: accept });
    if (!String(sent["content-type"]).startsWith("text/plain"))
      return expect(JSON.parse(body)).toHaveProperty("error");

    expect(body).not.toMatch(/\[object|undefined|NaN|&(amp|lt|gt|quot|#39);/);
    expect(body.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
    // A word without spaces stays whole, such as an address, and so does text to copy.
    expect(
      body
        .split("\n")
        .filter((line) => line.length > 80 && line.length < 300 && /\S\s+\S/.test(line.slice(79))),
    ).toEqual([]);
  });

  it("is refused without the right to it", async () => {
    const { needs } = operation;
    if (needs === null) return;
    const other = await bearer(
      database,
      scopes.filter((one) => one !== needs && one !== "url-write"),
    );

    expect((await app.inject({ url: address, headers: other })).statusCode).toBe(403);
  });
});

const asForm = { "content-type": formType };

describe.each(deeds)("%s", (_, operation) => {
  it("is refused without the right to it, and takes nothing outside its schema", async () => {
    const url = addressOf(operation);
    const send = async (from: Record<string, string>, payload: Record<string, string>) => {
      const form = { payload: new URLSearchParams(payload).toString(), headers: { ...from, ...asForm } };
      const sent = operation.isOpen ? form : { payload, headers: from };
      return (await app.inject({ method: "POST", url, ...sent, remoteAddress: "10.9.8.7" })).statusCode;
    };
    const others = scopes.filter((one) => one !== operation.needs && one !== "url-write");
    const other = await bearer(database, others);

    if (operation.needs !== null) expect([401, 403]).toContain(await send(other, {}));
    expect([400, 404, 409, 422, 429]).toContain(await send(headers, { __noSuchField: "x" }));
  });
});

/** Texts from people, programs or attackers in place of a name, number or URL. */
const hostile = [
  "",
  "'",
  "%",
  "\u0000",
  "-1",
  "1e400",
  "..",
  "<script>",
  "日本",
  "x".repeat(5000),
  "http://[::1]:0/",
];

it("fails on no text sent as a value", async () => {
  const broken: string[] = [];
  for (const [, one] of questions) {
    const names = [...Object.keys(one.parameters?.path ?? {}), ...Object.keys(one.parameters?.query ?? {})];
    for (const name of names)
      for (const text of hostile) {
        const sent = encodeURIComponent(text);
        const [path = "", query = ""] = addressOf(one).split("?");
        const inPath = one.path.includes(`{${name}}`)
          ? one.path.replace(`{${name}}`, sent).replace(/\{\w+\}/g, "1")
          : path;
        const url = `${inPath}?${query}${inPath === path ? `&${name}=${sent}` : ""}`;
        const { statusCode } = await app.inject({ url, headers });
        if (statusCode >= 500) broken.push(`${statusCode} ${url.slice(0, 120)}`);
      }
  }

  expect(broken).toEqual([]);
});

it("answers from an empty database", async () => {
  const empty = await testDatabase();
  const early = webServer(empty, { parts: await everyPart(empty) });
  const authorised = await bearer(empty, scopes);
  const broken: string[] = [];
  try {
    for (const [, one] of questions) {
      const address = addressOf(one);
      const answer = await early.inject({ url: address, headers: authorised });
      if (answer.statusCode >= 500) broken.push(`${answer.statusCode} ${address}`);
      if (one.page === null) continue;
      const page = await early.inject({ url: pageOf(address, one), headers: authorised });
      const isWhole =
        page.statusCode === answer.statusCode && parse(page.body).querySelectorAll("h1").length === 1;
      if (!isWhole || /\[object|undefined|NaN/.test(parse(page.body).textContent)) broken.push(address);
    }
  } finally {
    await early.close();
    await empty.close();
  }

  expect(broken).toEqual([]);
});

it("links every page from another one", async () => {
  const operator = await signIn(database, "operator");
  const linked = new Set<string>();
  for (const [, one] of questions) {
    if (one.page === null) continue;
    const { body } = await app.inject({ url: pageOf(addressOf(one), one), headers: operator.headers });
    for (const link of parse(body).querySelectorAll("a[href^='/']"))
      linked.add(link.getAttribute("href")!.replace(/[?#].*$/, ""));
    for (const asking of parse(body).querySelectorAll("form[method=get]"))
      linked.add(asking.getAttribute("action")!);
  }
  const isLinked = (page: string) => {
    const form = new RegExp(`^${page.replace(/:\w+/g, "[^/]+")}$`);
    return [...linked].some((link) => form.test(link));
  };

  const alone = questions.flatMap(([, { page }]) => (page === null || isLinked(page) ? [] : [page]));
  // An action leads there; the seeded world has nothing to list.
  expect(alone).toEqual(["/submissions/:number"]);
});

it("has its command in the folder of its module, the only one the command loads", async () => {
  const missing: string[] = [];
  for (const { room, operations } of await loadOperations()) {
    const asked = Object.values(operations as Record<string, AnyOperation>).filter((one) => one.command);
    const routes = new Set<string>();
    const app = { post: (route: string) => routes.add(route), get() {}, register() {}, addHook() {} };
    const views = { add: ({ api }: { api: string }) => routes.add(api), addFile: () => {} };
    for (const part of await everyPart(database, { room }))
      part({ app, views, deeds: {}, access: {} } as unknown as Parameters<typeof part>[0]);
    missing.push(...asked.map(routePath).filter((route) => !routes.has(route)));
  }

  expect(missing).toEqual([]);
});

it("covers the operations whose answers are documents", () => {
  expect(questions.length).toBeGreaterThan(1);
  expect(deeds.length).toBeGreaterThan(1);
});

/** Splits a line (RFC 4180); no field of the seeded world has a line end. */
function fieldsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|,)("(?:[^"]|"")*"|[^,]*)/g)].map(([, field = ""]) => field);
}
