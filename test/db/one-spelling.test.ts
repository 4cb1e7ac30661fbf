/**
 * Migration 0074 on databases as they were before it: two hosts whose pages and links are written in several spellings, made
 * by the stores themselves with the keys of that time. Nothing is lost, and nothing contradicts itself.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/changes/change-writes";
import { applyLinks, defaultOutboxBounds } from "#coordinator/frontier/link-outbox-store";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import type { ArrivedResult } from "#coordinator/results/accepted-result";
import { takeResults } from "#coordinator/results/take-results";
import { asLeaseId, type CrawlerId, type UrlHash } from "#core/ids";
import { canonicalEscapes } from "#core/ip/url-escapes";
import { seededRandom } from "#core/random";
import { hostHashOf, type UrlAddress, type UrlKey } from "#core/url-key";
import { contradictionsIn, databaseChecks } from "../support/database-checks.ts";
import {
  arrivedResult,
  keyOf,
  newWorld,
  scope,
  secondsAfterNoon,
  spoolId,
  type World,
} from "../support/store-world.ts";

let world: World;
beforeAll(async () => {
  world = await newWorld();
});
afterAll(async () => await world.close());

/** As a coordinator of before made it: of the text as the parser leaves it. */
function oldKeyOf(url: string): UrlKey {
  const { hostname } = new URL(url);
  const urlHash = createHash("sha256").update(url).digest().readBigInt64BE(0).toString() as UrlHash;
  return { url, host: hostname, hostHash: hostHashOf(hostname), urlHash };
}

/** The migration's own statements, in one transaction; its function is there already. */
const migration = readFileSync("db/migrations/0074-one-spelling-of-urls.sql", "utf8")
  .split("-- Down Migration")[0]!
  .replace("create function canonical_escapes", "create or replace function canonical_escapes");

/** What the migration finds, and later ones have taken away. */
const takenAway = `alter table coordinator_self add column if not exists url_cursor_host bigint,
  add column if not exists url_cursor_url bigint;
  create table if not exists page_links (host_hash bigint, url_hash bigint, visit int, visited_at timestamptz, link_count int,
    adjacency bytea)`;

async function migrateAgain(ending: "commit" | "rollback" = "commit"): Promise<void> {
  const client = await world.pool.connect();
  try {
    await client.query(`begin; ${takenAway}; ${migration}; ${ending}`);
  } finally {
    // Its functions are the session's.
    client.release(true);
  }
}

describe("the spelling that SQL gives", () => {
  it("is the one of TypeScript, whatever the text", async () => {
    const random = seededRandom(3);
    const signs = "% % % 2 3 4 7 d D e E f 0 ~ / g %25 %7e %2F %00 %ff ü".split(" ");
    const texts = Array.from({ length: 5000 }, () =>
      Array.from(
        { length: Math.floor(random() * 13) },
        () => signs[Math.floor(random() * signs.length)],
      ).join(""),
    );

    const { rows } = await world.pool.query<{ written: string }>(
      "select canonical_escapes(text) as written from unnest($1::text[]) with ordinality as t (text, nth) order by nth",
      [texts],
    );

    expect(rows.map(({ written }) => written)).toEqual(texts.map(canonicalEscapes));
  });
});

const spellings = [
  ["/", "/"],
  ["/~ann", "/%7Eann", "/%7eann"],
  ["/%D0%BF", "/%d0%bf"],
  ["/a.html", "/a%2Ehtml"],
  ["/old/A", "/old/%41"],
  ["/%2Fx", "/%2fx"],
  ["/plain?q=~", "/plain?q=%7E"],
];
const hosts = ["one.example", "two.example"];
const pages = hosts.flatMap((host) =>
  spellings.flatMap((ways) => [...new Set(ways)].map((way) => `http://${host}${way}`)),
);
/** Of three texts. */
const simhashes = ["0123456789abcdef", "fedcba9876543210", "00ff00ff00ff00ff"];
const roundSeconds = 90_000;

interface OldState {
  readonly crawlerId: CrawlerId;
  readonly visits: ReadonlyMap<string, number>;
}

