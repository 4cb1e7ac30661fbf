/** What a crawler is given at most a day (table crawler). Running coordinators are told, and keep to it at once. */
import type { Pool } from "pg";
import { notify } from "#db/schema-channel";
import type { Budget, BudgetChange, ChangedBudget } from "../fleet/fleet-ports.ts";

/** What a crawler that never came has until its partner says (migration 0001). */
const before = { pages: 100_000, bytes: 10_000_000_000 } as const;

interface BudgetRow {
  pages_before: number | null;
  bytes_before: number | null;
  pages_granted: number | null;
  bytes_granted: number | null;
  pages_per_day: number;
  bytes_per_day: number;
}

/** What is left out stays. Null: there is no crawler of that name. */
export async function grantBudget(
  pool: Pool,
  name: string,
  change: BudgetChange,
): Promise<ChangedBudget | null> {
  const { rows } = await pool.query<BudgetRow>(
    `with old as (
       select * from crawler where name = $1 for update
     ),
     granted as (
       update crawler c
       set granted_pages_per_day = g.pages,
           granted_bytes_per_day = g.bytes,
           pages_per_day = least(g.pages, coalesce(old.partner_pages_per_day,
             case when old.connected_at is null then coalesce(g.pages, ${before.pages}) else old.pages_per_day end)),
           bytes_per_day = least(g.bytes, coalesce(old.partner_bytes_per_day,
             case when old.connected_at is null then coalesce(g.bytes, ${before.bytes}) else old.bytes_per_day end))
       from old
       cross join lateral (
         select case when $2 then $3::integer else old.granted_pages_per_day end as pages,
           case when $4 then $5::bigint else old.granted_bytes_per_day end as bytes
       ) g
       where c.crawler_id = old.crawler_id
       returning c.crawler_id, old.granted_pages_per_day as pages_before,
         old.granted_bytes_per_day::float8 as bytes_before, c.granted_pages_per_day as pages_granted,
         c.granted_bytes_per_day::float8 as bytes_granted, c.pages_per_day, c.bytes_per_day::float8 as bytes_per_day
     )
     select *, ${notify("nearcrawl_fleet", "crawler_id::text")} from granted`,
    [
      name,
      change.pagesPerDay !== undefined,
      change.pagesPerDay ?? null,
      change.bytesPerDay !== undefined,
      change.bytesPerDay ?? null,
    ],
  );
  return rows[0] === undefined ? null : changedBudget(rows[0]);
}

function changedBudget(row: BudgetRow): ChangedBudget {
  const granted: Budget = { pagesPerDay: row.pages_granted, bytesPerDay: row.bytes_granted };
  return {
    before: { pagesPerDay: row.pages_before, bytesPerDay: row.bytes_before },
    granted,
    inForce: { pagesPerDay: row.pages_per_day, bytesPerDay: row.bytes_per_day },
  };
}
