/**
 * Which crawlers hand their subnets over, and which were not yet given what is nearest to them (table crawler).
 * Both outlive a coordinator and its crawlers' sessions.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { tell } from "#db/schema-channel";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import type { BudgetChange, ChangedBudget, DrainedBy } from "./crawler.ts";
import type { SessionEnd } from "./session-ends.ts";

/** `online` and `draining` are the two ways of being connected. */
export const connectedState = "case when draining_since is null then 'online' else 'draining' end";

/** Draining anew what is draining changes nothing but who asked for it; a partner's word never replaces another's. */
export async function drainCrawler(
  pool: Pool,
  name: string,
  now: Date,
  by: DrainedBy = "operator",
): Promise<boolean> {
  return await changeOne(
    pool,
    `update crawler c
     set draining_since = coalesce(draining_since, $2),
         drain_asked_by = case when $3 = 'partner' then coalesce(drain_asked_by, $3) else $3 end,
         drain_subnets = case when draining_since is null
           then (select count(*) from delegation d where d.crawler_id = c.crawler_id)
           else drain_subnets end,
         state = case when state = 'online' then 'draining' else state end
     where name = $1
     returning crawler_id`,
    [name, now, by],
  );
}

/**
 * What it had went to others, so it is to be given what is nearest to it. A partner takes back what it drained itself,
 * and nothing that is not trusted.
 */
export async function resumeCrawler(
  pool: Pool,
  name: string,
  now: Date,
  by: DrainedBy = "operator",
): Promise<boolean> {
  return await changeOne(
    pool,
    `update crawler
     set draining_since = null,
         drain_asked_by = null,
         joining_since = case when draining_since is null then joining_since else coalesce(joining_since, $2) end,
         state = case when state = 'draining' then 'online' else state end
     where name = $1
       and ($3 <> 'partner' or (
         (draining_since is null or drain_asked_by = 'partner')
         and not exists (
           select from crawler_trust t where t.crawler_id = crawler.crawler_id and t.distrusted_at is not null
         )
       ))
     returning crawler_id`,
    [name, now, by],
  );
}

/** `sql` changes a crawler's row and returns its crawler_id; false: there is none that it applies to. */
async function changeOne(pool: Pool, sql: string, values: readonly unknown[]): Promise<boolean> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<ChangedRow>(sql, [...values]);
    await tellOfCrawlers(client, rows);
    return rows.length === 1;
  });
}

interface ChangedRow {
  readonly crawler_id: number;
}

/** Running coordinators, of crawlers whose rows were changed. */
export const tellOfCrawlers = async (client: PoolClient, rows: readonly ChangedRow[]): Promise<void> =>
  await tell(
    client,
    "nearcrawl_fleet",
    rows.map((row) => String(row.crawler_id)),
  );

export interface Departure {
  readonly crawlerId: CrawlerId;
  readonly reason: string;
  readonly code?: SessionEnd["code"];
  readonly forGood?: boolean;
  readonly now: Date;
}

/**
 * Offline; one that said that it leaves for good hands its subnets over from now on. Of each, false: it is another
 * coordinator's by now, which knows better. In one statement for all, since a whole fleet may go at once.
 */
export async function crawlersLeave(
  pool: Pool,
  departures: readonly Departure[],
  coordinatorNumber: number | null,
): Promise<boolean[]> {
  // Who left and came and left within the time of one statement left last.
  const last = [...new Map(departures.map((one) => [one.crawlerId, one])).values()];
  const given = last.map((one) => ({ ...one, code: one.code ?? null, forGood: one.forGood ?? false }));
  const { rows } = await pool.query<{ crawler_id: number }>(
    `update crawler c
     set state = 'offline',
         offline_reason = given.reason,
         offline_code = given.code,
         last_seen_at = given.at,
         draining_since = case when given.for_good then coalesce(draining_since, given.at) else draining_since end,
         drain_asked_by = case when given.for_good then coalesce(drain_asked_by, 'crawler') else drain_asked_by end,
         drain_subnets = case when given.for_good and draining_since is null
           then (select count(*) from delegation d where d.crawler_id = c.crawler_id)
           else drain_subnets end
     from unnest($1::int[], $2::text[], $3::text[], $4::boolean[], $5::timestamptz[])
       as given (crawler_id, reason, code, for_good, at)
     where c.crawler_id = given.crawler_id and coordinator_number is not distinct from $6
     returning c.crawler_id`,
    [...columnsOf(given, ["crawlerId", "reason", "code", "forGood", "now"]), coordinatorNumber],
  );
  const own = new Set(rows.map((row) => row.crawler_id));
  return departures.map(({ crawlerId }) => own.has(crawlerId));
}

export async function mustJoin(pool: Pool, crawlerId: CrawlerId, now: Date): Promise<void> {
  await pool.query("update crawler set joining_since = $2 where crawler_id = $1 and joining_since is null", [
    crawlerId,
    now,
  ]);
}

export async function hasJoined(pool: Pool, crawlerId: CrawlerId): Promise<void> {
  await pool.query("update crawler set joining_since = null where crawler_id = $1", [crawlerId]);
}

/** What a crawler that never came has until its partner says (table `crawler`). */
const usual = { pages: 100_000, bytes: 10_000_000_000 } as const;

/** SQL. */
const budgetOf = (columns: string): string =>
  `json_build_object('pagesPerDay', ${columns}pages_per_day, 'bytesPerDay', ${columns}bytes_per_day)`;

/** What is left out stays. Null: there is no crawler of that name. */
export async function grantBudget(
  pool: Pool,
  name: string,
  change: BudgetChange,
): Promise<ChangedBudget | null> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<ChangedRow & ChangedBudget>(
      `with old as (
         select * from crawler where name = $1 for update
       )
       update crawler c
       set granted_pages_per_day = g.pages,
           granted_bytes_per_day = g.bytes,
           pages_per_day = least(g.pages, coalesce(old.partner_pages_per_day,
             case when old.connected_at is null then coalesce(g.pages, ${usual.pages}) else old.pages_per_day end)),
           bytes_per_day = least(g.bytes, coalesce(old.partner_bytes_per_day,
             case when old.connected_at is null then coalesce(g.bytes, ${usual.bytes}) else old.bytes_per_day end))
       from old
       cross join lateral (
         select case when $2 then $3::integer else old.granted_pages_per_day end as pages,
           case when $4 then $5::bigint else old.granted_bytes_per_day end as bytes
       ) g
       where c.crawler_id = old.crawler_id
       returning c.crawler_id,
         ${budgetOf("old.granted_")} as before, ${budgetOf("c.granted_")} as granted, ${budgetOf("c.")} as "inForce"`,
      [
        name,
        change.pagesPerDay !== undefined,
        change.pagesPerDay ?? null,
        change.bytesPerDay !== undefined,
        change.bytesPerDay ?? null,
      ],
    );
    if (rows[0] === undefined) return null;
    await tellOfCrawlers(client, rows);
    const { before, granted, inForce } = rows[0];
    return { before, granted, inForce };
  });
}
