/** What every view and every action keeps to, whatever it shows or changes: over a real server. */
import { type FastifyInstance, fastify } from "fastify";
import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import { createMetrics } from "#coordinator/overview/metrics";
import { type Access, anonymousVisit, type Visit } from "#coordinator/web/access";
import { Actions } from "#coordinator/web/actions";
import { guard } from "#coordinator/web/guard";
import { html } from "#coordinator/web/html";
import { formToken } from "#coordinator/web/page-frame";
import { Views } from "#coordinator/web/views";
import { type Actor, anybody, scopesOf } from "#core/actor";
import type { AuditEntry } from "#core/audit";
import { silentLog } from "#core/log";

const now = () => new Date("2026-03-01T12:00:00Z");
const operator: Actor = { name: "anna", role: "operator", scopes: scopesOf.operator, crawlers: [] };
const staff: Actor = { name: "ben", role: "staff", scopes: scopesOf.staff, crawlers: [] };
const partner: Actor = { name: "chris", role: "partner", scopes: [], crawlers: ["athens"] };
const program: Actor = { name: "token ci", role: "program", scopes: ["fleet-write"], crawlers: [] };
const actors = { operator, staff, partner, program, nobody: anybody(false) };

let app: FastifyInstance;
let recorded: Omit<AuditEntry, "entryId">[];
let said: string[];
let counted: Promise<void> = Promise.resolve();
afterEach(async () => await app.close());

/** The header x-who names the actor; a real server identifies by cookie or token. */
const access: Access = {
  identify: async (request): Promise<Visit> => {
    const actor = actors[request.headers["x-who"] as keyof typeof actors] ?? operator;
    return { ...anonymousVisit, actor, signedInAs: actor.name, formToken: "t0ken" };
  },
  refusal: ({ actor }) => ({
    status: 403,
    title: "Not yours",
    words: `${actor.name} may not.`,
    ...(actor.role === "anybody" ? { goTo: "/sign-in" } : {}),
  }),
  isOwnForm: (_request, token) => token === "t0ken",
  say: (_request, words) => void said.push(words),
};

function server(): FastifyInstance {
  recorded = [];
  said = [];
  app = fastify();
  guard(app, { log: silentLog, metrics: createMetrics(), settings: { version: "0.1.0", secure: false } });
  const views = new Views(app, { access, version: "0.1.0", now });
  views.add({
    path: "/boats/:name",
    api: "/api/boats/:name",
    needs: "read",
    crawlerIn: "name",
    view: async ({ param }) => ({
      status: 200,
      value: { boat: param("name") },
      title: "Boat",
      body: (visit) => html`<h1>Boat</h1>${formToken(visit)}`,
      csv: () => ({ columns: ["boat", "words"], rows: [[param("name"), '=cmd|"x",\n']] }),
    }),
  });
  views.add({
    ...{ path: "/fleets", api: "/api/fleets", needs: "read", titleWhileSlow: "Fleets" },
    view: async () => {
      await counted;
      return {
        ...{ status: 200, value: { fleets: 2 }, title: "Fleets" },
        body: () => html`<p>Two fleets.</p>`,
        csv: () => ({ columns: ["fleets"], rows: [["2"]] }),
      };
    },
  });
  const audit = { record: async (entry: Omit<AuditEntry, "entryId">) => void recorded.push(entry) };
  new Actions(app, { access, audit, version: "0.1.0", now }).add({
    path: "/boats/:name/sink",
    api: "/api/boats/:name/sink",
    needs: "fleet-write",
    crawlerIn: "name",
    partnersToo: true,
    body: z.strictObject({ holes: z.int().min(1).max(9) }),
    fromForm: ({ holes }) => ({ holes: Number(holes) }),
    act: async ({ body, param }) =>
      param("name") === "ark"
        ? { type: "fault", status: 409, title: "No", words: "The ark stays afloat." }
        : {
            type: "done",
            value: { sunk: param("name") },
            goTo: "/boats/none",
            said: "It is sunk.",
            change: { action: "boat-sunk", target: param("name"), words: `${body.holes} holes` },
          },
  });
  return app;
}

