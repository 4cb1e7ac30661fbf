/** Signing in by a link and out again, accounts, links for others and tokens: real server, real database. */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createSignInLinkStore } from "#coordinator/run/access/session-store";
import { issueSignInLink, type LinkRequest } from "#coordinator/run/access/sign-in";
import { accessParts } from "#coordinator/run/access/start";
import { randomSecrets } from "#coordinator/web/secrets";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer, type SignedIn, signIn } from "../support/signed-in.ts";
import { testAccess, webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let at: Date;
const now = () => at;

beforeAll(async () => await seedWorld(database.pool));
beforeEach(() => {
  at = worldNow;
  const access = testAccess(database, now);
  app = webServer(database, {
    access,
    now,
    parts: accessParts(database.pool, { access, version: "0.1.0", now }),
  });
});
afterEach(async () => {
  await app.close();
  await database.pool.query(
    "truncate web_session, sign_in_link, operator_token, audit_entry restart identity cascade",
  );
});

const anna: LinkRequest = { name: "anna", role: "operator", crawlers: [], minutes: 15, issuedBy: "a test" };

async function linkFor(changed: Partial<LinkRequest> = {}): Promise<string> {
  const ports = {
    links: createSignInLinkStore(database.pool),
    secrets: randomSecrets,
    webUrl: "http://127.0.0.1:7411",
  };
  const { url } = await issueSignInLink({ ...anna, ...changed }, ports, at);
  return new URL(url).pathname;
}

const form = async (url: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  await app.inject({
    method: "POST",
    url,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "sec-fetch-site": "same-origin",
      ...headers,
    },
    payload: new URLSearchParams(fields).toString(),
  });
const open = async (path: string, headers: Record<string, string> = {}) =>
  await form("/sign-in", { link: path.split("/").at(-1) ?? "" }, headers);
const own = async (who: SignedIn, url: string, fields: Record<string, string> = {}) =>
  await form(url, { "form-token": who.formToken, ...fields }, who.headers);
const look = async (url: string, headers: Record<string, string> = {}) => await app.inject({ url, headers });

/** The headers of a program with a token. */
async function program() {
  const expiresAt = new Date(at.getTime() + 60_000);
  const headers = await bearer(database, ["access-write", "read", "url-write"], { name: "ci", expiresAt });
  return async (url: string, payload: object) => await app.inject({ method: "POST", url, headers, payload });
}

/** The browser's cookies from now on. */
function cookieOf(answer: { cookies: { name: string; value: string }[] }): Record<string, string> {
  const session = answer.cookies.find(({ name }) => name === "nearcrawl-session");
  return { cookie: `nearcrawl-session=${session?.value}` };
}
const actions = async () => {
  const { rows } = await database.pool.query(
    "select actor, action, target from audit_entry order by entry_id",
  );
  return rows.map(({ actor, action, target }) => `${actor} ${action} ${target}`);
};

it("signs in with the button of a link's page, however often it was opened; the cookie is kept as a hash", async () => {
  const path = await linkFor();

  const [first, second] = [await look(path), await look(path)];
  const done = await open(path);
  const account = await look("/api/account", cookieOf(done));

  expect([first.statusCode, second.statusCode]).toEqual([200, 200]);
  expect(first.body).toContain("Sign in as anna");
  expect([done.statusCode, done.headers.location]).toEqual([303, "/"]);
  expect(account.json()).toMatchObject({ name: "anna", role: "operator", sessions: [{ isThisOne: true }] });
  expect(await actions()).toEqual(["anna signed-in anna"]);
  expect(done.cookies.find(({ name }) => name === "nearcrawl-session")).toMatchObject({
    ...{ httpOnly: true, sameSite: "Lax", path: "/", maxAge: 604_800 },
  });
  const { rows } = await database.pool.query("select session_hash from web_session");
  expect(cookieOf(done).cookie).not.toContain(rows[0].session_hash);
});

it("over TLS the cookie has a name that no other host can set, and other names are ignored", async () => {
  await app.close();
  const access = testAccess(database, now);
  const settings = { ...webSettings, behindProxy: true };
  const parts = accessParts(database.pool, { access, version: "0.1.0", now });
  app = webServer(database, { access, now, settings, parts });
  const overTls = { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7" };

  const done = await open(await linkFor(), overTls);
  const cookie = done.cookies.find(({ name }) => name.includes("nearcrawl") && !name.includes("wanted"));
  const own = await look("/api/access", { ...overTls, cookie: `__Host-nearcrawl=${cookie?.value}` });
  const slipped = await look("/api/access", { ...overTls, cookie: `nearcrawl-session=${cookie?.value}` });

  expect(cookie).toMatchObject({ name: "__Host-nearcrawl", secure: true, httpOnly: true, path: "/" });
  expect(cookie).not.toHaveProperty("domain");
  expect([own.statusCode, slipped.statusCode]).toEqual([200, 401]);
  expect(own.json().sessions[0].remoteAddress).toBe("192.0.2.7");
});

it("admits one of twenty that open a link at once", async () => {
  const path = await linkFor();
  const secret = path.split("/").at(-1) ?? "";
  const links = createSignInLinkStore(database.pool);
  const session = { endsAt: new Date(at.getTime() + 1000), remoteAddress: null, userAgent: "" };

  const begun = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      links.redeem(randomSecrets.hash(secret), { ...session, sessionHash: `hash ${index}` }, at),
    ),
  );

  expect(begun.filter((one) => one !== null)).toHaveLength(1);
  const again = await open(path);
  expect(again.statusCode).toBe(410);
  expect(again.body).toContain("was already used");
});

