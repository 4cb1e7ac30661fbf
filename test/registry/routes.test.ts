/** The registry's API and forms: rights, refusals and their reasons. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { registryPart } from "#coordinator/run/registry/start";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { sourceRows } from "#rir-import/download/cache-manifest";
import { sourceOf } from "#rir-import/download/source-settings";
import { planImport } from "#rir-import/plan";
import { rollbackImport, rollForward } from "#rir-import/rollback";
import { type SourceFolder, sourceFolder } from "../rir-import/source-folder.ts";
import { delegate } from "../rir-import/tree-in-force.ts";
import { CommandInHand } from "../support/command-in-hand.ts";
import { testDatabase } from "../support/database.ts";
import { bearer, formBy, type SignedIn, signIn } from "../support/signed-in.ts";
import { until } from "../support/until.ts";
import { mainOf, webServer } from "../support/web-server.ts";

const net = (range: string, country = "NL") =>
  `inetnum: ${range}\nnetname: EX\ncountry: ${country}\ndescr: Exemplary Networks\nsource: RIPE\n\n`;
const nets = (count: number) => Array.from({ length: count }, (_, n) => net(`45.10.${n}.0/24`)).join("");
const commands = new CommandInHand();

let database: Database;
let folder: SourceFolder;
let app: FastifyInstance;
let operator: SignedIn;
let staff: SignedIn;
let program: { readonly authorization: string };
/** The job that applied a plan. */
let applied: number;

beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
  await applyImport(database, [folder.write("before.db", nets(40))]);
  app = server(true);
  operator = await signIn(database, "operator", { now: new Date() });
  staff = await signIn(database, "staff", { now: new Date() });
  program = await bearer(database, ["registry-write"], { name: "ci" });
});
afterAll(async () => {
  await app.close();
  folder.remove();
  await database.close();
});
beforeEach(() => {
  commands.orders.length = 0;
});

function server(canStart: boolean): FastifyInstance {
  const sources = [
    sourceOf({ name: "a", registry: "iana", kind: "iana-registry", url: "https://a.example/" }),
  ];
  const host = {
    commands,
    cache: async (now: Date) => ({
      folder: folder.path,
      contact: null,
      sources: await sourceRows(sources, folder.path, now),
    }),
    filesFolder: async () => ({ path: folder.path, names: ["2026-q1"] }),
  };
  const part = registryPart({
    ...{ database, pool: database.pool, log: silentLog, registryHost: canStart ? host : null },
    config: { registry: { shrinkageWarningShare: 0.1 } },
  });
  return webServer(database, { now: () => new Date(), parts: [part] });
}

const read = async (url: string, who?: SignedIn) => await app.inject({ url, headers: who?.headers ?? {} });

const send = async (what: string, body: object, headers = program) =>
  await app.inject({
    method: "POST",
    url: `/api/registry/${what}`,
    headers,
    payload: body,
  });

const form = async (what: string, fields: Record<string, string>, who: SignedIn, formToken = who.formToken) =>
  await app.inject(formBy({ ...who, formToken }, `/registry/${what}`, fields));

const words = (answer: { json(): { error?: { message: string } } }) => answer.json().error?.message ?? "";

async function endOf(jobId: number): Promise<void> {
  await until(async () => (await read(`/api/registry/jobs/${jobId}`)).json().state !== "running", 5000);
}

/** A plan of these ranges, as its job stores it. */
async function plan(text: string): Promise<number> {
  const file = folder.write("after.db", text);
  const { jobId } = (await send("plan", { from: "folder", folder: "2026-q1" })).json();
  const made = await planImport(database, [file], { samples: 300 });
  commands.end({ result: JSON.parse(JSON.stringify(made)) });
  await endOf(jobId);
  return jobId;
}

describe("what is read", () => {
  it("says what the tree is made of, and what a rollback would do", async () => {
    const { counted, rollback } = (await read("/api/registry")).json();

    expect(counted.registries).toEqual([
      expect.objectContaining({ registry: "ripencc", subnets: 40, holders: 1, ipv4Addresses: 40 * 256 }),
    ]);
    expect(rollback).toMatchObject({ generation: 1, becomes: null, removed: 40, broughtBack: 0 });
  });

  it("shows staff the jobs without their requesters, and without forms", async () => {
    const jobId = await plan(nets(41));

    const seen = (await read(`/api/registry/jobs/${jobId}`, staff)).json();
    expect([seen.askedBy, seen.state]).toEqual([null, "done"]);
    expect((await read(`/api/registry/jobs/${jobId}`, operator)).json().askedBy).toBe("token ci");
    expect(mainOf((await read("/registry", staff)).body)).not.toContain("<form");
    expect((await read("/registry", operator)).body).toContain('action="/registry/fetch"');
  });

  it("refuses unknown and malformed numbers of jobs and plans", async () => {
    for (const url of ["jobs/999999", "plans/999999", "jobs/1e3", "plans/-1"]) {
      expect((await read(`/api/registry/${url}`)).statusCode).toBe(404);
    }
  });
});