/** Rounds of visits to pages that link to each other at random, at most three of each. */
async function oldState(seed: number): Promise<OldState> {
  const random = seededRandom(seed);
  const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)]!;
  const crawlerId = await world.delegatedHost("a", `http://${hosts[0]}/`, `http://${hosts[1]}/`);
  const started = pages.filter(() => random() < 0.7);
  await world.frontier.admit(
    started.map((url) => ({ key: oldKeyOf(url), depth: 0 })),
    scope,
    secondsAfterNoon(0),
  );
  let sequence = 0;
  for (let round = 0; round < 3; round++) {
    const from = round * roundSeconds;
    const leases = await world.frontier.leaseHosts({
      ...{ crawlerId, hosts: 10, urlsPerHost: 40, leaseSeconds: 3600, addressRestSeconds: 0 },
      now: secondsAfterNoon(from),
    });
    const results = leases.flatMap(({ leaseId, urls }) =>
      urls.map(({ url }, index): ArrivedResult => {
        const links = [
          ...new Set(Array.from({ length: Math.floor(random() * 9) }, () => pick(pages))),
        ].filter((link) => link !== url);
        const isMissing = random() < 0.15;
        sequence += 1;
        const one = arrivedResult({
          ...{ sequence, leaseId, url },
          ...(isMissing
            ? { outcome: { type: "http-error" as const, status: 404, retryAfterSeconds: null } }
            : {
                page: {
                  digest: sequence.toString(16).padStart(64, "0"),
                  simhash: pick(simhashes),
                  words: 100,
                },
              }),
          result: { fetchedAt: secondsAfterNoon(from + 10 + 7 * index).toISOString() },
          again: () => ({
            at: secondsAfterNoon(from + roundSeconds - 1000),
            isGone: isMissing && random() < 0.5,
          }),
        });
        const targets = isMissing ? [] : links.map(oldKeyOf);
        return {
          ...one,
          key: oldKeyOf(url),
          admit: targets.map((key) => ({ key, depth: 1 })),
          links: targets.map((key) => ({
            ...key,
            anchor: random() < 0.5 ? "" : `to ${key.url}`,
            nofollow: random() < 0.2,
          })),
        };
      }),
    );
    await world.take(crawlerId, results, secondsAfterNoon(from + 900));
  }
  await numberChanges(world.pool, secondsAfterNoon(3 * roundSeconds));
  const { rows } = await world.pool.query<{ url: string; visits: number }>(
    "select url, visits from frontier_url",
  );
  return { crawlerId, visits: new Map(rows.map(({ url, visits }) => [url, visits])) };
}

/** Of one spelling visits at a time may have been counted under two leases, and a page may have gone in one and not in the other. */
const concerned = new Set([
  ...[
    "visits",
    "urls-of-hosts",
    "fetches-of-hosts",
    "budgets-of-hosts",
    "outside-links",
    "back-links",
    "link-outbox",
  ],
  ...["change-feed", "due-hosts", "texts", "open-leases", "spellings"],
]);
const checks = [
  ...databaseChecks.filter(({ name }) => concerned.has(name)),
  {
    name: "texts-of-groups",
    words: "each group of texts has one page that stands for it, which is there",
    sql: `
      select p.text_group, count(distinct b.url_hash)::int as standing, count(b.*)::int as bands
      from (select distinct text_group from page where text_group is not null) p
      left join text_band b using (text_group)
      left join page q on q.host_hash = b.host_hash and q.url_hash = b.url_hash and q.text_group = b.text_group
      group by p.text_group
      having count(distinct q.url_hash) <> 1 or count(b.*) <> 4`,
  },
];

const inOne = async <Row extends object>(sql: string): Promise<Row> => (await world.rows<Row>(sql))[0]!;
const sums = async () =>
  await inOne(
    `select (select sum(visits)::int from frontier_url) as visits, (select count(*)::int from page_fetch) as fetches,
       (select count(*)::int from page_change) as changes, (select sum(fetches)::int from frontier_host) as counted,
       (select sum(compared_visits)::int from frontier_url) as compared`,
  );
