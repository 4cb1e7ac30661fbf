/** IndexNow (indexnow.org/documentation): its answers, its key files, and what its hints do to fetches and are worth. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hintsHeard, trustIn, wasRight } from "#coordinator/hints/hint";
import { createHintReads, hintsOf } from "#coordinator/hints/hint-reads";
import { readSubmission } from "#coordinator/hints/index-now";
import { hintsAnswer, senderBounds } from "#coordinator/hints/routes";
import { describeApi } from "#coordinator/open-api";
import { hostHashOf } from "#core/url-key";
import { hintsText } from "#ops/cli/commands/hints";
import { whoText } from "#ops/cli/who-text";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { signIn } from "../support/signed-in.ts";
import { type HintedSite, newHintedSite } from "./hinted-site.ts";

let site: HintedSite;
beforeAll(async () => {
  site = await newHintedSite();
});
afterAll(async () => await site?.close());

const key = "d6d5a0c0f8d54e9f";
const page = (words: string) => `<!doctype html><title>${words}</title><p>${words} and some more of it`;
const submission = (urls: readonly string[], changes: object = {}) => ({
  ...{ host: site.authority, key, urlList: urls.map((path) => `${site.site}${path}`), ...changes },
});
const told = async (answer: Response) =>
  (await answer.json()) as {
    readonly words: string;
    readonly taken: number;
    readonly error: { readonly message: string };
  };
const one = async <Row extends object>(sql: string) => (await site.pool.query<Row>(sql)).rows[0];
const record = async () => (await hintsOf(site.pool, hostHashOf("site.localhost")))[0];

/** The key is known as good, and the front page was fetched. */
async function withGoodKey(pages: Record<string, string>, changes = {}): Promise<void> {
  await site.begin(Object.assign(pages, { [`/${key}.txt`]: key }), changes);
  await site.crawl();
  expect((await site.post(submission(["/"]))).status).toBe(202);
  await site.crawl();
  expect((await site.turn()).keys).toEqual({ good: 1, wrong: 0 });
  await site.pool.query("delete from hint");
  await site.pool.query("update hint_host set day_taken = 0, received = 0, taken = 0, dropped = 0");
}

