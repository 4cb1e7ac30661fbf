/** A page as a result stores it: its row, its document and its change. */
import type { Pool } from "pg";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { seedChange } from "../support/seed-changes.ts";
import { seedPage, worldNow } from "../support/seed-world.ts";

export async function storePage(pool: Pool, title: string): Promise<void> {
  const url = `https://www.example.org/${title}`;
  await pool.query("delete from page where url = $1", [url]);
  await seedPage(pool, { url, title, text: `A page about ${title}.` });
  await seedChange(pool, { url, kind: "first-seen" });
  await numberChanges(pool, worldNow);
}
