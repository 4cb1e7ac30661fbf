/** Tables alert_state, alert_channel, alert_message: what people know of alerts, what they are to be told, and what came of it. */
import type { Pool, PoolClient } from "pg";
import { inTransaction } from "../database/transaction.ts";
import type { AlertChannel, NotedAlert } from "../overview/alert-facts.ts";
import type { AlertChannelClient, AlertMessage, Delivery } from "./message.ts";
import { type AlertState, type NoticePlan, nextTryMs, type ToldAlert } from "./notices.ts";

/** A message that is being sent. */
export interface ClaimedMessage extends AlertMessage {
  readonly channel: string;
  /** This one included. */
  readonly tries: number;
}

export interface MessageFor {
  readonly channel: string;
  readonly message: AlertMessage;
}

/** As the settings have it. */
type StatedChannel = Pick<AlertChannelClient, "name" | "kind" | "place" | "least">;

export interface AlertStore {
  /**
   * Notes in one transaction what `plan` makes of what people know, and the messages that come of it; nobody else does so
   * meanwhile.
   */
  note(
    plan: (known: readonly AlertState[]) => {
      readonly states: NoticePlan["states"];
      readonly messages: readonly MessageFor[];
    },
  ): Promise<void>;
  /** What was told while the database was gone. */
  noteTold(
    state: AlertState,
    messages: readonly (MessageFor & { readonly delivery: Delivery })[],
  ): Promise<void>;
  /** The channels that there are; what waits for others is given up. */
  setChannels(channels: readonly StatedChannel[]): Promise<void>;
  /** Messages whose turn it is, a few; they are this coordinator's for two minutes. */
  claim(most: number): Promise<readonly ClaimedMessage[]>;
  /** What came of an attempt; null: it was broken off, and does not count. */
  settle(
    message: ClaimedMessage,
    delivery: Delivery | null,
    chance: number,
  ): Promise<"waiting" | "delivered" | "given-up">;
  waiting(): Promise<number>;
  /** False: one was sent within the last half minute. */
  beginTest(channel: StatedChannel): Promise<boolean>;
  noteTest(message: MessageFor, delivery: Delivery): Promise<void>;
  /** Null: it does not hold. Everything that it names by now is acknowledged. */
  acknowledge(
    name: string,
    by: { readonly by: string; readonly at: Date; readonly note: string },
  ): Promise<NotedAlert | null>;
  /** False: nobody has acknowledged it. */
  reopen(name: string): Promise<boolean>;
  forget(before: Date): Promise<void>;
}

export async function notedAlerts(pool: Pool): Promise<readonly NotedAlert[]> {
  const { rows } = await pool.query<StateRow>(`${selectStates} where ended_at is null order by name`);
  return rows.map(stateOf).map(noted);
}

/** What an alert says, as it was noted last; null: it does not hold. */
export async function heldWords(pool: Pool, name: string): Promise<string | null> {
  const { rows } = await pool.query<{ words: string }>(
    "select words from alert_state where name = $1 and ended_at is null",
    [name],
  );
  return rows[0]?.words ?? null;
}

const noted = ({ name, beganAt, toldAt, isTold, acknowledged }: AlertState): NotedAlert => ({
  ...{ name, beganAt, acknowledged },
  toldAt: isTold ? toldAt : null,
});

const mostChannels = 100;

export async function channelStates(pool: Pool): Promise<readonly AlertChannel[]> {
  const { rows } = await pool.query<AlertChannel>(
    `select c.name, c.kind, c.place, c.least, c.delivered_at as "deliveredAt", c.failing_since as "failingSince",
       c.failures, c.failure, (
         select count(*)::int from alert_message m where m.channel = c.name and m.outcome = 'waiting'
       ) as waiting
     from alert_channel c
     order by c.name
     limit ${mostChannels}`,
  );
  return rows;
}

interface StateRow extends Omit<AlertState, "acknowledged"> {
  readonly by: string | null;
  readonly at: Date | null;
  readonly note: string | null;
  readonly ackTargets: readonly string[] | null;
}

const selectStates = `
  select name, severity, words, advice, targets, began_at as "beganAt", ended_at as "endedAt",
    pending_since as "pendingSince", told_at as "toldAt", told_targets as "toldTargets", is_told as "isTold",
    acknowledged_by as by, acknowledged_at as at, acknowledged_words as note, acknowledged_targets as "ackTargets"
  from alert_state`;

function stateOf({ by, at, note, ackTargets, ...state }: StateRow): AlertState {
  const acknowledged =
    by === null || at === null ? null : { by, at, note: note ?? "", targets: ackTargets ?? [] };
  return { ...state, acknowledged };
}

