/**
 * Slices are added and drained. Each step looks at what is there already, so that whoever was ended in the middle, or comes second,
 * goes on: the number is taken, the schema made (and the replica of the shared tables, on another server), and then hosts move in
 * the background (move-writes.ts).
 */
import type { Pool } from "pg";
import { UsageError } from "#core/errors";
import { type Database, openServerDatabase, withoutPassword } from "#db/server-database";
import {
  createReplica,
  createSliceSchema,
  dropSliceSchema,
  publishShared,
  subscriptionOf,
} from "#db/slice-schema";
import { ofAll } from "../database/slices.ts";
import {
  type PlannedMove,
  planMoves,
  prepareSlice,
  readCatalogue,
  type SliceEntry,
  setSliceState,
} from "./catalogue-store.ts";
import { OpenSlices } from "./open-slices-store.ts";
import { balancedMoves, bucketsOfMove, inPieces } from "./plan-moves.ts";

export interface AddSlice {
  /** Null: the server of the shared tables. */
  readonly serverUrl: string | null;
  /** Null: named after the shared one and the slice's number. */
  readonly schema: string | null;
  /** How the slice's server reaches that of the shared tables. */
  readonly sharedUrl: string;
  readonly by: string;
  /** False: hosts are moved there by name only. */
  readonly balance: boolean;
}

export interface AddedSlice {
  readonly slice: SliceEntry;
  readonly moves: readonly PlannedMove[];
}

/** `onStep`: what is done next, for people. Throws a UsageError for what cannot be, and a DatabaseError where a server fails. */
export async function addSlice(
  shared: Database,
  given: AddSlice,
  onStep: (words: string) => void = () => {},
): Promise<AddedSlice> {
  return await oneAfterTheOther(shared.pool, async () => await addAlone(shared, given, onStep));
}

/** Who comes second would take a slice that is being made, or removed, for one that nobody finished. */
export async function oneAfterTheOther<T>(shared: Pool, work: () => Promise<T>): Promise<T> {
  const client = await shared.connect();
  try {
    await client.query(
      "select pg_advisory_lock(hashtext('nearcrawl add slice'), hashtext(current_schema()))",
    );
    return await work();
  } finally {
    client.release(true);
  }
}

async function addAlone(
  shared: Database,
  { serverUrl, schema, sharedUrl, by, balance }: AddSlice,
  onStep: (words: string) => void,
): Promise<AddedSlice> {
  if (serverUrl !== null && withoutPassword(serverUrl) !== serverUrl)
    throw new UsageError(
      "the slice's server URL names a password, which everybody who reads the shared tables would see: put it into PGPASSWORD or ~/.pgpass of whoever runs coordinators",
    );
  const prepared = await prepareSlice(shared.pool, { serverUrl, schema, by });
  const databaseUrl = serverUrl ?? shared.url;
  if (serverUrl !== null) {
    onStep("publishing the shared tables");
    await publishShared(shared);
    onStep("copying what slices read of the shared tables to the slice's server");
    const replica = await openServerDatabase({ databaseUrl, schema: shared.schema, maxConnections: 2 });
    try {
      await createReplica(replica, shared, {
        sharedUrl,
        subscription: subscriptionOf(shared.schema, prepared.number),
      });
    } finally {
      await replica.close();
    }
  }
  onStep(`making schema ${prepared.schema}`);
  const slice = await openServerDatabase({
    databaseUrl,
    schema: prepared.schema!,
    sharedSchema: shared.schema,
    maxConnections: 2,
  });
  try {
    await createSliceSchema(slice, prepared.number);
  } finally {
    await slice.close();
  }
  if (prepared.state === "preparing") await setSliceState(shared.pool, prepared.number, "active");
  const most = balance ? await bucketsTogether(shared) : 0;
  const moves = balance
    ? await planMoves(shared.pool, by, async (catalogue) => balancedMoves(catalogue, most))
    : [];
  return { slice: { ...prepared, state: "active" }, moves };
}

/** By how many hosts there are; counted no further than it matters. */
async function bucketsTogether(shared: Database): Promise<number> {
  const slices = await OpenSlices.open(shared, { maxConnections: 1 });
  try {
    const counts = await ofAll(slices, async ({ pool }) => {
      const { rows } = await pool.query<{ hosts: number }>(
        `select count(*)::int as hosts from (select from frontier_host limit ${hostsCounted}) h`,
      );
      return rows[0]!.hosts;
    });
    return bucketsOfMove(counts.reduce((sum, count) => sum + count, 0));
  } finally {
    await slices.close();
  }
}

const hostsCounted = 20_000_000;

/** Its hosts go to the others; nothing new comes to it. Throws a UsageError for the only one. */
export async function drainSlice(
  shared: Database,
  number: number,
  by: string,
): Promise<readonly PlannedMove[]> {
  const most = await bucketsTogether(shared);
  return await planMoves(shared.pool, by, async (catalogue, client) => {
    const slice = catalogue.slices.find((one) => one.number === number);
    if (slice === undefined) throw new UsageError(`there is no slice ${number}`);
    const others = catalogue.slices.filter((one) => one.number !== number && one.state === "active");
    if (slice.state === "removing") throw new UsageError(`slice ${number} is being removed`);
    if (others.length === 0) throw new UsageError(`slice ${number} is the only one that may have hosts`);
    await setSliceState(client, number, "draining");
    const slices = catalogue.slices.map((one) =>
      one.number === number ? { ...one, state: "draining" as const } : one,
    );
    return balancedMoves({ ...catalogue, slices }, most);
  });
}

/** Until every slice has about as many as the others. */
export async function balanceSlices(shared: Database, by: string): Promise<readonly PlannedMove[]> {
  const most = await bucketsTogether(shared);
  return await planMoves(shared.pool, by, async (catalogue) => balancedMoves(catalogue, most));
}

/** Of a crawl that is thrown away: the schemas of all slices but the first, and the replicas of the shared tables. */
export async function dropSlices(shared: Database): Promise<void> {
  const { rows } = await shared.pool.query<{ there: boolean }>(
    "select to_regclass('web_slice') is not null as there",
  );
  if (rows[0]?.there !== true) return;
  const { slices } = await readCatalogue(shared.pool);
  const others = slices.filter(({ number }) => number !== 0);
  for (const [index, { serverUrl, schema }] of others.entries()) {
    const isLast = serverUrl !== null && !others.slice(index + 1).some((one) => one.serverUrl === serverUrl);
    const slice = await openServerDatabase({
      ...{ databaseUrl: serverUrl ?? shared.url, schema: schema!, maxConnections: 1 },
    });
    try {
      await dropSliceSchema(slice, shared.schema, isLast);
    } finally {
      await slice.close();
    }
  }
}

/** Those buckets, in pieces. */
export async function moveBuckets(
  shared: Database,
  move: PlannedMove,
  by: string,
): Promise<readonly PlannedMove[]> {
  const most = await bucketsTogether(shared);
  return await planMoves(shared.pool, by, async () => inPieces(move, most));
}
