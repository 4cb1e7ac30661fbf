/**
 * Slices on two Postgres servers, each with a data folder of its own: a statement that reached into a slice of the other server,
 * or wrote a shared table where there is only a replica, fails at once. The shared tables and the even slices are on the first,
 * the odd ones on the second.
 */
import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { dataFolderOf, makeHome, prepareCluster } from "#db/embedded-cluster";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { type Database, openServerDatabase } from "#db/server-database";
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
    const [first, second] = await Promise.all([beginServer("first"), beginServer("second")]);
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

async function beginServer(name: string): Promise<{ home: string; url: string }> {
  const home = makeHome(temporaryFolder(`nearcrawl-${name}-`));
  await prepareCluster(home);
  const address = freeAddress();
  appendFileSync(join(dataFolderOf(home), "postgresql.conf"), `${settings}${listening(address)}`);
  await startEmbeddedPostgres(home);
  return { home, url: `postgresql://nearcrawl@${address}:5432/nearcrawl?sslmode=disable` };
}
