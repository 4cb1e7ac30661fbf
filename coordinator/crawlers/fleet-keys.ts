/** Table crawler: whom an operator shuts out, and who is to get a new key. Running coordinators are told. */
import type { Pool } from "pg";
import type { AskedRotation, FleetKeys } from "#core/access-types";
import { asCrawlerId } from "#core/ids";
import { notify } from "#db/schema-channel";

export function createFleetKeys(pool: Pool): FleetKeys {
  return {
    async revoke(name, now) {
      const { rows } = await pool.query<{ crawler_id: number }>(
        `with revoked as (
           update crawler set revoked_at = coalesce(revoked_at, $2) where name = $1 returning crawler_id
         )
         select crawler_id, ${notify("nearcrawl_fleet", "crawler_id::text")} from revoked`,
        [name, now],
      );
      return rows[0] ? asCrawlerId(rows[0].crawler_id) : null;
    },

    async askRotation(name, { graceHours, now }) {
      const { rows } = await pool.query<AskedRotation>(
        `with asked as (
           update crawler
           set rotation_asked_at = $2, rotation_grace_hours = $3
           where ($1::text is null or name = $1) and public_key is not null and revoked_at is null
           returning crawler_id, name, state
         )
         select name, state <> 'offline' as online, ${notify("nearcrawl_fleet", "crawler_id::text")}
         from asked
         order by name`,
        [name, now, graceHours],
      );
      return rows.map(({ name: asked, online }) => ({ name: asked, online }));
    },
  };
}
