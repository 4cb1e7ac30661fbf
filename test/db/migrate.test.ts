/** Migrations on a real server. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { readPageLinks } from "#coordinator/results/link-writes";
import type { HostHash, UrlHash } from "#core/ids";
import { nameOf, packDifference, packLinks } from "#core/link-set";
import { seededRandom } from "#core/random";
import { migrate } from "#db/migrate";
import { testDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";

test("a fresh schema gets every migration once, and none the second time", async () => {
  const database = await testDatabase();
  try {
    const { rows } = await database.pool.query("select name from migration order by id");
    const again = await migrate(database);

    expect(rows.map((row) => row.name)).toContain("0001-foundation");
    expect(again.applied).toEqual([]);
  } finally {
    await database.close();
  }
});

test("a migration that a reader of its tables stands in the way of starts over", async () => {
  const database = await testDatabase();
  const reader = await database.pool.connect();
  const one = async (text: string) => (await database.pool.query<{ is: boolean }>(text)).rows[0]?.is === true;
  try {
    await database.pool.query(`drop schema "${database.schema}" cascade`);
    const migrated = migrate(database);
    await until(async () => await one("select to_regclass('page_fetch') is not null as is"), 20_000);
    // Who waits first looks first whether it is a deadlock, and is ended: the migration.
    await reader.query("set deadlock_timeout = '30s'; begin; lock table page_fetch in access share mode");
    await until(
      async () =>
        await one(
          "select exists (select from pg_locks where not granted and relation = 'page_fetch'::regclass) as is",
        ),
      20_000,
    );
    await reader.query("select from frontier_url; rollback");

    const { applied } = await migrated;

    const { rows } = await database.pool.query("select name from migration order by id");
    expect(rows.map((row) => row.name)).toContain("0023-url-history");
    expect(applied).toEqual(rows.map((row) => row.name));
  } finally {
    reader.release(true);
    await database.close();
  }
});

/** Migration 0033 undone, of a schema in which it ran: rows there are none. */
const before0033 = `
  drop index channel_known;
  create index frontier_host_name on frontier_host (host);
  alter table lease drop column open_url_hashes;
  alter table frontier_url
    add column lease_id bigint,
    drop constraint frontier_url_state_check,
    add constraint frontier_url_state_check check (state in ('due', 'leased', 'refused', 'gone', 'held'));
  create index frontier_url_lease on frontier_url (lease_id) where lease_id is not null`;

test("what was leased by the state of its URLs is leased by the lists of its leases, which end as ever", async () => {
  const database = await testDatabase();
  const rows = async (text: string) => (await database.pool.query(text)).rows;
  try {
    await database.pool.query(before0033);
    await database.pool.query(
      `insert into crawler (name) values ('athens');
       insert into lease (crawler_id, host_hash, host, granted_at, expires_at, closed_at, url_count, open_urls)
       values (1, 1, 'a.example', '2030-01-01', '2030-01-02', null, 3, 2),
         (1, 2, 'refused.example', '2030-01-01', '2030-01-02', null, 1, 1),
         (1, 3, 'c.example', '2030-01-01', '2030-01-02', '2030-01-01', 1, 0);
       insert into frontier_host (host_hash, host, state, state_reason, due_at, lease_id)
       values (1, 'a.example', 'resolved', '', '2031-01-01', 1), (2, 'refused.example', 'refused', 'private', null, 2),
         (3, 'c.example', 'resolved', '', '2029-01-01', null);
       insert into frontier_url (host_hash, url_hash, url, state, lease_id, next_fetch_at)
       values (1, 10, 'http://a.example/', 'leased', 1, '2029-01-02'), (1, 11, 'http://a.example/1', 'leased', 1, '2029-01-01'),
         (1, 12, 'http://a.example/2', 'due', null, '2031-01-01'), (2, 20, 'http://refused.example/', 'leased', 2, '2029-01-01'),
         (3, 30, 'http://c.example/', 'due', null, '2029-01-01')`,
    );

    await database.pool.query(readFileSync("db/migrations/0033-leases-with-lists.sql", "utf8"));

    expect(await rows("select open_url_hashes as urls from lease order by lease_id")).toEqual([
      { urls: ["11", "10"] },
      { urls: ["20"] },
      { urls: [] },
    ]);
    expect(await rows("select state, last_outcome, last_reason from frontier_url order by url_hash")).toEqual(
      [
        ...[10, 11, 12].map(() => ({ state: "due", last_outcome: null, last_reason: null })),
        { state: "refused", last_outcome: "refused-address", last_reason: "private" },
        { state: "due", last_outcome: null, last_reason: null },
      ],
    );
    expect(await createFrontierStore(database.pool).returnExpired(new Date("2030-01-03"))).toBe(2);
    expect(await rows("select lease_id, due_at from frontier_host order by host_hash")).toEqual([
      { lease_id: null, due_at: new Date("2029-01-01") },
      { lease_id: null, due_at: null },
      { lease_id: null, due_at: new Date("2029-01-01") },
    ]);
  } finally {
    await database.close();
  }
});

