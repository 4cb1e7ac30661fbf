/** Manages the records of imports: registry_generation and registry_source. */
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { isAdvisoryLockHeld, releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import { tell } from "#db/schema-channel";
import type { Database } from "#db/server-database";
import type { FileReport } from "../read/file-report.ts";

type GenerationCounts = Readonly<Record<string, unknown>>;

export async function currentGeneration(client: PoolClient): Promise<number | null> {
  const { rows } = await client.query<{ generation: number | null }>(
    "select max(generation) as generation from registry_generation where state = 'applied'",
  );
  return rows[0]?.generation ?? null;
}

/**
 * Starts a generation in a separate transaction, so that a row records the import even if it fails. The generation
 * counts only once it is applied.
 */
export async function beginGeneration(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ generation: number }>(
    "insert into registry_generation (state) values ('staged') returning generation",
  );
  return rows[0]!.generation;
}

export async function putInForce(
  client: PoolClient,
  generation: number,
  counts: GenerationCounts,
): Promise<void> {
  await client.query(
    "update registry_generation set state = 'applied', applied_at = now(), counts = $2 where generation = $1",
    [generation, JSON.stringify(counts)],
  );
}

export async function dropGeneration(pool: Pool, generation: number): Promise<void> {
  await pool.query("delete from registry_generation where generation = $1 and state = 'staged'", [
    generation,
  ]);
}

/**
 * Removes the rows of killed imports, reclaims the space of their invisible rows and returns how many there were. The
 * caller holds the import lock.
 */
export async function clearInterrupted(client: PoolClient): Promise<number> {
  const { rowCount } = await client.query("delete from registry_generation where state = 'staged'");
  if (rowCount) await client.query("vacuum subnet, holder, subnet_before, holder_before");
  return rowCount ?? 0;
}

export async function insertSources(
  client: PoolClient,
  generation: number,
  files: readonly FileReport[],
): Promise<void> {
  await client.query(
    `insert into registry_source (generation, file, format, registry, file_date, sha256, counts)
     select $1, file, format, registry, file_date::date, sha256, counts
     from jsonb_to_recordset($2::jsonb)
       as s (file text, format text, registry text, file_date text, sha256 text, counts jsonb)`,
    [generation, JSON.stringify(files.map(sourceRow))],
  );
}

function sourceRow(report: FileReport) {
  const { read, kept, ignored, malformed, malformedSamples, warnings, seconds, bytesOnDisk, textBytes } =
    report;
  return {
    file: report.file,
    format: report.format,
    registry: report.registry,
    file_date: report.fileDate,
    sha256: report.sha256,
    counts: { read, kept, ignored, malformed, malformedSamples, warnings, seconds, bytesOnDisk, textBytes },
  };
}

/** True when a generation was made from exactly these contents. */
export async function isMadeFrom(
  client: PoolClient,
  generation: number,
  files: readonly FileReport[],
): Promise<boolean> {
  const { rows } = await client.query<{ sha256: string }>(
    "select sha256 from registry_source where generation = $1",
    [generation],
  );
  const digests = (values: readonly { readonly sha256: string }[]) =>
    [...new Set(values.map(({ sha256 }) => sha256))].sort().join();
  return digests(rows) === digests(files);
}

/** Tells coordinators to rebuild the tree when the transaction commits. */
export async function notifyRegistryChange(
  client: PoolClient,
  schema: string,
  generation: number | null,
): Promise<void> {
  const what = JSON.stringify({ schema, generation });
  await tell(client, "nearcrawl_registry", [what]);
}

// A session's advisory lock allows one import or rollback at a time per schema. It ends with the process, even after
// kill -9, and never blocks readers.

const lockName = "nearcrawl rir-import";

export async function withImportLock<T>(
  database: Database,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await database.pool.connect();
  let isReusable = false;
  try {
    const isOurs = await tryAdvisoryLock(client, lockName, database.schema);
    isReusable = true;
    if (!isOurs) {
      throw new DatabaseError(
        `another import or rollback is running on schema ${database.schema}; try again later`,
      );
    }
    return await holdingLock(client, database.schema, work);
  } catch (error) {
    isReusable &&= await answers(client);
    throw error;
  } finally {
    client.release(!isReusable);
  }
}

async function holdingLock<T>(
  client: PoolClient,
  schema: string,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  try {
    return await work(client);
  } finally {
    await releaseAdvisoryLock(client, lockName, schema);
  }
}

async function answers(client: PoolClient): Promise<boolean> {
  return await client.query("select").then(
    () => true,
    () => false,
  );
}

export async function isImportRunning({ pool, schema }: Pick<Database, "pool" | "schema">): Promise<boolean> {
  return await isAdvisoryLockHeld(pool, lockName, schema);
}

export async function inTransaction<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}
