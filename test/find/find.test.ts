/** The search box: what it finds, in which order, and for whom. */

import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FindAnswer, matchOf } from "#coordinator/tell/find/find";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedHost, seedWorld, worldNow } from "../support/seed-world.ts";
import { type SignedIn, signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
let operator: SignedIn;
beforeAll(async () => {
  await seedWorld(database.pool);
  const access = testAccess(database, () => worldNow, false);
  app = webServer(database, { parts: await everyPart(database), access });
  operator = await signIn(database, "operator");
});
afterAll(async () => await app?.close());

async function ask(q: string, who: Partial<SignedIn> = operator): Promise<FindAnswer> {
  const url = `/api/find?q=${encodeURIComponent(q)}`;
  const { statusCode, body } = await app.inject({ url, headers: who.headers ?? {} });
  expect([statusCode, body]).toEqual([200, expect.any(String)]);
  return JSON.parse(body);
}

const titles = ({ results }: FindAnswer, kind: string) =>
  results.filter((one) => one.kind === kind).map(({ title }) => title);

describe("what is found", () => {
  it("a crawler by part of its name", async () => {
    const part = await ask("ATH");

    expect(titles(part, "crawler")).toEqual(["athens"]);
    expect(part.results[0]).toEqual({
      kind: "crawler",
      title: "athens",
      words: "online, in Athens, GR",
      href: "/crawlers/athens",
    });
  });

  it("a host and those below its site", async () => {
    expect(titles(await ask("www.example.org"), "host")).toEqual(["www.example.org"]);
    expect(titles(await ask("example.org"), "host").sort()).toEqual([
      "inside.example.org",
      "nowhere.example.org",
      "old.example.org",
      "www.example.org",
    ]);
  });

  it("a host by the beginning of its name, in Unicode too", async () => {
    await seedHost(database.pool, { host: "xn--fhre-0na.example" });
    await database.pool.query(
      `insert into site (host_hash, host, name, standing, channels, pages, urls, due_urls, counted_day, failed_days,
         fetched_days, failures, fetches, added_at, bytes)
       select host_hash, host, case when host like 'xn--%' then 'fähre.example' end, 'ready', 0, 0, 1, 0, 0, '{}', '{}', 0, 0, $1, 0
       from frontier_host`,
      [worldNow],
    );

    expect(titles(await ask("now"), "host")).toEqual(["nowhere.example.org"]);
    expect(titles(await ask("exam"), "host")).toEqual(["www.example.org"]);
    expect(titles(await ask("Fähr"), "host")).toEqual(["fähre.example"]);
    expect((await ask("fähre.example")).results.find(({ kind }) => kind === "host")).toMatchObject({
      title: "fähre.example",
      href: "/sites/xn--fhre-0na.example",
    });
  });

  it("who crawls a URL, an address or a range, even if nobody does", async () => {
    const who = async (q: string) =>
      (await ask(q)).results.filter(({ kind }) => kind === "who").map(({ href }) => href);

    expect(await who("https://www.example.org/a b")).toEqual([
      "/who?q=https%3A%2F%2Fwww.example.org%2Fa+b",
      "/pages?url=https%3A%2F%2Fwww.example.org%2Fa+b",
    ]);
    expect(await who("2001:db8::7")).toEqual(["/who?q=2001%3Adb8%3A%3A7"]);
    expect(await who("1.2.0.0/16")).toEqual(["/who?q=1.2.0.0%2F16"]);
    expect(await who("1.2.0.0/99")).toEqual([]);
  });

  it("a setting by label and name, and a page by its purpose", async () => {
    expect(titles(await ask("retention.fetchDays"), "setting")).toHaveLength(1);
    expect((await ask("retention.fetchDays")).results[0]).toMatchObject({
      kind: "setting",
      href: "/policies#retention.fetchDays",
    });
    expect(titles(await ask("silence"), "page")).toEqual(["Alerts"]);
    expect(titles(await ask("invite"), "page")).toEqual(["Invitations"]);
    expect(titles(await ask("import data"), "page")).toEqual(["Registry"]);
  });

  it("exact names come first, then names that begin with the text, have a word that does, or contain it", () => {
    const ranks = ["ams", "amsterdam", "new-ams-2", "miamsea", "athens"].map((name) => matchOf(name, "AMS"));

    expect(ranks).toEqual([0, 1, 2, 3, null]);
    expect(matchOf("Import registry data", "registry imp")).toBe(2);
    expect(matchOf("ＡＭＳ", "ams")).toBe(0);
  });

  it("ten of a kind at most, with a note that there are more", async () => {
    for (let at = 0; at < 12; at += 1) await seedHost(database.pool, { host: `h${at}.many.example.com` });

    const many = await ask("many.example.com");

    expect(titles(many, "host")).toHaveLength(10);
    expect(many.more).toEqual(["host"]);
  });

  it("hostile questions like any others", async () => {
    for (const q of [
      "%",
      "_",
      "\\",
      "'",
      "\0",
      "<script>",
      "*",
      "(",
      "a".repeat(2000),
      "\u202e",
      "例え.テスト",
      "-",
    ])
      await ask(q);
    const { statusCode } = await app.inject({
      url: `/api/find?q=${"a".repeat(2101)}`,
      headers: operator.headers,
    });
    expect(statusCode).toBe(400);
  });
});

describe("what each person finds", () => {
  it("they may open whatever they find", async () => {
    const people = {
      operator,
      staff: await signIn(database, "staff"),
      partner: await signIn(database, "partner", { crawlers: ["athens"] }),
      nobody: {},
    };
    const refused: string[] = [];
    const counts: Record<string, number> = {};
    for (const [role, who] of Object.entries<Partial<SignedIn>>(people)) {
      const hrefs = new Set<string>();
      for (const q of ["", "a", "athens", "1.2.3.4"])
        for (const { href } of (await ask(q, who)).results) hrefs.add(href.replace(/#.*$/, ""));
      counts[role] = hrefs.size;
      for (const url of role === "operator" ? [] : hrefs) {
        const { statusCode, headers } = await app.inject({ method: "HEAD", url, headers: who.headers ?? {} });
        const isSentAway = statusCode === 303 || statusCode === 401 || statusCode === 403;
        // An account must not be shown as a sign-in page.
        if (isSentAway && url !== "/account")
          refused.push(`${role} ${url} ${statusCode} ${headers.location}`);
      }
    }

    expect(refused).toEqual([]);
    expect(counts.operator).toBeGreaterThan(counts.staff!);
    expect(counts.staff).toBeGreaterThan(counts.partner!);
  });

  it("a partner finds only its own crawlers, and no host", async () => {
    const partner = await signIn(database, "partner", { crawlers: ["athens"] });

    expect(titles(await ask("athens", partner), "crawler")).toEqual(["athens"]);
    expect((await ask("berlin", partner)).results).toEqual([]);
    expect((await ask("www.example.org", partner)).results).toEqual([]);
  });
});
