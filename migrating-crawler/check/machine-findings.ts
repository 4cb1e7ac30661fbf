/** Checks what a crawler needs from the machine itself: Node, memory, open files, disk, permissions, ping. */
import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  statSync,
} from "node:fs";
import os from "node:os";
import { dirname, join } from "node:path";
import { membershipFile } from "../core/membership.ts";
import { identityFile } from "../membership/identity.ts";
import { signingKeysFile } from "../membership/signing-keys.ts";
import { systemEchoes } from "../probe/icmp-echo.ts";
import { type Finding, fix, note, ok } from "./coordinator-findings.ts";

const mebibyte = 1024 * 1024;
/** The peak with 500 open hosts is 253 MB (test/bench/results/crawl.md). */
const leastMemoryBytes = 300 * mebibyte;
const comfortableMemoryBytes = 700 * mebibyte;
/** Enough for the connections of 32 hosts (the default) twice over, three times as many waiting ones, and the spool. */
const leastOpenFiles = 512;
/** Disk space needed for releases and learned paces, in addition to results and WARC files. */
const otherDiskBytes = 100 * mebibyte;

/** What is read from the machine. Tests replace it. */
export interface MachineFacts {
  readonly nodeVersion: string;
  readonly memoryBytes: number;
  /** Null if the system does not report it. */
  readonly openFiles: number | null;
  readonly mayPing: () => Promise<boolean>;
}

export function factsOfThisMachine(): MachineFacts {
  return {
    nodeVersion: process.versions.node,
    memoryBytes: Math.min(os.totalmem(), containerMemoryBytes()),
    openFiles: openFileLimit(),
    mayPing: async () => await systemEchoes().canPing(),
  };
}

export async function machineFindings(
  facts: MachineFacts,
  wanted: { readonly home: string; readonly spoolBytes: number; readonly icmp: boolean },
): Promise<Finding[]> {
  return [
    nodeFinding(facts.nodeVersion),
    memoryFinding(facts.memoryBytes),
    filesFinding(facts.openFiles),
    folderFinding(wanted.home),
    diskFinding(wanted.home, wanted.spoolBytes),
    ...secretFindings(wanted.home),
    ...(wanted.icmp ? [await pingFinding(facts)] : []),
  ];
}

/** The required version is the one in `engines` of package.json. */
function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return ok("node", `Node ${version}.`);
  return fix("node", `Node is ${version}, and 20.19 is the oldest that will do: install a newer one.`);
}

function memoryFinding(bytes: number): Finding {
  const words = `${inMegabytes(bytes)} of memory`;
  if (bytes < leastMemoryBytes) {
    return fix(
      "memory",
      `${words}, and at least ${inMegabytes(leastMemoryBytes)} are needed: give the machine or container more.`,
    );
  }
  if (bytes >= comfortableMemoryBytes) return ok("memory", `${words}.`);
  return note("memory", `${words}: enough for a small crawler; keep concurrentHosts at 32 or below.`);
}

function filesFinding(limit: number | null): Finding {
  if (limit === null) return ok("open files", "this system does not tell its limit.");
  if (limit >= leastOpenFiles) return ok("open files", `up to ${limit}.`);
  return fix(
    "open files",
    `at most ${limit}, and ${leastOpenFiles} are needed: raise it (LimitNOFILE= in a systemd unit, \`ulimit -n\` in a shell).`,
  );
}

function folderFinding(home: string): Finding {
  const folder = nearestExisting(home);
  try {
    if (folder === home) rmdirSync(mkdtempSync(join(home, ".check-")));
    else accessSync(folder, constants.W_OK | constants.X_OK);
    return ok("folder", folder === home ? `${home} can be written.` : `${home} can be made.`);
  } catch (error) {
    return fix(
      "folder",
      `${folder} cannot be written (${(error as Error).message}): give it to the crawler's user, or name another with --home.`,
    );
  }
}

function diskFinding(home: string, spoolBytes: number): Finding {
  const folder = nearestExisting(home);
  try {
    const { bavail, bsize } = statfsSync(folder);
    const freeBytes = bavail * bsize;
    const words = `${inMegabytes(freeBytes)} are free at ${folder}`;
    if (freeBytes >= spoolBytes + otherDiskBytes) return ok("disk", `${words}.`);
    return fix(
      "disk",
      `${words}, and up to ${inMegabytes(spoolBytes + otherDiskBytes)} may be needed: free some, or lower limits.spoolBytes.`,
    );
  } catch (error) {
    return note("disk", `the free space at ${folder} is not told (${(error as Error).message}).`);
  }
}

/** Returns null if the system does not report the free space. The folder need not exist yet. */
export function freeDiskBytes(home: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(nearestExisting(home));
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Only the crawler's own user may read its keys. */
function secretFindings(home: string): Finding[] {
  return [membershipFile(home), identityFile(home), signingKeysFile(home)]
    .filter((file) => existsSync(file) && process.platform !== "win32" && (statSync(file).mode & 0o077) !== 0)
    .map((file) => fix("keys", `${file} can be read by others: run \`chmod 600 ${file}\`.`));
}

async function pingFinding(facts: MachineFacts): Promise<Finding> {
  if (await facts.mayPing()) return ok("ping", "allowed.");
  return note(
    "ping",
    "not possible for this user, so latencies are measured by HTTP and TCP alone, which is fine. To " +
      "allow it: install the ping command and set net.ipv4.ping_group_range to include this user's group.",
  );
}

/** Node reports 0, or an impossibly large number, when there is no limit. */
function containerMemoryBytes(): number {
  const bytes = process.constrainedMemory?.() ?? 0;
  return bytes > 0 ? bytes : Number.POSITIVE_INFINITY;
}

/** Reads `/proc` (proc(5)), which only Linux has. */
function openFileLimit(): number | null {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

const inMegabytes = (bytes: number) => `${Math.floor(bytes / mebibyte)} MB`;
