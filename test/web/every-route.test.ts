/**
 * Every route of the server, as the server lists them: who may read it and who may send to it. A new route for
 * operators only needs nothing here; one for others must be named. And no request makes a route answer that something
 * went wrong.
 */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeApi } from "#coordinator/open-api";
import { scopes } from "#core/actor";
import type { Database } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer, type SignedIn, signIn } from "../support/signed-in.ts";
import { routesOf, testAccess, webServer } from "../support/web-server.ts";

/** Open to everybody: sites, crawlers, people who sign in, and monitoring. */
const publicReads = [
  "/robots.txt",
  "/assets/:name",
  "/about-crawler",
  "/about-crawler/addresses.json",
  "/.well-known/http-message-signatures-directory",
  "/.well-known/signature-agent-card",
  "/.well-known/security.txt",
  "/releases/dock.mjs",
  "/releases/current.json",
  "/releases/keys.json",
  "/releases/revocations.json",
  "/releases/timestamp.json",
  "/releases/:digest",
  "/releases/:digest/manifest.json",
  "/health",
  "/ready",
  "/sign-in",
  "/sign-in/:link",
  // The API's description; and the own account, which is empty without signing in.
  "/api",
  "/api/openapi.json",
  "/api/operations",
  "/account",
  "/api/account",
  // People find only what they may open.
  "/find",
  "/api/find",
];
/** For their own crawlers only. */
const partnersReads = [
  "/crawlers/:name",
  "/crawlers/:name/log",
  "/api/crawlers/:name",
  "/api/fleet/crawlers/:name/log",
];
const staffsReads = [
  "/",
  "/storage",
  "/alerts",
  "/accuracy",
  "/who",
  "/explore",
  "/graph",
  "/search",
  "/sites",
  "/changes",
  "/channels",
  "/coverage",
  "/pages",
  "/fleet",
  "/fleet/queue",
  "/fleet/in-hand",
  "/fleet/site-caps",
  "/fleet/failures",
  "/crawlers/:name",
  "/reports/coverage",
  "/reports/organisations",
  "/reports/subnets",
  "/reports/crawlers",
  "/reports/placement",
  "/registry",
  "/registry/jobs",
  "/registry/jobs/:jobId",
  "/registry/plans/:jobId",
  "/policies",
  "/sites/:host",
]
  .flatMap((path) => [path, path === "/" ? "/api/overview" : `/api${path}`])
  .concat([
    "/submit",
    "/submissions/:number",
    "/api/submissions",
    "/api/submissions/:number",
    "/explore/subnets.csv",
    "/sites.csv",
    "/events",
  ]);
const publicSends = ["/sign-in", "/about-crawler/opt-out", "/about-crawler/report"];
/** With a form token of the session: what everybody may do with their own things. */
const ownSends = [...["/sign-out", "/account/sessions/:id/end", "/account/sessions/end-others"]];
const staffsSends = ["/submit", "/sites/:host/fetch-again"];
const partnersSends = ["/crawlers/:name/drain", "/crawlers/:name/resume"];

let database: Database;
let app: FastifyInstance;
let reads: string[];
let sends: string[];
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  const access = testAccess(database, () => worldNow, false);
  app = webServer(database, { parts: await everyPart(database), access });
  await app.ready();
  const routes = routesOf(app);
  reads = routes.filter(({ methods }) => methods.includes("GET")).map(({ path }) => path);
  sends = routes.filter(({ methods }) => methods.includes("POST")).map(({ path }) => path);
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const at = (path: string, name = "athens") => path.replace(":name", name).replace(/:\w+/g, "1");
const without = (all: readonly string[], ...named: readonly (readonly string[])[]) =>
  all.filter((path) => !named.flat().includes(path));

