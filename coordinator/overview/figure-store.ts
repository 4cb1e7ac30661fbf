/** Tables minute_figures and crawler_figures: what happened in each minute, and at each crawler in each quarter of an hour. */
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../database/transaction.ts";
import type { CrawlerFigures, FigureStore, Figures } from "./figure-ports.ts";

export function createFigureStore(pool: Pool): FigureStore {
  return {
    add: async (minute, figures, crawlers) =>
      await inTransaction(pool, async (client) => {
        await addMinute(client, minute, figures);
        await addQuarters(client, minute, crawlers);
      }),
    forget: async ({ minutes, quarters }) => {
      const { rowCount } = await pool.query("delete from minute_figures where minute < $1", [minutes]);
      await pool.query("delete from crawler_figures where quarter < $1", [quarters]);
      return rowCount ?? 0;
    },
  };
}

/** Also for a minute in which nothing happened: the row says that somebody was there. */
async function addMinute(client: PoolClient, minute: Date, figures: Figures): Promise<void> {
  const { fetches, pages, fetchedBytes, shippedBytes, rounds, probes, failures } = figures;
  await client.query(
    `insert into minute_figures as m (minute, fetches, pages, fetched_bytes, shipped_bytes, rounds, probes,
       target_failures, network_failures, crawler_failures, our_failures)
     values (date_trunc('minute', $1::timestamptz, 'UTC'), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (minute) do update
     set fetches = m.fetches + excluded.fetches,
         pages = m.pages + excluded.pages,
         fetched_bytes = m.fetched_bytes + excluded.fetched_bytes,
         shipped_bytes = m.shipped_bytes + excluded.shipped_bytes,
         rounds = m.rounds + excluded.rounds,
         probes = m.probes + excluded.probes,
         target_failures = m.target_failures + excluded.target_failures,
         network_failures = m.network_failures + excluded.network_failures,
         crawler_failures = m.crawler_failures + excluded.crawler_failures,
         our_failures = m.our_failures + excluded.our_failures`,
    [
      ...[minute, fetches, pages, fetchedBytes, shippedBytes, rounds, probes],
      ...[failures.target, failures.network, failures.crawler, failures.us],
    ],
  );
}

/** A crawler that was removed meanwhile leaves no figures. In one order, so that two coordinators do not wait for each other. */
async function addQuarters(
  client: PoolClient,
  minute: Date,
  crawlers: readonly CrawlerFigures[],
): Promise<void> {
  if (crawlers.length === 0) return;
  await client.query(
    `insert into crawler_figures as q (quarter, crawler_id, fetches, wire_bytes, target_failures,
       network_failures, crawler_failures, our_failures)
     select date_bin('15 minutes', $1::timestamptz, '2000-01-01T00:00:00Z'), crawler_id, fetches, wire_bytes,
       target_failures, network_failures, crawler_failures, our_failures
     from unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
       as given (crawler_id, fetches, wire_bytes, target_failures, network_failures, crawler_failures, our_failures)
     where exists (select from crawler c where c.crawler_id = given.crawler_id)
     order by crawler_id
     on conflict (quarter, crawler_id) do update
     set fetches = q.fetches + excluded.fetches,
         wire_bytes = q.wire_bytes + excluded.wire_bytes,
         target_failures = q.target_failures + excluded.target_failures,
         network_failures = q.network_failures + excluded.network_failures,
         crawler_failures = q.crawler_failures + excluded.crawler_failures,
         our_failures = q.our_failures + excluded.our_failures`,
    [
      minute,
      crawlers.map(({ crawlerId }) => crawlerId),
      crawlers.map(({ fetches }) => fetches),
      crawlers.map(({ wireBytes }) => wireBytes),
      crawlers.map(({ failures }) => failures.target),
      crawlers.map(({ failures }) => failures.network),
      crawlers.map(({ failures }) => failures.crawler),
      crawlers.map(({ failures }) => failures.us),
    ],
  );
}