const form = (
  fields: Record<string, string>,
  headers: Record<string, string> = {},
  url = "/boats/athens/sink",
) => ({
  method: "POST" as const,
  url,
  headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
  payload: new URLSearchParams(fields).toString(),
});

it("shows one answer as a page, as JSON and as CSV that no spreadsheet runs", async () => {
  const [page, json, csv] = await Promise.all(
    ["/boats/a%20b", "/api/boats/a%20b", "/boats/a%20b?format=csv"].map((url) => server().inject(url)),
  );

  expect(page?.body).toContain('<a href="/api/boats/a%20b">This page as JSON</a>');
  expect(json?.json()).toEqual({ boat: "a b" });
  expect(csv?.headers["content-disposition"]).toBe('attachment; filename="nearcrawl-boats-name.csv"');
  expect(csv?.body).toBe('boat,words\r\na b,"\'=cmd|""x"",\n"\r\n');
});

it("shows a browser that something is being counted, and programs what it comes to", async () => {
  let end = () => {};
  counted = new Promise((resolve) => {
    end = resolve;
  });
  const asked = server();
  const [json, csv] = ["/api/fleets", "/fleets?format=csv"].map(async (url) => await asked.inject(url));
  const waiting = await asked.inject("/fleets");
  end();
  const page = await asked.inject("/fleets");

  expect([waiting.statusCode, waiting.headers.refresh]).toEqual([202, "2"]);
  expect(waiting.body).toContain('<p class="lead" role="status">This is being counted.');
  expect((await json!).json()).toEqual({ fleets: 2 });
  expect((await csv!).body).toBe("fleets\r\n2\r\n");
  expect([page.statusCode, page.headers.refresh]).toEqual([200, undefined]);
  expect(page.body).toContain("Two fleets.");
});

it("shows a partner its own crawler and no other", async () => {
  const asPartner = { "x-who": "partner" };

  expect((await server().inject({ url: "/boats/athens", headers: asPartner })).statusCode).toBe(200);
  expect((await server().inject({ url: "/boats/berlin", headers: asPartner })).statusCode).toBe(403);
});

it("does what a form of its own session asks, writes down who did it, and says so on the next page", async () => {
  const answer = await server().inject(form({ holes: "3", "form-token": "t0ken" }));

  expect([answer.statusCode, answer.headers.location]).toEqual([303, "/boats/none"]);
  expect(recorded).toEqual([
    {
      action: "boat-sunk",
      target: "athens",
      words: "3 holes",
      actor: "anna",
      via: "page",
      remoteAddress: "127.0.0.1",
      at: now(),
    },
  ]);
  expect(said).toEqual(["It is sunk."]);
});

it("changes nothing for a form from elsewhere, for staff, for another's partner, or with wrong fields", async () => {
  const token = { "form-token": "t0ken" };
  const asked = [
    form({ holes: "3" }),
    form({ holes: "3", ...token }, { "x-who": "staff" }),
    form({ holes: "3", ...token }, { "x-who": "partner" }, "/boats/berlin/sink"),
    form({ holes: "many", ...token }),
    form({ holes: "3", ...token }, {}, "/boats/ark/sink"),
  ];
  server();

  const answers = [];
  for (const one of asked) answers.push((await app.inject(one)).statusCode);

  expect(answers).toEqual([403, 403, 403, 400, 409]);
  expect(recorded).toEqual([]);
});

it("lets a partner act on its own crawler where that is said", async () => {
  const answer = await server().inject(form({ holes: "1", "form-token": "t0ken" }, { "x-who": "partner" }));

  expect(answer.statusCode).toBe(303);
  expect(recorded[0]?.actor).toBe("chris");
});

it("takes JSON from programs with a token, and not on the strength of a cookie", async () => {
  const url = "/api/boats/athens/sink";
  const send = async (who: string) =>
    await server().inject({ method: "POST", url, headers: { "x-who": who }, payload: { holes: 2 } });

  const withCookie = await send("operator");
  expect(withCookie.statusCode).toBe(401);
  expect(recorded).toEqual([]);
  const withToken = await send("program");
  expect(withToken.json()).toEqual({ sunk: "athens" });
  expect(recorded[0]).toMatchObject({ actor: "token ci", via: "api" });
});
