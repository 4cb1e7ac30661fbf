/** What the alert rules look at of the coordinators above and below. */
import type { Pool } from "pg";
import type { RelativeFacts } from "./alert-facts.ts";

export async function relativeFacts(pool: Pool): Promise<RelativeFacts[]> {
  const { rows } = await pool.query<{
    kind: RelativeFacts["kind"];
    name: string;
    contacted_at: Date | null;
    failing_since: Date | null;
    failure: string | null;
    dropped_at: Date | null;
  }>(
    `select case peer_id when 0 then 'parent' else 'child' end as kind, name, contacted_at, failing_since, failure,
       dropped_at
     from related_coordinator
     order by peer_id
     limit 1000`,
  );
  return rows.map((row) => ({
    kind: row.kind,
    name: row.name,
    contactedMs: row.contacted_at?.getTime() ?? null,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    failure: row.failure,
    droppedMs: row.dropped_at?.getTime() ?? null,
  }));
}
