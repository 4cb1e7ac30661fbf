/**
 * Allows one fetch at a time in a cache folder. The lock file is created atomically by a hard link, names its holder,
 * and is touched while the fetch runs. The lock is stale when its holder is a process of this machine that is gone, or
 * when nobody touched it for minutes (a machine or container that shares the folder).
 */

import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { CacheError } from "#core/errors";
import { isRunning } from "#core/running-process";

const touchEveryMs = 20_000;
const abandonedAfterMs = 5 * 60_000;
/** A take-over takes milliseconds, so an older take-over file was left by a killed process. */
const takeoverMs = 60_000;

const holderSchema = z.object({
  pid: z.int().positive(),
  host: z.string(),
  token: z.string(),
  since: z.string(),
});
type Holder = z.infer<typeof holderSchema>;

/**
 * Creates the folder if necessary and runs `work` alone in it. The signal aborts when the lock is lost, because the
 * machine slept and another process took over. Throws a CacheError when another process holds the lock.
 */
export async function withCacheLock<T>(
  cacheFolder: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  await mkdir(cacheFolder, { recursive: true }).catch((error: Error) => {
    throw new CacheError(`${cacheFolder} cannot be made: ${error.message}`, { cause: error });
  });
  const file = join(cacheFolder, "fetch.lock");
  const token = await takeLock(file);
  const lost = new AbortController();
  const touch = setInterval(async () => {
    const now = new Date();
    if (await isHeldBy(file, token)) await utimes(file, now, now).catch(() => {});
    else lost.abort(new CacheError(`${file}: the lock was lost to another fetch`));
  }, touchEveryMs).unref();
  try {
    return await work(lost.signal);
  } finally {
    clearInterval(touch);
    if (await isHeldBy(file, token)) await rm(file, { force: true });
  }
}

async function isHeldBy(file: string, token: string): Promise<boolean> {
  const holder = await holderOf(file);
  return holder !== null && holder !== "gone" && holder.token === token;
}

async function takeLock(file: string): Promise<string> {
  const token = randomUUID();
  const holder: Holder = { pid: process.pid, host: hostname(), token, since: new Date().toISOString() };
  const own = `${file}.${token}`;
  try {
    await writeFile(own, JSON.stringify(holder), { flag: "wx" });
    if ((await linked(own, file)) || (await takenOver(own, file))) return token;
  } catch (error) {
    if (error instanceof CacheError) throw error;
    throw new CacheError(`${file} cannot be written: ${(error as Error).message}`, { cause: error });
  } finally {
    await rm(own, { force: true });
  }
  throw new CacheError(`${file}: another fetch is about to begin in this folder`);
}

async function linked(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Replaces a stale lock with ours. Returns false when another process is about to do so, and throws when the holder is
 * active. Only the holder of a short-lived take-over file removes another's lock, so the lock removed is the one found
 * stale.
 */
async function takenOver(own: string, file: string): Promise<boolean> {
  const right = `${file}.takeover`;
  await refuseWhileHeld(file);
  if (await isOlderThan(right, takeoverMs)) await rm(right, { force: true });
  if (!(await linked(own, right))) return false;
  try {
    await refuseWhileHeld(file);
    await rm(file, { force: true });
    return await linked(own, file);
  } finally {
    await rm(right, { force: true });
  }
}

async function refuseWhileHeld(file: string): Promise<void> {
  const holder = await holderOf(file);
  if (holder !== "gone" && (await isAtWork(file, holder))) throw busy(file, holder);
}

async function isOlderThan(file: string, ms: number): Promise<boolean> {
  const facts = await stat(file).catch(() => null);
  return facts !== null && Date.now() - facts.mtimeMs > ms;
}

async function holderOf(file: string): Promise<Holder | null | "gone"> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(file, "utf8")));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? "gone" : null;
  }
}

async function isAtWork(file: string, holder: Holder | null): Promise<boolean> {
  if (holder?.host === hostname() && holder.pid !== process.pid && !isRunning(holder.pid)) return false;
  const facts = await stat(file).catch(() => null);
  return facts !== null && Date.now() - facts.mtimeMs < abandonedAfterMs;
}

function busy(file: string, holder: Holder | null): CacheError {
  const who = holder === null ? "" : ` (process ${holder.pid} on ${holder.host}, since ${holder.since})`;
  return new CacheError(`${file}: another fetch is at work in this folder${who}`);
}
