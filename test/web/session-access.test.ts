/**
 * What every view and every action has in common, and who has access to them: sessions, tokens and anonymous readers,
 * over a real server and a real database.
 */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { addOperations, type WebPart } from "#coordinator/ask/add-operations";
import { Fault, operationsOf } from "#coordinator/ask/operation";
import { createSessionStore } from "#coordinator/run/access/session-store";
import { html } from "#coordinator/web/html";
import { sessionIdleMs, sessionMs } from "#core/access-types";
import type { Role, Scope } from "#core/actor";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { worldNow } from "../support/seed-world.ts";
import { bearer, type SignedIn, signIn } from "../support/signed-in.ts";
import { testAccess, webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let at: Date;
const now = () => at;

/** The slow view waits for this. */
let counted: Promise<void> = Promise.resolve();

/** Two views and an action. */
const sinkBoat = operationsOf<null>().post({
  ...{ path: "/api/boats/{name}/sink", needs: "fleet-write", crawlerIn: "name", partnersToo: true },
  summary: "Sink it",
  input: z.object({ name: z.string(), holes: z.int().min(1).max(9) }),
  output: z.object({ sunk: z.string(), holes: z.int() }),
  run: async ({ input: { name, holes } }) => {
    if (name === "ark") throw new Fault(409, "The ark stays afloat.");
    return { sunk: name, holes };
  },
  change: ({ sunk, holes }) => ({ action: "boat-sunk", target: sunk, words: `${holes} holes` }),
  said: () => "It is sunk.",
  goTo: () => "/boats/athens",
});

const boats: WebPart = (to) => {
  const { views } = to;
  views.add({
    ...{ path: "/boats/:name", api: "/api/boats/:name", needs: "fleet-read", crawlerIn: "name" },
    view: async ({ visit, param }) => ({
      ...{ status: 200, value: { actor: visit.actor.name }, title: "Boat", body: () => html`<h1>Boat</h1>` },
      csv: () => ({ columns: ["boat", "words"], rows: [[param("name"), '=cmd|"x",\n']] }),
    }),
  });
  views.add({
    ...{ path: "/slow-boats", api: "/api/slow-boats", needs: null, titleWhileSlow: "Boats" },
    view: async () => {
      await counted;
      return {
        ...{ status: 200, value: { boats: 2 }, title: "Boats", body: () => html`<p>Two boats.</p>` },
        csv: () => ({ columns: ["boats"], rows: [["2"]] }),
      };
    },
  });
  addOperations({ sinkBoat }, null)(to);
};

function server(
  changed: { readonly anonymousMayRead?: boolean | "on-this-machine"; readonly behindProxy?: boolean } = {},
) {
  const { anonymousMayRead = true, behindProxy = false } = changed;
  const access = testAccess(database, now, anonymousMayRead);
  return webServer(database, { access, now, parts: [boats], settings: { ...webSettings, behindProxy } });
}

beforeEach(() => {
  at = worldNow;
  app = server();
});
afterEach(async () => {
  await app.close();
  await database.pool.query("delete from operator_token; delete from web_session; truncate audit_entry");
});

const token = async (name: string, scopes: readonly Scope[]) =>
  await bearer(database, scopes, { name, expiresAt: new Date(worldNow.getTime() + 60_000) });
const look = async (headers: Record<string, string>, url = "/api/boats/athens") =>
  await app.inject({ url, headers });
const sink = async (who: SignedIn, fields: object, headers: Record<string, string> = {}, boat = "athens") =>
  await app.inject({
    method: "POST",
    url: `/boats/${boat}/sink`,
    headers: { ...who.headers, "content-type": "application/x-www-form-urlencoded", ...headers },
    payload: new URLSearchParams({ holes: "3", ...fields }).toString(),
  });
const sunk = async () => {
  const { rows } = await database.pool.query("select actor, via, target, words from audit_entry");
  return rows.map(({ actor, via, target, words }) => `${actor} (${via}): ${target}, ${words}`);
};

it("serves an answer as a page, as JSON and as CSV that no spreadsheet runs", async () => {
  const { headers } = await signIn(database, "operator");
  const asked = ["/boats/a%20b", "/api/boats/a%20b", "/boats/a%20b?format=csv"];
  const [page, json, csv] = await Promise.all(asked.map(async (url) => await look(headers, url)));

  expect(page?.body).toContain('<a href="/api/boats/a%20b">This page as JSON</a>');
  expect(json?.json()).toEqual({ actor: "anna" });
  expect(csv?.headers["content-disposition"]).toBe('attachment; filename="nearcrawl-boats-name.csv"');
  expect(csv?.body).toBe('boat,words\r\na b,"\'=cmd|""x"",\n"\r\n');
});

it("shows browsers that something is being counted, and programs the result", async () => {
  let end = () => {};
  counted = new Promise((resolve) => {
    end = resolve;
  });
  const programs = Promise.all(
    ["/api/slow-boats", "/slow-boats?format=csv"].map(async (url) => await look({}, url)),
  );
  const waiting = await look({}, "/slow-boats");
  end();
  const [json, csv] = await programs;
  const page = await look({}, "/slow-boats");

  expect([waiting.statusCode, waiting.headers.refresh]).toEqual([202, "2"]);
  expect(waiting.body).toContain('<p class="lead" role="status">This is being counted.');
  expect(json?.json()).toEqual({ boats: 2 });
  expect(csv?.body).toBe("boats\r\n2\r\n");
  expect([page.statusCode, page.headers.refresh]).toEqual([200, undefined]);
  expect(page.body).toContain("Two boats.");
});

it("knows people by their session's cookie, with the rights of their role", async () => {
  const answers: [Role, number][] = [];
  for (const role of ["operator", "staff", "partner"] as const) {
    answers.push([role, (await look((await signIn(database, role)).headers)).statusCode]);
  }
  const foreign = await look((await signIn(database, "partner")).headers, "/api/boats/berlin");

  expect(answers).toEqual([
    ["operator", 200],
    ["staff", 403],
    ["partner", 200],
  ]);
  expect(foreign.statusCode).toBe(403);
});

it("ends a session on request, and when it is unused or old", async () => {
  const { headers } = await signIn(database, "operator");
  const later = async (ms: number) => {
    at = new Date(worldNow.getTime() + ms);
    return (await look(headers)).statusCode;
  };

  expect(await later(sessionIdleMs - 1)).toBe(200);
  expect(await later(sessionIdleMs + 60_000)).toBe(200);
  expect(await later(3 * sessionIdleMs)).toBe(401);
  await database.pool.query("update web_session set last_used_at = ends_at - interval '1 second'");
  expect(await later(sessionMs + 1)).toBe(401);

  const other = await signIn(database, "operator");
  at = worldNow;
  expect((await look(other.headers)).statusCode).toBe(200);
  await createSessionStore(database.pool).end({ name: "anna", exceptId: 0 });
  expect((await look(other.headers)).statusCode).toBe(401);
});

it("does what a form of the session's own page asks, and confirms it once on the next page", async () => {
  const operator = await signIn(database, "operator");

  const done = await sink(operator, { "form-token": operator.formToken });
  const asData = await look(operator.headers);
  const [first, second] = [
    await look({ ...operator.headers, accept: "text/html" }, "/boats/athens"),
    await look({ ...operator.headers, accept: "text/html" }, "/boats/athens"),
  ];

  expect([done.statusCode, done.headers.location]).toEqual([303, "/boats/athens"]);
  expect(asData.json()).toEqual({ actor: "anna" });
  expect([first.body.includes("It is sunk."), second.body.includes("It is sunk.")]).toEqual([true, false]);
  const { rows } = await database.pool.query('select at, action, remote_address as "from" from audit_entry');
  expect(rows).toEqual([{ at: worldNow, action: "boat-sunk", from: "127.0.0.1" }]);
  expect(await sunk()).toEqual(["anna (page): athens, 3 holes"]);
});

it("changes nothing for staff, other partners, wrong fields or a fault; a partner acts on its own crawler where declared", async () => {
  const [operator, staff, partner] = [
    await signIn(database, "operator"),
    await signIn(database, "staff"),
    await signIn(database, "partner"),
  ];
  const of = ({ formToken }: SignedIn) => ({ "form-token": formToken });

  const answers = [
    await sink(staff, of(staff)),
    await sink(partner, of(partner), {}, "berlin"),
    await sink(operator, { ...of(operator), holes: "many" }),
    await sink(operator, of(operator), {}, "ark"),
  ];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([403, 403, 400, 409]);
  expect(await sunk()).toEqual([]);

  expect((await sink(partner, of(partner))).statusCode).toBe(303);
  expect(await sunk()).toEqual(["chris (page): athens, 3 holes"]);
});

it("refuses forms without the session's token, with another session's, and from other sites' pages", async () => {
  const [operator, other] = [await signIn(database, "operator"), await signIn(database, "operator")];
  const own = { "form-token": operator.formToken };
  const elsewhere = { "sec-fetch-site": "cross-site" };
  const { "sec-fetch-site": _, ...oldBrowser } = operator.headers;
  const old = { ...operator, headers: oldBrowser } as unknown as SignedIn;

  const answers = [
    await sink(operator, {}),
    await sink(operator, { "form-token": other.formToken }),
    await sink(operator, { "form-token": `${operator.formToken}x` }),
    await sink(operator, own, elsewhere),
    await sink(old, own, { origin: "https://evil.example", host: "search.example" }),
  ];

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([403, 403, 403, 403, 403]);
  expect(await sunk()).toEqual([]);
});

it("knows programs by their tokens rather than a cookie, and names a missing scope", async () => {
  const [reader, writer] = [await token("dashboard", ["fleet-read"]), await token("ci", ["fleet-write"])];
  const post = { method: "POST", url: "/api/boats/athens/sink", payload: { holes: 2 } } as const;
  const { headers } = await signIn(database, "operator");

  expect((await look(reader)).json()).toEqual({ actor: "token dashboard" });
  const refused = await app.inject({ ...post, headers: reader });
  expect([refused.statusCode, refused.json().error.message]).toEqual([
    403,
    "This token does not allow fleet-write.",
  ]);
  expect((await app.inject({ ...post, headers })).statusCode).toBe(401);
  expect(await sunk()).toEqual([]);
  expect((await app.inject({ ...post, headers: writer })).json()).toEqual({ sunk: "athens", holes: 2 });
  expect(await sunk()).toEqual(["token ci (api): athens, 2 holes"]);
});

it("refuses a bad token, however good the cookie, and limits guesses", async () => {
  const { headers } = await signIn(database, "operator");
  const good = await token("ci", ["fleet-read"]);
  const guess = async () => await look({ ...headers, authorization: "Bearer guess" });

  const first = await guess();
  for (let guessed = 1; guessed < 10; guessed += 1) await guess();

  expect([first.statusCode, first.headers["www-authenticate"]]).toEqual([401, 'Bearer realm="nearcrawl"']);
  const shutOut = await look(good);
  expect([shutOut.statusCode, shutOut.headers["retry-after"]]).toEqual([429, "60"]);
});

it("leads people to the sign-in and back, and answers programs with an error", async () => {
  const page = await look({ accept: "text/html" }, "/boats/athens?tab=oars");
  const json = await look({});

  expect([page.statusCode, page.headers.location]).toEqual([
    303,
    "/sign-in?to=%2Fboats%2Fathens%3Ftab%3Doars",
  ]);
  expect([json.statusCode, json.headers["www-authenticate"]]).toEqual([401, 'Bearer realm="nearcrawl"']);
});

it.each([
  ["localhost:7411", 200],
  ["LOCALHOST", 200],
  ["127.0.0.1:7411", 200],
  ["[::1]:7411", 200],
  ["rebound.example.org:7411", 401],
  ["127.0.0.1.example.org", 401],
  ["localhost.example.org:7411", 401],
])("where only this machine reaches the pages, who asks for %j gets %i", async (host, status) => {
  await app.close();
  app = server({ anonymousMayRead: "on-this-machine" });

  const answer = await app.inject({ url: "/api/overview", headers: { host } });

  expect(answer.statusCode).toBe(status);
});

it("starts partners at their own crawler", async () => {
  await app.close();
  app = server({ anonymousMayRead: false });
  const { headers } = await signIn(database, "partner");

  const start = await app.inject({ url: "/", headers: { ...headers, accept: "text/html" } });

  expect([start.statusCode, start.headers.location]).toEqual([303, "/crawlers/athens"]);
});
