/** A PgBouncer from the system's packages in front of a database, over TCP. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "./free-port.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { until } from "./until.ts";

const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find((path) =>
  existsSync(path),
);

/** Null when it is not installed, which the caller reports. */
export const pgBouncerProgram = program ?? null;

export interface PgBouncer {
  readonly url: string;
  close(): Promise<void>;
}

/** `target`: a URL of the embedded server. PgBouncer runs under the only account that can reach its socket. */
export async function startPgBouncer(
  target: string,
  poolMode: "session" | "transaction" | "statement",
  settings: Readonly<Record<string, string | number>> = {},
): Promise<PgBouncer> {
  const { pathname, searchParams } = new URL(target);
  const socketFolder = searchParams.get("host") ?? "";
  const user = searchParams.get("user") ?? "";
  const name = pathname.slice(1);
  const port = await freePort();
  const folder = temporaryFolder("nearcrawl-pgbouncer-");
  const { uid, gid } = statSync(socketFolder);
  const account = process.getuid?.() === 0 ? { uid, gid } : {};
  const all = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: poolMode,
    default_pool_size: 60,
    max_client_conn: 200,
    ...settings,
  };
  const lines = Object.entries(all).map(([key, value]) => `${key} = ${value}`);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(
    file,
    `[databases]\n${name} = host=${socketFolder} port=${searchParams.get("port")} user=${user} dbname=${name}\n[pgbouncer]\n${lines.join("\n")}\n`,
  );
  if (account.uid !== undefined) {
    chownSync(folder, account.uid, gid);
    chmodSync(file, 0o644);
  }
  const bouncer = spawn(program!, [file], { ...account, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(bouncer, "close");
  let text = "";
  for (const stream of [bouncer.stdout, bouncer.stderr])
    stream.on("data", (piece) => (text += String(piece)));
  const url = `postgresql://${user}@127.0.0.1:${port}/${name}`;
  await until(async () => {
    if (bouncer.exitCode !== null) throw new Error(`pgbouncer ended: ${text}`);
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }, 20_000);
  return {
    url,
    close: async () => {
      bouncer.kill("SIGQUIT");
      await ended;
    },
  };
}
