/**
 * A drained slice is taken out of the list, and its schema dropped. Each step looks at what is there still, so that whoever was
 * ended in the middle is gone on with by the next, and who comes second finds that it is done:
 *
 *   draining   everything that it had is elsewhere: hosts, outbox, sums of leases; its changes are no longer kept
 *   removing   no coordinator opens it any more; what was looked at is looked at once more, then its schema goes, and with the
 *              last slice of a server the replica there, its subscription and its slot
 *   removed    its number is never given again
 */
import type { Pool } from "pg";
import { UsageError } from "#core/errors";
import { howMany, instantWords } from "#core/format";
import { runningCoordinators } from "#db/coordinator-locks";
import { type Database, isConnectionLost, openServerDatabase } from "#db/server-database";
import { dropReplicaSlots, dropSliceSchema, subscriptionOf } from "#db/slice-schema";
import type { OpenSlice } from "../database/slices.ts";
import { inTransaction } from "../database/transaction.ts";
import { forgetClosedLeases } from "../frontier/closed-lease-store.ts";
import { lockPlans, readCatalogue, type SliceEntry } from "./catalogue-store.ts";
import { OpenSlices } from "./open-slices-store.ts";
import { oneAfterTheOther } from "./slice-writes.ts";

export interface RemoveSlice {
  /** Changes that readers may not have read are dropped with it. */
  readonly forgetsChanges: boolean;
  /** Nothing is looked at or dropped there. */
  readonly isServerGone: boolean;
  /** Of policy changes.keepDays: to say until when changes are kept. */
  readonly keepDays: number;
  /** Coordinators have closed what they do not find in the catalogue. */
  readonly pause?: () => Promise<void>;
}

export interface RemovedSlice {
  readonly slice: number;
  /** False: it was removed before. */
  readonly isNew: boolean;
  readonly schema: string | null;
  readonly serverUrl: string | null;
}

/** They look every 3 s (start.ts). */
const usualPauseMs = 8000;
const longAgoMs = 2000;

/** Throws a UsageError that says what the slice has still. `onStep`: what is done next, for people. */
export async function removeSlice(
  shared: Database,
  number: number,
  given: RemoveSlice,
  onStep: (words: string) => void = () => {},
): Promise<RemovedSlice> {
  return await oneAfterTheOther(shared.pool, async () => {
    const state = await stateOf(shared.pool, number);
    const { serverUrl, schema } = state;
    const answer = { slice: number, schema, serverUrl };
    if (state.state === "removed") return { ...answer, isNew: false };
    try {
      await remove(shared, state, given, onStep);
    } catch (error) {
      // It has something still, for which coordinators have to open it.
      if (error instanceof UsageError)
        await shared.pool.query(
          "update web_slice set state = 'draining' where slice_number = $1 and state = 'removing'",
          [number],
        );
      throw error;
    }
    return { ...answer, isNew: true };
  });
}

async function remove(
  shared: Database,
  slice: Removing,
  given: RemoveSlice,
  onStep: (words: string) => void,
): Promise<void> {
  const { number } = slice;
  await refuseWithHosts(shared.pool, slice);
  if (given.isServerGone) await refuseWhereItAnswers(slice);
  else await emptied(shared, slice, given, onStep);
  await shared.pool.query("update web_slice set state = 'removing' where slice_number = $1", [number]);
  await shared.pool.query("delete from slice_lead where slice_number = $1", [number]);
  if ((await runningCoordinators(shared.pool, shared.schema)).length > 0) {
    onStep("waiting until coordinators have closed it");
    await (given.pause ?? usualPause)();
  }
  await forgetShipmentsTo(shared, number);
  if (given.isServerGone) await forgetReplica(shared, slice);
  else await dropIt(shared, slice, given, onStep);
  await shared.pool.query(
    "update web_slice set state = 'removed', removed_at = now(), fault = null where slice_number = $1",
    [number],
  );
}

const usualPause = async () => await new Promise<void>((resolve) => setTimeout(resolve, usualPauseMs));

type Removing = Pick<SliceEntry, "number" | "schema" | "serverUrl"> & { readonly state: string };