const texts = async (table: string) =>
  (await world.rows<{ url: string }>(`select distinct url from ${table} order by url`)).map(({ url }) => url);
const canonical = (urls: readonly string[]) => [...new Set(urls.map(canonicalEscapes))].sort();

describe.each([1, 2])("a database of before (seed %i)", (seed) => {
  it("has each URL once, with the visits, fetches, links and changes of all its spellings", async () => {
    await world.reset();
    await world.pool.query(
      "delete from page_change; update change_feed set last_number = 0, removed_through = 0",
    );
    const { visits } = await oldState(seed);
    expect((await contradictionsIn(world.pool, checks)).map(({ check }) => check)).toEqual(["spellings"]);
    const before = { sums: await sums(), urls: await texts("frontier_url"), pages: await texts("page") };
    const links = await linkSets(before.urls.map(oldKeyOf));
    const order = await leadingOrder();

    await migrateAgain("rollback");
    expect(await texts("frontier_url")).toEqual(before.urls);
    await migrateAgain();
    await world.applyOutbox(secondsAfterNoon(4 * roundSeconds));

    expect(await contradictionsIn(world.pool, checks)).toEqual([]);
    expect(await sums()).toEqual(before.sums);
    expect(before.urls.length).toBeGreaterThan(canonical(before.urls).length + 3);
    expect(await texts("frontier_url")).toEqual(canonical(before.urls));
    expect(await texts("page")).toEqual(canonical(before.pages));
    for (const table of ["frontier_url", "page", "page_change"]) {
      const rows = await world.rows<UrlAddress & { url: string }>(
        `select url, host_hash as "hostHash", url_hash as "urlHash" from ${table}`,
      );
      for (const { url, ...address } of rows) expect(keyOf(url), url).toMatchObject({ url, ...address });
    }
    const now = await world.rows<{ url: string; visits: number }>("select url, visits from frontier_url");
    for (const row of now) {
      const own = [...visits].filter(([url]) => canonicalEscapes(url) === row.url);
      expect(row.visits, row.url).toBe(own.reduce((sum, [, count]) => sum + count, 0));
    }
    expect(await linkSets(canonical(before.urls).map(keyOf))).toEqual(mergedSets(links, order));

    const all = await everything();
    await migrateAgain();
    expect(await everything()).toEqual(all);
  });
});

describe("pages whose text was not composed", () => {
  it("have no validators any more, so that their next fetch reads them anew; others keep theirs", async () => {
    await world.reset();
    await oldState(1);
    await world.pool.query(`update page set title = case when url like '%one.example/' then $1 else $2 end`, [
      "Zürcher".normalize("NFD"),
      "Zürcher",
    ]);

    await migrateAgain();

    const rows = await world.rows<{ url: string; validators: number }>(
      "select url, num_nonnulls(u.etag, u.digest) as validators from frontier_url u join page using (host_hash, url_hash, url)",
    );
    expect(rows.length).toBeGreaterThan(5);
    for (const { url, validators } of rows) expect(validators === 0, url).toBe(url === `http://${hosts[0]}/`);
  });
});

