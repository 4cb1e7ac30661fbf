/** What operators change over HTTP: real server, real database. */
import type { FastifyInstance } from "fastify";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createOperatorTokenStore } from "#coordinator/run/access/session-store";
import { createReleaseKeyStore } from "#coordinator/run/releases/release-store";
import { hashCrawlerKey, randomSecrets } from "#coordinator/web/secrets";
import type { Scope } from "#core/actor";
import { parseInvitation } from "#protocol/invitation";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { testReleaseKey } from "../support/releases.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
  await stateCoordinatorPlace(database.pool, place, new Date());
  await trustKey();
});
beforeEach(() => {
  app = webServer(database, { now: () => new Date() });
});
afterEach(async () => {
  await app.close();
  await database.pool.query("delete from operator_token; delete from invitation; delete from crawler");
});

async function token(scopes: readonly Scope[], expiresAt: Date | null = null): Promise<string> {
  const { secret, hash: tokenHash } = randomSecrets.make();
  const given = { name: `t${tokenHash.slice(0, 8)}`, scopes, createdAt: new Date(), expiresAt };
  await createOperatorTokenStore(database.pool).create({ ...given, tokenHash });
  return secret;
}

const trustKey = async () =>
  await createReleaseKeyStore(database.pool).trustFirst(testReleaseKey.publicKey, new Date());
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const post = async (url: string, secret: string, payload: object = {}) =>
  await app.inject({ method: "POST", url, headers: bearer(secret), payload });

async function crawlerWithIdentity(name: string): Promise<void> {
  const crawlerId = await createCrawlerStore(database.pool).register({ name, keyHash: hashCrawlerKey(name) });
  await database.pool.query("update crawler set public_key = $2 where crawler_id = $1", [crawlerId, name]);
}

it("invites a crawler, and lists the invitation without its secret", async () => {
  const secret = await token(["fleet-read", "fleet-write"]);

  const made = await post("/api/fleet/invitations", secret, { name: "athens", pagesPerDay: 500 });
  const listed = await app.inject({ url: "/api/fleet/invitations", headers: bearer(secret) });

  expect(made.statusCode).toBe(201);
  const { token: invitation, commands } = made.json();
  expect(parseInvitation(invitation)).toMatchObject({
    name: "athens",
    coordinatorUrl: "wss://search.example/crawler",
    certificatePin: "A".repeat(43),
  });
  expect(commands.download).toMatch(
    /^curl .*--pinnedpubkey 'sha256\/\/A{42}.=' .*https:\/\/search\.example\/releases\/dock\.mjs\?invitation=\d+' && node /,
  );
  expect(listed.json().invitations).toMatchObject([{ name: "athens", pagesPerDay: 500, state: "open" }]);
  expect(listed.body).not.toContain(parseInvitation(invitation).secret);
  expect(made.headers["cache-control"]).toBe("no-store");
});

it("invites nobody while there is no release key to pin, and makes no invitation then", async () => {
  const secret = await token(["fleet-write"]);
  await database.pool.query("delete from release_key");

  const refused = await post("/api/fleet/invitations", secret, { name: "athens" });
  const made = await database.pool.query("select from invitation");
  await trustKey();
  const invited = await post("/api/fleet/invitations", secret, { name: "athens" });

  expect([refused.statusCode, made.rowCount, invited.statusCode]).toEqual([409, 0, 201]);
  expect(refused.json().error.message).toMatch(/no release key.*nearcrawl release trust/);
  expect(parseInvitation(invited.json().token).releaseKeys).toEqual([testReleaseKey.publicKey]);
});

it("refuses whoever shows no good token, and says which kind is needed", async () => {
  const ended = await token(["fleet-write"], new Date(Date.now() - 1000));
  const reader = await token(["fleet-read"]);
  const withdrawn = await token(["fleet-write"]);
  await database.pool.query("update operator_token set revoked_at = now() where token_hash = $1", [
    hashCrawlerKey(withdrawn),
  ]);
  const url = "/api/fleet/invitations";

  const answers = [
    await app.inject({ method: "POST", url, payload: { name: "athens" } }),
    await post(url, "guessed", { name: "athens" }),
    await post(url, ended, { name: "athens" }),
    await post(url, withdrawn, { name: "athens" }),
    await post(url, reader, { name: "athens" }),
  ];

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 401, 401, 401, 403]);
  expect(answers[0]?.headers["www-authenticate"]).toContain("Bearer");
  expect(answers[4]?.json().error.message).toContain("fleet-write");
  expect((await database.pool.query("select from invitation")).rowCount).toBe(0);
});

