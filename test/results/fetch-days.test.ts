/**
 * The partitions of page_fetch: a table for each day, made ahead, dropped when it is old, and a default for what has
 * no day.
 */
import { beforeEach, expect, it } from "vitest";
import { type KeptFetchDays, keepFetchDays } from "#coordinator/crawl/results/fetch-day-store";
import { copyDatabase } from "#db/copy-database";
import { migrate } from "#db/migrate";
import { openServerDatabase } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";

const database = await forThisFile(testDatabase({ maxConnections: 10 }));
beforeEach(async () => {
  for (const name of await parts()) await database.pool.query(`drop table ${name}`);
  await database.pool.query("delete from page_fetch");
});

const noon = new Date("2031-03-10T12:00:00Z");
const daysAfter = (days: number) => new Date(noon.getTime() + days * 86_400_000);

async function parts(): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'page_fetch'::regclass and inhrelid <> 'page_fetch_default'::regclass order by 1`,
  );
  return rows.map(({ name }) => name);
}

async function fetched(...times: readonly Date[]): Promise<void> {
  await database.pool.query(
    `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes,
       shipped_bytes)
     select 1, 1, 1, at, 'fetched', 1, 1, 1, 1 from unnest($1::timestamptz[]) at`,
    [times],
  );
}

/** By partition. */
async function counts(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<{ name: string; rows: number }>(
    "select tableoid::regclass::text as name, count(*)::int as rows from page_fetch group by 1 order by 1",
  );
  return Object.fromEntries(rows.map(({ name, rows: count }) => [name, count]));
}

const keep = async (now: Date, keepDays = 5): Promise<KeptFetchDays | null> =>
  await keepFetchDays(database.pool, { keepDays, now });

it("makes today and three days ahead, once, and each fetch is in its day", async () => {
  const first = await keep(noon);
  const again = await keep(noon);
  await fetched(new Date("2031-03-10T00:00:00Z"), new Date("2031-03-10T23:59:59.999Z"), daysAfter(1));

  expect(first?.made).toEqual([
    ...["page_fetch_20310310", "page_fetch_20310311", "page_fetch_20310312", "page_fetch_20310313"],
  ]);
  expect(again).toEqual({ made: [], dropped: [], moved: 0, deleted: 0 });
  expect(await counts()).toEqual({ page_fetch_20310310: 2, page_fetch_20310311: 1 });
});

it("drops a day only when its last fetch is older than fetches are kept", async () => {
  await keep(noon);
  await fetched(noon);

  const before = await keep(daysAfter(5));
  const kept = await counts();
  const after = await keep(daysAfter(6));

  expect(before?.dropped).toEqual([]);
  expect(kept).toEqual({ page_fetch_20310310: 1 });
  expect(after?.dropped).toEqual(["page_fetch_20310310"]);
  expect(await counts()).toEqual({});
});

it("accepts results after weeks without new days, and moves them into their days next time", async () => {
  await keep(noon);
  await fetched(daysAfter(20), daysAfter(20), daysAfter(21));
  const waiting = await counts();

  const kept = await keep(daysAfter(21));

  expect(waiting).toEqual({ page_fetch_default: 3 });
  expect(kept).toMatchObject({ moved: 3, deleted: 0 });
  expect(kept?.dropped).toHaveLength(4);
  expect(await counts()).toEqual({ page_fetch_20310330: 2, page_fetch_20310331: 1 });
});

it("keeps fetches from a fast clock until their day comes, and drops those too old for a day", async () => {
  await keep(noon);
  await fetched(daysAfter(400), daysAfter(-1), daysAfter(-30), new Date("1970-01-01T00:00:00Z"));

  const kept = await keep(noon);
  const counted = await counts();
  await keep(daysAfter(398), 1000);

  expect(kept).toMatchObject({ made: ["page_fetch_20310309"], moved: 1, deleted: 2 });
  expect(counted).toEqual({ page_fetch_20310309: 1, page_fetch_default: 1 });
  expect(await counts()).toEqual({ page_fetch_20310309: 1, page_fetch_20320413: 1 });
});

it("continues when the clock jumps a day ahead and back", async () => {
  await keep(noon);
  await keep(daysAfter(1));
  await fetched(daysAfter(1));
  await keep(noon);
  await fetched(noon);

  expect(await counts()).toEqual({ page_fetch_20310310: 1, page_fetch_20310311: 1 });
});

it("is done by one of two coordinators while results come in, none of which fails or is lost", async () => {
  await fetched(...Array.from({ length: 200 }, (_, at) => daysAfter((at % 4) - 1)));
  const writing = Array.from({ length: 40 }, async (_, at) => await fetched(daysAfter((at % 5) - 1)));

  const [kept] = await Promise.all([Promise.all([keep(noon), keep(noon), keep(noon)]), ...writing]);
  await keep(noon);

  const done = kept.filter((one) => one !== null);
  expect(done.flatMap(({ made }) => made)).toHaveLength(new Set(done.flatMap(({ made }) => made)).size);
  const counted = await counts();
  expect(counted.page_fetch_default).toBeUndefined();
  expect(Object.values(counted).reduce((sum, rows) => sum + rows, 0)).toBe(240);
});

it("a fetch written while its day is made waits and is in its day", async () => {
  await fetched(noon);
  const reader = await database.pool.connect();
  await reader.query("begin; select count(*) from page_fetch_default");
  // The day waits for the reader, and the fetch for the day.
  const made = keep(noon);
  const waiting = async (most: number) =>
    await until(async () => {
      const { rows } = await database.pool.query<{ waiting: number }>(
        "select count(*)::int as waiting from pg_locks where not granted and relation in ('page_fetch'::regclass, 'page_fetch_default'::regclass)",
      );
      return rows[0]!.waiting >= most;
    }, 1500);
  await waiting(1);
  const written = fetched(daysAfter(0));
  await waiting(2);
  await reader.query("rollback");
  reader.release();
  await Promise.all([made, written]);

  expect(await counts()).toEqual({ page_fetch_20310310: 2 });
});

it("yields to a reader of the table, and succeeds next time", async () => {
  await keep(noon);
  await fetched(noon);
  const reader = await database.pool.connect();
  await reader.query("begin; select count(*) from page_fetch");

  await expect(keep(daysAfter(6))).rejects.toMatchObject({ code: "55P03" });
  await reader.query("rollback");
  reader.release();
  await keep(daysAfter(6));

  expect(await counts()).toEqual({});
});

it("a copy of the database has its source's days", async () => {
  await keep(noon);
  await fetched(noon, daysAfter(1), daysAfter(50));
  const copy = await openServerDatabase({ databaseUrl: database.url, schema: "copied_days" });
  try {
    await copyDatabase(database, copy);
    const { rows } = await copy.pool.query(
      "select tableoid::regclass::text as name, count(*)::int as rows from page_fetch group by 1 order by 1",
    );

    expect(Object.fromEntries(rows.map(({ name, rows: count }) => [name, count]))).toEqual(await counts());
  } finally {
    await copy.pool.query("drop schema copied_days cascade");
    await copy.close();
  }
}, 120_000);

it("fetches from before there were days stay until the last of them is old", async () => {
  const old = await openServerDatabase({ databaseUrl: database.url, schema: "old_days" });
  try {
    await migrate(old);
    await old.pool.query(beforeDays);
    await old.pool.query(
      `insert into page_fetch (host_hash, url_hash, crawler_id, fetched_at, outcome, total_ms, wire_bytes, body_bytes,
         shipped_bytes)
       select n, 1, 1, now() - interval '3 days', 'fetched', 1, 1, 1, 1 from generate_series(1, 20) n`,
    );

    const now = new Date();
    const kept = await keepFetchDays(old.pool, { keepDays: 5, now });
    const { rows: before } = await old.pool.query(
      "select count(*)::int as rows from page_fetch where host_hash = 7",
    );
    const later = await keepFetchDays(old.pool, {
      keepDays: 5,
      now: new Date(now.getTime() + 7 * 86_400_000),
    });

    expect(kept?.made).toHaveLength(3);
    expect(before).toEqual([{ rows: 1 }]);
    expect(later?.dropped).toContain("page_fetch_before");
    expect((await old.pool.query("select from page_fetch")).rowCount).toBe(0);
  } finally {
    await old.pool.query("drop schema old_days cascade");
    await old.close();
  }
}, 120_000);

/**
 * As in a database from before there were days: the eight tables of then, one partition up to the end of that day.
 */
const beforeDays = `
  create table page_fetch_before (like page_fetch) partition by hash (host_hash);
  create table page_fetch_0 partition of page_fetch_before for values with (modulus 2, remainder 0);
  create table page_fetch_1 partition of page_fetch_before for values with (modulus 2, remainder 1);
  do $$
  begin
    execute format('alter table page_fetch attach partition page_fetch_before for values from (minvalue) to (%L)',
      date_trunc('day', now(), 'UTC') + interval '1 day');
  end $$`;
