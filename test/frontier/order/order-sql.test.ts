/** The order of a host's due URLs, asked of Postgres, is what the strategies say. Seeded random rows. */
import { beforeAll, describe, expect, it } from "vitest";
import {
  dueUrlsLookedAt,
  leaseOrder,
  placedUrls,
  reckonFromStart,
  reckonWorths,
} from "#coordinator/crawl/frontier/order/order-sql";
import {
  isNew,
  type OrderName,
  orderNames,
  orderStrategy,
  scoreOf,
  type UrlFacts,
} from "#coordinator/crawl/frontier/order/strategies";
import { seededRandom } from "#core/random";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { hostWorth, mixLists, owedAfter } from "./mix-model.ts";

const now = new Date("2030-01-01T12:00:00.250Z");
const hostHash = "7";

const database = await forThisFile(testDatabase());
beforeAll(async () => {
  await database.pool.query(
    `insert into frontier_host (host_hash, host, mix_carry, state, due_at)
     values (${hostHash}, 'a.example', 0, 'resolved', '2029-01-01')`,
  );
  await seedUrls(600);
});

/** Half of them visited, with whatever may be unknown of them unknown now and then; ages up to a year, and in the future. */
async function seedUrls(count: number): Promise<void> {
  const random = seededRandom(8);
  const orNull = (value: number) => (random() < 0.2 ? null : value);
  const rows = Array.from({ length: count }, (_, index) => {
    const visited = random() < 0.5;
    return {
      url_hash: index + 1,
      depth: Math.floor(random() * 8),
      back_links: Math.floor(random() ** 4 * 500),
      due: -Math.floor(random() * 1e6),
      visited_ago: visited ? (random() - 0.02) * 31_000_000 : null,
      out_links: visited ? orNull(Math.floor(random() * 300)) : null,
      change_ratio: visited ? orNull(Math.floor(random() * 11) / 10) : null,
      page_rank: orNull(random() ** 6),
    };
  });
  await database.pool.query(
    `with given as (
       select * from jsonb_to_recordset($2::jsonb) as x (url_hash bigint, depth int, back_links int, due int,
         visited_ago float8, out_links int, change_ratio real, page_rank real)
     ), urls as (
       insert into frontier_url (host_hash, url_hash, url, depth, back_links, next_fetch_at, last_fetched_at, out_links,
         change_ratio)
       select ${hostHash}, url_hash, 'http://a.example/' || url_hash, depth, back_links,
         $1::timestamptz + make_interval(secs => due), $1::timestamptz - make_interval(secs => visited_ago), out_links,
         change_ratio
       from given
     )
     insert into url_rank (host_hash, url_hash, page_rank, ranked_at)
     select ${hostHash}, url_hash, page_rank, $1
     from given
     where page_rank is not null`,
    [now, JSON.stringify(rows)],
  );
}

interface Seeded extends UrlFacts {
  readonly urlHash: string;
}

async function seeded(): Promise<Seeded[]> {
  const { rows } = await database.pool.query<Seeded>(
    `select u.url_hash as "urlHash", u.back_links as "backLinks", u.out_links as "outLinks",
       u.change_ratio::float8 as "changeRatio",
       r.page_rank::float8 as "pageRank", extract(epoch from $1 - u.last_fetched_at)::float8 as "ageSeconds",
       extract(epoch from $1 - u.next_fetch_at)::float8 as "dueSeconds", u.depth
     from frontier_url u
     left join url_rank r using (host_hash, url_hash)
     where u.host_hash = ${hostHash}`,
    [now],
  );
  return rows;
}

describe.each(orderNames)("%s", (name) => {
  it("gives every URL the score that its strategy gives it", async () => {
    const urls = await seeded();
    const { rows } = await database.pool.query<{ url_hash: string; score: number }>(
      `select x.* from (select ${hostHash}::bigint as host_hash) h cross join lateral (${placedUrls(name, "$1")}) x`,
      [now],
    );

    const scores = new Map(rows.map((row) => [row.url_hash, row.score]));

    expect(scores.size).toBe(600);
    for (const url of urls) {
      const expected = scoreOf(orderStrategy(name), url);
      expect(scores.get(url.urlHash)! - expected, url.urlHash).toBeLessThanOrEqual(1e-9 * Math.abs(expected));
      expect(expected - scores.get(url.urlHash)!, url.urlHash).toBeLessThanOrEqual(1e-9 * Math.abs(expected));
    }
  });
});