async function stateOf(shared: Pool, number: number): Promise<Removing> {
  if (number === 0) throw new UsageError("slice 0 lies beside the shared tables, and stays");
  const { rows } = await shared.query<Removing>(
    `select slice_number as number, schema_name as schema, server_url as "serverUrl", state
     from web_slice where slice_number = $1`,
    [number],
  );
  const [found] = rows;
  if (found === undefined) throw new UsageError(`there is no slice ${number}`);
  if (found.state === "preparing")
    throw new UsageError(`slice ${number} is not ready yet: nearcrawl slices add goes on with it`);
  if (found.state === "active")
    throw new UsageError(`slice ${number} is in use: drain it first (nearcrawl slices drain ${number})`);
  return found;
}

/** By the catalogue. Nobody plans a move to it any more: it is drained. */
async function refuseWithHosts(shared: Pool, { number }: Removing): Promise<void> {
  await inTransaction(shared, async (client) => {
    await lockPlans(client);
    const { ranges, moves } = await readCatalogue(client);
    const owns = ranges
      .filter(({ slice }) => slice === number)
      .reduce((sum, { first, end }) => sum + end - first, 0);
    const moving = moves.filter(({ from, to }) => from === number || to === number);
    if (owns > 0 || moving.length > 0)
      throw new UsageError(
        `slice ${number} has ${howMany(owns, "bucket")} of hosts, and ${howMany(moving.length, "move")} from or to it ${moving.length === 1 ? "is" : "are"} not done: wait until it is drained (nearcrawl slices list)`,
      );
  });
}

/** What is written elsewhere is; throws a UsageError for what is there still. */
async function emptied(
  shared: Database,
  slice: Removing,
  given: RemoveSlice,
  onStep: (words: string) => void,
): Promise<void> {
  await atSlice(shared, slice, async (own) => {
    if (!(await isThere(own))) return;
    onStep("reporting the sums of its leases, and looking at what it has still");
    const now = new Date();
    // Of none an open lease is left: all of them have closed by now.
    const clock = { nowMs: () => performance.now(), turnMs: 600_000 };
    await forgetClosedLeases(own.pool, new Date(now.getTime() + longAgoMs), clock, shared.pool);
    await refuseWithRows(own.pool, slice, given);
    await shared.pool.query("update web_slice set feed_last = $2 where slice_number = $1", [
      slice.number,
      (await feedOf(own.pool)).last,
    ]);
  });
  const slices = await OpenSlices.open(shared, { maxConnections: 1 });
  try {
    for (const other of slices.open) {
      if (other.number === slice.number) continue;
      const { rows } = await other.pool.query<{ waiting: number }>(
        `select (select count(*) from link_outbox where to_slice = $1)::int
           + (select count(*) from slice_shipment where to_slice = $1 and outbox_numbers <> '{}')::int as waiting`,
        [slice.number],
      );
      if (rows[0]!.waiting > 0)
        throw new UsageError(
          `slice ${other.number} has ${howMany(rows[0]!.waiting, "row")} for slice ${slice.number} in its outbox: coordinators that run carry them within seconds`,
        );
    }
  } finally {
    await slices.close();
  }
}

interface Left {
  readonly held: boolean;
  readonly hosts: boolean;
  readonly leases: number;
  readonly effects: number;
  readonly unnumbered: boolean;
  readonly lastChangeAt: Date | null;
  readonly slice: number;
}

async function refuseWithRows(pool: Pool, { number }: Removing, given: RemoveSlice): Promise<void> {
  const { rows } = await pool.query<Left>(
    `select not isempty(held) as held, slice_number as slice, exists (select from frontier_host) as hosts,
       (select count(*) from lease)::int as leases, ((select count(*) from link_outbox) + (select count(*) from deferred_link))::int as effects,
       exists (select from page_change_inbox) as unnumbered,
       (select max(noted_at) from page_change) as "lastChangeAt"
     from slice_self`,
  );
  const { held, hosts, leases, effects, unnumbered, lastChangeAt, slice } = rows[0]!;
  const refuse = (words: string) => {
    throw new UsageError(`slice ${number} ${words}`);
  };
  if (slice !== number) refuse(`has a schema that says it is slice ${slice}`);
  if (held || hosts)
    refuse(`has rows of hosts that the catalogue says are elsewhere (nearcrawl slices mend ${number})`);
  if (leases > 0)
    refuse(`has ${howMany(leases, "lease")} that are open, or were until now: try again in a minute`);
  if (effects > 0)
    refuse(`has ${howMany(effects, "row")} in its outbox: coordinators that run carry them within seconds`);
  if (unnumbered) refuse("has changes without a number: coordinators that run give them one within a second");
  if (lastChangeAt !== null && !given.forgetsChanges) {
    const until = new Date(lastChangeAt.getTime() + given.keepDays * 86_400_000);
    refuse(
      `has changes that readers may not have read: they are kept until ${instantWords(until.toISOString())} (policy changes.keepDays). Remove it then, or with --forget-changes at once`,
    );
  }
}

