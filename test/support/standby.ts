/**
 * A primary and a streaming standby for failover tests: embedded servers, each on its own loopback address. The primary can be
 * killed, frozen or cut off, the standby promoted, and a new standby made of it. Linux only: macOS has one loopback address.
 */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { dataFolderOf, makeHome, prepareCluster } from "#db/embedded-cluster";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { temporaryFolder } from "./temporary-folder.ts";
import { until } from "./until.ts";

/** Why no standby is possible here, or null. */
export const noStandbyWords = process.platform === "linux" ? null : "loopback has one address";

export interface PairedServer {
  readonly home: string;
  /** `127.x.y.z`, with the usual port. */
  readonly address: string;
  /** The URL of this server alone, through its socket. */
  readonly url: string;
}

export class ServerPair {
  #primary: PairedServer;
  #standby: PairedServer;
  readonly #servers: PairedServer[];
  readonly #frozen: number[] = [];

  private constructor(primary: PairedServer, standby: PairedServer) {
    this.#primary = primary;
    this.#standby = standby;
    this.#servers = [primary, standby];
  }

  /** `fill` writes to the database before the standby is made. */
  static async begin(fill: (url: string) => Promise<void> = async () => {}): Promise<ServerPair> {
    const primary = await beginPrimary();
    await fill(primary.url);
    return new ServerPair(primary, await beginStandby(primary));
  }

  get primary(): PairedServer {
    return this.#primary;
  }

  get standby(): PairedServer {
    return this.#standby;
  }

  /** Both servers, the primary last, so that order alone does not find it. */
  get url(): string {
    return `postgresql://nearcrawl@${this.#standby.address}:5432,${this.#primary.address}:5432/nearcrawl?sslmode=disable&connect_timeout=1`;
  }

  /** Kills the primary; its backends notice and exit. */
  async killPrimary(): Promise<void> {
    const processes = processesOf(this.#primary);
    process.kill(processes[0]!, "SIGKILL");
    await until(() => processes.every((pid) => !isThere(pid)), 10_000);
  }

  /** As after a power or network failure: sockets stay open and nothing answers. */
  freezePrimary(): void {
    for (const pid of processesOf(this.#primary)) {
      process.kill(pid, "SIGSTOP");
      this.#frozen.push(pid);
    }
  }

  /** Keeps later writes of the primary from the standby. */
  async cut(): Promise<void> {
    await ask(this.#standby.url, "alter system set primary_conninfo = ''", "select pg_reload_conf()");
    await until(
      async () =>
        (await ask(this.#standby.url, "select pid from pg_stat_wal_receiver where pid is not null"))
          .length === 0,
      10_000,
    );
  }

  /** Whether each commit waits for the standby. */
  async synchronous(isOn: boolean): Promise<void> {
    const names = isOn ? "*" : "";
    await ask(
      this.#primary.url,
      `alter system set synchronous_standby_names = '${names}'`,
      "select pg_reload_conf()",
    );
    await until(async () => {
      const [row] = await ask<{ names: string; streaming: boolean }>(
        this.#primary.url,
        `select current_setting('synchronous_standby_names') as names, ${streams} as streaming`,
      );
      return row?.names === names && row.streaming;
    }, 10_000);
  }

  /** Resolves when the standby has everything that the primary has written. */
  async caughtUp(): Promise<void> {
    const [row] = await ask<{ at: string }>(this.#primary.url, "select pg_current_wal_lsn()::text as at");
    await until(async () => {
      const query = `select pg_last_wal_replay_lsn() >= '${row!.at}'::pg_lsn as is_there`;
      return (await ask<{ is_there: boolean }>(this.#standby.url, query))[0]?.is_there === true;
    }, 10_000);
  }

  /** Makes the standby the primary; the former one is unusable. */
  async promote(): Promise<void> {
    await ask(this.#standby.url, "select pg_promote()");
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
  }

  /** Makes a new standby at the address of the former one. */
  async renewStandby(): Promise<void> {
    const former = this.#standby;
    this.#wake();
    await stopEmbeddedPostgres(former.home);
    this.#standby = await beginStandby(this.#primary, former.address);
    this.#servers.push(this.#standby);
  }

  async close(): Promise<void> {
    this.#wake();
    for (const { home } of this.#servers) await stopEmbeddedPostgres(home);
    for (const { home } of this.#servers) rmSync(home, { recursive: true, force: true });
  }

  #wake(): void {
    for (const pid of this.#frozen.splice(0)) if (isThere(pid)) process.kill(pid, "SIGCONT");
  }
}

const streams = "exists (select from pg_stat_replication where state = 'streaming')";

/** Without fsync, since no power is cut. A standby's settings come with the copy. */
const settings = `
wal_level = replica
max_wal_senders = 5
wal_keep_size = 1GB
hot_standby = on
fsync = off
autovacuum = off
synchronous_standby_names = ''
wal_receiver_status_interval = 1
wal_retrieve_retry_interval = 200ms
shared_buffers = 64MB
`;

async function beginPrimary(): Promise<PairedServer> {
  const home = makeHome(temporaryFolder("nearcrawl-primary-"));
  await prepareCluster(home);
  const address = freeAddress();
  appendFileSync(join(dataFolderOf(home), "postgresql.conf"), `${settings}${listening(address)}`);
  const { url } = await startEmbeddedPostgres(home);
  return { home, address, url };
}

async function beginStandby(primary: PairedServer, address = freeAddress()): Promise<PairedServer> {
  const home = makeHome(temporaryFolder("nearcrawl-standby-"));
  const folder = dataFolderOf(home);
  const { uid, gid } = statSync(dataFolderOf(primary.home));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    chownSync(join(folder, name), uid, gid);
  };
  const session = new Client({ connectionString: primary.url });
  await session.connect();
  await session.query("select pg_backup_start('a new standby', true)");
  execFileSync("cp", ["-a", dataFolderOf(primary.home), folder]);
  const { rows } = await session.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
  await session.end();
  rmSync(join(folder, "postmaster.pid"), { force: true });
  rmSync(join(folder, "socket"), { recursive: true, force: true });
  write("backup_label", rows[0]!.labelfile);
  write("standby.signal", "");
  appendFileSync(
    join(folder, "postgresql.auto.conf"),
    `primary_conninfo = 'host=${primary.address} port=5432 user=nearcrawl'\nsynchronous_standby_names = ''\n`,
  );
  appendFileSync(join(folder, "postgresql.conf"), listening(address));
  const { url } = await startEmbeddedPostgres(home);
  await until(
    async () => (await ask<{ it: boolean }>(primary.url, `select ${streams} as it`))[0]!.it,
    20_000,
  );
  return { home, address, url };
}

export const listening = (address: string) => `listen_addresses = '${address}'\n`;

let given = 0;

/** Loopback addresses that other test processes do not use. */
export function freeAddress(): string {
  given += 1;
  return `127.${10 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 250}.${given + 1}`;
}

/** The server's own process first. */
function processesOf({ home }: PairedServer): readonly number[] {
  const { pid } = readPidFile(home)!;
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return [pid, ...children.map(Number)];
}

function parentOf(pid: string): number | null {
  try {
    return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
  } catch {
    return null;
  }
}

/** A zombie does not count as running. */
export function isThere(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function ask<Row extends object>(url: string, ...queries: readonly string[]): Promise<Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    let rows: Row[] = [];
    for (const query of queries) rows = (await client.query<Row>(query)).rows;
    return rows;
  } finally {
    await client.end();
  }
}
