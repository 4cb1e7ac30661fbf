/** The fleet as sites may know it: the addresses that requests come from, and the keys that sign them. */
import type { Pool } from "pg";
import type { FleetOutside } from "../flows/fleet-outside.ts";

/** A crawler that was connected so lately may have asked something that a webmaster now finds in a log. */
const recentDays = 7;

export function createFleetOutside(pool: Pool): FleetOutside {
  return {
    async addresses(now) {
      const { rows } = await pool.query<{ address: string }>(
        `select host(address) as address
         from crawler
         where address is not null and revoked_at is null and not unlisted
           and (state <> 'offline' or last_seen_at > $1::timestamptz - interval '${recentDays} days')
         group by address
         order by family(address), address`,
        [now],
      );
      return rows.map((row) => row.address);
    },
    async publicKeys() {
      const { rows } = await pool.query<{ public_key: string }>(
        `select public_key from crawler
         where public_key is not null and revoked_at is null
         order by crawler_id`,
      );
      return rows.map((row) => row.public_key);
    },
  };
}