/** Longer than an attempt may take. */
const claimSeconds = 120;
const testSeconds = 30;

export function createAlertStore(pool: Pool): AlertStore {
  return {
    note: async (plan) =>
      await inTransaction(pool, async (client) => {
        await client.query("lock table alert_state in share row exclusive mode");
        const { rows } = await client.query<StateRow>(selectStates);
        const known = rows.map(stateOf);
        const { states, messages } = plan(known);
        await writeChanges(client, known, states);
        for (const { channel, message } of messages) await insertMessage(client, channel, message);
      }),
    noteTold: async (state, messages) =>
      await inTransaction(pool, async (client) => {
        await client.query("lock table alert_state in share row exclusive mode");
        await client.query("delete from alert_state where name = $1", [state.name]);
        await insertState(client, state);
        for (const { channel, message, delivery } of messages)
          await insertEnded(client, { channel, message }, delivery);
      }),
    setChannels: async (channels) => await setChannels(pool, channels),
    claim: async (most) => await claim(pool, most),
    settle: async (message, delivery, chance) => await settle(pool, message, delivery, chance),
    waiting: async () => {
      const { rows } = await pool.query<{ waiting: number }>(
        "select count(*)::int as waiting from alert_message where outcome = 'waiting'",
      );
      return rows[0]!.waiting;
    },
    beginTest: async ({ name, kind, place, least }) => {
      const { rowCount } = await pool.query(
        `insert into alert_channel (name, kind, place, least, tested_at)
         values ($1, $2, $3, $4, now())
         on conflict (name) do update set tested_at = now()
         where coalesce(alert_channel.tested_at < now() - interval '${testSeconds} seconds', true)`,
        [name, kind, place, least],
      );
      return rowCount === 1;
    },
    noteTest: async (of, delivery) =>
      await inTransaction(pool, async (client) => {
        await insertEnded(client, of, delivery);
        await noteChannel(client, of.channel, delivery);
      }),
    acknowledge: async (name, { by, at, note }) => {
      const { rows } = await pool.query<{
        name: string;
        beganAt: Date;
        toldAt: Date | null;
        targets: string[];
      }>(
        `update alert_state
         set acknowledged_by = $2, acknowledged_at = $3, acknowledged_words = $4, acknowledged_targets = targets,
             pending_since = null
         where name = $1 and ended_at is null
         returning name, began_at as "beganAt", case when is_told then told_at end as "toldAt", targets`,
        [name, by, at, note],
      );
      const row = rows[0];
      if (row === undefined) return null;
      const { targets, ...rest } = row;
      return { ...rest, acknowledged: { by, at, note, targets } };
    },
    reopen: async (name) => {
      const { rowCount } = await pool.query(
        `update alert_state
         set acknowledged_by = null, acknowledged_at = null, acknowledged_words = null, acknowledged_targets = null
         where name = $1 and ended_at is null and acknowledged_by is not null`,
        [name],
      );
      return rowCount === 1;
    },
    forget: async (before) => {
      await pool.query("delete from alert_message where made_at < $1", [before]);
    },
  };
}

async function writeChanges(
  client: PoolClient,
  known: readonly AlertState[],
  states: readonly AlertState[],
): Promise<void> {
  const before = new Set(known.map((state) => JSON.stringify(state)));
  const changed = states.filter((state) => !before.has(JSON.stringify(state)));
  const kept = new Set(states.map(({ name }) => name));
  const gone = known.filter(({ name }) => !kept.has(name));
  await client.query("delete from alert_state where name = any ($1)", [
    [...changed, ...gone].map(({ name }) => name),
  ]);
  for (const state of changed) await insertState(client, state);
}