describe.each(orderNames.filter((name) => name !== "breadth-first"))("%s", (name) => {
  it("leases the URLs that the strategy puts first, new and old ones in the wanted shares", async () => {
    const { items, carry } = await picked(name, null);

    expect(items).toEqual((await expectedLease(name, 20, 14)).map((url) => url.urlHash));
    expect(carry).toBeCloseTo(0, 9);
  });

  it("leases the new URLs worth as much as the next host, of a host chosen by worth", async () => {
    const urgent = (await urgentFirst(name)).filter(isNew);
    const least = scoreOf(orderStrategy(name), urgent[5]!);

    const { items, carry } = await picked(name, least * (1 - 1e-9));

    const worthy = urgent.filter((url) => scoreOf(orderStrategy(name), url) >= least);
    expect(items).toEqual(worthy.slice(0, 20).map((url) => url.urlHash));
    expect(carry).toBeCloseTo(owedAfter(items.length, 0.7, 0), 9);
  });

  it("leases a usual slice of a host that is worth less than assumed", async () => {
    const { items, carry } = await picked(name, 1e9);

    expect(items).toHaveLength(20);
    expect(carry).toBeCloseTo(0, 9);
  });

  it("leases what the strategy puts next from a shortlist, without reading the others", async () => {
    const urgent = await urgentFirst(name);
    const newUrls = urgent.filter(isNew);
    const oldUrls = urgent.filter((url) => !isNew(url));

    await picked(name, null);
    const second = await picked(name, null, { listed: true });
    const worthy = await picked(name, scoreOf(orderStrategy(name), newUrls[32]!) * (1 - 1e-6), {
      listed: true,
    });
    await fetched([newUrls[36]!, oldUrls[13]!]);
    const last = await picked(name, null, { listed: true });
    await due([newUrls[36]!, oldUrls[13]!]);

    const expected = (from: number, oldFrom: number, without: readonly Seeded[] = []) => {
      const left = (urls: readonly Seeded[]) => urls.filter((url) => !without.includes(url));
      const lists = { newUrls: left(newUrls.slice(from)), oldUrls: left(oldUrls.slice(oldFrom)) };
      return mixLists(lists, 20, 14).map((url) => url.urlHash);
    };
    const least = scoreOf(orderStrategy(name), newUrls[32]!);
    const worthyUrls = newUrls
      .slice(28)
      .filter((url) => scoreOf(orderStrategy(name), url) >= least * (1 - 1e-6));
    expect(second.items).toEqual(expected(14, 6));
    expect(second.restWorth / scoreOf(orderStrategy(name), newUrls[28]!)).toBeCloseTo(1, 5);
    expect(worthy.items).toEqual(worthyUrls.slice(0, 20).map((url) => url.urlHash));
    expect(last.items).toEqual(expected(28 + worthy.items.length, 12, [newUrls[36]!, oldUrls[13]!]));
  });

  it("computes the host's worth with and without the leased URLs", async () => {
    const strategy = orderStrategy(name);
    const urls = await seeded();
    await reckonWorths(database.pool, name, { after: reckonFromStart, now });
    const { rows } = await database.pool.query<{ worth: number }>(
      `select worth from frontier_host where host_hash = ${hostHash}`,
    );

    const { items, restWorth } = await picked(name, null);

    const others = urls.filter((url) => !items.includes(url.urlHash));
    expect(rows[0]?.worth).toBeCloseTo(hostWorth(strategy, urls)!, 9);
    expect(restWorth).toBeCloseTo(hostWorth(strategy, others)!, 9);
  });
});

/**
 * Of 20 slots 14 are for new URLs. `least`: the least worth, of a host that goes by its worth. `listed`: the shortlist that
 * the lease before made stands; it is made anew otherwise.
 */
async function picked(name: OrderName, least: number | null, { listed = false } = {}) {
  if (!listed) await database.pool.query("delete from url_shortlist");
  const order = leaseOrder({ name, newShare: 0.7 })!;
  const { rows } = await database.pool.query<{ items: string[]; restWorth: number; carry: number }>(
    `with ${order.before}due as materialized (${order.due})${order.after}
     select array(select url_hash from due order by turn) as items, left_over.rest_worth as "restWorth",
       left_over.next_carry as carry
     from left_over, (select $1::text as a, $3::text as b, $5::text as c, $6::text as d) others`,
    ["", now, "", [hostHash], "", "", [20], order.newShare, [least], [0]],
  );
  return rows[0]!;
}

const dueIn = async (urls: readonly Seeded[], seconds: (url: Seeded) => number) =>
  await database.pool.query(
    `update frontier_url u
     set next_fetch_at = $1::timestamptz + make_interval(secs => given.seconds)
     from unnest($2::bigint[], $3::float8[]) as given (url_hash, seconds)
     where u.host_hash = ${hostHash} and u.url_hash = given.url_hash`,
    [now, urls.map(({ urlHash }) => urlHash), urls.map(seconds)],
  );
const fetched = async (urls: readonly Seeded[]) => await dueIn(urls, () => 600);
const due = async (urls: readonly Seeded[]) => await dueIn(urls, ({ dueSeconds }) => -dueSeconds);

async function urgentFirst(name: OrderName): Promise<Seeded[]> {
  const strategy = orderStrategy(name);
  return (await seeded()).sort(
    (a, b) =>
      scoreOf(strategy, b) - scoreOf(strategy, a) ||
      b.dueSeconds - a.dueSeconds ||
      a.depth - b.depth ||
      Number(a.urlHash) - Number(b.urlHash),
  );
}

async function expectedLease(name: OrderName, slots: number, slotsForNew: number) {
  const urls = await urgentFirst(name);
  const newUrls = urls.filter(isNew);
  const oldUrls = urls.filter((url) => !isNew(url));
  return mixLists({ newUrls, oldUrls }, slots, slotsForNew);
}

it("of a host with very many due URLs only the longest due are examined", async () => {
  await database.pool.query(
    `insert into frontier_url (host_hash, url_hash, url, back_links, next_fetch_at)
     select 8, n, 'http://b.example/' || n, n, $1::timestamptz - make_interval(secs => 100000 - n)
     from generate_series(1, ${dueUrlsLookedAt + 50}) n`,
    [now],
  );

  const { rows } = await database.pool.query<{ url_hash: string }>(
    `select x.url_hash
     from (select 8::bigint as host_hash) h
     cross join lateral (${placedUrls("back-links", "$1")}) x
     where x.place = 1`,
    [now],
  );

  expect(rows).toEqual([{ url_hash: String(dueUrlsLookedAt) }]);
});
