/**
 * Slices on two Postgres servers, each with a data folder of its own: a statement that reached into a slice of the other server,
 * or wrote a shared table where there is only a replica, fails at once. The shared tables and the even slices are on the first,
 * the odd ones on the second.
 */
import { execFile } from "node:child_process";
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { dataFolderOf, makeHome, prepareCluster } from "#db/embedded-cluster";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { type Database, openServerDatabase } from "#db/server-database";
import { folderOfRun, onceInRun } from "./once-in-run.ts";
import { freeAddress, isThere, listening } from "./standby.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { until } from "./until.ts";

const schema = "web";

/** Its power is not cut: it need not wait for the disk. */
const settings = `
wal_level = logical
fsync = off
full_page_writes = off
max_wal_size = 1GB
shared_buffers = 64MB
wal_retrieve_retry_interval = 200ms
max_logical_replication_workers = 8
`;

export class SliceServers {
  readonly #homes: readonly [string, string];
  readonly #urls: readonly [string, string];
  readonly #opened: Database[] = [];
  readonly shared: Database;

  private constructor(homes: readonly [string, string], urls: readonly [string, string], shared: Database) {
    this.#homes = homes;
    this.#urls = urls;
    this.shared = shared;
    this.#opened.push(shared);
  }

  /** Two servers, and the shared tables with slice 0. */
  static async begin(): Promise<SliceServers> {
    const made = process.env.VITEST === undefined ? null : await madeOnce();
    const [first, second] = await Promise.all([beginServer("first", made), beginServer("second", made)]);
    const shared = await openServerDatabase({ databaseUrl: first.url, schema });
    await migrate(shared);
    return new SliceServers([first.home, second.home], [first.url, second.url], shared);
  }

  /** Of the server, 0 or 1. */
  url(server: 0 | 1): string {
    return this.#urls[server];
  }

  async open(
    server: 0 | 1,
    options: { readonly schema: string; readonly sharedSchema?: string },
  ): Promise<Database> {
    const database = await openServerDatabase({ databaseUrl: this.#urls[server], ...options });
    this.#opened.push(database);
    return database;
  }

  /** Its process dies at once, as in a power cut. */
  async kill(server: 0 | 1): Promise<void> {
    const pid = readPidFile(this.#homes[server])?.pid;
    if (pid === undefined) return;
    process.kill(pid, "SIGKILL");
    await until(() => !isThere(pid), 10_000);
  }

  async start(server: 0 | 1): Promise<void> {
    await startEmbeddedPostgres(this.#homes[server]);
  }

  async close(): Promise<void> {
    for (const database of this.#opened) await database.close();
    await Promise.all(this.#homes.map((home) => stopEmbeddedPostgres(home)));
    for (const home of this.#homes) rmSync(home, { recursive: true, force: true });
  }
}

type Name = "first" | "second";

/** `made`: the folder of servers to copy; null: it begins with nothing. */
async function beginServer(name: Name, made: string | null): Promise<{ home: string; url: string }> {
  const home = makeHome(temporaryFolder(`nearcrawl-${name}-`));
  if (made !== null)
    await promisify(execFile)("cp", ["-a", dataFolderOf(join(made, name)), dataFolderOf(home)]);
  await prepareCluster(home);
  const address = freeAddress();
  const own = made === null ? settings : "";
  appendFileSync(join(dataFolderOf(home), "postgresql.conf"), `${own}${listening(address)}`);
  await startEmbeddedPostgres(home);
  return { home, url: `postgresql://nearcrawl@${address}:5432/nearcrawl?sslmode=disable` };
}

/**
 * Both servers with the tables that tests would wait for, as somebody leaves them who was ended while he added slices 1 to 3: made by
 * the first test of a run that asks.
 */
async function madeOnce(): Promise<string> {
  await onceInRun("slice-servers", 240_000, async () => {
    await Promise.all([
      makeServer("first", async (url) => {
        await migrateAt(url, { schema });
        await migrateAt(url, { schema: `${schema}_2`, sharedSchema: schema }, "slice");
      }),
      makeServer("second", async (url) => {
        await migrateAt(url, { schema }, "shared");
        for (const number of [1, 3])
          await migrateAt(url, { schema: `${schema}_${number}`, sharedSchema: schema }, "slice");
      }),
    ]);
    return "made";
  });
  return folderOfRun("slice-servers");
}

async function makeServer(name: Name, fill: (url: string) => Promise<void>): Promise<void> {
  const home = makeHome(join(folderOfRun("slice-servers"), name));
  await prepareCluster(home);
  appendFileSync(join(dataFolderOf(home), "postgresql.conf"), settings);
  const { url } = await startEmbeddedPostgres(home);
  await fill(url);
  await stopEmbeddedPostgres(home);
}

async function migrateAt(
  databaseUrl: string,
  at: { readonly schema: string; readonly sharedSchema?: string },
  only?: "shared" | "slice",
): Promise<void> {
  const database = await openServerDatabase({ databaseUrl, ...at });
  await migrate(database, only === undefined ? {} : { only });
  await database.close();
}