it("tells users of expired, withdrawn and truncated links how to get another", async () => {
  const [expired, revoked] = [await linkFor(), await linkFor({ name: "ben", minutes: 60 })];
  await createSignInLinkStore(database.pool).revoke(2, at);
  at = new Date(worldNow.getTime() + 15 * 60_000);

  const answers = [await open(expired), await look(revoked), await look(`${revoked.slice(0, 20)}`)];

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([410, 410, 410]);
  expect(answers.map(({ body }) => /It has expired|was withdrawn|is incomplete/.exec(body)?.[0])).toEqual([
    "It has expired",
    "was withdrawn",
    "is incomplete",
  ]);
  for (const { body } of answers) expect(body).toContain("nearcrawl sign-in");
});

it("refuses a sign-in that another site's page sends", async () => {
  const path = await linkFor();

  const answer = await open(path, { "sec-fetch-site": "cross-site" });

  expect(answer.statusCode).toBe(403);
  expect((await open(path)).statusCode).toBe(303);
});

it("ends the browser's earlier session, so that nobody continues with one that was slipped in", async () => {
  const slipped = await signIn(database, "operator", { name: "mallory" });

  const done = await open(await linkFor(), slipped.headers);

  expect((await look("/api/access", slipped.headers)).statusCode).toBe(401);
  expect((await look("/api/access", cookieOf(done))).statusCode).toBe(200);
});

it("continues to the requested page, and never to another host", async () => {
  const wanted = await look("/sign-in?to=%2Faudit%3Ftarget%3Dathens");
  const elsewhere = [
    await look("/sign-in?to=%2F%2Fevil.example"),
    await look("/sign-in?to=https%3A%2F%2Fevil.example"),
    await look("/sign-in?to=%2F%5Cevil.example"),
  ];
  const cookie = `nearcrawl-wanted=${wanted.cookies[0]?.value}`;

  const done = await open(await linkFor(), { cookie });
  const partner = await open(await linkFor({ role: "partner", crawlers: ["athens"] }), { cookie });
  const forged = await open(await linkFor(), { cookie: "nearcrawl-wanted=%2F%2Fevil.example" });

  expect(done.headers.location).toBe("/audit?target=athens");
  expect(partner.headers.location).toBe("/crawlers/athens");
  expect(forged.headers.location).toBe("/");
  expect(elsewhere.flatMap(({ cookies }) => cookies)).toEqual([]);
});

it("is limited to ten attempts a minute per address", async () => {
  const statuses: number[] = [];
  for (let tried = 0; tried < 11; tried += 1) statuses.push((await open("/sign-in/guess")).statusCode);

  expect(statuses).toEqual([...Array(10).fill(410), 429]);
});

it("signs out, which needs the session's own form", async () => {
  const operator = await signIn(database, "operator");

  const refused = await form("/sign-out", {}, operator.headers);
  const done = await own(operator, "/sign-out");

  expect([refused.statusCode, done.statusCode, done.headers.location]).toEqual([403, 303, "/sign-in?out=1"]);
  expect((await look("/api/access", operator.headers)).statusCode).toBe(401);
  expect(await actions()).toEqual(["anna signed-out anna"]);
});

