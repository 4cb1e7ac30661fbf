/**
 * Migration 0074 on databases as they were before it: two hosts whose pages and links are written in several spellings, made
 * by the stores themselves with the keys of that time. Nothing is lost, and nothing contradicts itself.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/changes/change-writes";
import type { ArrivedResult } from "#coordinator/results/accepted-result";
import { readPageLinks } from "#coordinator/results/link-writes";
import type { CrawlerId, UrlHash } from "#core/ids";
import { canonicalEscapes } from "#core/ip/url-escapes";
import type { LinkTarget } from "#core/link-set";
import { seededRandom } from "#core/random";
import { hostHashOf, type UrlAddress, type UrlKey } from "#core/url-key";
import { contradictionsIn, databaseChecks } from "../support/database-checks.ts";
import {
  arrivedResult,
  keyOf,
  newWorld,
  scope,
  secondsAfterNoon,
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

async function migrateAgain(ending: "commit" | "rollback" = "commit"): Promise<void> {
  const client = await world.pool.connect();
  try {
    await client.query(`begin; ${migration}; ${ending}`);
  } finally {
    // Its functions are the session's.
    client.release(true);
  }
}

describe("the spelling that SQL gives", () => {
  it("is the one of TypeScript, whatever the text", async () => {
    const random = seededRandom(3);
    const signs = "% % % 2 3 4 7 d D e E f 0 ~ / g %25 %7e %2F %00 %ff ü".split(" ");
    const texts = Array.from({ length: 20_000 }, () =>
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
/** Never fetched: named by pages alone. */
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
            : { page: { digest: sequence.toString(16).padStart(64, "0") } }),
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
  ...["change-feed", "due-hosts", "texts", "open-leases"],
]);
const checks = databaseChecks.filter(({ name }) => concerned.has(name));

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

describe.each([1, 2, 3, 4])("a database of before (seed %i)", (seed) => {
  it("has each URL once, with the visits, fetches, links and changes of all its spellings", async () => {
    await world.reset();
    await world.pool.query(
      "delete from page_change; update change_feed set last_number = 0, removed_through = 0",
    );
    const { visits } = await oldState(seed);
    expect(await contradictionsIn(world.pool, checks)).toEqual([]);
    const before = { sums: await sums(), urls: await texts("frontier_url"), pages: await texts("page") };
    const links = await linkSets(before.urls.map(oldKeyOf));
    const order = await leadingOrder();

    await migrateAgain("rollback");
    expect(await texts("frontier_url")).toEqual(before.urls);
    await migrateAgain();

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

interface VisitSet {
  readonly at: number;
  readonly isLatest: boolean;
  readonly links: readonly string[];
}

/** By the page's URL, the latest first. */
async function linkSets(keys: readonly UrlKey[]): Promise<Map<string, VisitSet[]>> {
  const urls = new Map(
    pages.flatMap((url) => [oldKeyOf(url), keyOf(url)]).map((key) => [key.urlHash, key.url]),
  );
  const named = ({ urlHash }: LinkTarget) => urls.get(urlHash) ?? urlHash;
  const found = new Map<string, VisitSet[]>();
  for (const key of keys) {
    const kept = await readPageLinks(world.pool as never, key);
    if (kept.length > 0)
      found.set(
        key.url,
        kept.map(({ visitedAt, links }, at) => ({
          ...{ at: visitedAt.getTime(), isLatest: at === 0, links: links.map(named).sort() },
        })),
      );
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

/** What the links of all spellings are as links of one: the latest five visits; now it links to what its page does. */
function mergedSets(
  sets: ReadonlyMap<string, readonly VisitSet[]>,
  order: readonly string[],
): Map<string, VisitSet[]> {
  const merged = new Map<string, VisitSet[]>();
  for (const url of canonical([...sets.keys()]).sort()) {
    const own = [...sets].filter(([one]) => canonicalEscapes(one) === url).flatMap(([, visits]) => visits);
    const leading = order.find((one) => sets.has(one) && canonicalEscapes(one) === url)!;
    const latest = sets.get(leading)![0]!;
    const earlier = own.filter((one) => one !== latest).sort((one, other) => other.at - one.at);
    merged.set(
      url,
      [latest, ...earlier].slice(0, 5).map(({ at, links }, nth) => ({
        ...{ at, isLatest: nth === 0, links: canonical(links).filter((link) => link !== url) },
      })),
    );
  }
  return merged;
}

const everything = async () => ({
  urls: await world.rows("select * from frontier_url order by url"),
  hosts: await world.rows("select * from frontier_host order by host"),
  pages: await world.rows("select * from page order by url"),
  links: await world.rows("select * from out_link order by host_hash, url_hash"),
  earlier: await world.rows("select * from page_links order by host_hash, url_hash, visit"),
});