async function insertState(client: PoolClient, state: AlertState): Promise<void> {
  const { name, severity, words, advice, targets, beganAt, endedAt, pendingSince } = state;
  const { toldAt, toldTargets, isTold, acknowledged } = state;
  await client.query(
    `insert into alert_state (name, severity, words, advice, targets, began_at, ended_at, pending_since, told_at,
       told_targets, is_told, acknowledged_by, acknowledged_at, acknowledged_words, acknowledged_targets)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
    [
      ...[
        name,
        severity,
        words,
        advice,
        targets,
        beganAt,
        endedAt,
        pendingSince,
        toldAt,
        toldTargets,
        isTold,
      ],
      ...[acknowledged?.by ?? null, acknowledged?.at ?? null, acknowledged?.note ?? null],
      acknowledged?.targets ?? null,
    ],
  );
}

async function insertMessage(
  client: PoolClient,
  channel: string,
  { id, madeAt, told }: AlertMessage,
): Promise<void> {
  await client.query(
    `insert into alert_message (message_id, channel, told, made_at, next_try_at)
     values ($1, $2, $3, $4, now())`,
    [id, channel, JSON.stringify(told), madeAt],
  );
}

/** One that was sent without having waited here. */
async function insertEnded(
  client: PoolClient,
  { channel, message: { id, madeAt, told } }: MessageFor,
  delivery: Delivery,
): Promise<void> {
  const isDelivered = delivery.type === "delivered";
  await client.query(
    `insert into alert_message (message_id, channel, told, made_at, tries, outcome, words, ended_at)
     values ($1, $2, $3, $4, 1, $5, $6, now())
     on conflict (message_id) do nothing`,
    [
      ...[id, channel, JSON.stringify(told), madeAt],
      ...[isDelivered ? "delivered" : "given-up", isDelivered ? "" : delivery.words],
    ],
  );
}

async function setChannels(pool: Pool, channels: readonly StatedChannel[]): Promise<void> {
  const names = channels.map(({ name }) => name);
  await inTransaction(pool, async (client) => {
    await client.query("delete from alert_channel where name <> all ($1)", [names]);
    await client.query(
      `insert into alert_channel (name, kind, place, least)
       select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])
       on conflict (name) do update
       set kind = excluded.kind, place = excluded.place, least = excluded.least`,
      [
        names,
        channels.map(({ kind }) => kind),
        channels.map(({ place }) => place),
        channels.map(({ least }) => least),
      ],
    );
    await client.query(
      `update alert_message
       set outcome = 'given-up', words = 'its channel is not in the settings any more', ended_at = now(), next_try_at = null
       where outcome = 'waiting' and channel <> all ($1)`,
      [names],
    );
  });
}

/** No attempt is put off for longer: what waits beyond that was written before the database's clock went back. */
const clockBackHours = 6;

/**
 * By the clock of the database, which all coordinators share. A claim counts for up to twice its time: now() is when a
 * transaction began, and one that began before another's claim sees that claim end later than its own would. What ends later
 * still was claimed before the clock went back.
 */
async function claim(pool: Pool, most: number): Promise<readonly ClaimedMessage[]> {
  const { rows } = await pool.query<{
    id: string;
    channel: string;
    told: readonly ToldAlert[];
    madeAt: Date;
    tries: number;
  }>(
    `update alert_message
     set claimed_until = now() + interval '${claimSeconds} seconds', tries = tries + 1
     where message_id in (
       select message_id from alert_message
       where outcome = 'waiting'
         and (next_try_at <= now() or next_try_at > now() + interval '${clockBackHours} hours')
         and coalesce(claimed_until not between now() and now() + interval '${2 * claimSeconds} seconds', true)
       order by next_try_at
       limit $1
       for update skip locked
     )
     returning message_id as id, channel, told, made_at as "madeAt", tries`,
    [most],
  );
  return rows;
}

async function settle(
  pool: Pool,
  { id, channel, tries }: ClaimedMessage,
  delivery: Delivery | null,
  chance: number,
): Promise<"waiting" | "delivered" | "given-up"> {
  if (delivery === null) {
    await pool.query(
      "update alert_message set claimed_until = null, tries = tries - 1 where message_id = $1 and outcome = 'waiting'",
      [id],
    );
    return "waiting";
  }
  const isFailed = delivery.type === "failed";
  const againMs = isFailed && delivery.isFinal !== true ? nextTryMs(tries, chance) : null;
  const outcome = isFailed ? (againMs === null ? "given-up" : "waiting") : "delivered";
  await inTransaction(pool, async (client) => {
    await client.query(
      `update alert_message
       set outcome = $2, words = $3, claimed_until = null, next_try_at = now() + $4::float8 * interval '1 ms',
         ended_at = case when $2 <> 'waiting' then now() end
       where message_id = $1 and outcome = 'waiting'`,
      [id, outcome, isFailed ? delivery.words : "", againMs],
    );
    await noteChannel(client, channel, delivery);
  });
  return outcome;
}

async function noteChannel(client: PoolClient, channel: string, delivery: Delivery): Promise<void> {
  if (delivery.type === "delivered")
    await client.query(
      "update alert_channel set delivered_at = now(), failing_since = null, failures = 0, failure = '' where name = $1",
      [channel],
    );
  else
    await client.query(
      `update alert_channel
       set failing_since = coalesce(failing_since, now()), failures = failures + 1, failure = $2
       where name = $1`,
      [channel, delivery.words],
    );
}
