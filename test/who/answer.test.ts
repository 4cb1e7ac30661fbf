import { beforeAll, describe, expect, it } from "vitest";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import { answerWho } from "#coordinator/tell/who/answer";
import type { WhoAnswer } from "#coordinator/tell/who/who-api";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { everyRead } from "../support/every-read.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";
import { seedHost, seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { tinyResolver } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
beforeAll(async () => await seedWorld(database.pool));

const scope = { pagesPerHost: 5, maxDepth: 8, admitNewHosts: false };

async function who(question: string): Promise<WhoAnswer> {
  const reads = everyRead(database.pool, () => performance.now());
  return await answerWho(question, { reads, resolver: tinyResolver, scope }, worldNow);
}

const codes = (answer: WhoAnswer) => answer.standing.map((line) => line.code);
const stops = (answer: WhoAnswer) => answer.standing.filter((line) => line.stops).map((line) => line.code);
const minutes = (count: number) => new Date(worldNow.getTime() + count * 60_000);

describe("where something is and who crawls it", () => {
  it("a subnet with one child is skipped: the nearest wider subnet's delegation is in force", async () => {
    const answer = await who("1.2.3.4");

    expect(answer.chain[0]).toMatchObject({ range: "1.2.3.4/32", unary: true });
    expect(answer.effective).toMatchObject({
      crawler: { name: "athens" },
      range: "1.2.0.0/16",
      inherited: true,
      rttMs: 12.5,
      cause: "probe-round",
    });
  });

  it("a delegation of its own wins over a wider one", async () => {
    const answer = await who("1.2.9.5");

    expect(answer.effective).toMatchObject({
      crawler: { name: "berlin" },
      inherited: false,
      measured: false,
    });
    expect(answer.round).toBeNull();
  });

  it("the deciding round is shown with its probes, the reason, and who was left out", async () => {
    const { round } = await who("1.2.4.4");

    expect(round?.probes.map((probe) => [probe.crawler.name, probe.rttMs])).toEqual([
      ["berlin", 48.25],
      ["athens", 12.5],
    ]);
    expect(round?.crawler?.name).toBe("athens");
    expect(round?.runnerUp?.name).toBe("berlin");
    expect(round?.reasonWords).toContain("athens 12.5 ms");
    expect(round?.notAsked).toEqual([
      { crawler: { crawlerId: 3, name: "tokyo", state: "online" }, lowerBoundMs: 140, ruledOut: true },
    ]);
  });

  // Issue 41: a crawler that came yesterday was listed as left out of a round a month ago.
  it("a past round lists the crawlers of its time", async () => {
    const leftOut = async () => (await who("1.2.4.4")).round?.notAsked.map(({ crawler }) => crawler.name);
    const started = new Date((await who("1.2.4.4")).round!.startedAt);
    const around = (ms: number) => new Date(started.getTime() + ms);
    const set = async (createdAt: Date, revokedAt: Date | null) =>
      void (await database.pool.query(
        "update crawler set created_at = $1, revoked_at = $2 where name = 'tokyo'",
        [createdAt, revokedAt],
      ));
    const { rows } = await database.pool.query<{ created_at: Date }>(
      "select created_at from crawler where name = 'tokyo'",
    );

    await set(around(1000), null);
    const newcomer = await leftOut();
    await set(around(-1000), around(1000));
    const gone = await leftOut();
    await set(around(-1000), around(-500));
    const goneBefore = await leftOut();
    await set(rows[0]!.created_at, null);

    expect([newcomer, gone, goneBefore]).toEqual([[], ["tokyo"], []]);
  });

  it("the history of the delegation in force is listed, newest first", async () => {
    const { history } = await who("1.2.4.4");

    expect(history.map((change) => [change.from, change.to, change.reason])).toEqual([
      ["berlin", "athens", "athens was nearer"],
      [null, "berlin", "by hand"],
    ]);
  });

  it("a range lists the subnets inside it", async () => {
    const answer = await who("1.2.0.0/16");

    expect(answer.takenFor).toEqual({ type: "range", value: "1.2.0.0/16" });
    expect(answer.inside?.subnets.map((line) => line.range)).toContain("1.2.9.0 - 1.2.9.9");
  });
});

describe("names", () => {
  it("an organisation is found by handle and name, ignoring case", async () => {
    for (const question of ["ORG-EX1-AP", "org-ex1-ap", "example networks"]) {
      const answer = await who(question);

      expect(answer.takenFor).toEqual({ type: "organisation", value: "Example Networks" });
      expect(answer.organisation).toMatchObject({
        handle: "ORG-EX1-AP",
        subnetCount: 3,
        byCrawler: [
          { crawler: "berlin", subnets: 2 },
          { crawler: "athens", subnets: 1 },
        ],
      });
    }
  });

  it("an organisation is found, exactly or nearly, in any Unicode form", async () => {
    await database.pool.query(
      "insert into holder (holder_key, name, handle, registry) values ('name:zug', 'Zürcher Häfen AG', null, null)",
    );

    const exactly = await who("zürcher häfen ag".normalize("NFD"));
    const nearly = await who("Zürcher Häfn".normalize("NFD"));

    expect(exactly.takenFor).toEqual({ type: "organisation", value: "Zürcher Häfen AG" });
    expect(nearly.nearMatches[0]).toMatchObject({
      name: "Zürcher Häfen AG",
      similarity: expect.closeTo(0.6, 0.5),
    });
    const same = await who("Zürcher Häfn");
    expect(nearly.nearMatches).toEqual(same.nearMatches);
  });

  it("a misspelt name is not found but offers similar ones; wildcards are literal", async () => {
    const answers = await Promise.all(["Exampel Netwroks", "Example%", "Exampl_ Networks"].map(who));

    expect(answers.map(({ found }) => found)).toEqual([false, false, false]);
    expect(answers[0]!.nearMatches[0]).toMatchObject({ type: "organisation", name: "Example Networks" });
  });

  it("the beginning of a host's name finds the same hosts as the search box", async () => {
    await database.pool.query(
      `insert into site (host_hash, host, standing, channels, pages, urls, due_urls, counted_day, failed_days,
         fetched_days, failures, fetches, added_at, bytes)
       select host_hash, host, 'unresolved', 0, 0, 1, 1, 0, '{}', '{}', 0, 0, now(), 0
       from frontier_host
       where host = 'nowhere.example.org'
       on conflict do nothing`,
    );

    const answer = await who("Nowher");

    expect(answer.found).toBe(false);
    expect(answer.nearMatches[0]).toMatchObject({ type: "host", name: "nowhere.example.org" });
  });

  it("a crawler has its state and subnets", async () => {
    const answer = await who("berlin");

    expect(answer.crawler).toMatchObject({ state: "offline", offlineReason: "it was stopped by its host" });
    expect(answer.inside?.subnets).toHaveLength(2);
    expect(stops(answer)).toEqual(["crawler-offline"]);
  });
});

describe("why something is not being crawled", () => {
  it.each<readonly [question: string, found: boolean, stops: readonly string[]]>([
    ["100.1.2.3", false, ["not-in-registry"]],
    ["10.1.2.3", false, ["special-purpose"]],
    ["192.168.0.0/16", false, ["special-purpose"]],
    ["private.example.org", false, ["special-purpose"]],
    ["empty.example.net", true, ["nobody-could-take-it"]],
    ["inside.example.org", true, ["host-refused"]],
    ["nowhere.example.org", true, ["host-unresolvable"]],
    ["missing.example.org", false, ["host-unknown", "host-unresolvable"]],
    ["https://www.example.org/unknown", true, ["url-unknown"]],
  ])("%s: found %s, and stopped by %j", async (question, found, codesOf) => {
    const answer = await who(question);

    expect(answer.found).toBe(found);
    expect(stops(answer)).toEqual(expect.arrayContaining([...codesOf]));
  });

  it("its subnet has no delegation of its own and waits for a round", async () => {
    const answer = await who("https://www.example.org/");

    expect(stops(answer)).toEqual(["waits-for-round"]);
    expect(answer.standing[0]?.words).toContain("1.2.3.0/24");
    expect(answer.waiting).toMatchObject({ hosts: 1, next: [{ host: "www.example.org" }] });
  });

  it("its crawler is offline for a reason", async () => {
    const answer = await who("https://old.example.org/");

    expect(stops(answer)).toEqual(["crawler-offline"]);
    expect(answer.standing[0]?.words).toBe(
      "berlin is offline: it was stopped by its host (last seen 60 min ago).",
    );
  });

  it("the host is unknown; its address is looked up all the same", async () => {
    const answer = await who("https://new.example.org/page");

    expect(answer).toMatchObject({ found: true, addresses: ["1.2.9.7"], addressesFrom: "dns" });
    expect(codes(answer)).toContain("host-unknown");
    expect(answer.effective?.crawler.name).toBe("berlin");
  });

  it("the URL is unknown but its host is known or full", async () => {
    expect(stops(await who("https://www.example.org/unknown"))).toContain("url-unknown");

    await seedHost(database.pool, { host: "full.example.org", subnet: "1.2.0.0", address: "1.2.4.4" });
    for (const page of [1, 2, 3, 4])
      await seedUrl(database.pool, { url: `https://full.example.org/${page}` });

    expect(stops(await who("https://full.example.org/5"))).toContain("host-budget-reached");
  });

  it("its channel excludes it by filters, by depth, or after it was in the frontier", async () => {
    const seen = "https://www.example.org/docs/seen";
    await seedUrl(database.pool, { url: seen });
    await database.pool.query("update frontier_url set depth = 5 where url = $1", [seen]);
    const settings = { seeds: [], include: [], exclude: ["/docs/old/"], maxDepth: 5 };
    const store = createChannelStore(database.pool);
    await store.add(readChannel({ ...settings, prefixes: ["www.example.org/docs/"] }), worldNow);
    const [from, to] = [urlKeyOf(seen), urlKeyOf("https://www.example.org/docs/deep")] as UrlKey[];
    await addLinks(database.pool, [{ from: from!, to: to! }]);
    const [old, deep, elsewhere] = [
      await who("https://www.example.org/docs/old/1"),
      await who("https://www.example.org/docs/deep"),
      await who("https://www.example.org/else"),
    ];
    await database.pool.query("update channel set max_depth = 4");
    await store.settle(worldNow);
    const taken = await who(seen);
    const [channel] = await store.list();
    await store.remove(channel!.channelId, worldNow);
    await database.pool.query("delete from out_link");
    await database.pool.query("delete from frontier_url where url = $1", [seen]);

    const by = `channel ${channel!.channelId} (www.example.org/docs/) leaves it out, since`;
    expect(old.standing[0]).toMatchObject({ code: "outside-channel", stops: true });
    expect(old.standing[0]?.words).toContain(`No channel admits it: ${by} its filter skips /docs/old/.`);
    expect(deep.standing[0]?.words).toContain(
      `${by} it is 6 links from a seed, and the channel goes 5 deep.`,
    );
    expect(codes(elsewhere)).toContain("url-unknown");
    expect(taken.standing[0]).toMatchObject({
      code: "outside-channel",
      words: expect.stringContaining("4 deep"),
    });
  });

  it("it was refused when submitted", async () => {
    await database.pool.query(
      `insert into rejected_url (url, reason, source) values ('ftp://example.org/', 'only http and https are crawled', 'operator')`,
    );

    const answer = await who("ftp://example.org/");

    expect(answer).toMatchObject({ found: true, standing: [{ code: "url-rejected" }] });
  });

  it("robots.txt disallows it, or it is gone", async () => {
    await seedHost(database.pool, { host: "site.example.org", subnet: "1.2.0.0", address: "1.2.4.5" });
    const robots = { lastOutcome: "refused-by-robots", lastReason: "Disallow: /private/" };
    await seedUrl(database.pool, { url: "https://site.example.org/private/", state: "refused", ...robots });
    await seedUrl(database.pool, {
      url: "https://site.example.org/old",
      state: "gone",
      lastOutcome: "http-error",
      lastStatus: 410,
    });

    const refused = await who("https://site.example.org/private/");

    expect(stops(refused)).toEqual(["robots-refused"]);
    expect(refused.standing[0]?.words).toContain("Disallow: /private/");
    expect(stops(await who("https://site.example.org/old"))).toEqual(["gone"]);
  });

  it("it is not due yet, its host rests, or a crawler is fetching it", async () => {
    const host = { subnet: "1.2.0.0", address: "1.2.4.6" };
    await seedHost(database.pool, { host: "later.example.org", ...host });
    await seedUrl(database.pool, {
      url: "https://later.example.org/x",
      nextFetchAt: minutes(60),
      lastFetchedAt: minutes(-5),
    });
    await database.pool.query("update frontier_host set due_at = $1 where host = 'later.example.org'", [
      minutes(60),
    ]);
    await seedHost(database.pool, { host: "polite.example.org", ...host, notBefore: minutes(1) });
    await seedHost(database.pool, { host: "leased.example.org", ...host });
    await database.pool.query(
      `with granted as (
         insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls)
         select 1, host_hash, host, $1::timestamptz, $1::timestamptz + interval '5 minutes', 1, 1
         from frontier_host where host = 'leased.example.org'
         returning lease_id, host_hash)
       update frontier_host h set lease_id = granted.lease_id from granted where granted.host_hash = h.host_hash`,
      [worldNow],
    );

    const later = await who("https://later.example.org/x");
    const leased = await who("leased.example.org");

    expect(stops(later)).toEqual(["not-due"]);
    expect(later.standing[0]?.words).toContain("in 60 min");
    const laterHost = await who("later.example.org");
    expect([codes(laterHost), laterHost.standing[0]?.words]).toEqual([
      ["not-due"],
      expect.stringMatching(/^Its next fetch is scheduled for .*, in 60 min\.$/),
    ]);
    expect(stops(await who("polite.example.org"))).toEqual(["politeness"]);
    expect([stops(leased), codes(leased)]).toEqual([[], ["lease-open"]]);
    expect(leased.host?.lease).toMatchObject({ crawler: "athens", openUrls: 1 });
  });

  it("nothing prevents it, and its crawler is named", async () => {
    await seedHost(database.pool, { host: "ready.example.org", subnet: "1.2.0.0", address: "1.2.4.7" });

    const answer = await who("https://ready.example.org/");

    expect(answer.standing).toEqual([
      { code: "ready", stops: false, words: "Ready: athens gets it with its next lease." },
    ]);
  });
});

describe("what has become of a URL", () => {
  it("its fetches and its page are shown", async () => {
    const url = "https://read.example.org/";
    await seedHost(database.pool, { host: "read.example.org", subnet: "1.2.0.0", address: "1.2.4.8" });
    await seedPage(database.pool, { url, title: "Read", text: "words" });

    const answer = await who(url);

    expect(answer.url?.page).toMatchObject({ title: "Read", language: "en", words: 100 });
    expect(answer.url?.fetches).toEqual([
      {
        url,
        crawler: "athens",
        fetchedAt: worldNow.toISOString(),
        outcome: "fetched",
        blame: null,
        status: 200,
        totalMs: 40,
        bodyBytes: 40000,
        shippedBytes: 1500,
        changed: null,
      },
    ]);
  });

  it("a URL without a scheme is found under the known one", async () => {
    expect((await who("read.example.org/")).url?.url).toBe("https://read.example.org/");
  });
});
