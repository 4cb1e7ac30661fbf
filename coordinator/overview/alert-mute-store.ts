/** Table alert_mute: alerts that nobody wants to hear of until an hour that is named. */
import type { Pool } from "pg";
import type { AlertMute } from "./alert-facts.ts";

export interface AlertMuteStore {
  /** In place of one that is there. What ended a month ago is forgotten. */
  mute(mute: AlertMute & { readonly mutedAt: Date }): Promise<void>;
  /** False: there was none. */
  unmute(mute: Pick<AlertMute, "name" | "target">, now: Date): Promise<boolean>;
  /** Those that hold. */
  list(now: Date): Promise<readonly AlertMute[]>;
}

interface MuteRow {
  readonly name: string;
  readonly target: string;
  readonly until: Date;
  readonly reason: string;
  readonly muted_by: string;
}

export function createAlertMuteStore(pool: Pool): AlertMuteStore {
  return {
    async mute({ name, target, until, reason, mutedBy, mutedAt }) {
      await pool.query(
        `with forgotten as (
           delete from alert_mute where until < $6::timestamptz - interval '30 days' and (name, target) <> ($1, $2)
         )
         insert into alert_mute (name, target, until, reason, muted_by, muted_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (name, target) do update
           set until = excluded.until, reason = excluded.reason, muted_by = excluded.muted_by,
             muted_at = excluded.muted_at`,
        [name, target ?? "", until, reason, mutedBy, mutedAt],
      );
    },
    async unmute({ name, target }, now) {
      const { rowCount } = await pool.query(
        "delete from alert_mute where name = $1 and target = $2 and until > $3",
        [name, target ?? "", now],
      );
      return rowCount === 1;
    },
    async list(now) {
      const { rows } = await pool.query<MuteRow>(
        "select name, target, until, reason, muted_by from alert_mute where until > $1 order by name, target limit 1000",
        [now],
      );
      return rows.map(({ target, muted_by: mutedBy, ...rest }) => ({
        ...rest,
        target: target === "" ? null : target,
        mutedBy,
      }));
    },
  };
}
