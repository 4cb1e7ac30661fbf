/** What a crawler may have by its domain sets, and the pace that it was told (table crawler). */
import type { Pool } from "pg";
import type { CrawlerWork } from "./fleet-ports.ts";

interface WorkRow {
  operator: string[];
  partner: string[];
  pace: NonNullable<CrawlerWork["pace"]>["pace"] | null;
  pace_due_slices: number;
  pace_since: Date;
}

/** Of a crawler that is not there, nothing. */
export async function crawlerWork(pool: Pool, name: string): Promise<CrawlerWork> {
  const { rows } = await pool.query<WorkRow>(
    `select domain_sets as operator, partner_domain_sets as partner, pace, pace_due_slices, pace_since
     from crawler
     where name = $1`,
    [name],
  );
  const [row] = rows;
  if (row === undefined) return { domainSets: { operator: [], partner: [] }, pace: null };
  const { operator, partner, pace, pace_due_slices: dueSlices, pace_since: since } = row;
  return { domainSets: { operator, partner }, pace: pace === null ? null : { pace, dueSlices, since } };
}