it("listens no more to an address that tries tokens", async () => {
  const good = await token(["fleet-write"]);

  const tried = [];
  for (let attempt = 0; attempt < 12; attempt += 1) {
    tried.push((await post("/api/fleet/invitations", `guess${attempt}`)).statusCode);
  }
  const after = await post("/api/fleet/invitations", good, { name: "athens" });

  expect(tried).toEqual([...Array(10).fill(401), 429, 429]);
  expect(after.statusCode).toBe(429);
  expect(after.headers["retry-after"]).toBe("60");
});

it("takes JSON alone, of bounded size, with nothing in it that is not known", async () => {
  const secret = await token(["fleet-write"]);
  const url = "/api/fleet/invitations";
  const headers = bearer(secret);

  const plain = await app.inject({
    method: "POST",
    url,
    headers: { ...headers, "content-type": "text/plain" },
    payload: '{"name":"athens"}',
  });
  const large = await post(url, secret, { name: "athens", more: "x".repeat(40_000) });
  const strange = await post(url, secret, { name: "athens", admin: true });
  const broken = await app.inject({
    method: "POST",
    url,
    headers: { ...headers, "content-type": "application/json" },
    payload: "{",
  });
  const bad = await post(url, secret, { name: "../x", expiresHours: 1e9 });

  expect([plain, large, strange, broken, bad].map(({ statusCode }) => statusCode)).toEqual([
    415, 413, 400, 400, 400,
  ]);
  expect(bad.json().error.message).toMatch(/name: .*expiresHours: /);
});

it("lets no other origin in, and changes nothing by GET", async () => {
  const secret = await token(["fleet-write"]);
  const url = "/api/fleet/crawlers/athens/revoke";
  const preflight = await app.inject({
    method: "OPTIONS",
    url,
    headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
  });
  const get = await app.inject({ url, headers: bearer(secret) });

  expect(preflight.statusCode).toBe(405);
  expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  expect(get.statusCode).toBe(404);
});

it("shuts crawlers out, ends them and asks for new keys", async () => {
  const secret = await token(["fleet-write"]);
  for (const name of ["athens", "berlin", "cairo"]) await crawlerWithIdentity(name);

  const answers = [
    await post("/api/fleet/crawlers/athens/revoke", secret),
    await post("/api/fleet/crawlers/berlin/kill", secret),
    await post("/api/fleet/crawlers/cairo/rotate", secret, { graceHours: 1 }),
    await post("/api/fleet/crawlers/athens/rotate", secret),
    await post("/api/fleet/crawlers/nobody/revoke", secret),
    await post("/api/fleet/crawlers/nobody/kill", secret),
  ];

  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 202, 409, 404, 404]);
  expect(answers[1]?.json()).toEqual({ name: "berlin", revoked: true, returnedLeases: 0 });
  const { rows } = await database.pool.query(
    "select revoked_at is not null as out, draining_since is not null as leaves, rotation_grace_hours as hours from crawler order by name",
  );
  expect(rows).toEqual([
    { out: true, leaves: false, hours: null },
    { out: true, leaves: true, hours: null },
    { out: false, leaves: false, hours: 1 },
  ]);
});

it("asks for another signing key, of a crawler that makes them", async () => {
  const secret = await token(["fleet-write"]);
  for (const name of ["athens", "older"]) await crawlerWithIdentity(name);
  await database.pool.query("update crawler set signing_keys_since = now() where name = 'athens'");

  const asked = await post("/api/fleet/crawlers/athens/signing-key", secret);
  const refused = await post("/api/fleet/crawlers/older/signing-key", secret);

  expect([asked.statusCode, refused.statusCode]).toEqual([202, 409]);
  expect(asked.json()).toEqual({ name: "athens", online: false });
  expect(refused.json().error.message).toContain("older ones sign with their identities");
  const { rows } = await database.pool.query(
    "select name from crawler where signing_key_asked_at is not null",
  );
  expect(rows).toEqual([{ name: "athens" }]);
});

it("makes no invitation that a crawler could not follow, and none for a name that is taken", async () => {
  const secret = await token(["fleet-write"]);
  await crawlerWithIdentity("athens");
  const taken = await post("/api/fleet/invitations", secret, { name: "athens" });
  const nobody = await post("/api/fleet/invitations", secret, { name: "berlin", renews: true });
  const renewed = await post("/api/fleet/invitations", secret, { name: "athens", renews: true });
  await database.pool.query("update coordinator_place set web_url = 'http://192.0.2.1:7411'");
  const lost = await post("/api/fleet/invitations", secret, { name: "cairo" });

  expect([taken, nobody, renewed, lost].map(({ statusCode }) => statusCode)).toEqual([409, 404, 201, 409]);
  expect(lost.json().error.message).toContain("publicUrl");
});
