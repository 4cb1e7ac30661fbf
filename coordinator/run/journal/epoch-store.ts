/** Table database_epoch: when the database was restored to an earlier state, and how a new epoch changes other tables. */
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Pool, PoolClient } from "pg";
import { z } from "zod";
import { DatabaseError } from "#core/errors";
import { writtenTimelineSql } from "#db/primary";
import type { Database } from "#db/server-database";
import { sqlStateOf } from "../../database/transaction.ts";
import {
  type Epoch,
  type EpochCause,
  firstNumberOf,
  type Replay,
  type ServerState,
  type Witness,
} from "./epoch.ts";

export async function currentEpoch(pool: Pool | PoolClient): Promise<Epoch> {
  return (await epochs(pool, 1))[0]!;
}

export async function epochs(pool: Pool | PoolClient, most: number): Promise<Epoch[]> {
  const { rows } = await pool.query<Epoch>(
    `select epoch, database_id as "databaseId", began_at as "beganAt", cause, words,
       system_identifier as "systemIdentifier", timeline::float8 as timeline, replay
     from database_epoch
     order by epoch desc
     limit $1`,
    [most],
  );
  return rows;
}

/** insufficient_privilege: the administrator does not grant the function. */
const forbidden = "42501";

/** Reads the state of the connected server. It must not be in recovery. */
export async function serverState(pool: Pool | PoolClient): Promise<ServerState> {
  const { rows } = await pool.query<{ timeline: number; position: string }>(
    `select ${writtenTimelineSql} as timeline, (pg_current_wal_lsn() - '0/0')::text as position`,
  );
  const { timeline, position } = rows[0]!;
  return { systemIdentifier: await systemIdentifier(pool), timeline, position: BigInt(position) };
}

async function systemIdentifier(pool: Pool | PoolClient): Promise<string | null> {
  try {
    const { rows } = await pool.query<{ id: string }>(
      "select system_identifier::text as id from pg_control_system()",
    );
    return rows[0]?.id ?? null;
  } catch (error) {
    if (sqlStateOf(error) === forbidden) return null;
    throw error;
  }
}

/** Completes the current epoch with the server, where that was unknown. */
export async function noteServer(pool: Pool, { epoch }: Epoch, server: ServerState): Promise<void> {
  await pool.query(
    `update database_epoch
     set system_identifier = coalesce(system_identifier, $2), timeline = coalesce(timeline, $3)
     where epoch = $1 and (system_identifier is null or timeline is null)`,
    [epoch, server.systemIdentifier, server.timeline],
  );
}

interface BeginningEpoch {
  /** The epoch that ends, and the highest epoch number seen anywhere. */
  readonly before: Epoch;
  readonly newest: number;
  readonly cause: EpochCause;
  readonly words: string;
  readonly server: ServerState;
  readonly now: Date;
}

/**
 * Begins an epoch in the caller's transaction. Returns false if another process did so. Crawlers are admitted once by
 * their signatures, people sign in again, and numbers known to others continue above all that may have been assigned.
 */
export async function beginEpoch(client: PoolClient, beginning: BeginningEpoch): Promise<boolean> {
  const { before, newest, cause, words, server, now } = beginning;
  await client.query("lock table database_epoch in exclusive mode");
  if ((await currentEpoch(client)).epoch !== before.epoch) return false;
  const first = firstNumberOf(now);
  const epoch = Math.max(before.epoch, newest) + 1;
  const { rows } = await client.query<{ last_number: string }>(
    "select last_number from change_feed for update",
  );
  const lastNumber = rows[0]!.last_number;
  await client.query(
    `insert into database_epoch
       (epoch, database_id, began_at, cause, words, system_identifier, timeline, feed_last_before, feed_begins)
     values ($1, $2, $3, $4, $5, $6, $7, $8, greatest($8::bigint, $9))`,
    [
      epoch,
      before.databaseId,
      now,
      cause,
      words,
      server.systemIdentifier,
      server.timeline,
      lastNumber,
      first,
    ],
  );
  await client.query(
    `update change_feed
     set last_number = greatest(last_number, $1), epoch = $2,
         jumps = jumps || jsonb_build_object('from', last_number, 'to', greatest(last_number, $1), 'at', $3::timestamptz)`,
    [first, epoch, now],
  );
  await client.query(
    `select setval(pg_get_serial_sequence('lease', 'lease_id'),
       greatest($1, (select coalesce(max(lease_id), 0) + 1 from lease)), false)`,
    [first],
  );
  // Skips ahead: coordinators that are still running may hold numbers that the restored database never issued.
  await client.query("select setval('coordinator_number', nextval('coordinator_number') + 1000)");
  await client.query("update crawler set readmit = true where not readmit");
  await client.query("delete from web_session");
  return true;
}

