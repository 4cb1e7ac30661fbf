/** Reports the sources and age of the current tree, and the imports before it. */

import type { Database } from "#db/server-database";
import { isImportRunning } from "./database/generations.ts";
import { publishedFormats } from "./formats/published.ts";
import type { OutdatedFile, RegistryCounts, RegistryFacts } from "./read/status-api.ts";
import { canRollForward } from "./rollback.ts";

type SourceStatus = RegistryFacts["sources"][number];
export type GenerationStatus = Omit<RegistryFacts["history"][number], "appliedBy" | "rolledBackBy">;

/** What is known without counting rows. */
export type RegistryOverview = Pick<
  RegistryFacts,
  "generation" | "appliedAt" | "counted" | "sources" | "outdated" | "unfinished" | "isImportRunning"
> & { readonly history: readonly GenerationStatus[] };

export type RegistryStatus = RegistryOverview & Awaited<ReturnType<typeof readTotals>>;

const quarterDays = 92;
const dayMs = 86_400_000;
/**
 * Sources whose age says nothing: a registry's answer about one subnet (earlier versions) is not its data, and IANA's
 * files and published lists may stay unchanged for years.
 */
const timeless: ReadonlySet<string> = new Set(["rdap", "iana-xml", "geofeeds", ...publishedFormats]);
type DatabasePlace = Pick<Database, "pool" | "schema">;

export async function registryStatus(database: Database, now: Date = new Date()): Promise<RegistryStatus> {
  return { ...(await registryOverview(database, now)), ...(await readTotals(database)) };
}

export async function registryOverview(database: DatabasePlace, now: Date): Promise<RegistryOverview> {
  const history = await readHistory(database);
  const current = history.find(({ state }) => state === "applied") ?? (await readCurrent(database));
  const sources = current ? await readSourceRows(database, current.generation, now) : [];
  return {
    generation: current?.generation ?? null,
    appliedAt: current?.appliedAt ?? null,
    counted: current ? await readCounted(database, current.generation) : null,
    sources,
    outdated: outdatedAmong(sources),
    unfinished: await readUnfinished(database),
    isImportRunning: await isImportRunning(database),
    history,
  };
}

/** Returns registries, or files of unknown registries, whose newest data are older than a quarter. */
function outdatedAmong(sources: readonly SourceStatus[]): readonly string[] {
  const youngest = new Map<string, number>();
  for (const { registry, file, format, ageDays } of sources) {
    const name = registry ?? file;
    if (ageDays !== null && !timeless.has(format))
      youngest.set(name, Math.min(ageDays, youngest.get(name) ?? ageDays));
  }
  return [...youngest].filter(([, ageDays]) => ageDays > quarterDays).map(([name]) => name);
}

export function outdatedFiles(
  files: readonly Pick<SourceStatus, "file" | "format" | "fileDate">[],
  now: Date,
): readonly OutdatedFile[] {
  return files
    .flatMap(({ file, format, fileDate }) => {
      const ageDays = fileDate === null ? null : ageOf(fileDate, now);
      const isOld = ageDays !== null && ageDays > quarterDays && !timeless.has(format);
      return isOld ? [{ file, fileDate: fileDate!, ageDays }] : [];
    })
    .sort((a, b) => b.ageDays - a.ageDays);
}

const ageOf = (date: string, now: Date) => Math.floor((now.getTime() - Date.parse(date)) / dayMs);

async function readTotals({ pool }: Database) {
  const { rows } = await pool.query<
    Record<"ipv4Subnets" | "ipv6Subnets" | "holders" | "delegations", number>
  >(`
    select
      (select count(*)::int from subnet where removed_in is null and family(first_address) = 4) as "ipv4Subnets",
      (select count(*)::int from subnet where removed_in is null and family(first_address) = 6) as "ipv6Subnets",
      (select count(distinct holder_id)::int from subnet where removed_in is null) as holders,
      (select count(*)::int from delegation join subnet using (subnet_id) where removed_in is null) as delegations`);
  return rows[0]!;
}

/** Earlier versions could query a registry for a single subnet. A generation made that way has no counts. */
async function readCounted(
  { pool }: DatabasePlace,
  generation: number,
): Promise<RegistryOverview["counted"]> {
  const { rows } = await pool.query<{
    readonly generation: number;
    readonly registries: readonly RegistryCounts[];
    readonly crossings: number | null;
  }>(
    `select generation, counts->'registries' as registries, (counts->'state'->>'crossings')::integer as crossings
     from registry_generation
     where state = 'applied' and generation <= $1 and counts ? 'state'
     order by generation desc
     limit 1`,
    [generation],
  );
  const [row] = rows;
  return row?.registries ? { ...row, crossings: row.crossings ?? 0 } : null;
}

const forward = canRollForward(
  "(select max(g.generation) from registry_generation g where g.state = 'applied')",
);

async function readHistory(database: DatabasePlace): Promise<readonly GenerationStatus[]> {
  return await readGenerations(database, "state in ('applied', 'rolled-back')", 20);
}

/** Finds the generation in force even when the newest twenty were all rolled back. */
async function readCurrent(database: DatabasePlace): Promise<GenerationStatus | null> {
  const [current] = await readGenerations(database, "state = 'applied'", 1);
  return current === undefined ? null : { ...current, canRollForward: false };
}

async function readGenerations(
  { pool }: DatabasePlace,
  condition: string,
  most: number,
): Promise<readonly GenerationStatus[]> {
  const { rows } = await pool.query<
    Omit<GenerationStatus, "appliedAt"> & { readonly appliedAt: Date | null }
  >(
    `select generation, state, applied_at as "appliedAt", coalesce(counts->'changes', '{}') as changes,
       ${forward} as "canRollForward"
     from registry_generation
     where ${condition}
     order by generation desc
     limit $1`,
    [most],
  );
  return rows.map((row) => ({ ...row, appliedAt: row.appliedAt?.toISOString() ?? null }));
}

async function readUnfinished(database: DatabasePlace): Promise<RegistryStatus["unfinished"]> {
  const { rows } = await database.pool.query<{ created_at: Date }>(
    "select created_at from registry_generation where state = 'staged' order by generation desc limit 1",
  );
  const begun = rows[0];
  if (begun === undefined) return null;
  return { begunAt: begun.created_at.toISOString(), isRunning: await isImportRunning(database) };
}

async function readSourceRows(
  database: DatabasePlace,
  generation: number,
  now: Date,
): Promise<readonly SourceStatus[]> {
  const { rows } = await database.pool.query<Omit<SourceStatus, "ageDays">>(
    `select file, format, registry, file_date::text as "fileDate", coalesce((counts->>'kept')::float8, 0) as kept,
       coalesce((counts->>'malformed')::float8, 0) as malformed, sha256
     from registry_source
     where generation = $1
     order by file`,
    [generation],
  );
  return rows.map((row) => ({ ...row, ageDays: row.fileDate === null ? null : ageOf(row.fileDate, now) }));
}
