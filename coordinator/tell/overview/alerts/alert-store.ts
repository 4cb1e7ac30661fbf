/**
 * Tables alert_state, alert_channel and alert_mute: what people know about alerts, what each channel still has to send, and
 * what is muted.
 */
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../../../database/transaction.ts";
import type { Acknowledgement, AlertChannel, AlertMute, NotedAlert } from "../alert-facts.ts";
import {
  type AlertChannelClient,
  type AlertMessage,
  type AlertState,
  type Delivery,
  nextTryMs,
} from "./notices.ts";

/** A channel as configured. */
type StatedChannel = Pick<AlertChannelClient, "name" | "kind" | "place" | "least">;

export interface MessageFor {
  readonly channel: StatedChannel;
  readonly message: AlertMessage;
}

/** A message being sent. */
export interface ClaimedMessage extends AlertMessage {
  readonly channel: string;
  /** How many attempts there were, including this one. */
  readonly tries: number;
  /** The end of the claim to the microsecond, which identifies it. */
  readonly claimedUntil: string;
}

export type AlertStore = ReturnType<typeof createAlertStore>;

const selectStates = `
  select name, severity, words, advice, targets, began_at as "beganAt", ended_at as "endedAt",
    pending_since as "pendingSince", told_at as "toldAt", told_targets as "toldTargets", is_told as "isTold", acknowledged
  from alert_state`;

export async function notedAlerts(pool: Pool): Promise<readonly NotedAlert[]> {
  const { rows } = await pool.query<AlertState>(`${selectStates} where ended_at is null order by name`);
  return rows.map(({ name, beganAt, toldAt, isTold, acknowledged }) => ({
    ...{ name, beganAt, acknowledged },
    toldAt: isTold ? toldAt : null,
  }));
}

/** Returns the alert's words as last noted, or null if it is not active. */
export async function heldWords(pool: Pool, name: string): Promise<string | null> {
  const { rows } = await pool.query<{ words: string }>(
    "select words from alert_state where name = $1 and ended_at is null",
    [name],
  );
  return rows[0]?.words ?? null;
}

export async function channelStates(pool: Pool): Promise<readonly AlertChannel[]> {
  const { rows } = await pool.query<AlertChannel>(
    `select name, kind, place, least, delivered_at as "deliveredAt", failing_since as "failingSince", failures, failure,
       coalesce(jsonb_array_length(told), 0) as waiting
     from alert_channel
     order by name
     limit 100`,
  );
  return rows;
}

/** Mutes in force. */
export async function alertMutes(pool: Pool, now: Date): Promise<readonly AlertMute[]> {
  const { rows } = await pool.query<AlertMute>(
    `select name, nullif(target, '') as target, until, reason, muted_by as "mutedBy"
     from alert_mute
     where until > $1
     order by name, target
     limit 1000`,
    [now],
  );
  return rows;
}

/** A claim lasts longer than any attempt may take. */
const claimSeconds = 120;
const testSeconds = 30;

/** No attempt is postponed for longer. A later time was written before the database's clock went back. */
const clockBackHours = 6;

