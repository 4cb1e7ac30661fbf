/** New ranks replace the former ones as a whole table: what remains, and who waits for whom. */
import { beforeAll, expect, it } from "vitest";
import { rankLocally } from "#coordinator/crawl/web-graph/local-rank-store";
import { defaultPageRankSettings } from "#coordinator/crawl/web-graph/page-rank";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { seedGraph } from "./graph-in-database.ts";

const database = await forThisFile(testDatabase({ allParts: true }));
beforeAll(async () => await seedGraph(database.pool, 3, 0.85));

const rank = async (hour: number) =>
  await rankLocally(database.pool, {
    ...{ settings: defaultPageRankSettings, write: true },
    at: new Date(Date.UTC(2030, 0, 1, hour)),
  });
const one = async <Row extends object>(sql: string) => (await database.pool.query<Row>(sql)).rows[0]!;
const rankedAt = async () =>
  (await one<{ at: Date }>("select max(ranked_at) as at from url_rank")).at.getUTCHours();

const layout = `
  select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds,
    (select string_agg(pg_get_indexdef(i.indexrelid), '; ') from pg_index i where i.indrelid = c.oid) as indexes
  from pg_inherits h
  join pg_class c on c.oid = h.inhrelid
  where h.inhparent = 'url_rank'::regclass
  order by c.relname`;

it("a ranking replaces the one before, and the table is as the migrations made it", async () => {
  const before = (await database.pool.query(layout)).rows;
  await rank(1);
  const sizes =
    "select sum(pg_total_relation_size(inhrelid))::int as bytes from pg_inherits where inhparent = 'url_rank'::regclass";
  const first = await one<{ bytes: number }>(sizes);
  for (const hour of [2, 3, 4]) await rank(hour);

  expect(await one<{ bytes: number }>(sizes)).toEqual(first);
  expect((await database.pool.query(layout)).rows).toEqual(before);
  expect(before).toHaveLength(8);
  const { ranks, estimate } = await one<{ ranks: number; estimate: number }>(
    `select (select count(*)::int from url_rank) as ranks,
       (select sum(reltuples)::int from pg_class c join pg_inherits i on i.inhrelid = c.oid
        where i.inhparent = 'url_rank'::regclass) as estimate`,
  );
  expect(ranks).toBeGreaterThan(20);
  expect(estimate).toBe(ranks);
  expect(
    (
      await one<{ left: number }>(
        "select count(*)::int as left from pg_class where relname like 'url_rank_next%'",
      )
    ).left,
  ).toBe(0);
});

it("readers of the ranks continue, and nobody waits behind the swap for them", async () => {
  await rank(5);
  const reader = await database.pool.connect();
  await reader.query("begin; select count(*) from url_rank");

  const ranking = rank(6);
  await until(
    async () =>
      (
        await one<{ waits: boolean }>(
          "select exists (select from pg_locks where not granted and relation = 'url_rank'::regclass) as waits",
        )
      ).waits,
    60_000,
  );
  // Answered while the reader is still there: the swap steps back.
  const meanwhile = await rankedAt();
  await reader.query("commit");
  reader.release();
  await ranking;

  expect(meanwhile).toBe(5);
  expect(await rankedAt()).toBe(6);
}, 120_000);