describe("a submission", () => {
  it("waits until a crawler has seen the key's file, and moves the fetch of what is known and brings in what is new", async () => {
    const pages: Record<string, string> = {
      "/": page("front"),
      "/new": page("new"),
      [`/${key}.txt`]: `${key}\n`,
    };
    await site.begin(pages);
    expect(await site.crawl()).toEqual(["/"]);
    pages["/"] = page("changed front");
    site.at(7200);

    const answer = await site.post(submission(["/", "/new"]));
    const held = await site.turn();
    const first = await site.crawl();
    const seen = await site.turn();
    const fetched = await site.crawl();
    const judged = await site.turn();
    const again = await site.post(submission(["/new"]));

    expect([answer.status, await answer.json()]).toEqual([
      202,
      { words: "accepted once the key's file has been checked", taken: 2, dropped: 0 },
    ]);
    expect(held.taken.indexnow).toBe(0);
    expect(first).toEqual([`/${key}.txt`]);
    expect([seen.keys.good, seen.taken.indexnow]).toEqual([1, 2]);
    expect(fetched.sort()).toEqual(["/", "/new"]);
    expect(judged.judged.indexnow).toEqual({ right: 2, wrong: 0 });
    expect(again.status).toBe(200);
    expect(await record()).toMatchObject({ received: 3, taken: 2, right: 2, wrong: 0, waiting: 1 });
    expect(await one("select noindex from page where url like '%.txt'")).toEqual({ noindex: true });
    expect(
      await one(
        "select kind, reason from page_change_inbox where url like '%.txt' order by inbox_number desc limit 1",
      ),
    ).toEqual({ kind: "gone", reason: "noindex" });
    // Of the page that was known the hint is a signal, which its visit found right.
    expect(await one("select signals::int, true_signals > 0 as learnt from host_signals")).toEqual({
      signals: 1,
      learnt: true,
    });
  });

  it("by GET names one URL", async () => {
    await withGoodKey({ "/": page("front") });
    const query = new URLSearchParams({ url: `${site.site}/`, key });

    const answer = await fetch(`${site.base}/indexnow?${query}`);
    const twice = await fetch(`${site.base}/indexnow?${query}`);

    expect([answer.status, (await told(answer)).taken]).toEqual([200, 1]);
    expect([twice.status, (await told(twice)).taken]).toEqual([200, 0]);
  });

  it("with a wrong key is dropped when its file was seen, and refused from then on, for a day", async () => {
    await site.begin({ "/": page("front"), [`/${key}.txt`]: "another text" });
    await site.crawl();
    site.at(60);

    expect((await site.post(submission(["/", "/new"]))).status).toBe(202);
    expect(await site.crawl()).toEqual([`/${key}.txt`]);
    const { keys, taken } = await site.turn();
    const refused = await site.post(submission(["/"]));
    site.at(60 + 25 * 3600);
    const later = await site.post(submission(["/"]));

    expect([keys, taken.indexnow]).toEqual([{ good: 0, wrong: 1 }, 0]);
    expect(refused.status).toBe(403);
    expect((await told(refused)).error.message).toContain("its file contains something else");
    expect(await one("select count(*)::int as n from frontier_url where url like '%/new'")).toEqual({ n: 0 });
    expect(later.status).toBe(202);
    expect((await record())?.dropped).toBe(3);
  });

  it.each([
    ["is not there", 404, "its file returned status 404"],
    ["is a page", 200, "its file contains something else"],
  ])("whose key file %s is one of a wrong key", async (_what, status, words) => {
    await site.begin({ "/": page("front"), ...(status === 200 ? { [`/${key}.txt`]: page(key) } : {}) });
    await site.post(submission(["/"]));
    await site.crawl();
    await site.turn();

    expect((await record())?.keys).toEqual([
      { location: `${site.site}/….txt`, folder: null, state: "wrong", words },
    ]);
  });

  it("ends with its file: a key that is taken away is wrong after the next visit", async () => {
    const pages: Record<string, string> = { "/": page("front") };
    await withGoodKey(pages);
    delete pages[`/${key}.txt`];
    site.at(30 * 86_400);
    await site.crawl();
    await site.turn();

    expect((await site.post(submission(["/"]))).status).toBe(403);
  });

  it("speaks for the folder of its key", async () => {
    await site.begin({ "/": page("front"), "/blog/key.txt": key });
    const keyLocation = `${site.site}/blog/key.txt`;

    const inside = await site.post(submission(["/blog/1", "/blog/2/3"], { keyLocation }));
    const outside = await site.post(submission(["/blog/1", "/shop"], { keyLocation }));
    const dotted = await site.post(submission(["/blog/../shop"], { keyLocation }));
    const elsewhere = await site.post(
      submission(["/blog/1"], { keyLocation: "https://other.example/k.txt" }),
    );

    const echo = await site.post(submission(["/blog/1"], { keyLocation: `${site.site}/echo?text=${key}` }));

    expect([inside.status, outside.status, dotted.status, elsewhere.status]).toEqual([202, 422, 422, 422]);
    expect([echo.status, (await told(echo)).error.message]).toEqual([
      422,
      "keyLocation: a file has no query",
    ]);
    expect((await told(outside)).error.message).toContain("urlList.1: it is outside the key's folder");
  });

  it("that is malformed, too large or of another host is refused and leaves nothing", async () => {
    await site.begin({});
    const of = (changes: object) => ({ host: "a.example", key, urlList: ["https://a.example/"], ...changes });
    const bad: readonly (readonly [unknown, number])[] = [
      ["{", 400],
      ["[]", 400],
      [of({ urlList: [] }), 400],
      [of({ urlList: Array(10_001).fill("https://a.example/") }), 400],
      [of({ key: "abc" }), 422],
      [of({ key: "../../../etc" }), 422],
      [of({ urlList: ["https://b.example/"] }), 422],
      [of({ urlList: ["https://a.example:8443/"] }), 422],
      [of({ urlList: ["ftp://a.example/"] }), 422],
      [of({ host: "a b" }), 422],
      [JSON.stringify(of({ urlList: ["x".repeat(3_000_000)] })), 413],
    ];

    for (const [body, status] of bad) expect([body, (await site.post(body)).status]).toEqual([body, status]);

    expect((await fetch(`${site.base}/indexnow?url=https://a.example/`)).status).toBe(422);
    expect((await fetch(`${site.base}/indexnow`)).status).toBe(400);
    expect(await one("select count(*)::int as n from hint_host")).toEqual({ n: 0 });
  });
});

