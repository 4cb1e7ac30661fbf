/** A Postgres server from Debian's packages, as operators run it: another version than the embedded one, under another user. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { until } from "./until.ts";

/** The newest of Debian's, or null. */
export function debianBinaries(): string | null {
  const versions = "/usr/lib/postgresql";
  const found = existsSync(versions) ? readdirSync(versions).filter((one) => Number(one) >= 15) : [];
  const newest = found.sort((one, other) => Number(other) - Number(one))[0];
  return newest === undefined ? null : join(versions, newest, "bin");
}

/** The user to run as when this process is root. */
export const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

export interface DebianPostgres {
  /** Variables by which libpq and pg find it. */
  readonly env: { readonly PGHOST: string; readonly PGPORT: string };
  /** The administrator's URL of its database `postgres`. */
  readonly url: string;
  close(): Promise<void>;
}

export async function startDebianPostgres(binaries: string): Promise<DebianPostgres> {
  const folder = temporaryFolder("nearcrawl-debian-");
  chmodSync(folder, 0o755);
  const data = join(folder, "data");
  const sockets = join(folder, "sockets");
  for (const path of [data, sockets]) {
    mkdirSync(path, { mode: 0o700 });
    if (nobody.uid !== undefined) chownSync(path, nobody.uid, nobody.gid);
  }
  chmodSync(sockets, 0o755);
  const env = { ...process.env, HOME: folder, LC_ALL: "C.UTF-8" };
  const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "SQL_ASCII", "--no-sync"];
  execFileSync(join(binaries, "initdb"), init, { ...nobody, env, stdio: "ignore" });
  const port = String(await freePort());
  const settings = {
    unix_socket_directories: sockets,
    listen_addresses: "",
    max_wal_size: "4GB",
    shared_buffers: "512MB",
  };
  const given = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = spawn(join(binaries, "postgres"), ["-D", data, "-p", port, ...given], { ...nobody, env });
  const ended = once(server, "close");
  let text = "";
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (piece) => (text += String(piece)));
  await until(() => text.includes("ready to accept connections"), 30_000);
  return {
    env: { PGHOST: sockets, PGPORT: port },
    url: `postgres://postgres@/postgres?host=${encodeURIComponent(sockets)}&port=${port}`,
    close: async () => {
      // Fast shutdown ends the remaining connections.
      server.kill("SIGINT");
      await ended;
    },
  };
}
