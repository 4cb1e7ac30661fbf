/**
 * The schemas of slices, and the replicas of the shared tables beside them, brought to the newest migration, as the shared tables
 * are: before a coordinator of a newer version works at them. A slice that is away is brought along when it is back.
 */
import { migrate } from "#db/migrate";
import { type Database, isConnectionLost, openServerDatabase } from "#db/server-database";
import { publishShared, updateReplica } from "#db/slice-schema";
import { readCatalogue } from "./catalogue-store.ts";

/** Gives the numbers of those that are away. The shared tables are up to date. */
export async function migrateSlices(shared: Database): Promise<number[]> {
  const { slices } = await readCatalogue(shared.pool);
  const ready = slices.filter(
    ({ number, state }) => number !== 0 && (state === "active" || state === "draining"),
  );
  const servers = new Set(ready.flatMap(({ serverUrl }) => serverUrl ?? []));
  if (servers.size > 0) await publishShared(shared);
  const away = new Set<string>();
  for (const databaseUrl of servers) {
    const isThere = await unlessAway(
      async () => await openServerDatabase({ databaseUrl, schema: shared.schema, maxConnections: 2 }),
      async (replica) => await updateReplica(replica, shared.schema),
    );
    if (!isThere) away.add(databaseUrl);
  }
  const missing: number[] = [];
  for (const { number, schema, serverUrl } of ready) {
    const isThere =
      (serverUrl === null || !away.has(serverUrl)) &&
      (await unlessAway(
        async () =>
          await openServerDatabase({
            ...{ databaseUrl: serverUrl ?? shared.url, schema: schema!, maxConnections: 2 },
            sharedSchema: shared.schema,
          }),
        async (slice) => {
          await migrate(slice, { only: "slice" });
        },
      ));
    if (!isThere) missing.push(number);
  }
  return missing;
}

async function unlessAway(
  open: () => Promise<Database>,
  work: (database: Database) => Promise<void>,
): Promise<boolean> {
  let database: Database | null = null;
  try {
    database = await open();
    await work(database);
    return true;
  } catch (error) {
    if (isConnectionLost(error)) return false;
    throw error;
  } finally {
    await database?.close();
  }
}