it("ends one's own other sessions and nobody else's", async () => {
  const [here, there, ben] = [
    await signIn(database, "operator"),
    await signIn(database, "operator"),
    await signIn(database, "staff"),
  ];
  // The staff member anna is a different person.
  await signIn(database, "staff", { name: "anna" });
  const sessions = async () => (await look("/api/account", here.headers)).json().sessions;
  const idOf = async (who: SignedIn) =>
    (await look("/api/account", who.headers))
      .json()
      .sessions.find((one: { isThisOne: boolean }) => one.isThisOne).sessionId;

  expect((await own(here, `/account/sessions/${await idOf(ben)}/end`)).statusCode).toBe(404);
  expect(await sessions()).toHaveLength(2);
  expect((await own(here, "/account/sessions/end-others")).statusCode).toBe(303);
  expect(await sessions()).toHaveLength(1);
  expect((await look("/api/account", there.headers)).statusCode).toBe(401);
  expect((await look("/api/account", ben.headers)).statusCode).toBe(200);
});

it("lets operators make links for others, see who is signed in, and end it", async () => {
  const operator = await signIn(database, "operator");
  const ben = await signIn(database, "staff");

  const made = await own(operator, "/access/links", {
    name: "chris",
    role: "partner",
    crawlers: "athens, berlin",
    minutes: "60",
  });
  const value = (await look("/api/access", operator.headers)).json();

  expect(made.statusCode).toBe(201);
  const [, path = ""] = /7411(\/sign-in\/[\w-]+)/.exec(made.body) ?? [];
  expect(value.links).toMatchObject([
    { name: "chris", role: "partner", crawlers: ["athens", "berlin"], issuedBy: "anna" },
  ]);
  expect(value.sessions.map(({ name }: { name: string }) => name).sort()).toEqual(["anna", "ben"]);
  expect(JSON.stringify(value)).not.toContain(path.split("/").at(-1));
  expect((await own(operator, `/access/links/${value.links[0].linkId}/revoke`)).statusCode).toBe(303);
  expect((await open(path)).statusCode).toBe(410);
  const id = value.sessions.find(({ name }: { name: string }) => name === "ben").sessionId;
  expect((await own(operator, `/access/sessions/${id}/end`)).statusCode).toBe(303);
  expect((await look("/api/account", ben.headers)).statusCode).toBe(401);
  expect(await actions()).toEqual([
    "anna sign-in-link-issued chris",
    "anna sign-in-link-revoked chris",
    "anna session-ended ben",
  ]);
});

it("names the fault of a link on its form, with what was typed", async () => {
  const operator = await signIn(database, "operator");
  const asked = { name: "two words", role: "staff", crawlers: "", minutes: "15" };

  const badName = await own(operator, "/access/links", asked);
  const noCrawler = await own(operator, "/access/links", { ...asked, name: "ben", role: "partner" });

  const unknown = await own(operator, "/access/links", {
    ...{ ...asked, name: "ben", role: "partner", crawlers: "athens atlantis" },
  });

  expect([badName.statusCode, noCrawler.statusCode, unknown.statusCode]).toEqual([422, 422, 422]);
  expect(unknown.body).toContain("no crawler is named atlantis, and nobody was invited by that name");
  expect(badName.body).toContain('value="two words"');
  expect(noCrawler.body).toContain("name them");
});

it("makes tokens that are shown once, and revokes them", async () => {
  const operator = await signIn(database, "operator");
  const asked = { name: "prometheus", days: "30", "scopes-metrics-read": "yes" };

  const made = await own(operator, "/tokens", asked);
  const [token = ""] = /nco_[\w-]{43}/.exec(made.body) ?? [];
  const again = await own(operator, "/tokens", asked);
  const nothing = await own(operator, "/tokens", { name: "empty", days: "30" });
  const listed = await look("/api/tokens", operator.headers);
  const metrics = async () => (await look("/metrics", { authorization: `Bearer ${token}` })).statusCode;

  expect([made.statusCode, again.statusCode, nothing.statusCode]).toEqual([201, 409, 422]);
  expect(listed.json().tokens).toMatchObject([{ name: "prometheus", scopes: ["metrics-read"] }]);
  expect(listed.body).not.toContain(token);
  expect(await metrics()).toBe(200);
  expect((await own(operator, "/tokens/prometheus/revoke")).statusCode).toBe(303);
  expect(await metrics()).toBe(401);
  expect(await actions()).toEqual(["anna token-created prometheus", "anna token-revoked prometheus"]);
});

it("lets a program grant no more than its own rights", async () => {
  const post = await program();

  const staff = await post("/api/access/links", { name: "ben", role: "staff" });
  const operator = await post("/api/access/links", { name: "eve", role: "operator" });
  const wide = await post("/api/tokens", { name: "wide", scopes: ["fleet-write"], days: 1 });

  expect([staff.statusCode, staff.json().url]).toEqual([201, expect.stringContaining("/sign-in/ncl_")]);
  expect([operator.statusCode, wide.statusCode]).toEqual([403, 403]);
  expect(wide.json().error.message).toContain("fleet-write");
});