describe("what is not ours", () => {
  it("is answered with 202, counted, and neither kept nor let in", async () => {
    await site.begin({});
    const many = Array.from({ length: 10_000 }, (_, number) => `https://stranger.example/${number}`);

    const answer = await site.post({ host: "stranger.example", key, urlList: many });
    const tables = await one(
      "select (select count(*) from hint_host) + (select count(*) from hint) + (select count(*) from hint_key) as n",
    );

    expect([answer.status, (await told(answer)).words]).toEqual([
      202,
      "this host is not crawled here, and nothing is stored",
    ]);
    expect(tables).toEqual({ n: "0" });
    expect(await one("select count(*)::int as n from frontier_host")).toEqual({ n: 1 });
    expect(await site.counted("not-ours")).toBe(10_000);
  });

  it("is a host that opted out, too", async () => {
    await site.begin({ "/": page("front") });
    await site.pool.query("update frontier_host set opt_out_id = 1");

    expect((await site.post(submission(["/"]))).status).toBe(202);
    expect(await one("select count(*)::int as n from hint_host")).toEqual({ n: 0 });
  });
});

describe("a flood", () => {
  const many = (count: number, from = 0) => Array.from({ length: count }, (_, number) => `/${from + number}`);

  it("of a host is heard as far as its day goes, and the next day again", async () => {
    await withGoodKey({ "/": page("front") }, { perHostAndDay: 20 });

    const first = await site.post(submission(many(10_000)));
    const second = await site.post(submission(many(10, 20_000)));
    const { taken } = await site.turn();
    const third = await site.post(submission(many(10, 30_000)));
    site.at(86_400);
    const tomorrow = await site.post(submission(many(10, 30_000)));

    expect(await told(first)).toEqual({ words: "taken", taken: 20, dropped: 9980 });
    expect(await told(second)).toMatchObject({ taken: 0, dropped: 10 });
    expect(taken.indexnow).toBe(20);
    expect([third.status, third.headers.get("retry-after")]).toEqual([429, "43200"]);
    expect([tomorrow.status, (await told(tomorrow)).taken]).toEqual([200, 10]);
    expect(await one("select count(*)::int as n from hint")).toEqual({ n: 30 });
  });

  it("of keys costs the site three fetches a day", async () => {
    await site.begin({ "/": page("front") });
    await site.crawl();
    site.at(60);
    const statuses: number[] = [];
    for (const number of [1, 2, 3, 4, 5]) {
      statuses.push((await site.post(submission(["/"], { key: `wrong-key-${number}` }))).status);
    }

    expect(statuses).toEqual([202, 202, 202, 429, 429]);
    expect(await site.crawl()).toHaveLength(3);
  });

  it("under a wrong key neither uses up the day of the good one, nor holds its URLs", async () => {
    await withGoodKey({ "/": page("front") }, { perHostAndDay: 5 });
    await site.post(submission(many(5), { key: "somebody-elses" }));

    const owner = await site.post(submission(many(5)));
    const { taken } = await site.turn();

    expect([owner.status, (await told(owner)).taken]).toEqual([200, 5]);
    expect(taken.indexnow).toBe(5);
  });

  it("of one address is refused, whichever hosts it names", async () => {
    await site.begin({});
    const urlList = Array.from({ length: 10_000 }, () => "https://stranger.example/");
    const { app } = site;
    const payload = { host: "stranger.example", key, urlList };
    const from = { url: "/indexnow", method: "POST" as const, payload, remoteAddress: "203.0.113.9" };
    const statuses: number[] = [];
    for (let sent = 0; sent <= senderBounds.urls; sent += 10_000)
      statuses.push((await app.inject(from)).statusCode);

    expect(statuses).toEqual([202, 202, 202, 202, 202, 429]);
  });
});