/** Adds to earlier replays, since each coordinator has a journal of its own. */
export async function noteReplay(client: PoolClient, epoch: number, replay: Replay): Promise<void> {
  await client.query(
    `update database_epoch
     set replay = jsonb_build_object(
       'replayed', coalesce(replay -> 'replayed', '{}') || (
         select coalesce(jsonb_object_agg(kind, count::int + coalesce((replay -> 'replayed' ->> kind)::int, 0)), '{}')
         from jsonb_each_text($2::jsonb -> 'replayed') as given (kind, count)
       ),
       'outdated', $2::jsonb -> 'outdated',
       'failed', $2::jsonb -> 'failed'
     )
     where epoch = $1`,
    [epoch, JSON.stringify(replay)],
  );
}

const lookFile = "last-look.json";

const lookSchema = z.object({
  epoch: z.number().int().positive(),
  systemIdentifier: z.string().max(30).nullable(),
  timeline: z.number().int().nonnegative().nullable(),
  position: z
    .string()
    .regex(/^\d{1,20}$/)
    .nullable(),
  /** The schema it was last in; null if an older program did not record it, or if the database was given up. */
  schema: z.string().max(63).nullable().default(null),
});

/** Returns null if there is none or it is unreadable. Nothing is concluded from that. */
export async function readLastLook(folder: string): Promise<Witness["lastLook"]> {
  const look = await readLook(folder);
  if (look === null) return null;
  const { position, schema: _, ...rest } = look;
  return { ...rest, position: position === null ? null : BigInt(position) };
}

async function readLook(folder: string): Promise<z.infer<typeof lookSchema> | null> {
  try {
    return lookSchema.parse(JSON.parse(await readFile(join(folder, lookFile), "utf8")));
  } catch {
    return null;
  }
}

export async function keepLastLook(
  { files, schema }: { readonly files: { readonly folder: string }; readonly schema: string },
  epoch: number,
  server: ServerState,
): Promise<void> {
  await mkdir(files.folder, { recursive: true, mode: 0o700 });
  const position = server.position?.toString() ?? null;
  await writeLook(files.folder, { schema, epoch, ...server, position });
}

async function writeLook(folder: string, look: z.infer<typeof lookSchema>): Promise<void> {
  const file = join(folder, lookFile);
  await writeFile(`${file}.new`, `${JSON.stringify(look)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/**
 * Throws a DatabaseError, before anything is created, if the schema has no database or another one than this home's
 * journals know by that name: the address leads to another server, or the server lost its data.
 */
export async function refuseOtherDatabase(database: Database, journalRoot: string): Promise<void> {
  const known = await databasesOf(journalRoot, database.schema);
  if (known.length === 0) return;
  const found = await databaseIdIn(database);
  if (found !== null && known.includes(found)) return;
  const isWhat = found === null ? "holds no database" : `holds another database (${found})`;
  throw new DatabaseError(
    `schema ${database.schema} of ${database.description} ${isWhat}, and the journal in ` +
      `${journalRoot} is of ${known.join(", ")}: nothing is made there. Is databaseUrl right? Restore ` +
      "that database, or go on with what is there: nearcrawl database start-over",
  );
}

async function databaseIdIn({ pool, schema }: Database): Promise<string | null> {
  const { rows: found } = await pool.query<{ there: boolean }>(
    "select to_regclass($1) is not null as there",
    [`"${schema}".database_epoch`],
  );
  return found[0]!.there ? (await currentEpoch(pool)).databaseId : null;
}

/** Forgets a database that is gone or was replaced on purpose, so that the next one is accepted. Its journal stays. */
export async function forgetDatabases(journalRoot: string, schema: string): Promise<void> {
  for (const databaseId of await databasesOf(journalRoot, schema)) {
    const folder = join(journalRoot, databaseId);
    const look = await readLook(folder);
    if (look !== null) await writeLook(folder, { ...look, schema: null });
  }
}

/** Returns the ids of the databases last seen in a schema of that name. */
async function databasesOf(journalRoot: string, schema: string): Promise<string[]> {
  const names = await readdir(journalRoot).catch(() => []);
  const looks = await Promise.all(names.map(async (name) => await readLook(join(journalRoot, name))));
  return names.filter((_, at) => looks[at]?.schema === schema);
}
