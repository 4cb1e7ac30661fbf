/**
 * Which crawlers are draining, and which have not yet been given the subnets nearest to them (table crawler). Both
 * states survive restarts of coordinators and crawlers.
 */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import { tell } from "#db/schema-channel";
import { columnsOf, inTransaction } from "../../database/transaction.ts";
import type { BudgetChange, ChangedBudget, DrainedBy } from "./crawler.ts";
import type { SessionEnd } from "./sessions.ts";

export const connectedState = "case when draining_since is null then 'online' else 'draining' end";

/** Draining a crawler that already drains only updates who asked. A partner never replaces an operator. */
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
 * Ends draining. The crawler joins again, since its subnets went to others. A partner can only resume what it drained itself,
 * and only a trusted crawler.
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

/** Runs an update that returns crawler_id. Returns false if no row matched. */
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

export const tellOfCrawlers = async (client: PoolClient, rows: readonly ChangedRow[]): Promise<void> =>
  await tell(
    client,
    "nearcrawl_fleet",
    rows.map((row) => String(row.crawler_id)),
  );

/** Requests something of crawlers and notifies coordinators. `asking` is the update without `returning`. */
export async function askCrawlers(
  pool: Pool,
  asking: string,
  values: readonly unknown[],
): Promise<{ readonly name: string; readonly online: boolean }[]> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<ChangedRow & { readonly name: string; readonly online: boolean }>(
      `with asked as (${asking} returning crawler_id, name, state)
       select crawler_id, name, state <> 'offline' as online
       from asked
       order by name`,
      [...values],
    );
    await tellOfCrawlers(client, rows);
    return rows.map(({ name, online }) => ({ name, online }));
  });
}

export interface Departure {
  readonly crawlerId: CrawlerId;
  readonly reason: string;
  readonly code?: SessionEnd["code"];
  readonly forGood?: boolean;
  readonly now: Date;
}

/**
 * Marks crawlers offline, and draining if they leave for good. Returns false for a crawler that another coordinator
 * has taken over. One statement handles all, since a whole fleet may leave at once.
 */
export async function crawlersLeave(
  pool: Pool,
  departures: readonly Departure[],
  coordinatorNumber: number | null,
): Promise<boolean[]> {
  // If a batch has several departures of one crawler, the last counts.
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

/** Budget of a crawler that has never connected, until its partner states one (defaults of table `crawler`). */
const usual = { pages: 100_000, bytes: 10_000_000_000 } as const;

const budgetOf = (columns: string): string =>
  `json_build_object('pagesPerDay', ${columns}pages_per_day, 'bytesPerDay', ${columns}bytes_per_day)`;

/** Omitted limits stay unchanged. Returns null if no crawler has that name. */
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

/**
 * SQL for hosts that only IPv6 reaches. A host is placed by its first address, and IPv4 addresses come first. A crawler
 * counts as using IPv6 unless its hello has said otherwise.
 */

/** SQL: the host has only IPv6 addresses and no online crawler uses IPv6. */
export const needsUnspokenIpv6 = (host: string): string => `(family(${host}.addresses[1]) = 6 and not exists (
    select from crawler speaker
    where speaker.state <> 'offline' and speaker.revoked_at is null and speaker.speaks_ipv6 is distinct from false
  ))`;

/** SQL: the crawler cannot reach the host, so its subnet goes to another. */
export const isBeyondReach = (host: string, crawler: string): string =>
  `(family(${host}.addresses[1]) = 6 and ${crawler}.speaks_ipv6 is not distinct from false)`;