describe("what is under way", () => {
  const [one, two] = hosts as [string, string];

  it("goes on: leases, links that wait, held URLs and those of others, comparisons, receipts, channels", async () => {
    await world.reset();
    const crawlerId = await world.delegatedHost("a", `http://${one}/`, `http://${two}/`);
    const ways = [`http://${one}/~ann`, `http://${one}/%7Eann`, `http://${one}/%7eann`];
    await world.frontier.admit(
      [...ways.slice(0, 2), `http://${two}/%41`].map((url) => ({ key: oldKeyOf(url), depth: 0 })),
      scope,
      secondsAfterNoon(0),
    );
    const leases = await world.frontier.leaseHosts({
      ...{ crawlerId, hosts: 10, urlsPerHost: 40, leaseSeconds: 3600, addressRestSeconds: 0 },
      now: secondsAfterNoon(0),
    });
    const leaseOf = (host: string) => asLeaseId(leases.find((lease) => lease.host === host)!.leaseId);
    // Links to all spellings, named, and to one that nobody follows: one part of the first bite is done, the rest waits.
    const linking = { ...arrivedResult({ sequence: 1, leaseId: leaseOf(two), url: `http://${two}/` }) };
    const targets = [...ways, `http://${one}/`, `http://${one}/%d0%bf`].map(oldKeyOf);
    const links = targets.map((key) => ({ ...key, anchor: "", nofollow: false }));
    await world.results.take({
      ...{ crawlerId, spoolId, scope, now: secondsAfterNoon(60), lastSequence: 1, seals: [] },
      results: [{ ...linking, links, admit: targets.slice(1).map((key) => ({ key, depth: 1 })) }],
    });
    const ended = AbortSignal.abort();
    await applyLinks(world.pool, { ...defaultOutboxBounds, scope, stepUrls: 2 }, secondsAfterNoon(61), ended);
    expect(await world.rows("select reached_host is not null as begun from link_outbox_bite")).toEqual([
      { begun: true },
    ]);
    await insertUnderWay(crawlerId);

    await migrateAgain();

    const lines = async (sql: string) => (await world.rows<{ line: string }>(sql)).map(({ line }) => line);
    const [open] = await world.rows<{ urls: number; left: number; hashes: string[] }>(
      `select url_count as urls, open_urls as left, open_url_hashes as hashes from lease where host = '${one}'`,
    );
    expect(open).toMatchObject({ urls: 2, left: 2 });
    expect([...open!.hashes].sort()).toEqual(
      [`http://${one}/`, ways[0]!].map((url) => keyOf(url).urlHash).sort(),
    );
    expect(await lines("select url as line from held_url order by url")).toEqual([
      `http://${one}/held/b`,
      `http://${one}/held/~a`,
    ]);
    expect(
      await lines("select url || ' ' || links || ' ' || (waits_since is not null) as line from foreign_url"),
    ).toEqual(["http://others.example/~x 5 true"]);
    expect(
      await lines(
        "select url || ' ' || coalesce(verdict, 'open') as line from double_check order by check_id",
      ),
    ).toEqual([`${ways[0]} open`, `${ways[0]} stale`]);
    expect(await lines("select url || ' ' || (url_hash = 1)::text as line from submission_url")).toEqual([
      `${ways[0]} false`,
    ]);
    expect(await lines("select directories || include || seeds as line from channel")).toEqual([
      ["/~ann/", "/%D0%BF*", `http://${one}/~ann/`],
    ]);

    // A crawler of before reports what it was given, and the outbox goes on where it was.
    const reported = ways.slice(0, 2).map((url, index) => ({
      ...{ sequence: 2 + index, leaseId: leaseOf(one), wireBytes: 100 },
      result: { ...arrivedResult({ sequence: 2, leaseId: leaseOf(one), url }).result, url },
    }));
    const settings = { scope, recrawl: defaultRecrawlSettings };
    const taken = await takeResults(
      { crawlerId, spoolId, results: reported },
      world.results,
      settings,
      secondsAfterNoon(120),
    );
    expect(taken.refused ?? []).toEqual([]);
    await world.applyOutbox(secondsAfterNoon(130), { stalledMs: 0 });
    expect(
      await lines("select url || ' ' || visits || ' ' || back_links as line from frontier_url order by url"),
    ).toEqual([
      `http://${one}/ 0 1`,
      `http://${one}/%D0%BF 0 1`,
      `http://${one}/held/b 0 0`,
      `http://${one}/held/~a 0 0`,
      `http://${one}/~ann 1 1`,
      `http://${two}/ 1 0`,
      `http://${two}/A 0 0`,
    ]);
    const names = ["visits", "outside-links", "back-links", "link-outbox", "fetches-of-hosts"];
    expect(
      await contradictionsIn(
        world.pool,
        databaseChecks.filter(({ name }) => names.includes(name)),
      ),
    ).toEqual([]);
  });

  async function insertUnderWay(crawlerId: CrawlerId): Promise<void> {
    const [own, others] = [hostHashOf(one), hostHashOf("others.example")];
    const keys = (urls: readonly string[]) => `{${urls.map((url) => oldKeyOf(url).urlHash).join()}}`;
    const held = ["/held/%7Ea", "/held/~a", "/%7Eann", "/held/b"].map((path) => `http://${one}${path}`);
    await world.pool.query(
      `insert into held_urls (host_hash, held_at, depth, redirects, lists, url_hashes, links, urls)
       values ($1, now(), 1, 0, 0, $2::bigint[], '{0,0,0,0}', $3)`,
      [own, keys(held), held.join("\n")],
    );
    await world.pool.query("update frontier_host set held_urls = 4 where host_hash = $1", [own]);
    const foreign = ["http://others.example/~x", "http://others.example/%7Ex"];
    await world.pool.query(
      `insert into foreign_url (host_hash, url_hash, url, peer_id, links, waits_since, sent_at)
       select $1, h, u, 0, l, case when l = 3 then now() end, case when l = 2 then now() end
       from unnest($2::bigint[], $3::text[], '{2,3}'::int[]) as given (h, u, l)`,
      [others, keys(foreign), foreign],
    );
    const compared = [`http://${one}/~ann`, `http://${one}/%7Eann`];
    await world.pool.query(
      `insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by)
       select $1, h, $2, u, $3, 'sample', '[]', '{}', now() from unnest($4::bigint[], $5::text[]) as given (h, u)`,
      [own, one, crawlerId, keys(compared), compared],
    );
    await world.pool.query(
      `with one as (
         insert into submission (deed, submitted_by, submitted_at) values ('add', 'somebody', now()) returning submission_id
       )
       insert into submission_url (submission_id, place, url, host_hash, url_hash, answer)
       select submission_id, 1, $1, $2, $3, 'new' from one`,
      [compared[1], own, oldKeyOf(compared[1]!).urlHash],
    );
    await world.pool.query(
      `insert into channel (host_hash, host, directories, seeds, include, created_at)
       values ($1, $2, '{/%7Eann/}', $3, '{/%d0%bf*}', now())`,
      [own, one, [`http://${one}/%7Eann/`]],
    );
  }
});

