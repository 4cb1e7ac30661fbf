/**
 * What root does in a folder that is another user's, it does as that user. Whoever got into a crawler can write
 * all of its folder: links, a lock that names any process, settings. So leaving and emptying are left to a child with
 * the owner's user and group, no environment and no terminal; root itself only removes the empty folder.
 */
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { z } from "zod";
import type { PartnerContext } from "../cli/partner-commands.ts";
import { marks } from "./home-folder.ts";
import { type LeaveOutcome, leaveCoordinator } from "./leave.ts";

export interface FolderOwner {
  readonly uid: number;
  readonly gid: number;
}

/** Null: this process is not root's, or the folder is root's own. */
export function otherOwner(home: string): FolderOwner | null {
  const { uid, gid } = statSync(home);
  return process.getuid?.() === 0 && uid !== 0 ? { uid, gid } : null;
}

/** As who owns the folder. Throws a ConfigError when the folder's files are damaged. */
export async function leaveAsOwner(
  { self }: Pick<PartnerContext, "self">,
  home: string,
): Promise<LeaveOutcome> {
  const owner = otherOwner(home);
  if (owner === null) return await leaveCoordinator(home);
  if (self === undefined) return failed(`the folder is user ${owner.uid}'s: run this as that user`);
  const args = [...self, "leave", "--json", "--home", homeOfChild(home)];
  const { output, errors } = await runAsOwner({ home, owner, args });
  const { data } = leaveOutcome.safeParse(jsonOf(output));
  return data ?? failed(`as user ${owner.uid}: ${printable(errors) || "it gave no answer"}`);
}

/** What the owner may remove is gone then; links are removed, never followed. */
export async function emptyAsOwner(home: string, owner: FolderOwner): Promise<void> {
  await runAsOwner({ home, owner, args: ["-e", emptying] });
}

/** For Node in the folder. `marks` go last: where something stays, the same command finds the crawler's folder again. */
const emptying = `const { readdirSync, rmSync } = require("node:fs");
const marks = ${JSON.stringify(marks)};
for (const name of readdirSync(".").filter((one) => !marks.includes(one))) {
  try { rmSync(name, { recursive: true, force: true }); } catch {}
}
const isLast = readdirSync(".").every((one) => marks.includes(one));
for (const name of isLast ? marks : []) rmSync(name, { recursive: true, force: true });`;

const longestMs = 5 * 60_000;
const mostOutput = 64 * 1024;

const reason = z.string().max(2000).transform(printable);
const leaveOutcome = z.union([
  z.object({ type: z.enum(["left", "never-joined"]) }),
  z.object({ type: z.enum(["refused", "failed", "still-runs"]), reason }),
]);

/**
 * The folder of a systemd unit lies below one that only root may enter (/var/lib/private): the child is put there
 * before it becomes the owner, and knows no other way to it.
 */
const homeOfChild = (home: string) => (process.platform === "linux" ? "/proc/self/cwd" : home);

interface OwnersWork {
  readonly home: string;
  readonly owner: FolderOwner;
  readonly args: readonly string[];
}

/** `detached`: a session of its own, so that nothing of the owner's reaches root's terminal. */
function runAsOwner({ home, owner, args }: OwnersWork): Promise<{ output: string; errors: string }> {
  const said = { output: "", errors: "" };
  const child = spawn(process.execPath, args, {
    ...owner,
    ...{ cwd: home, env: {}, detached: true, timeout: longestMs, killSignal: "SIGKILL" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const add = (to: keyof typeof said) => (piece: Buffer) => {
    said[to] = (said[to] + piece.toString("utf8")).slice(0, mostOutput);
  };
  child.stdout.on("data", add("output"));
  child.stderr.on("data", add("errors"));
  return new Promise((resolve) => {
    child.once("error", ({ message }) => resolve({ ...said, errors: message }));
    child.once("close", () => resolve(said));
  });
}

/** The words may be those of whoever has the folder: no control characters for root's terminal. */
function printable(text: string): string {
  return text
    .replace(/\p{C}+/gu, " ")
    .trim()
    .slice(0, 500);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const failed = (why: string): LeaveOutcome => ({ type: "failed", reason: why });