async function feedOf(pool: Pool): Promise<{ readonly last: string }> {
  const { rows } = await pool.query<{ last: string }>("select last_number as last from change_feed");
  return rows[0]!;
}

/** What waits for it is looked at once more: others own the hosts. */
async function forgetShipmentsTo(shared: Database, number: number): Promise<void> {
  const slices = await OpenSlices.open(shared, { maxConnections: 1 });
  try {
    for (const { number: other, pool } of slices.open)
      if (other !== number)
        await inTransaction(pool, async (client) => {
          await client.query("update link_outbox set to_slice = null where to_slice = $1", [number]);
          await client.query("delete from slice_shipment where to_slice = $1", [number]);
          await client.query("delete from slice_arrival where from_slice = $1", [number]);
        });
  } finally {
    await slices.close();
  }
}

async function dropIt(
  shared: Database,
  slice: Removing,
  given: RemoveSlice,
  onStep: (words: string) => void,
): Promise<void> {
  await atSlice(shared, slice, async (own, database) => {
    // By who had it open until a moment ago.
    if (await isThere(own)) await refuseWithRows(own.pool, slice, given);
    onStep(`dropping schema ${slice.schema}`);
    await dropSliceSchema(database, shared.schema, await isLastOfServer(shared.pool, slice));
  });
}

async function isLastOfServer(shared: Pool, { number, serverUrl }: Removing): Promise<boolean> {
  if (serverUrl === null) return false;
  const { rowCount } = await shared.query(
    "select from web_slice where server_url = $1 and slice_number <> $2 and state <> 'removed'",
    [serverUrl, number],
  );
  return rowCount === 0;
}

const isThere = async ({ pool }: Pick<OpenSlice, "pool">): Promise<boolean> => {
  const { rows } = await pool.query<{ there: boolean }>(
    "select to_regclass('slice_self') is not null as there",
  );
  return rows[0]!.there;
};

async function atSlice<T>(
  shared: Database,
  { number, schema, serverUrl }: Removing,
  work: (own: OpenSlice, database: Database) => Promise<T>,
): Promise<T> {
  const away = (error: unknown) =>
    new UsageError(
      `the server of slice ${number} does not answer (${(error as Error).message}): start it, or, where it is gone for good, add --server-is-gone`,
    );
  const database = await openServerDatabase({
    ...{ databaseUrl: serverUrl ?? shared.url, schema: schema!, maxConnections: 2 },
  }).catch((error: unknown) => {
    throw away(error);
  });
  try {
    return await work({ number, pool: database.pool }, database);
  } catch (error) {
    throw isConnectionLost(error) ? away(error) : error;
  } finally {
    await database.close();
  }
}

// A server that is gone for good.

async function refuseWhereItAnswers(slice: Removing): Promise<void> {
  if (slice.serverUrl === null)
    throw new UsageError(`slice ${slice.number} lies on the server of the shared tables, which answers`);
  try {
    const database = await openServerDatabase({
      ...{ databaseUrl: slice.serverUrl, schema: slice.schema!, maxConnections: 1 },
    });
    try {
      await database.pool.query("select 1");
    } finally {
      await database.close();
    }
  } catch {
    return;
  }
  throw new UsageError(`the server of slice ${slice.number} answers: leave --server-is-gone out`);
}

/** A slot that nobody reads would keep the log until the disk is full. */
async function forgetReplica(shared: Database, slice: Removing): Promise<void> {
  if (!(await isLastOfServer(shared.pool, slice))) return;
  const { rows } = await shared.pool.query<{ number: number }>(
    "select slice_number as number from web_slice where server_url = $1",
    [slice.serverUrl],
  );
  await dropReplicaSlots(
    shared,
    rows.map(({ number }) => subscriptionOf(shared.schema, number)),
  );
}