describe("what a hint is worth", () => {
  it("shows in the fetch that follows: a site that cries wolf is heard once a day", async () => {
    const pages = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`/${n}`, page(`page ${n}`)]));
    await withGoodKey({ "/": page("front"), ...pages }, { perHostAndDay: 60, urlMinutes: 1 });
    await site.world.frontier.admit(
      Object.keys(pages).map((path) => ({ key: keyed(path), depth: 0 })),
      { pagesPerHost: 100, maxDepth: 5, admitNewHosts: false },
      site.now(),
    );
    while ((await site.crawl()).length > 0);
    site.at(7200);
    await site.post(submission(Object.keys(pages)));
    await site.turn();
    while ((await site.crawl()).length > 0);

    const { judged } = await site.turn();
    site.at(86_400);
    const after = await site.post(submission(Object.keys(pages)));

    expect(judged.indexnow).toEqual({ right: 0, wrong: 40 });
    expect((await record())?.trust).toBeCloseTo(4 / 44);
    expect(await told(after)).toMatchObject({ taken: 1, dropped: 39 });
  });

  it("is not fetched again sooner than urlMinutes after the last fetch, however often it is named", async () => {
    await withGoodKey({ "/": page("front") }, { urlMinutes: 30 });
    await site.pool.query(
      "update frontier_url set last_fetched_at = $1, next_fetch_at = 'infinity' where url like '%/'",
      [site.now()],
    );

    for (const _ of [1, 2, 3]) {
      await site.post(submission(["/"]));
      await site.turn();
    }

    expect(await one("select next_fetch_at as at from frontier_url where url like '%/'")).toEqual({
      at: new Date(site.now().getTime() + 30 * 60_000),
    });
    expect((await record())?.taken).toBe(1);
  });

  it.each([
    ["a page with another body", "fetched", "a", "fetched", "b", 200, true],
    ["a page as it was", "fetched", "a", "unchanged", "a", 304, false],
    ["the same body, sent once more", "fetched", "a", "fetched", "a", 200, false],
    ["a page that is gone", "fetched", "a", "http-error", "a", 410, true],
    ["a page that came back", "http-error", null, "fetched", "b", 200, true],
    ["what is still missing", "http-error", null, "http-error", null, 404, false],
    ["what is missing in another way", "http-error", null, "soft-not-found", null, 200, false],
    ["a new page", null, null, "fetched", "a", 200, true],
    ["a new URL with nothing there", null, null, "http-error", null, 404, false],
    ["a site that is down", "fetched", "a", "failed", "a", null, null],
    ["a server's error", "fetched", "a", "http-error", "a", 503, null],
  ])("%s", (_what, wasOutcome, wasDigest, outcome, digest, status, right) => {
    expect(wasRight({ wasOutcome, wasDigest, outcome, digest, status })).toBe(right);
  });

  it("is trusted at first, less with every wrong one, and never less than once a day", () => {
    const heard = (recentRight: number, recentWrong: number) => hintsHeard({ recentRight, recentWrong }, 200);

    expect([heard(0, 0), heard(4, 4), heard(0, 36), heard(0, 37), heard(0, 1e9)]).toEqual([
      200, 134, 20, 1, 1,
    ]);
    expect(hintsHeard({ recentRight: 9, recentWrong: 0 }, 0)).toBe(0);
    expect(trustIn({ recentRight: 50, recentWrong: 0 })).toBe(1);
  });
});

it("reads no more of a long list than is worth it, and still refuses what is of another host", () => {
  const urlList = Array.from({ length: 10_000 }, (_, number) => `https://a.example/${number}`);
  const read = (urls: string[]) => readSubmission({ host: "a.example", key, urlList: urls }, 10);

  expect(read(urlList)).toMatchObject({ named: 10_000, urls: { length: 10 } });
  expect(read([...urlList.slice(1), "https://b.example/"])).toMatchObject({ status: 422 });
  expect(read([...urlList.slice(1), "https://a.example.evil.example/"])).toMatchObject({ status: 422 });
});

it("is shown the same on its page, by the API, by the command, and in who", async () => {
  await withGoodKey({ "/": page("front") });
  await site.post(submission(["/"]));
  const operator = await signIn(site.world.database, "operator", { now: site.now() });
  const ask = async (url: string, accept: string) =>
    await site.app.inject({ url, headers: { ...operator.headers, accept } });

  const shown = await ask("/fleet/hints", "text/html");
  const json = await ask("/api/fleet/hints", "application/json");
  const text = hintsText(await hintsAnswer(createHintReads(site.pool), 10, site.now()));
  const who = await ask("/api/who?q=site.localhost", "application/json");

  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  expect(faultsOf(json.json(), { $ref: "#/components/schemas/HintsAnswer" }, schemas)).toEqual([]);
  expect(json.json().hosts[0]).toMatchObject({ host: "site.localhost", received: 1, waiting: 1, trust: 1 });
  expect(shown.body).toContain("full daily limit");
  expect(text).toMatch(/site\.localhost +indexnow +1 +0 +0 +0 +0 +1 +full daily limit/);
  expect(whoText(who.json())).toContain(
    "hints by indexnow: 1 URL received, 0 accepted, 0 right, 0 wrong; full daily limit",
  );
  expect(whoText(who.json())).toContain("….txt: good");
  for (const told of [shown.body, json.body, text, who.body]) expect(told).not.toContain(`${key}.txt: `);
});

const keyed = (path: string) => {
  const read = readSubmission({ host: site.authority, key, urlList: [`${site.site}${path}`] }, 1);
  if (!("urls" in read)) throw new Error(read.words);
  return read.urls[0]!;
};
