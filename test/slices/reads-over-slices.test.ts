/** What is told of all hosts is the same, whether they lie in one slice or in four on two servers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenSlice, oneSlice } from "#coordinator/database/slices";
import { showOverview } from "#coordinator/overview/overview";
import { waitReasons } from "#coordinator/overview/overview-types";
import { keepSearch } from "#coordinator/search/index-upkeep-store";
import { pageFacts } from "#coordinator/search/page-facts";
import type { SearchOptions } from "#coordinator/search/query";
import { searchPages } from "#coordinator/search/search";
import { createReports } from "#coordinator/slices/reports-reads";
import { linkingHostsElsewhere } from "#coordinator/slices/search-reads";
import { answerWho } from "#coordinator/who/answer";
import type { Reports } from "#coordinator/who/reads";
import { type UrlKey, urlKeyOf } from "#core/url-key";
import { addLinks, type TestLink } from "../support/links.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedHost, seedPage, seedUrl, seedWorld, worldNow } from "../support/seed-world.ts";
import { SpreadServers } from "../support/spread-slices.ts";
import { tinyResolver } from "../support/web-server.ts";

const sites = Array.from({ length: 24 }, (_, n) => `site-${n}.example.org`);

/** What was asked, by its name: of the one before its rows were spread, and of all slices after. */
type Answers = Readonly<Record<string, unknown>>;

let world: SpreadServers;
let whole: Answers;
let spread: Answers;
beforeAll(async () => {
  world = await SpreadServers.begin(4);
  await seed();
  whole = await askAll(createReports(oneSlice(world.shared.pool), () => 0));
  await world.spread();
  await world.shared.pool.query("delete from search_word");
  await world.shared.pool.query("delete from search_upkeep");
  await world.shared.pool.query("insert into search_upkeep default values");
  for (const slice of world.slices.open) await keepAll(slice);
  spread = await askAll(overSlices());
}, 120_000);
afterAll(async () => await world?.close());

const overSlices = () => createReports(world.slices, () => 0);

async function seed(): Promise<void> {
  const { pool } = world.shared;
  await seedWorld(pool);
  await seedOperation(pool);
  await seedFleet(pool);
  const subnets = ["1.2.3.0", "1.2.9.0", "5.6.0.0", "2a00:1::"];
  for (const [n, host] of sites.entries()) {
    await seedHost(pool, { host, subnet: subnets[n % 4]!, address: `1.2.3.${n + 1}` });
    for (const path of ["", "ferry", "harbour"]) {
      const url = `https://${host}/${path}`;
      if (path !== "") await seedUrl(pool, { url });
      await seedPage(pool, {
        url,
        title: path === "" ? `Welcome to island ${n}` : `The ${path} of island ${n % 5}`,
        text: `The ferry leaves the old harbour of island ${n} ${"every morning at seven ".repeat(1 + (n % 7))}`,
        language: n % 3 === 0 ? "de" : "en",
        textSearchConfig: n % 3 === 0 ? "german" : "english",
        crawler: n % 2 === 0 ? "athens" : "berlin",
      });
    }
  }
  await addLinks(pool, links());
  await pool.query(`
    update frontier_host set due_at = '2026-03-01T11:00:00Z'::timestamptz - make_interval(secs => url_count * 7 + (host_hash & 1023)),
      left_out_urls = case when host_hash & 3 = 0 then (host_hash & 255) else 0 end
    where state = 'resolved';
    update page set text_group = 77 where url like '%island-%' or url like 'https://site-_.example.org/';
    update page set text_group = null, duplicate_host_hash = null;
    insert into lease (crawler_id, host_hash, host, granted_at, expires_at, url_count, open_urls, ending, addresses, open_url_hashes)
    select 1 + (host_hash & 1), host_hash, host, '2026-03-01T11:50:00Z', '2026-03-01T12:20:00Z', 5, (host_hash & 3) + 1, null, '{}', '{}'
    from frontier_host where host like 'site-1%';
    update frontier_host h set lease_id = l.lease_id from lease l where l.host_hash = h.host_hash;
    insert into double_check (host_hash, url_hash, host, url, crawler_id, cause, opinions, wanted, next_by, verdict, decided_at)
    select host_hash, url_hash, host, url, crawler_id, 'sample', '[]', '{}', '2026-03-01T12:00:00Z', (array['agree', 'alone', 'once'])[1 + (host_hash & 1)::int],
      '2026-03-01T11:30:00Z'::timestamptz - make_interval(mins => (url_hash & 63)::int)
    from page where url like '%/ferry';`);
  await keepAll({ pool, number: 0 });
}

/** Each front page links to those after it, and every ferry to the first harbour. */
function links(): TestLink[] {
  const front = (n: number) => `https://${sites[n % sites.length]}/`;
  const link = (from: string, to: string) => ({ from: keyOf(from), to: keyOf(to), anchor: "an island" });
  return sites.flatMap((_, n) => [
    ...[front(n + 1), front(n + 5), `${front(n)}ferry`].map((to) => link(front(n), to)),
    ...[`${front(0)}harbour`, `https://beyond-${n}.example.net/`].map((to) => link(`${front(n)}ferry`, to)),
  ]);
}