/** The requests that are not refused, each with its status. HEAD equals GET and ends after the head. */
async function notRefused(paths: readonly string[], headers: Record<string, string>, name?: string) {
  const found: string[] = [];
  for (const path of paths) {
    const { statusCode, headers: sent } = await app.inject({ method: "HEAD", url: at(path, name), headers });
    const isSentAway = statusCode === 303 && /^\/(sign-in|crawlers\/athens$)/.test(String(sent.location));
    if (statusCode !== 401 && statusCode !== 403 && !isSentAway) found.push(`${path} ${statusCode}`);
  }
  return found;
}

it("every route is listed here, and everything listed here is a route", () => {
  expect(reads.length).toBeGreaterThan(70);
  expect(sends.length).toBeGreaterThan(50);
  expect(without([...publicReads, ...partnersReads, ...staffsReads], reads)).toEqual([]);
  expect(without([...publicSends, ...ownSends, ...staffsSends, ...partnersSends], sends)).toEqual([]);
});

it("nobody reads without signing in where pages are not public", async () => {
  expect(await notRefused(without(reads, publicReads), {})).toEqual([]);
});

it("a token reads what its scopes allow", async () => {
  const other = await bearer(database, ["registry-write"]);
  const metrics = await bearer(database, ["metrics-read"]);

  expect(await notRefused(without(reads, publicReads), other)).toEqual([]);
  expect(await notRefused(without(reads, publicReads), metrics)).toEqual(["/metrics 200"]);
});

it("a partner reads about its own crawlers only", async () => {
  const { headers } = await signIn(database, "partner", { crawlers: ["athens"] });

  expect(await notRefused(without(reads, publicReads, partnersReads), headers)).toEqual([]);
  expect(await notRefused(partnersReads, headers, "berlin")).toEqual([]);
  expect(await notRefused(partnersReads, headers)).toHaveLength(partnersReads.length);
});

it("staff read the crawl, but not keys, people and incidents", async () => {
  const { headers } = await signIn(database, "staff");

  expect(await notRefused(without(reads, publicReads, staffsReads), headers)).toEqual([]);
});

it("what needs signing in is kept by no shared cache", async () => {
  const { headers } = await signIn(database, "operator");
  const kept: string[] = [];

  for (const path of without(reads, publicReads, ["/events"])) {
    const { headers: sent } = await app.inject({ method: "HEAD", url: at(path), headers });
    if (!/no-store|private/.test(String(sent["cache-control"]))) kept.push(path);
  }

  expect(kept).toEqual([]);
});

/** Senders of forms, each from its own address: changes per address and minute are limited. */
interface Sender {
  readonly headers: Record<string, string>;
  readonly formToken?: string;
  readonly from: string;
}

async function takenFrom(paths: readonly string[], sender: Sender, name?: string) {
  const taken: string[] = [];
  for (const path of paths) {
    const isApi = path.startsWith("/api/");
    const { statusCode } = await app.inject({
      method: "POST",
      url: at(path, name),
      remoteAddress: sender.from,
      headers: {
        ...sender.headers,
        accept: "application/json",
        "content-type": isApi ? "application/json" : "application/x-www-form-urlencoded",
      },
      payload: isApi ? "{}" : `form-token=${sender.formToken ?? ""}`,
    });
    if (statusCode !== 401 && statusCode !== 403) taken.push(`${path} ${statusCode}`);
  }
  return taken;
}

it("nothing is accepted without signing in or without the right", async () => {
  const as = ({ headers, formToken }: SignedIn, from: string): Sender => ({
    headers: { ...headers },
    formToken,
    from,
  });
  const staff = as(await signIn(database, "staff"), "10.0.0.1");
  const partner = as(await signIn(database, "partner", { crawlers: ["athens"] }), "10.0.0.2");
  const reader: Sender = { headers: await bearer(database, ["read", "audit-read"]), from: "10.0.0.3" };
  const others = without(sends, publicSends);

  expect(await takenFrom(others, { headers: {}, from: "10.0.0.4" })).toEqual([]);
  expect(await takenFrom(others, reader)).toEqual([]);
  expect(await takenFrom(without(others, ownSends, staffsSends), staff)).toEqual([]);
  expect(await takenFrom(without(others, ownSends, partnersSends), partner)).toEqual([]);
  expect(await takenFrom(partnersSends, partner, "berlin")).toEqual([]);
});

