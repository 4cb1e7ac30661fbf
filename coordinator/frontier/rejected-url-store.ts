/** Table rejected_url: what was given to the crawler and has no place in the frontier. */
import type { Pool } from "pg";
import type { RejectedUrlStore } from "./ports.ts";

export function createRejectedUrlStore(pool: Pool): RejectedUrlStore {
  return {
    async record(rejected, source, now) {
      await pool.query(
        `insert into rejected_url (url, reason, source, first_seen_at)
         select distinct on (url) url, reason, $3, $4
         from unnest($1::text[], $2::text[]) as given (url, reason)
         on conflict (url) do update
           set times = rejected_url.times + 1,
               reason = excluded.reason`,
        [rejected.map((one) => one.url.replaceAll("\0", "")), rejected.map((one) => one.reason), source, now],
      );
    },
  };
}