function keyOf(url: string): UrlKey {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

/** A round to count linking hosts, one more to know the first tier. */
async function keepAll({ pool, number }: OpenSlice): Promise<void> {
  const elsewhere = linkingHostsElsewhere(world.slices, number);
  for (let round = 0; round < 2; round++) {
    const now = new Date(worldNow.getTime() + round * 3_600_000);
    while (!(await keepSearch(pool, now, elsewhere)).rests);
  }
}

const searches: readonly (readonly [words: string, options?: SearchOptions])[] = [
  ["ferry harbour"],
  ["ferry", { limit: 100 }],
  ["ferry", { limit: 10, offset: 60 }],
  ["harbour", { sort: "date", limit: 50 }],
  ["island", { host: "site-3.example.org" }],
  ["morning -harbour"],
  ['"old harbour"', { language: "de" }],
  ["harbuor"],
  ["the"],
  ["ferry", { country: "GR", crawler: "athens", explain: true }],
];

async function askAll(reads: Reports): Promise<Answers> {
  const asked: Record<string, () => Promise<unknown>> = {
    totals: async () => await reads.crawlTotals(),
    fleet: async () => await reads.fleet(),
    overview: async () => await showOverview(reads, null, { rates: null, range: "1h", now: worldNow }),
    queue: async () => await reads.queueAges(worldNow),
    leftOut: async () => await reads.leftOutUrls(5),
    waiting: async () => await reads.longestWaiting({ reason: null, most: 100 }, worldNow),
    gauges: async () => await reads.crawlerGauges(100),
    alerts: async () => ({ ...(await reads.alertFacts(worldNow)), databaseMs: 0, disk: null }),
    trust: async () => await reads.charts("trust", range),
    ...Object.fromEntries(
      waitReasons.map((reason) => [
        `waiting for ${reason}`,
        async () => await reads.longestWaiting({ reason, most: 7 }, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      (["rate", "open", "since", "host"] as const).map((sort) => [
        `in hand by ${sort}`,
        async () => await reads.hostsInHand({ sort, most: 4 }, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      [1, 2, 3].map((id) => [`crawler ${id}`, async () => await reads.crawlerDetail(id)]),
    ),
    ...Object.fromEntries(
      searches.map(([words, options]) => [
        `search ${words} ${JSON.stringify(options)}`,
        async () => await searchPages(reads, words, options ?? {}, worldNow),
      ]),
    ),
    ...Object.fromEntries(
      [
        ...["https://site-0.example.org/harbour", "https://site-3.example.org/", "site-7.example.org"],
        ...[
          "www.example.org",
          "nowhere.example.org",
          "https://beyond-1.example.net/",
          "1.2.3.4",
          "1.2.0.0/16",
        ],
        ...["GR", "Example Networks", "athens", "https://unknown.example.com/"],
      ].map((question) => [`who ${question}`, async () => await who(reads, question)]),
    ),
    ...Object.fromEntries(
      [...sites.slice(0, 6).map((host) => `https://${host}/`), "https://site-0.example.org/harbour"].flatMap(
        (url) =>
          [0, 10].map((offset) => [
            `page ${url} from ${offset}`,
            async () =>
              await pageFacts(
                reads,
                { url, hostHash: "", urlHash: "" },
                { fetches: 0, outLinks: 0, inLinks: offset },
              ),
          ]),
      ),
    ),
  };
  const answers: Record<string, unknown> = {};
  for (const [name, ask] of Object.entries(asked)) answers[name] = await ask();
  return answers;
}

const range = {
  since: new Date("2026-03-01T06:00:00Z"),
  until: worldNow,
  now: worldNow,
  name: "6h",
  said: null,
};

const who = async (reads: Reports, question: string): Promise<unknown> =>
  await answerWho(
    question,
    { reads, resolver: tinyResolver, scope: null, order: { name: "anansi", newShare: 0.9 } },
    worldNow,
  );

describe("four slices on two servers", () => {
  it("have hosts each", async () => {
    const counts = await Promise.all(
      world.databases.map(
        async ({ pool }) =>
          (await pool.query("select count(*)::int as hosts from frontier_host")).rows[0].hosts,
      ),
    );
    expect(Math.min(...counts)).toBeGreaterThan(2);
  });

  it("answer as the one did", () => {
    expect(Object.keys(spread)).toEqual(Object.keys(whole));
    const differing = Object.keys(whole).filter(
      (name) => JSON.stringify(spread[name]) !== JSON.stringify(whole[name]),
    );
    for (const name of differing) expect({ [name]: spread[name] }).toEqual({ [name]: whole[name] });
    expect(differing).toEqual([]);
  });
});