describe("what is asked for", () => {
  it("is for operators alone, and refused to forms from other sites", async () => {
    expect((await form("fetch", {}, staff)).statusCode).toBe(403);
    expect((await form("fetch", {}, operator, "another")).statusCode).toBe(403);
    expect((await send("fetch", {}, { authorization: "Bearer wrong" })).statusCode).toBe(401);
    expect(commands.orders).toEqual([]);
  });

  it("begins a job that the page leads to, and the audit log names who asked", async () => {
    const answer = await form("fetch", { acceptSmaller: "yes" }, operator);
    const [, jobId] = /\/registry\/jobs\/(\d+)$/.exec(answer.headers.location ?? "") ?? [];

    expect([answer.statusCode, commands.orders]).toEqual([303, [{ type: "fetch", acceptSmaller: true }]]);
    const busy = await send("fetch", {});
    expect([busy.statusCode, words(busy)]).toEqual([409, expect.stringContaining(`Job ${jobId} (fetch)`)]);
    expect((await send("cancel", { jobId: Number(jobId) })).json()).toEqual({
      jobId: Number(jobId),
      cancelAsked: true,
    });
    await endOf(Number(jobId));
    expect((await send("cancel", { jobId: Number(jobId) })).statusCode).toBe(409);
    const { rows } = await database.pool.query(
      "select actor, via, action from audit_entry where target = $1 order by entry_id",
      [`registry job ${jobId}`],
    );
    expect(rows).toEqual([
      { actor: "anna", via: "page", action: "registry-fetch-started" },
      { actor: "token ci", via: "api", action: "registry-job-cancelled" },
    ]);
  });

  it("accepts an allowed folder, and no other", async () => {
    for (const name of ["..", "2026-q1/..", "/etc", "2026-q2"]) {
      expect((await send("plan", { from: "folder", folder: name })).statusCode).toBe(404);
    }
    expect((await send("plan", { from: "disk" })).statusCode).toBe(400);
    expect(commands.orders).toEqual([]);
  });

  it("is a plan's own fingerprint and files, when that plan is applied", async () => {
    const planId = await plan(nets(42));
    const { fingerprint } = (await read(`/api/registry/plans/${planId}`)).json().plan;

    const { jobId } = (await send("apply", { planId })).json();
    commands.end({ exitCode: 2, words: "the files are not those that the plan was made from: plan again" });
    await endOf(jobId);

    const files = { from: "folder", name: "2026-q1" };
    expect(commands.orders.at(-1)).toEqual({ type: "apply", planId, fingerprint, files });
    const job = (await read(`/api/registry/jobs/${jobId}`)).json();
    expect([job.state, job.words]).toEqual(["failed", expect.stringContaining("plan again")]);
  });

  it("has to be confirmed where a registry would lose more than a tenth", async () => {
    const planId = await plan(nets(35));
    const before = commands.orders.length;

    const unconfirmed = await send("apply", { planId });
    expect([unconfirmed.statusCode, words(unconfirmed)]).toEqual([422, expect.stringContaining("ripencc")]);
    expect(commands.orders).toHaveLength(before);
    const form = formBy(operator, "/registry/apply", { planId: String(planId) });
    const address = `/registry/plans/${planId}`;
    const from = { ...form.headers, host: "crawl.example", referer: `http://crawl.example${address}` };
    const again = await app.inject({ ...form, headers: from });
    expect(again.statusCode).toBe(422);
    expect(again.body).toContain('<p class="fault" role="alert">');
    expect(again.body).toContain("By registry");
    expect((await read(address, operator)).body).toContain("Suspicious shrinkage");
    ({ jobId: applied } = (await send("apply", { planId, confirmShrinkage: true })).json());
    const result = { generation: 1, isNew: true, plan: { changes: { removed: 5 } }, seconds: { total: 2 } };
    commands.end({ result });
    await endOf(applied);
    expect((await read(`/registry/jobs/${applied}`, operator)).body).toMatch(/is in force; .*, in 2\.0 s/);
  });

  it("is refused when the tree has changed since the plan, or the plan is for another generation", async () => {
    const planId = await plan(nets(43));
    await applyImport(database, [folder.write("between.db", nets(44))]);

    const outdated = await send("apply", { planId });
    expect([outdated.statusCode, words(outdated)]).toEqual([
      409,
      expect.stringContaining("generation 2 is in force"),
    ]);
    expect((await read(`/registry/plans/${planId}`, operator)).body).not.toContain("Apply this plan");
    expect((await send("rollback", { generation: 1 })).statusCode).toBe(409);
    expect((await send("apply", { planId: 999_999 })).statusCode).toBe(404);
    const former = (await read(`/registry/jobs/${applied}`, operator)).body;
    expect(former).toContain("was in force, and is no more");
    expect(former).not.toContain("Roll it back");
  });

  it("rolls back what was confirmed by typing, and what a program asks for", async () => {
    const { generation } = (await read("/api/registry")).json();
    const page = (await read("/registry", operator)).body;
    const before = commands.orders.length;
    const values = { generation: String(generation) };

    const oneClick = await form("rollback", values, operator);
    const mistyped = await form("rollback", { ...values, confirmation: "roll back 99" }, operator);
    const unordered = commands.orders.length - before;
    const typed = await form("rollback", { ...values, confirmation: `roll back ${generation}` }, operator);
    commands.end({});
    await endOf((await read("/api/registry")).json().jobs[0].jobId);
    const asked = await send("rollback", { generation });
    commands.end({});
    await endOf(asked.json().jobId);

    expect(page).toContain(`Type <code>roll back ${generation}</code>`);
    expect([oneClick, mistyped, typed, asked].map(({ statusCode }) => statusCode)).toEqual([
      422, 422, 303, 202,
    ]);
    expect([mistyped.body, unordered]).toEqual([expect.stringContaining(`roll back ${generation}`), 0]);
  });

  it("empties the tree only when confirmed, and can restore what was rolled back", async () => {
    const current = (await read("/api/registry")).json().generation;
    while ((await read("/api/registry")).json().rollback.becomes !== null) await rollbackImport(database);
    const first = (await read("/api/registry")).json().generation;
    const page = (await read("/registry", operator)).body;
    const before = commands.orders.length;

    const oneClick = await form("rollback", { generation: String(first) }, operator);
    const mistyped = await form("rollback", { generation: String(first), confirmation: "yes" }, operator);
    const unsaid = await send("rollback", { generation: first });
    const unordered = commands.orders.length - before;
    const typed = await form(
      "rollback",
      { generation: String(first), confirmation: "empty the tree" },
      operator,
    );
    commands.end({});
    await endOf((await read("/api/registry")).json().jobs[0].jobId);
    const wrong = await send("rollforward", { generation: 999 });
    const forward = await send("rollforward", { generation: first + 1 });
    commands.end({});
    await endOf(forward.json().jobId);

    expect(page).toContain("Type <code>empty the tree</code>");
    expect(page).toContain("Put in force again");
    expect([oneClick, mistyped, unsaid].map(({ statusCode }) => statusCode)).toEqual([422, 422, 422]);
    expect([words(unsaid), unordered]).toEqual([expect.stringContaining('"toEmpty": true'), 0]);
    expect(typed.statusCode).toBe(303);
    expect(commands.orders.slice(-2)).toEqual([
      { type: "rollback", generation: first, toEmpty: true },
      { type: "rollforward", generation: first + 1 },
    ]);
    expect([wrong.statusCode, forward.statusCode]).toEqual([409, 202]);
    while ((await read("/api/registry")).json().generation !== current) await rollForward(database);
  });

  it("names the number of subnets in use where many go, by typing it, and by a program", async () => {
    // In a tree of their own, which exists as long as the test.
    await delegate(database, "45.10.0.0/24", "amber");
    await delegate(database, "45.10.1.0/24", "amber");
    try {
      const planId = await plan(nets(50) + net("45.11.0.0/24"));
      const fewer = await plan(nets(50).replace(net("45.10.1.0/24"), ""));
      const fits = (await read(`/api/registry/plans/${planId}`)).json();
      const page = (await read(`/registry/plans/${fewer}`, operator)).body;
      const before = commands.orders.length;
      const unsaid = await send("apply", { planId: fewer });
      const wrong = await form("apply", { planId: String(fewer), removeInUse: "2" }, operator);
      const unordered = commands.orders.length - before;
      const typed = await form("apply", { planId: String(fewer), removeInUse: "1" }, operator);
      commands.end({});
      await endOf((await read("/api/registry")).json().jobs[0].jobId);

      expect(fits.plan.inUse).toEqual({ total: 2, going: 0 });
      expect((await read(`/registry/plans/${planId}`, operator)).body).not.toContain("removeInUse");
      expect(page).toContain("1 of the 2 subnets in use (50.0 %)");
      expect(page).toMatch(/type how many: <strong>1<\/strong>.* name="removeInUse"/);
      expect([unsaid, wrong, typed].map(({ statusCode }) => statusCode)).toEqual([422, 422, 303]);
      expect([words(unsaid), wrong.body, unordered]).toEqual([
        expect.stringContaining('"removeInUse": 1'),
        expect.stringContaining("and not 2"),
        0,
      ]);
      expect(commands.orders.at(-1)).toMatchObject({ type: "apply", planId: fewer, removeInUse: 1 });
    } finally {
      await database.pool.query("delete from delegation");
    }
  });

  it("names it for a rollback, and one step leads back from a tree that was emptied", async () => {
    const current = (await read("/api/registry")).json().generation;
    await delegate(database, "45.10.0.0/24", "amber");
    while ((await read("/api/registry")).json().rollback.becomes !== null) await rollbackImport(database);
    const { generation } = (await read("/api/registry")).json();
    const seen = (await read("/api/registry", operator)).json().rollback.inUse;
    const staffSees = (await read("/api/registry", staff)).json().rollback.inUse;
    const page = (await read("/registry", operator)).body;
    const values = { generation: String(generation), confirmation: "empty the tree" };

    const unsaid = await send("rollback", { generation, toEmpty: true });
    const wrong = await form("rollback", { ...values, removeInUse: "7" }, operator);
    const before = commands.orders.length;
    const said = { generation: String(generation), removeInUse: "1", toEmpty: "yes" };
    const mistyped = await form("rollback", { ...said, confirmation: "empty tree" }, operator);
    const untyped = await form("rollback", said, operator);
    const other = await form("rollback", { ...said, confirmation: `roll back ${generation}` }, operator);
    const unordered = commands.orders.length - before;
    const typed = await form("rollback", { ...values, removeInUse: "1" }, operator);
    commands.end({});
    await endOf((await read("/api/registry")).json().jobs[0].jobId);
    await rollbackImport(database, 1, { toEmpty: true, removeInUse: 1 });
    const emptied = (await read("/registry", operator)).body;
    const forStaff = (await read("/registry", staff)).body;
    const forward = await form("rollforward", { generation: String(generation) }, operator);
    commands.end({});
    await endOf((await read("/api/registry")).json().jobs[0].jobId);

    expect([seen, staffSees]).toEqual([{ total: 1, going: 1 }, null]);
    expect(page).toContain('name="removeInUse"');
    expect([unsaid, wrong, typed, forward].map(({ statusCode }) => statusCode)).toEqual([422, 422, 303, 303]);
    for (const refused of [mistyped, untyped, other]) {
      expect([refused.statusCode, refused.body]).toEqual([422, expect.stringContaining("empty the tree")]);
      // Its own page states the consequences; no other form asks for it.
      expect(mainOf(refused.body)).not.toContain("<form");
    }
    expect(unordered).toBe(0);
    expect(commands.orders.slice(-2)).toEqual([
      { type: "rollback", generation, toEmpty: true, removeInUse: 1 },
      { type: "rollforward", generation },
    ]);
    const head = mainOf(emptied).split("</form>")[0];
    expect(head).toContain("No registry is in force any more");
    expect(head).toContain("Put in force again");
    expect(forStaff).toContain("nearcrawl rir rollforward");
    expect(mainOf(forStaff)).not.toContain("<form");
    while ((await read("/api/registry")).json().generation !== current) await rollForward(database);
    await database.pool.query("delete from delegation");
  });

  it("is not possible where the settings do not allow it, and says what to do instead", async () => {
    const without = server(false);
    const answer = await without.inject({
      method: "POST",
      url: "/api/registry/fetch",
      headers: program,
      payload: {},
    });
    const page = await without.inject({ url: "/registry", headers: operator.headers });
    await without.close();

    expect([answer.statusCode, words(answer)]).toEqual([503, expect.stringContaining("nearcrawl rir fetch")]);
    expect(page.body).toContain("nearcrawl rir fetch");
    expect(mainOf(page.body)).not.toContain("<form");
  });
});
