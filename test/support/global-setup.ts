/**
 * Set-up of the whole run: a temporary folder, whose leftovers are reported before it is removed, and one embedded Postgres, which
 * the first test that needs a database starts. With DATABASE_URL that server is used instead.
 */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { isRunning } from "../../coordinator/core/running-process.ts";
import { stopEmbeddedPostgres } from "../../db/embedded-postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    databaseHome: string;
  }
}

/** Caches of tsx, node and Chromium, and the home of commands. */
const ofOthers = /^(nearcrawl-home$|tsx-|node-compile-cache|\.?org\.chromium\.|playwright)/;

export default function setup(project: TestProject): () => Promise<void> {
  const folder = runFolder();
  // Some tests run programs under another user.
  chmodSync(folder, 0o1777);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  // A command without --home must not use the user's own.
  const homeBefore = process.env.NEARCRAWL_HOME;
  process.env.NEARCRAWL_HOME = join(folder, "nearcrawl-home");
  const home = join(folder, "database");
  mkdirSync(home, { mode: 0o711 });
  project.provide("databaseHome", home);
  return async () => {
    await stopEmbeddedPostgres(home);
    rmSync(home, { recursive: true, force: true });
    tellLeftovers(readdirSync(folder).filter((name) => !ofOthers.test(name)));
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    if (homeBefore === undefined) delete process.env.NEARCRAWL_HOME;
    else process.env.NEARCRAWL_HOME = homeBefore;
  };
}

const memoryFolder = "/dev/shm";

/** Hundreds of small databases are copied and dropped, a few at a time; their log takes most of it. */
const memoryBytes = 10e9;

/** In memory if there is enough, since tests discard what they write within seconds. */
function runFolder(): string {
  if (!isRoomy()) return mkdtempSync(join(tmpdir(), "nearcrawl-test-"));
  removeAbandoned();
  return mkdtempSync(join(memoryFolder, `${memoryPrefix}${process.pid}-`));
}

function isRoomy(): boolean {
  if (!existsSync(memoryFolder) || freemem() < memoryBytes) return false;
  const { bavail, bsize } = statfsSync(memoryFolder);
  if (bavail * bsize < memoryBytes) return false;
  // Tests execute programs from it.
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  return !mounts.some((line) => line.includes(` ${memoryFolder} `) && /\bnoexec\b/.test(line));
}

const memoryPrefix = "nearcrawl-test-";

/** Removes the folders of killed runs, which hold memory. */
function removeAbandoned(): void {
  for (const name of readdirSync(memoryFolder).filter((name) => name.startsWith(memoryPrefix))) {
    const pid = Number(name.slice(memoryPrefix.length).split("-")[0]);
    if (isRunning(pid)) continue;
    try {
      rmSync(join(memoryFolder, name), { recursive: true, force: true });
    } catch {
      // Another user's.
    }
  }
}

/** A folder's name shows which test made it (temporary-folder.ts). */
function tellLeftovers(names: readonly string[]): void {
  if (names.length === 0) return;
  const shown = names.slice(0, 20).join(", ");
  process.stderr.write(`tests left ${names.length} behind in their temporary folder: ${shown}\n`);
}