it("no form is accepted from another site's page or without the session's token", async () => {
  const operator = await signIn(database, "operator");
  const { headers, formToken } = operator;
  const elsewhere = { ...headers, "sec-fetch-site": "cross-site" };
  const framed = { cookie: headers.cookie, origin: "null" };

  expect(await takenFrom(without(sends, publicSends), { headers, from: "10.0.1.1" })).toEqual([]);
  expect(await takenFrom(sends, { headers: elsewhere, formToken, from: "10.0.1.2" })).toEqual([]);
  expect(await takenFrom(sends, { headers: framed, formToken, from: "10.0.1.3" })).toEqual([]);
});

/** Their answers are endless. */
/** The page of the API's description, as JSON; the description itself covers it. */
const undescribed = ["/api", "/api/operations"];

it("everything served under /api is described, and everything described is served", () => {
  const described = Object.entries(describeApi().paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
  );
  const isOfApi = (route: string) => /^\w+ \/api(\/|$)/.test(route);
  const served = [...reads.map((path) => `get ${path}`), ...sends.map((path) => `post ${path}`)];

  expect(served.filter(isOfApi).sort()).toEqual(
    [...described.filter(isOfApi), ...undescribed.map((path) => `get ${path}`)].sort(),
  );
});

const streams = ["/events"];

const hostile = [
  ...["%00", "%ff%fe", "%", "__proto__", "constructor", "%F0%9F%98%80", "-1", "1e9", "2147483648"],
  ...["99999999999999999999", "+275760-09-13T00:00:01Z", "::", "%27%22%3E%3Cscript%3E", "a".repeat(3000)],
];

it("no question makes the server fail", async () => {
  const headers = await bearer(database, scopes);
  const faults: string[] = [];
  const ask = async (url: string) => {
    const { statusCode, headers: sent } = await app.inject({ url, headers });
    if (statusCode === 500 || sent["x-content-type-options"] === undefined) faults.push(url);
  };

  for (const [path, { get }] of Object.entries(describeApi().paths)) {
    if (!get || streams.includes(path)) continue;
    const names = (get.parameters ?? []).flatMap((one) => ("name" in one ? [one.name] : []));
    // One value after another for one name after another; every third as a page.
    for (const [turn, value] of hostile.entries()) {
      const name = names[turn % Math.max(1, names.length)];
      if (name === undefined) break;
      const inPath = path.replace(/\{(\w+)\}/g, (_, one) => (one === name ? value : "athens"));
      const page = (inPath === path ? `${path}?${name}=${value}` : inPath).replace(/^\/api/, "");
      await ask(turn % 3 === 0 || !path.startsWith("/api/") ? page : `/api${page}`);
    }
  }
  for (const since of ["__proto__", "constructor"]) await ask(`/api/fleet/incidents?since=${since}`);
  for (const day of ["2026-02-31", "0000-01-01"]) await ask(`/api/search?q=ferry&from=${day}&to=${day}`);
  for (const name of ["actor", "action", "target"]) await ask(`/audit?${name}=%00`);

  expect(faults).toEqual([]);
});

it("no request body makes the server fail", async () => {
  const headers = await bearer(database, scopes);
  const ask = async (url: string, payload: unknown) =>
    (await app.inject({ method: "POST", url, headers, payload: payload as object })).statusCode;

  expect(await ask("/api/tokens/%00/revoke", {})).toBe(404);
  expect(await ask("/api/fleet/opt-outs", { target: "a.example", words: "a\0b" })).toBe(400);
  expect(await ask("/api/fleet/opt-outs", { target: "a.example", words: "half \ud800" })).toBe(400);
  expect(await ask("/api/fleet/opt-outs", { target: "a.example", words: "\\u0000 \\ 😀" })).toBe(200);
  expect(await ask("/api/policies", { basedOn: 0, values: { constructor: 1 } })).toBe(422);
});
