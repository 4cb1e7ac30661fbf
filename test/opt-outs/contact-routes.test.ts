/** What sites see of us, over a real HTTP server and a real Postgres. */

import type { AddressInfo } from "node:net";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describeApi } from "#coordinator/open-api";
import { formsPerHour } from "#coordinator/run/opt-outs/contact-ask";
import { createOptOutMarks } from "#coordinator/run/opt-outs/mark-writes";
import { readOptOut } from "#coordinator/run/opt-outs/opt-out";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { webServer, webSettings } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: ReturnType<typeof webServer>;
let base = "";
const openApi = describeApi() as unknown as { components: { schemas: Record<string, JsonSchema> } };

beforeAll(async () => await seedWorld(database.pool));
beforeEach(async () => {
  await database.pool.query("delete from opt_out");
  await database.pool.query("delete from complaint");
  app = webServer(database);
  await app.listen({ host: "127.0.0.1", port: 0 });
  base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  return async () => await app.close();
});

const post = async (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  await fetch(base + path, { method: "POST", body: new URLSearchParams(fields), headers });
const asJson = { accept: "application/json" };
const optOut = (fields: Record<string, string>, headers: Record<string, string> = asJson) =>
  post("/about-crawler/opt-out", fields, headers);
const whoSays = async (question: string) =>
  (await (await fetch(`${base}/api/who?q=${question}`)).json()) as WhoAnswer;
const countOf = async (table: "opt_out" | "complaint") =>
  (await database.pool.query<{ n: number }>(`select count(*)::int as n from ${table}`)).rows[0]!.n;
const fleetAddresses = async () => {
  const response = await fetch(`${base}/about-crawler/addresses.json`);
  const answer = (await response.json()) as {
    synctoken: string;
    creationTime: string;
    prefixes: Record<string, string>[];
  };
  return {
    answer,
    type: response.headers.get("content-type"),
    prefixes: answer.prefixes.flatMap((prefix) => Object.values(prefix)),
  };
};
const fitsSchema = (value: unknown, name: string) =>
  faultsOf(value, { $ref: `#/components/schemas/${name}` }, openApi.components.schemas);

describe("the form that opts a site out", () => {
  it("works in a browser without a script: the answer gives the state, its end, and how to confirm it", async () => {
    const page = await (await fetch(`${base}/about-crawler`)).text();
    const answer = await optOut({ site: "https://www.example.org/", words: "<b>please" }, {});
    const taken = await answer.text();

    expect(page).toContain('method="post" action="/about-crawler/opt-out"');
    expect(page).not.toContain("<script>");
    expect(answer.status).toBe(201);
    expect(taken).toContain("www.example.org has opted out");
    for (const words of [page, taken])
      expect(words).toContain("Only crawlers with an old release cannot be stopped");
    expect(taken).toContain("hidden until 2026-03-08, then deleted. Unless proven, it ends on 2026-03-31");
    expect(taken).toContain("https://www.example.org/.well-known/nearcrawl-opt-out.txt");
    expect(taken).toMatch(/_nearcrawl\.www\.example\.org\. TXT "opt-out=[\w-]{22}"/);
  });

  it("opts out a single page by its URL, a part or more where the form says so, and names what it covers", async () => {
    const url = "HTTPS://www.Example.org:443/m%65mbers/jane?a#top";
    const page = await optOut({ site: url }, {});
    const words = await page.text();
    const taken = async (fields: Record<string, string>) =>
      (await (await optOut(fields)).json()) as {
        site: string;
        scope: string;
        confirmation: { name: string };
      };
    const same = await taken({ site: "http://www.example.org./members/jane?a" });
    const part = await taken({ site: "https://www.example.org/members/*" });
    const host = await taken({ site: "https://www.example.org/members/x", scope: "host" });
    const whole = await taken({ site: "www.example.org/members", scope: "subdomains" });
    const odd = await optOut({ site: "www.example.org", scope: "everything" });

    expect(words).toContain("https://www.example.org/members/jane?a has opted out");
    expect(words).toContain("the rest of www.example.org is still crawled");
    expect(words).toContain("No search finds it. It is hidden until");
    expect(words).toMatch(/_nearcrawl\.www\.example\.org\. TXT "opt-out=/);
    expect([same, part, host, whole].map(({ site, scope }) => [scope, site])).toEqual([
      ["url", "https://www.example.org/members/jane?a"],
      ["prefix", "https://www.example.org/members/*"],
      ["host", "https://www.example.org/*"],
      ["subdomains", "www.example.org"],
    ]);
    expect(same.confirmation.name).toBe("_nearcrawl.www.example.org");
    expect([odd.status, await countOf("opt_out")]).toEqual([400, 4]);
  });

  it("answers programs with JSON by its schema, and a repeated site with the same record", async () => {
    const first = await optOut({ site: "www.example.org" });
    const again = await optOut({ site: "WWW.EXAMPLE.ORG." });

    const told = await first.json();
    expect(first.status).toBe(201);
    expect(fitsSchema(told, "OptOutTaken")).toEqual([]);
    expect(await again.json()).toEqual(told);
    expect(await countOf("opt_out")).toBe(1);
  });

  it("refuses what is nobody's site, with the reason and the typed text still in the field", async () => {
    const answer = await optOut({ site: "https://GitHub.io./some/page" }, {});
    const long = await optOut({ site: "x".repeat(2049) });
    const page = await answer.text();

    expect([answer.status, long.status]).toEqual([400, 400]);
    expect(page).toMatch(/role="alert">.*is a public suffix/);
    expect(page).toContain('value="https://GitHub.io./some/page"');
    expect(await countOf("opt_out")).toBe(0);
  });

  it.each([
    ["", "Name a site"],
    ["com", "whole top-level domain"],
    ["192.0.2.0/24", "an address or a network"],
    ["http://192.0.2.7/", "an address or a network"],
    ["not a site", "is not the name of a site"],
    ["co.uk", "is a public suffix"],
    ["compute.amazonaws.com", "is a public suffix"],
    ["xn--55qx5d.cn", "is a public suffix"],
    ["10.0.0.0-10.255.255.255", "is not the name of a site"],
    ["::/0", "is not the name of a site"],
    ["2001:db8::1", "an address or a network"],
  ])("refuses %j", (text, words) => expect(readOptOut(text, "sites-only")).toContain(words));

  it.each(["bbc.co.uk", "someone.github.io", "bucket.s3.amazonaws.com", "xn--bcher-kva.example"])(
    "accepts %s, a site below a public suffix",
    (site) => expect(readOptOut(site, "sites-only")).toEqual({ site, network: null }),
  );

  it("refuses programs that fill in every field, and other sites' pages", async () => {
    const robot = await optOut({ site: "www.example.org", website: "https://spam.example" });
    const elsewhere = await optOut(
      { site: "www.example.org" },
      { ...asJson, origin: "https://evil.example" },
    );
    const byBrowser = await optOut(
      { site: "www.example.org" },
      { ...asJson, "sec-fetch-site": "cross-site" },
    );
    const otherType = await fetch(`${base}/about-crawler/opt-out`, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: "site=www.example.org",
    });
    const long = await optOut({ site: "www.example.org", words: "x".repeat(20_000) });

    const all = [robot, elsewhere, byBrowser, otherType, long];
    expect(all.map(({ status }) => status)).toEqual([400, 403, 403, 415, 413]);
    expect(fitsSchema(await robot.json(), "Error")).toEqual([]);
    expect(await countOf("opt_out")).toBe(0);
  });

  it("accepts a limited number per address and hour", async () => {
    const statuses: number[] = [];
    for (let sent = 0; sent <= formsPerHour; sent++) {
      statuses.push((await optOut({ site: `s${sent}.example.org` })).status);
    }

    expect(statuses).toEqual([...Array(formsPerHour).fill(201), 429]);
    expect(await countOf("opt_out")).toBe(formsPerHour);
  });

  it("counts behind a proxy by the address that the proxy saw, whatever the sender claims", async () => {
    await app.close();
    app = webServer(database, { settings: { ...webSettings, behindProxy: true } });
    await app.listen({ host: "127.0.0.1", port: 0 });
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    const from = (address: string) =>
      optOut({ site: "www.example.org" }, { ...asJson, "x-forwarded-for": address });

    for (let sent = 0; sent < formsPerHour; sent++) await from(`10.0.0.${sent}, 198.51.100.7`);
    const same = await from("203.0.113.9, 198.51.100.7");
    const other = await from("203.0.113.9");
    const { rows } = await database.pool.query("select host(requester) as requester from opt_out");

    expect([same.status, other.status]).toEqual([429, 201]);
    expect(rows).toEqual([{ requester: "198.51.100.7" }]);
  });
});

describe("a site that opted out", () => {
  it('is reported by "who", in words and as data, without the requester', async () => {
    await optOut({ site: "example.org", words: "secret words", reply: "someone@example.org" });
    await createOptOutMarks(database.pool).apply(worldNow);

    const who = await whoSays("www.example.org");
    const unseen = await whoSays("never-crawled.example.org");
    const page = await (await fetch(`${base}/who?q=www.example.org`)).text();
    await database.pool.query("update opt_out set ended_at = now(), ending = 'lifted'");
    await createOptOutMarks(database.pool).apply(worldNow);

    expect(fitsSchema(who, "WhoAnswer")).toEqual([]);
    expect(who).toMatchObject({
      optOut: { target: "example.org", kind: "site", state: "unconfirmed", since: worldNow.toISOString() },
    });
    expect(unseen).toMatchObject({ found: true, optOut: { target: "example.org" } });
    expect(who.standing[0]).toMatchObject({ code: "opted-out", stops: true });
    expect(page).toContain("The site example.org has opted out (unconfirmed, so until 2026-03-31)");
    expect(JSON.stringify(who) + page).not.toMatch(/secret words|someone@/);
  });
});

describe("the form for reports", () => {
  it('records our requests to the site and its network, and "who" shows the complaint', async () => {
    await database.pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, status, address, total_ms,
         wire_bytes, body_bytes, shipped_bytes)
       select h.host_hash, n, 1, $1::timestamptz - n * interval '20 minutes',
         case when n = 1 then 'http-error' else 'fetched' end, case when n = 1 then 429 else 200 end, '1.2.3.4', 40,
         1000, 4000, 100
       from frontier_host h, generate_series(1, 80) n where h.host = 'www.example.org'`,
      [worldNow],
    );
    const report = { reply: "admin@example.org", words: "too fast" };

    const bySite = await post("/about-crawler/report", { site: "example.org", ...report }, asJson);
    const byRange = await post("/about-crawler/report", { site: "1.2.3.0/24", ...report }, asJson);
    const { rows } = await database.pool.query("select deeds from complaint order by complaint_id");
    const who = await whoSays("www.example.org");

    expect([bySite.status, byRange.status]).toEqual([201, 201]);
    expect(fitsSchema(await bySite.json(), "ReportTaken")).toEqual([]);
    // 24 hours of one request per 20 minutes; the one of exactly 24 hours ago no longer counts.
    const deeds = { requests: 71, mostInAnHour: 3, bytes: 71_000 };
    expect(rows.map((row) => row.deeds)).toMatchObject([deeds, { ...deeds, hosts: 1 }]);
    expect(rows[0].deeds).toMatchObject({
      crawlers: [{ name: "athens", requests: 71 }],
      answers: [
        { status: 200, requests: 70 },
        { status: 429, requests: 1 },
      ],
    });
    expect(who.standing.map(({ code }) => code)).toContain("complaints");
    expect(who.complaints).toMatchObject([{ target: "1.2.3.0/24", open: true }, { target: "example.org" }]);
  });

  it("accepts fifty a day from one network, and more from others", async () => {
    const came = `insert into complaint (site, target, source, reporter, words, requester, created_at, deeds)
      select 'example.org', 'example.org', 'form', 'a', 'b', $1::inet, '2100-01-01', '{}' from generate_series(1, 50)`;
    const report = { site: "example.org", reply: "admin@example.org", words: "too fast" };
    await database.pool.query(came, ["198.51.100.9"]);
    const ofAnother = await post("/about-crawler/report", report, asJson);
    await database.pool.query(came, ["127.0.0.9"]);
    const ofTheSame = await post("/about-crawler/report", report, asJson);

    expect([ofAnother.status, ofTheSame.status]).toEqual([201, 429]);
  });

  it("requires who reports and what happened", async () => {
    const anonymous = await post("/about-crawler/report", { site: "www.example.org", words: "x" }, asJson);
    const silent = await post("/about-crawler/report", { site: "www.example.org", reply: "me" }, asJson);

    expect([anonymous.status, silent.status]).toEqual([400, 400]);
    expect(await countOf("complaint")).toBe(0);
  });
});

describe("the published data of the fleet", () => {
  it("has the addresses of crawlers that are or recently were connected, unless their partner objects", async () => {
    await database.pool.query(
      `insert into crawler (name, seen_address, state, last_seen_at, unlisted, revoked_at) values
         ('v4', '9.9.9.9', 'offline', $1, false, null),
         ('v6', '2620:fe::fe', 'online', $1, false, null),
         ('inside', '192.168.1.7', 'online', $1, false, null),
         ('shy', '8.8.8.1', 'online', $1, true, null),
         ('gone', '8.8.8.2', 'offline', $1::timestamptz - interval '8 days', false, null),
         ('shut-out', '8.8.8.3', 'online', $1, false, $1)`,
      [worldNow],
    );

    const { answer, prefixes, type } = await fleetAddresses();
    const { answer: again } = await fleetAddresses();
    await database.pool.query("update crawler set revoked_at = $1 where name = 'v4'", [worldNow]);
    const { answer: changed } = await fleetAddresses();

    expect(type).toBe("application/jafar+json");
    expect(fitsSchema(answer, "FleetAddresses")).toEqual([]);
    expect(answer.creationTime).toBe("2026-03-01T12:00:00Z");
    expect(again.synctoken).toBe(answer.synctoken);
    expect(changed.synctoken).not.toBe(answer.synctoken);
    expect(prefixes).toEqual(expect.arrayContaining(["9.9.9.9/32", "2620:fe::fe/128"]));
    expect(prefixes.join()).not.toMatch(/8\.8\.8\.|192\.168\./);
  });

  it("does not have an address that was only stated; one of the other family counts once it was seen recently", async () => {
    const arrivals = (at: string) =>
      JSON.stringify([
        { at, address: "2620:fe::9", instanceId: "i" },
        { at, address: null, instanceId: "i" },
      ]);
    await database.pool.query(
      `insert into crawler (name, state, seen_address, address, arrivals, expected_address, address_changed_at) values
         ('liar', 'online', '9.9.9.10', '1.1.1.1', '[]', null, null),
         ('unseen', 'online', null, '1.1.1.2', '[]', null, null),
         ('lapsed', 'online', '9.9.9.11', '2620:fe::9', $1, '2620:fe::9', '2026-02-01T12:00Z'),
         ('seen', 'online', '9.9.9.12', '2620:fe::10', $2, '2620:fe::10', '2026-02-28T12:00Z')`,
      [arrivals("2026-02-01T12:00:00Z"), arrivals("2026-02-28T12:00:00Z")],
    );

    const before = (await fleetAddresses()).prefixes;
    await database.pool.query("update crawler set address = '2620:fe::9' where name = 'seen'");
    const { prefixes } = await fleetAddresses();

    expect(before).toEqual(
      expect.arrayContaining(["9.9.9.10/32", "9.9.9.11/32", "9.9.9.12/32", "2620:fe::10/128"]),
    );
    expect(before.join()).not.toMatch(/1\.1\.1\.|2620:fe::9\//);
    expect(prefixes).toContain("2620:fe::9/128");
  });

  it("has its public keys as a JSON Web Key Set, named by their thumbprints (RFC 8037 appendix A.3)", async () => {
    const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    await database.pool.query("update crawler set public_key = $1 where name = 'athens'", [x]);

    const answer = await fetch(`${base}/.well-known/http-message-signatures-directory`);

    expect(answer.headers.get("content-type")).toBe("application/http-message-signatures-directory+json");
    expect(await answer.json()).toEqual({
      keys: [
        { kty: "OKP", crv: "Ed25519", kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", x, use: "sig" },
      ],
    });
  });
});