test("what redirects and pages said of users and passwords is gone from all rows that kept it", async () => {
  const database = await testDatabase();
  const rows = async (text: string) => (await database.pool.query(text)).rows;
  const [url, without] = ["https://us%20er:se@cret@a.example/@b?c@d", "https://a.example/@b?c@d"];
  try {
    await database.pool.query(
      `insert into page_change (change_number, noted_at, host_hash, url_hash, url, kind, seen_at, location, reason)
       values (1, now(), 1, 10, 'http://a.example/', 'redirected', now(), '${url}', 'to ${url}; not followed'),
         (2, now(), 1, 11, 'http://a.example/1', 'redirected', now(), '${without}', 'to ${without}');
       insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at, location)
       values (1, 10, 'http://a.example/', 'redirected', now(), '${url}');
       insert into frontier_host (host_hash, host, state, state_reason) values (1, 'a.example', 'resolved', '');
       insert into frontier_url (host_hash, url_hash, url, state, next_fetch_at, last_reason)
       values (1, 10, 'http://a.example/', 'due', now(), 'to ${url}'), (1, 11, 'http://a.example/1', 'due', now(), 'a@b');
       insert into rejected_url (url, reason, source)
       values ('ftp://user:secret@a.example/', 'no', 'operator'), ('mailto:user@a.example', 'no', 'operator')`,
    );

    await database.pool.query(readFileSync("db/migrations/0042-urls-without-users.sql", "utf8"));

    expect(await rows("select location, reason from page_change order by change_number")).toEqual([
      { location: without, reason: `to ${without}; not followed` },
      { location: without, reason: `to ${without}` },
    ]);
    expect(await rows("select location from page_change_inbox")).toEqual([{ location: without }]);
    expect(await rows("select last_reason from frontier_url order by url_hash")).toEqual([
      { last_reason: `to ${without}` },
      { last_reason: "a@b" },
    ]);
    expect(await rows("select url from rejected_url")).toEqual([{ url: "mailto:user@a.example" }]);
  } finally {
    await database.close();
  }
});

test("plans that were made by host are read as plans by channel, and their hosts are in no channel", async () => {
  const database = await testDatabase();
  const rows = async (text: string) => (await database.pool.query(text)).rows;
  try {
    await database.pool.query(
      `alter table recrawl_host drop constraint recrawl_host_pkey, drop column channel_id, add primary key (host_hash);
       insert into recrawl_host (host_hash, changes_per_day, pages, recrawl_group) values (1, 2, 3, 0);
       insert into recrawl_plan (made_at, strategy, reason, plan)
       values ('2030-01-01', 'iir', 'first', '{"pages": 7, "groups": [{"hosts": 1, "pages": 3}, {"hosts": 2, "pages": 4}]}'),
         ('2030-01-02', 'optimal', 'then', '{"pages": 7, "groups": []}')`,
    );

    await database.pool.query(readFileSync("db/migrations/0038-recrawl-by-channel.sql", "utf8"));

    expect(await rows("select plan from recrawl_plan order by plan_id")).toEqual([
      {
        plan: {
          pages: 7,
          groups: [
            { channels: 1, pages: 3 },
            { channels: 2, pages: 4 },
          ],
        },
      },
      { plan: { pages: 7, groups: [] } },
    ]);
    expect(await rows("select channel_id, recrawl_group from recrawl_host")).toEqual([
      { channel_id: 0, recrawl_group: 0 },
    ]);
  } finally {
    await database.close();
  }
});

