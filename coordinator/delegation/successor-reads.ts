/** What would become of a crawler's subnets: to whom they go as things stand, and what has to be measured again. */
import type { Pool } from "pg";

const mostListed = 10;

/** The largest share first. Runners-up that are away or hand over themselves count as nobody. */
export async function heirsOf(pool: Pool, name: string): Promise<HeirLine[]> {
  const { rows } = await pool.query<HeirLine>(
    `select r.name as crawler, count(*)::int as subnets
     from delegation d
     join crawler c using (crawler_id)
     left join crawler r
       on r.crawler_id = d.runner_up_id and r.state = 'online' and r.revoked_at is null
     where c.name = $1
     group by r.name
     order by subnets desc, r.name
     limit ${mostListed}`,
    [name],
  );
  return rows;
}

/** `crawler` null: nobody is known to be next, so these are measured again. */
export interface HeirLine {
  readonly crawler: string | null;
  readonly subnets: number;
}
