/** The page of one host over a seeded world: each part as page and JSON, and fetching it again. */

import { deflateRawSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { keptDifference } from "#coordinator/crawl/changes/text-difference";
import { describeApi } from "#coordinator/open-api";
import type { SiteAnswer } from "#coordinator/tell/sites/site-api";
import { hostHashOf, urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { commandNamed, said } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedChange } from "../support/seed-changes.ts";
import { seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { bearer, signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

let database: Database;
let app: FastifyInstance;
let program: { readonly authorization: string };

const host = "www.example.org";
const at = (path: string) => `https://${host}${path}`;
const hoursAgo = (hours: number) => new Date(worldNow.getTime() - hours * 3_600_000);

beforeAll(async () => {
  database = await testDatabase();
  const { pool } = database;
  await seedWorld(pool);
  const later = new Date(worldNow.getTime() + 7 * 86_400_000);
  const page = { lastOutcome: "fetched", lastStatus: 200, nextFetchAt: later };
  await seedUrl(pool, { url: at("/day"), ...page, lastFetchedAt: hoursAgo(2) });
  await seedUrl(pool, { url: at("/week"), ...page, lastFetchedAt: hoursAgo(72) });
  await seedUrl(pool, { url: at("/old"), ...page, lastFetchedAt: hoursAgo(24 * 40) });
  await seedUrl(pool, {
    ...{ url: at("/private"), state: "refused", lastOutcome: "refused-by-robots" },
    lastReason: "robots.txt: Disallow: /private",
  });
  await seedUrl(pool, {
    url: at("/lost"),
    state: "gone",
    lastOutcome: "http-error",
    lastStatus: 404,
    failures: 3,
  });
  await seedUrl(pool, { url: at("/broken"), lastOutcome: "http-error", lastStatus: 503, failures: 1 });
  await seedPage(pool, { url: at("/day"), title: "Fähre <b>heute</b>", text: "The ferry leaves at seven." });
  await seedFetches();
  await seedLinks();
  await pool.query(
    "insert into rejected_url (url, reason, source) values ($1, 'longer than 2048 characters', 'operator')",
    [`https://${host}/${"x".repeat(300)}`],
  );
  await pool.query("update frontier_host set trapped_links = 12 where host_hash = $1", [hostHashOf(host)]);
  await seedChange(pool, { url: at("/day"), title: "Ferry" });
  const difference = keptDifference({
    places: [{ part: "text", before: "leaves at", removed: "six", added: "seven", after: "<i>daily</i>" }],
    more: 0,
  });
  await pool.query("update page_change_inbox set difference = $1", [deflateRawSync(difference)]);
  await numberChanges(pool, hoursAgo(1));
  app = webServer(database, { parts: await everyPart(database) });
  program = await bearer(database, ["url-write", "read"], { name: "test" });
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

/** Forty answered fetches within two days, and ten that failed. */
async function seedFetches() {
  const key = urlKeyOf(at("/day"));
  if (typeof key === "string") throw new Error(key);
  await database.pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, blame, status, connect_ms, first_byte_ms,
       total_ms, wire_bytes, body_bytes, shipped_bytes)
     select $1, $2, 1, $3::timestamptz - make_interval(hours => n), case when n <= 40 then 'fetched' else 'http-error' end,
       case when n > 40 then 'target' end, case when n <= 40 then 200 else 503 end, 12, 30, 50, 1000, 4000, 100
     from generate_series(1, 50) n`,
    [key.hostHash, key.urlHash, worldNow],
  );
}

/** A page of another host links here; ours links back. */
async function seedLinks() {
  const { pool } = database;
  const [own, other] = [urlKeyOf(at("/day")), urlKeyOf("https://old.example.org/")];
  if (typeof own === "string" || typeof other === "string") throw new Error("a URL has no key");
  await pool.query("update frontier_url set back_links = 1 where url = $1", [own.url]);
  const link = async (from: typeof own, to: typeof own) =>
    await pool.query(
      `insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, anchors)
       values ($1, $2, 1, now(), 0, 0, array[$3::bigint], array[$4::bigint], '{1}', 'a ferry')`,
      [from.hostHash, from.urlHash, to.urlHash, to.hostHash],
    );
  await link(own, other);
  await link(other, own);
}

const page = async (query = "", name = host) => await app.inject({ url: `/sites/${name}${query}` });
const json = async (query = "", name = host) =>
  (await app.inject({ url: `/api/sites/${name}${query}` })).json<SiteAnswer>();

describe("the host as a whole", () => {
  it("is shown with its crawler and why, its organisation and its state, as the API describes it", async () => {
    const answer = await json();
    const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };

    expect(answer.site).toMatchObject({
      host,
      // Its own subnet has no crawler yet and waits for a probe round.
      state: "due",
      country: "GR",
      organisation: { name: "Example Web Ltd", handle: "ORG-EX2-AP" },
      crawler: { name: "athens", rttMs: 12.5, words: "nearest in a probe round, inherited from 1.2.0.0/16" },
    });
    expect(answer.site?.standing.find(({ stops }) => stops)?.words).toBe(answer.site?.words);
    for (const part of ["overview", "pages", "changes", "robots", "speed", "links"])
      expect(faultsOf(await json(`?part=${part}`), schemas.SiteAnswer!, schemas)).toEqual([]);
  });

  it("is found by any spelling of its name", async () => {
    for (const name of [
      "WWW.Example.ORG",
      "www.example.org.",
      "www.example.org:8080",
      "https%3A%2F%2Fwww.example.org%2Fday",
    ])
      expect((await json("", name)).host).toBe(host);
    expect((await json("", "b%C3%BCcher.example")).host).toBe("xn--bcher-kva.example");
    expect((await json("", "2001:DB8::1")).host).toBe("2001:db8::1");
  });

  it("says what to do about an unknown host, and refuses what is not one", async () => {
    const unknown = await page("", "new.example.org");

    expect(unknown.statusCode).toBe(404);
    expect(unknown.body).toContain("Who would crawl it");
    expect((await json("", "new.example.org")).words).toContain("nobody has submitted a URL of it");
    expect((await page("", "a%20b%3Cscript%3E")).body).toContain("is no host&#39;s name");
  });

  it("refuses an unknown part", async () => {
    expect((await page("?part=weather")).statusCode).toBe(400);
    expect((await page("?part=pages&status=99999")).statusCode).toBe(400);
  });
});

describe("its parts", () => {
  it("show how old its pages are, and what failed by whose fault", async () => {
    const { overview } = await json();

    expect(overview?.urls).toMatchObject({ due: 2, scheduled: 3, failing: 1, blockedByRobots: 1, gone: 1 });
    expect(overview?.urls).toMatchObject({ counted: 7, more: false, inProgress: 0 });
    expect(overview?.freshness).toMatchObject({
      pages: 3,
      withinDay: 1,
      within7Days: 2,
      within30Days: 2,
      within90Days: 3,
    });
    expect(overview?.failures.kinds).toEqual([
      { outcome: "http-error", status: 503, blame: "target", fetches: 10 },
    ]);
    const { body } = await page();
    expect(body).toContain("shares are shown from 30");
    expect(body).toContain("10 of 50 fetches");
  });

  it("list its URLs by state, outcome and status, and excluded ones", async () => {
    const { pages } = await json("?part=pages");
    const urls = async (query: string) =>
      (await json(`?part=pages${query}`)).pages?.urls.map(({ url }) => url);

    expect(pages?.urls.map(({ url, state }) => `${state} ${url}`)).toEqual([
      `due ${at("/")}`,
      `due ${at("/broken")}`,
      `scheduled ${at("/day")}`,
      `gone ${at("/lost")}`,
      `scheduled ${at("/old")}`,
      `blocked-by-robots ${at("/private")}`,
      `scheduled ${at("/week")}`,
    ]);
    expect(await urls("&filter=failing")).toEqual([at("/broken")]);
    expect(await urls("&outcome=http-error&status=404")).toEqual([at("/lost")]);
    expect((await urls("&filter=rejected"))?.[0]).toContain("xxx");
    expect(pages?.leftOut.map(({ reason, count }) => [reason, count])).toEqual([
      ["trapped", 12],
      ["blocked-by-robots", 1],
      ["gone", 1],
      ["rejected", 1],
    ]);
    expect((await page("?part=pages")).body).toContain("Fähre &lt;b&gt;heute&lt;/b&gt;");
  });

  it("continue where they ended", async () => {
    const first = (await json("?part=pages")).pages!;
    const rest = (await json(`?part=pages&after=${encodeURIComponent(first.urls[2]!.url)}`)).pages!;

    expect(rest.urls).toEqual(first.urls.slice(3));
  });

  it("show what changed, with the difference of the text", async () => {
    const { changes } = await json("?part=changes&days=1");
    const { body } = await page("?part=changes&days=1");

    expect(changes?.counts).toEqual([{ kind: "changed", changes: 1 }]);
    expect(body).toContain(
      "<del><bdi>six</bdi></del> <ins><bdi>seven</bdi></ins> <bdi>&lt;i&gt;daily&lt;/i&gt;</bdi>",
    );
    await database.pool.query("update page_change set noted_at = $1", [hoursAgo(48)]);
    expect((await json("?part=changes&days=1")).changes?.changes).toEqual([]);
    expect((await json("?part=changes&days=7")).changes?.changes).toHaveLength(1);
  });

  it("show which rules of robots.txt block how many URLs", async () => {
    const { robots } = await json("?part=robots");

    expect(robots?.blocked).toEqual({
      urls: 1,
      more: false,
      rules: [{ rule: "robots.txt: Disallow: /private", urls: 1, example: at("/private") }],
    });
    expect((await page("?part=robots")).body).toContain("It states no preferences.");
  });

  it("show how fast it answers, and who asked", async () => {
    const { speed } = await json("?part=speed&range=7d");

    expect(speed?.all).toEqual({ samples: 50, rttMs: 12, firstByteMs: 30, totalMs: 50, wireBytes: 50_000 });
    expect(speed?.crawlers).toMatchObject([{ name: "athens", samples: 50 }]);
    expect((await page("?part=speed&range=7d")).body).toContain("Connecting and first byte");
  });

  it("show its neighbours by links", async () => {
    const { links } = await json("?part=links");

    expect(links?.to).toEqual([{ host: "old.example.org", pages: 1 }]);
    expect(links?.from).toEqual([{ host: "old.example.org", pages: 1 }]);
  });

  it("match the command", async () => {
    await database.pool.query("update page_change set noted_at = now()");
    const place = ["--database-url", database.url, "--schema", database.schema];

    expect(await said(commandNamed("site"), [host, "--part", "changes", "--days", "30", ...place])).toContain(
      "leaves at [-six-] {+seven+}",
    );
  });
});

describe("fetching it again", () => {
  const post = async (body: object, name = host) =>
    await app.inject({
      ...{ method: "POST", url: `/api/sites/${name}/fetch-again`, payload: body },
      headers: program,
    });

  it("needs the host's name typed, and the right to submit URLs", async () => {
    const staff = await signIn(database, "staff");
    const { body } = await app.inject({ url: `/sites/${host}`, headers: staff.headers });

    expect(body).toContain(`Type <code>${host}</code> to confirm`);
    expect((await page()).body).not.toContain("to confirm");
    const wrong = await post({ confirmation: "another" });
    expect([wrong.statusCode, wrong.json().error.message]).toEqual([
      422,
      "confirmation: must be www.example.org. Nothing was done.",
    ]);
    expect((await post({}, "unknown.example")).statusCode).toBe(404);
    expect(
      (await app.inject({ method: "POST", url: `/api/sites/${host}/fetch-again`, payload: {} })).statusCode,
    ).toBe(401);
  });

  it("makes scheduled URLs due, once, and is in the audit log", async () => {
    const done = await post({});

    expect(done.json()).toEqual({ host, urls: 3 });
    expect((await json("?part=pages&filter=scheduled")).pages?.urls).toEqual([]);
    expect((await post({})).statusCode).toBe(409);
    const { rows } = await database.pool.query(
      "select actor, target, words from audit_entry where action = 'site-recrawled'",
    );
    expect(rows).toEqual([
      { actor: "token test", target: host, words: `3 pages of ${host} are due now, at the host's pace.` },
    ]);
  });
});
