/**
 * Disks that can be filled: a file system in memory for a folder, where this process may mount one. Elsewhere RLIMIT_FSIZE
 * keeps files from growing, which a program sees as EFBIG in place of ENOSPC.
 */
import { execFile } from "node:child_process";
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export type Disk =
  | { readonly type: "mounted"; readonly folder: string }
  | { readonly type: "limited"; readonly folder: string };

/** Makes the folder; `mode` as in chmod. */
export async function openDisk(folder: string, megabytes: number, mode = 0o755): Promise<Disk> {
  mkdirSync(folder, { recursive: true, mode });
  const options = `size=${megabytes}m,mode=${mode.toString(8)}`;
  return await run("mount", ["-t", "tmpfs", "-o", options, "nearcrawl-chaos", folder]).then(
    () => ({ type: "mounted", folder }),
    () => ({ type: "limited", folder }),
  );
}

/** `pids`: the processes that write to it. Returns a function that makes room again. */
export async function fillDisk(disk: Disk, pids: readonly number[]): Promise<() => Promise<void>> {
  if (disk.type === "limited") {
    await Promise.all(pids.map(async (pid) => await limitFiles(pid, String(noGrowthBytes))));
    return async () => {
      await Promise.all(pids.map(async (pid) => await limitFiles(pid, "unlimited")));
    };
  }
  const filler = join(disk.folder, "filler");
  writeUntilFull(filler);
  return async () => rmSync(filler, { force: true });
}

/** `keeps`: its contents stay in the folder. */
export async function closeDisk({ type, folder }: Disk, keeps: boolean): Promise<void> {
  if (type === "limited") return;
  const kept = `${folder}.kept`;
  if (keeps) await run("cp", ["-a", folder, kept]);
  await run("umount", ["--lazy", folder]);
  if (!keeps) return;
  rmSync(folder, { recursive: true });
  renameSync(kept, folder);
}

const noGrowthBytes = 4096;

/** Only the soft limit, which can be raised again, as the process's own user. Ignores a process that has ended. */
async function limitFiles(pid: number, bytes: string): Promise<void> {
  try {
    const { uid, gid } = statSync(`/proc/${pid}`);
    await run("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`], { uid, gid });
  } catch {
    // It has ended, or this system has no prlimit.
  }
}

function writeUntilFull(file: string): void {
  const descriptor = openSync(file, "w");
  try {
    for (let bytes = 1024 * 1024; bytes >= 512; ) {
      try {
        writeSync(descriptor, Buffer.alloc(bytes));
      } catch (error) {
        if ((error as { code?: string }).code !== "ENOSPC") throw error;
        bytes /= 2;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}