/** Migration 0052 undone, of a schema in which it ran: rows there are none. */
const before0052 = `
  drop view link;
  drop table out_link;
  create table link (
    host_hash bigint not null, url_hash bigint not null, to_host_hash bigint not null, to_url_hash bigint not null,
    anchor text not null, nofollow boolean not null,
    primary key (host_hash, url_hash, to_host_hash, to_url_hash)
  ) partition by hash (host_hash);
  create table link_0 partition of link for values with (modulus 1, remainder 0);
  create index link_to on link (to_host_hash, to_url_hash)`;

test("links that were a row each are the same in the rows of their pages, with the visits before them", async () => {
  const database = await testDatabase();
  const { pool } = database;
  const rows = async (text: string) => (await pool.query(text)).rows;
  const random = seededRandom(52);
  const urls = Array.from({ length: 40 }, (_, at) => [`${(at % 6) - 3}`, `${1000 + at}`] as const);
  const target = ([hostHash, urlHash]: (typeof urls)[number]) =>
    ({ hostHash, urlHash }) as { hostHash: HostHash; urlHash: UrlHash };
  const all = "select * from link order by host_hash, url_hash, to_host_hash, to_url_hash";
  try {
    await pool.query(before0052);
    const linksOf = new Map(urls.slice(0, 20).map((page) => [page, urls.filter(() => random() < 0.4)]));
    for (const [[host, url], links] of linksOf) {
      await pool.query(
        `insert into link
         select $1, $2, to_host, to_url, case when to_url % 3 = 0 then 'ü, ' || to_url else '' end, to_url % 5 = 0
         from unnest($3::bigint[], $4::bigint[]) as given (to_host, to_url)`,
        [host, url, links.map(([to]) => to), links.map(([, to]) => to)],
      );
    }
    const [page, silent, optedOut, old] = urls as [
      (typeof urls)[0],
      (typeof urls)[0],
      (typeof urls)[0],
      (typeof urls)[0],
    ];
    const [was, is] = [urls.slice(0, 7).map(target), linksOf.get(page)!.map(target)];
    await pool.query("delete from link where (host_hash, url_hash) in (($1, $2), ($3, $4))", [
      ...silent,
      ...optedOut,
    ]);
    await pool.query(
      `insert into page_links (host_hash, url_hash, visit, visited_at, link_count, adjacency)
       values ($1, $2, 2, '2030-01-01', 7, $9), ($1, $2, 4, '2030-01-02', $10, $11), ($3, $4, 3, '2030-01-03', 0, $12),
         ($5, $6, 1, '2030-01-04', 7, $13), ($7, $8, 1, '2030-01-05', 1, $14)`,
      [
        ...[page, silent, optedOut, old].flat(),
        ...[
          packDifference(was, is),
          is.length,
          packLinks(is),
          packLinks([]),
          packLinks(was),
          packLinks(was.slice(0, 1)),
        ],
      ],
    );
    const before = await rows(all);

    await pool.query(readFileSync("db/migrations/0052-out-links.sql", "utf8"));

    expect(await rows(all)).toEqual(before);
    expect(before.length).toBeGreaterThan(200);
    const names = async (url: (typeof urls)[number]) =>
      (await readPageLinks(pool as never, target(url))).map(({ visit, links }) => [
        visit,
        links.map(nameOf).sort(),
      ]);
    expect(await names(page)).toEqual([
      [4, is.map(nameOf).sort()],
      [2, was.map(nameOf).sort()],
    ]);
    expect(await names(silent)).toEqual([[3, []]]);
    expect(await names(optedOut)).toEqual([]);
    // A visit that an older coordinator took left no trace: what page_links had stays, before it.
    expect((await names(old)).map(([visit]) => visit)).toEqual([2, 1]);
    expect(await rows("select count(*)::int from page_links")).toEqual([{ count: 2 }]);
  } finally {
    await database.close();
  }
});