/** By the page's URL, what it links to. */
async function linkSets(keys: readonly UrlKey[]): Promise<Map<string, string[]>> {
  const urls = new Map(
    pages.flatMap((url) => [oldKeyOf(url), keyOf(url)]).map((key) => [key.urlHash as string, key.url]),
  );
  const found = new Map<string, string[]>();
  for (const { hostHash, urlHash, url } of keys) {
    const [row] = await world.rows<{ urls: string[] }>(
      `select urls from out_link where host_hash = ${hostHash} and url_hash = ${urlHash}`,
    );
    if (row !== undefined) found.set(url, row.urls.map((hash) => urls.get(hash) ?? hash).sort());
  }
  return found;
}

/** Spellings whose page is the latest first, then those that were fetched last. */
const leadingOrder = async () =>
  (
    await world.rows<{ url: string }>(
      `select url
       from frontier_url u
       left join page p using (host_hash, url_hash, url)
       order by p.fetched_at desc nulls last, u.last_fetched_at desc nulls last`,
    )
  ).map(({ url }) => url);

/** What the links of all spellings are as links of one: it links to what its latest page does. */
function mergedSets(
  sets: ReadonlyMap<string, readonly string[]>,
  order: readonly string[],
): Map<string, string[]> {
  return new Map(
    canonical([...sets.keys()]).map((url) => {
      const leading = order.find((one) => sets.has(one) && canonicalEscapes(one) === url)!;
      return [url, canonical(sets.get(leading)!).filter((link) => link !== url)];
    }),
  );
}

const everything = async () => ({
  urls: await world.rows("select * from frontier_url order by url"),
  hosts: await world.rows("select * from frontier_host order by host"),
  pages: await world.rows("select * from page order by url"),
  links: await world.rows("select * from out_link order by host_hash, url_hash"),
});
