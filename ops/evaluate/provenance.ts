/** When, at which commit and on which machine something was measured, for the pages of results. */
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";

export function provenance(now: Date): string {
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}`;
  const date = now.toISOString().slice(0, 10);
  return `Measured on ${date} at ${commit()}, ${machine}, Node ${process.versions.node}.`;
}

/** `commit 1a2b3c4`, or that it is not known, as in an installed package. */
function commit(): string {
  const git = (...words: string[]) =>
    execFileSync("git", words, {
      encoding: "utf8",
      timeout: 10_000,
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return `commit ${git("rev-parse", "--short", "HEAD")}${changed ? " with changes" : ""}`;
  } catch {
    return "an unknown commit";
  }
}