export function createAlertStore(pool: Pool) {
  return {
    /** Stores the states and messages that `plan` derives from the known states, in one transaction under a lock. */
    note: async (
      plan: (known: readonly AlertState[]) => {
        readonly states: readonly AlertState[];
        readonly messages: readonly MessageFor[];
      },
    ): Promise<void> =>
      await inTransaction(pool, async (client) => {
        await client.query("lock table alert_state in share row exclusive mode");
        const { rows: known } = await client.query<AlertState>(selectStates);
        const { states, messages } = plan(known);
        const before = new Set(known.map((state) => JSON.stringify(state)));
        const after = new Set(states.map((state) => JSON.stringify(state)));
        const left = known.filter((state) => !after.has(JSON.stringify(state)));
        const changed = states.filter((state) => !before.has(JSON.stringify(state)));
        await writeStates(client, left, changed);
        for (const one of messages) await addMessage(client, one);
      }),

    /** Notes an alert that was reported while the database was gone. */
    noteTold: async (state: AlertState): Promise<void> =>
      await inTransaction(pool, async (client) => await writeStates(client, [state], [state])),

    /** Replaces the channels. The pending messages of removed channels are deleted. */
    setChannels: async (channels: readonly StatedChannel[]): Promise<void> => {
      await pool.query(
        `with gone as (
           delete from alert_channel where name <> all (select name from jsonb_to_recordset($1) as given (name text))
         )
         insert into alert_channel (name, kind, place, least)
         select * from jsonb_to_recordset($1) as given (name text, kind text, place text, least text)
         on conflict (name) do update
         set kind = excluded.kind, place = excluded.place, least = excluded.least`,
        [JSON.stringify(channels.map(({ name, kind, place, least }) => ({ name, kind, place, least })))],
      );
    },

    /**
     * Claims what these channels have to send now, for two minutes by the database's clock. Other transactions may see a
     * claim as valid for up to twice as long, because now() is the beginning of a transaction. A claim with a later end was
     * made before the clock went back.
     */
    claim: async (channels: readonly string[]): Promise<readonly ClaimedMessage[]> => {
      const { rows } = await pool.query<ClaimedMessage>(
        `update alert_channel
         set claimed_until = now() + interval '${claimSeconds} seconds', tries = tries + 1
         where name in (
           select name from alert_channel
           where told is not null and name = any ($1)
             and (next_try_at <= now() or next_try_at > now() + interval '${clockBackHours} hours')
             and coalesce(claimed_until not between now() and now() + interval '${2 * claimSeconds} seconds', true)
           for update skip locked
         )
         returning name as channel, message_id as id, told, made_at as "madeAt", tries,
           claimed_until::text as "claimedUntil"`,
        [channels],
      );
      return rows;
    },

    /** Stores an attempt's outcome; null means aborted, which does not count. Alerts added meanwhile stay pending. */
    settle: async (
      { channel, claimedUntil, tries, told }: ClaimedMessage,
      delivery: Delivery | null,
      chance: number,
    ): Promise<"waiting" | "delivered" | "given-up"> => {
      if (delivery === null) {
        await pool.query(
          "update alert_channel set claimed_until = null, tries = greatest(0, tries - 1) where name = $1 and claimed_until = $2",
          [channel, claimedUntil],
        );
        return "waiting";
      }
      const isFailed = delivery.type === "failed";
      const againMs = isFailed && delivery.isFinal !== true ? nextTryMs(tries, chance) : null;
      await pool.query(
        `update alert_channel
         set claimed_until = null, next_try_at = now() + coalesce($4::float8, 0) * interval '1 ms',
           told = case when $4 is null
             then nullif(jsonb_path_query_array(told, '$[$n to last]', jsonb_build_object('n', $5::int)), '[]')
             else told
           end,
           ${outcomeColumns}
         where name = $1 and claimed_until = $3`,
        [channel, isFailed ? delivery.words : null, claimedUntil, againMs, told.length],
      );
      return isFailed ? (againMs === null ? "given-up" : "waiting") : "delivered";
    },

    /** Returns false if a test was sent within the last half minute. */
    beginTest: async ({ name, kind, place, least }: StatedChannel): Promise<boolean> => {
      const { rowCount } = await pool.query(
        `insert into alert_channel (name, kind, place, least, tested_at)
         values ($1, $2, $3, $4, now())
         on conflict (name) do update set tested_at = now()
         where coalesce(alert_channel.tested_at < now() - interval '${testSeconds} seconds', true)`,
        [name, kind, place, least],
      );
      return rowCount === 1;
    },

    noteTest: async (channel: string, delivery: Delivery): Promise<void> => {
      const words = delivery.type === "failed" ? delivery.words : null;
      await pool.query(`update alert_channel set ${outcomeColumns} where name = $1`, [channel, words]);
    },

    /** Acknowledges everything that the alert names now. Returns null if the alert is not active. */
    acknowledge: async (
      name: string,
      by: Omit<Acknowledgement, "targets">,
    ): Promise<Acknowledgement | null> => {
      const { rows } = await pool.query<{ acknowledged: Acknowledgement }>(
        `update alert_state
         set acknowledged = $2::jsonb || jsonb_build_object('targets', targets), pending_since = null
         where name = $1 and ended_at is null
         returning acknowledged`,
        [name, JSON.stringify(by)],
      );
      return rows[0]?.acknowledged ?? null;
    },

    /** Returns false if nobody had acknowledged the alert. */
    reopen: async (name: string): Promise<boolean> => {
      const { rowCount } = await pool.query(
        `update alert_state set acknowledged = null
         where name = $1 and ended_at is null and acknowledged is not null`,
        [name],
      );
      return rowCount === 1;
    },

    /** Replaces an existing mute, and forgets those that ended a month ago. */
    mute: async ({ name, target, until, reason, mutedBy }: AlertMute, now: Date): Promise<void> => {
      await pool.query(
        `with forgotten as (
           delete from alert_mute where until < $6::timestamptz - interval '30 days' and (name, target) <> ($1, $2)
         )
         insert into alert_mute (name, target, until, reason, muted_by, muted_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (name, target) do update
         set until = excluded.until, reason = excluded.reason, muted_by = excluded.muted_by, muted_at = excluded.muted_at`,
        [name, target ?? "", until, reason, mutedBy, now],
      );
    },

    /** Returns false if there was no such mute. */
    unmute: async ({ name, target }: Pick<AlertMute, "name" | "target">, now: Date): Promise<boolean> => {
      const { rowCount } = await pool.query(
        "delete from alert_mute where name = $1 and target = $2 and until > $3",
        [name, target ?? "", now],
      );
      return rowCount === 1;
    },
  };
}

/** SQL that stores the outcome of an attempt; $2 is why it failed, or null. */
const outcomeColumns = `
  delivered_at = case when $2::text is null then now() else delivered_at end,
  failing_since = case when $2::text is not null then coalesce(failing_since, now()) end,
  failures = case when $2::text is null then 0 else failures + 1 end,
  failure = coalesce($2::text, '')`;

async function writeStates(
  client: PoolClient,
  left: readonly AlertState[],
  written: readonly AlertState[],
): Promise<void> {
  const columns = (state: AlertState) =>
    Object.entries(state).map(([name, value]) => [
      name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`),
      value,
    ]);
  await client.query("delete from alert_state where name = any ($1)", [left.map(({ name }) => name)]);
  await client.query(
    "insert into alert_state select * from jsonb_populate_recordset(null::alert_state, $1)",
    [JSON.stringify(written.map((state) => Object.fromEntries(columns(state))))],
  );
}

/** Appends to what the channel still has to send. New alerts are tried at once, whatever happened to earlier attempts. */
async function addMessage(client: PoolClient, { channel, message }: MessageFor): Promise<void> {
  const { name, kind, place, least } = channel;
  await client.query(
    `insert into alert_channel as c (name, kind, place, least, message_id, told, made_at, next_try_at)
     values ($1, $2, $3, $4, $5, $6, $7, now())
     on conflict (name) do update
     set message_id = excluded.message_id, told = coalesce(c.told, '[]') || excluded.told, made_at = excluded.made_at,
       next_try_at = now(), tries = 0`,
    [name, kind, place, least, message.id, JSON.stringify(message.told), message.madeAt],
  );
}
